import SyncDirectory
import SyncModel

/// Sorts of files that their authors do not put back, so that there is
/// something else to do about those that cannot be read.
enum FileSort {
  /// An application file, a generation's file or a tombstone: nobody writes
  /// it again.
  case lasting
  /// What a client says about itself.
  case description
  /// The word that a client was removed.
  case removal
  /// A whole store: another takes its place.
  case wholeStore

  /// The sort of the file that has a path; `nil` for those that their authors
  /// put back.
  init?(path: String) {
    let parts = path.split(separator: "/").map(String.init)
    let name = parts.last ?? ""
    switch parts.count {
    case 1 where ApplicationName(name) != nil: self = .lasting
    case 2 where ClientDeviceName(name) != nil: self = .description
    case 2 where ClientRemovalName(name) != nil: self = .removal
    case 3 where GenerationName(name) != nil || DeletedName(name) != nil: self = .lasting
    case 6 where WholeStoreName(name) != nil: self = .wholeStore
    default: return nil
    }
  }

  /// What to do about a finding of this kind; `nil` for what is usual.
  func remedy(_ kind: VerifyFinding.Kind) -> String? {
    switch kind {
    case .truncated:
      "Wait until the shared directory has brought the rest of it. If it has, \(mend)."
    case .damaged, .misnamed, .malformed: "To mend it, \(mend)."
    case .wrongType, .misplaced:
      switch self {
      case .lasting, .description:
        "Move the file out of the shared directory. If one is missing then, \(mend)."
      case .removal, .wholeStore: "To mend it, \(mend)."
      }
    default: nil
    }
  }

  private var mend: String {
    switch self {
    case .lasting: "restore the file from another device's copy of the directory"
    case .description:
      "restore the file from another device's copy of the directory; only lists of devices go by it"
    case .removal:
      "remove the file, and run “docsync remove-client” again, which says anew who was removed; "
        + "only lists of devices go by it"
    case .wholeStore:
      "run “docsync upload” on a device that has the document, then remove the file"
    }
  }
}
