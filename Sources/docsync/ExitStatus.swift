import DocumentSync

/// The exit code of a command.
enum ExitStatus: Int32, CaseIterable {
  /// Everything was done.
  case done = 0
  /// The command failed.
  case failed = 1
  /// The command line is wrong.
  case usage = 2
  /// Done, but something waits or needs a decision.
  case waiting = 3
  /// The shared directory is not there, or does not answer.
  case directoryAway = 4
  /// Refused, to protect data.
  case refused = 5
  /// Another process works on the database.
  case busy = 6

  init(_ classification: SyncError.Classification) {
    switch classification {
    case .failed: self = .failed
    case .directoryAway: self = .directoryAway
    case .refused: self = .refused
    case .busy: self = .busy
    }
  }

  var meaning: String {
    switch self {
    case .done: "done"
    case .failed: "failed"
    case .usage: "wrong usage"
    case .waiting: "done, but something is waiting or needs a decision"
    case .directoryAway: "the shared directory is away; nothing was changed"
    case .refused: "refused, to protect data; nothing was changed"
    case .busy: "busy: another process works on the database; try again later"
    }
  }

  /// The codes and their meanings, one on each line.
  static var table: String {
    allCases.map { "  \($0.rawValue)  \($0.meaning)" }.joined(separator: "\n")
      + "\n  A command that is interrupted ends by the signal (130 in the shell)."
  }

  /// Returns the worst status of several actions.
  static func worst(_ statuses: [ExitStatus]) -> ExitStatus {
    let bySeverity: [ExitStatus] = [.failed, .usage, .refused, .busy, .directoryAway, .waiting]
    return bySeverity.first(where: statuses.contains) ?? .done
  }
}
