import DocumentSync
import SyncDirectory

/// What a command finds at the path of a store's shared directory.
enum DirectoryState: String, Encodable, Sendable {
  case there, away, noAnswer, notReadable
  /// Nothing has been synchronized through the folder: the mount may be missing.
  case empty
  /// It is the shared directory of other documents.
  case other
  /// It could not be looked at for another reason.
  case unknown

  /// Looks at the directory of a store; changes nothing.
  init(of manager: DocumentSyncManager) async {
    do {
      let application = try await ApplicationSyncManager(
        directory: manager.directory, environment: manager.environment
      ).findApplication()
      self = application.root == manager.binding.root ? .there : .other
    } catch let error as SyncError {
      switch error.code {
      case .applicationMissing: self = .empty
      case .directoryNotReadable: self = .notReadable
      case .directoryAway: self = error.isNoAnswer ? .noAnswer : .away
      default: self = .unknown
      }
    } catch {
      self = .unknown
    }
  }

  /// Whether the folder can be listed.
  var isThere: Bool { [.there, .empty, .other].contains(self) }

  /// A note behind the path; empty if nothing is wrong.
  var note: String {
    switch self {
    case .there: ""
    case .away: "  (not there)"
    case .noAnswer: "  (does not answer)"
    case .notReadable: "  (this user may not read it)"
    case .empty: "  (empty: is it mounted?)"
    case .other: "  (another shared directory than that of this document)"
    case .unknown: "  (could not be looked at: see docsync verify)"
    }
  }
}

extension SyncError {
  /// Whether calls on the directory do not return.
  fileprivate var isNoAnswer: Bool { (underlying as? DirectoryError)?.code == .noAnswer }
}
