/// A change that a ``FolderDirectory`` makes on its disk, or a flush, told of
/// before it is made: by these a test knows what a power cut may leave.
///
/// What an observer throws ends the call, as a kill at this moment would.
package enum DiskStep: Hashable, Sendable {
  case makeFolder(RelativePath)
  /// An empty file begins.
  case create(RelativePath)
  /// Bytes are added to a file.
  case write(RelativePath, [UInt8])
  case rename(RelativePath, to: RelativePath)
  /// A file, or an empty folder, goes.
  case remove(RelativePath)
  /// The bytes of a file, and what the disk keeps of it, come to the medium.
  case flushFile(RelativePath)
  /// The names in a folder come to the medium.
  case flushFolder(RelativePath)
}

extension FolderDirectory {
  /// Tells the observer, if there is one.
  func tell(_ step: @autoclosure () -> DiskStep) throws { try observer?(step()) }
}
