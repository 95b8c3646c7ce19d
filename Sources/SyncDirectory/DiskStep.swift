/// A change that a ``FolderDirectory`` makes to its disk, or a flush. The observer receives it
/// beforehand, so that a test knows what a power cut may leave.
///
/// If the observer throws, the call ends as if the process were killed at this moment.
package enum DiskStep: Hashable, Sendable {
  case makeFolder(RelativePath)
  /// Creates an empty file.
  case create(RelativePath)
  /// Appends bytes to a file.
  case write(RelativePath, [UInt8])
  case rename(RelativePath, to: RelativePath)
  /// Removes a file or an empty folder.
  case remove(RelativePath)
  /// Writes the bytes and metadata of a file to the medium.
  case flushFile(RelativePath)
  /// Writes the names in a folder to the medium.
  case flushFolder(RelativePath)
}

extension FolderDirectory {
  /// Passes a step to the observer, if there is one.
  func tell(_ step: @autoclosure () -> DiskStep) throws { try observer?(step()) }
}
