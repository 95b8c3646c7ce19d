import SyncDirectory
import SyncModel

/// Sorts of files that a thorough synchronization of their authors does not
/// put back as they were, so that there is something else to do about those
/// that cannot be read.
enum FileSort {
  /// The word that a client was removed.
  case removal
  /// A whole store: another takes its place.
  case wholeStore

  /// The sort of the file that has a path; `nil` for those that are put back.
  init?(path: String) {
    let parts = path.split(separator: "/").map(String.init)
    let name = parts.last ?? ""
    switch parts.count {
    case 2 where ClientRemovalName(name) != nil: self = .removal
    case 6 where WholeStoreName(name) != nil: self = .wholeStore
    default: return nil
    }
  }

  /// What to do about a finding of this kind; `nil` for what is usual.
  func remedy(_ kind: VerifyFinding.Kind) -> String? {
    switch kind {
    case .truncated:
      "Wait until the shared directory has brought the rest of it. If it has, \(mend)."
    case .damaged, .misnamed, .malformed, .wrongType, .misplaced: "To mend it, \(mend)."
    default: nil
    }
  }

  private var mend: String {
    switch self {
    case .removal:
      "remove the file, and run “docsync remove-client” again, which says anew who was removed; "
        + "only lists of devices go by it"
    case .wholeStore:
      "run “docsync upload” on a device that has the document, then remove the file"
    }
  }
}
