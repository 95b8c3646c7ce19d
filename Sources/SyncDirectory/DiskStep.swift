/// A change that a ``FolderDirectory`` makes on its disk, or a flush. The observer hears of
/// it before it is made, so that a test knows what a power cut may leave.
///
/// If an observer throws, the call ends, as if the process were killed at this moment.
package enum DiskStep: Hashable, Sendable {
  case makeFolder(RelativePath)
  /// An empty file is created.
  case create(RelativePath)
  /// Bytes are added to a file.
  case write(RelativePath, [UInt8])
  case rename(RelativePath, to: RelativePath)
  /// A file, or an empty folder, is removed.
  case remove(RelativePath)
  /// The bytes and metadata of a file are written to the medium.
  case flushFile(RelativePath)
  /// The names in a folder are written to the medium.
  case flushFolder(RelativePath)
}

extension FolderDirectory {
  /// Tells the observer, if there is one.
  func tell(_ step: @autoclosure () -> DiskStep) throws { try observer?(step()) }
}
