import Foundation
import SyncDirectory

extension SharedDirectory {
  /// The text by which a store finds the directory again: its location, or for
  /// a folder its absolute path, since a later process may run elsewhere.
  var hint: String {
    if let retrying = self as? RetryingDirectory { return retrying.base.hint }
    if let limited = self as? TimeLimitedDirectory { return limited.base.hint }
    guard let folder = self as? FolderDirectory else { return location }
    return URL(fileURLWithPath: folder.root).standardizedFileURL.path
  }
}
