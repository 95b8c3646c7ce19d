import Foundation
import SyncDirectory

extension SharedDirectory {
  /// The text by which a store finds the directory again: its location, or for
  /// a folder its absolute path, since a later process may run elsewhere.
  var hint: String {
    guard let folder else { return location }
    return URL(fileURLWithPath: folder.root).standardizedFileURL.path
  }

  /// The folder of the file system that the directory is; `nil` for other kinds.
  var folder: FolderDirectory? {
    if let retrying = self as? RetryingDirectory { return retrying.base.folder }
    if let limited = self as? TimeLimitedDirectory { return limited.base.folder }
    return self as? FolderDirectory
  }
}
