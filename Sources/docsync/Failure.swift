import DocumentSync
import Foundation
import SyncDirectory
import SyncModel
import SyncStore

/// The reason why a command failed, as it is printed.
struct Failure: Error, Sendable {
  /// The name of the kind of failure, for programs.
  var code: String
  /// What failed, a sentence.
  var message: String
  /// The file or folder concerned.
  var path: String?
  /// What to do next, a sentence.
  var remedy: String
  /// The codes of the actions that the library's remedy names.
  var actions: [String] = []
  /// The detail, for a developer.
  var detail: String?
  var status: ExitStatus
  /// The lines of the message, if it has several.
  private var messageLines: [String]

  init(
    code: String, message: String, path: String?, remedy: String, detail: String? = nil,
    status: ExitStatus = .failed
  ) {
    self.init(
      code: code, messageLines: [message], path: path, remedy: remedy, detail: detail,
      status: status)
  }

  init(
    code: String, messageLines: [String], path: String?, remedy: String, detail: String? = nil,
    status: ExitStatus = .failed
  ) {
    self.code = code
    self.messageLines = messageLines
    message = messageLines.joined(separator: "\n  ")
    self.path = path
    self.remedy = remedy
    self.detail = detail
    self.status = status
  }

  /// Creates the failure for an error of any layer.
  init(_ error: any Error) {
    switch error {
    case let error as Failure: self = error
    case let error as SyncError: self.init(error)
    case is StoreError, is DirectoryError, is CodecError:
      self.init(SyncError.wrapping(error, operation: "run the command"))
    case is CancellationError:
      self.init(
        code: SyncError.Code.cancelled.rawValue, message: "The command was interrupted.",
        path: nil, remedy: "Start it again to continue from where it stopped.")
    case let error as CocoaError:
      self.init(
        code: SyncError.Code.localFile.rawValue, message: error.localizedDescription,
        path: error.filePath ?? error.url?.path,
        remedy: "Check that the folder is there and that this user may write to it.",
        detail: "\(error)")
    default:
      self.init(
        code: SyncError.Code.internalFault.rawValue, message: error.localizedDescription,
        path: nil, remedy: "Report this as a defect of docsync.", detail: "\(error)")
    }
  }

  private init(_ error: SyncError) {
    self.init(
      code: error.code.rawValue, message: error.message, path: error.path,
      remedy: Self.remedy(error), detail: error.detail,
      status: ExitStatus(error.classification))
    actions = error.remedy.actions.map(\.code)
  }

  private static func remedy(_ error: SyncError) -> String {
    // The existing file is under sync, perhaps because joining was interrupted.
    if error.code == .fileExists, error.remedy.actions.contains(.synchronize) {
      return error.remedy.commandText
    }
    // A set-up is not complete, which the remedy ends or completes.
    if error.remedy.actions.contains(.leaveAbandoning), error.code == .directoryAway {
      return error.remedy.commandText
    }
    return remedies[error.code] ?? error.remedy.commandText
  }

  /// Remedies that name options of the command and replace those of the library.
  private static let remedies: [SyncError.Code: String] = [
    .documentExists: "Get it with “docsync join”, or choose another name with --document.",
    .confirmationNeeded: "Look at it with “docsync status”, then give --yes.",
    .documentAmbiguous: "Choose one with --document.",
    .fileExists:
      "Add --merge to add its rows to the document, or --replace to keep it only as a backup, "
      + "or choose another path.",
    .directoryAway:
      "Check the path, mount the shared directory, or create it with mkdir -p, then try again. "
      + "If it has moved, give its new path with --directory.",
  ]

  /// Whether the message is so vague that the detail helps.
  private var needsDetail: Bool {
    let vague: [SyncError.Code] = [.storeFailed, .directoryFailed, .internalFault, .localFile]
    return vague.contains { $0.rawValue == code }
  }

  /// What failed, on which path, and what to do next, a line each.
  var lines: [String] {
    var lines = ["docsync: " + messageLines[0]] + messageLines.dropFirst().map { "  " + $0 }
    if let path { lines.append("  path: \(path)") }
    lines.append("  next: \(remedy)")
    if let detail, !detail.isEmpty, needsDetail { lines.append("  detail: \(detail)") }
    return lines
  }
}

extension Failure: Encodable {
  private enum CodingKeys: String, CodingKey { case code, message, path, remedy, actions, detail }

  /// Writes all keys; those without a value are null.
  func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encode(code, forKey: .code)
    try container.encode(message, forKey: .message)
    try container.encode(path, forKey: .path)
    try container.encode(remedy, forKey: .remedy)
    try container.encode(actions, forKey: .actions)
    try container.encode(detail, forKey: .detail)
  }
}
