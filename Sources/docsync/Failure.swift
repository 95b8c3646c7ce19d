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
  /// The error of the library whose remedy can still name the database and the directory.
  private var error: SyncError?

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
        path: nil, remedy: Self.startAgain)
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
      remedy: Self.remedy(error, at: CommandPlace()), detail: error.detail,
      status: ExitStatus(error.classification))
    actions = error.remedy.actions.map(\.code)
    self.error = error
  }

  /// Returns the failure with commands that name the database and the directory, unless they do
  /// already.
  func at(_ place: CommandPlace) -> Failure {
    guard let error else { return self }
    var copy = self
    copy.remedy = Self.remedy(error, at: place)
    copy.error = nil
    return copy
  }

  /// Returns the remedy of the library with the commands of docsync, or one that names options and
  /// replaces it.
  private static func remedy(_ error: SyncError, at place: CommandPlace) -> String {
    switch error.code {
    case .cancelled: startAgain
    case .storeBusy where place.canWait, .storeInUse where place.canWait:
      error.remedy.commandText(at: place) + " To let docsync wait longer, add --wait 60."
    // If the existing file is under sync, perhaps because joining was interrupted, the library's
    // remedy says how to go on.
    case .fileExists where !error.remedy.actions.contains(.synchronize):
      "To add its rows to the document: \(Remedy.Action.joinMerging.command(at: place)). To keep it "
        + "only as a backup: the same with --replace. Or choose another path."
    case .documentExists:
      "To add the rows of this database to it: \(Remedy.Action.joinMerging.command(at: place)). "
        + "Or choose another name with --document."
    case .confirmationNeeded:
      "Look at it with “docsync status \(place.storeWord)”, then give --yes."
    case .documentAmbiguous: "Choose one with --document."
    // If a set-up is not complete, the library's remedy completes or ends it.
    case .directoryAway where !error.remedy.actions.contains(.leaveAbandoning): away(place)
    // The set-up was begun with words that may differ from those of this command.
    case .setUpUnfinished: error.remedy.commandText(at: CommandPlace(store: place.store))
    default: error.remedy.commandText(at: place)
    }
  }

  private static let startAgain = "Nothing is lost. Call the same command again."

  private static func away(_ place: CommandPlace) -> String {
    guard place.isUnderSync else {
      return "Check the path, mount the shared directory, or create it with “mkdir -p "
        + "\(place.directoryWord)”, then try again."
    }
    return "Check the path, or mount the shared directory, then try again. If it has moved: "
      + "“docsync sync \(place.storeWord) --directory NEW”."
  }

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
  private enum CodingKeys: String, CodingKey {
    case code, exitCode, message, lines, path, remedy, actions, detail
  }

  /// Writes all keys; those without a value are null.
  func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encode(code, forKey: .code)
    try container.encode(status.rawValue, forKey: .exitCode)
    try container.encode(message, forKey: .message)
    try container.encode(messageLines, forKey: .lines)
    try container.encode(path, forKey: .path)
    try container.encode(remedy, forKey: .remedy)
    try container.encode(actions, forKey: .actions)
    try container.encode(detail, forKey: .detail)
  }
}
