/// A step of writing the file with older conflicts.
package enum ConflictArchiveStep: String, Hashable, Sendable, CaseIterable {
  /// The file is about to be opened.
  case opening
  /// What no transaction has committed was cut off.
  case cut
  /// The blocks that count were copied to a new file.
  case copied
  /// The new file has the name.
  case renamed
  /// A block is about to be written.
  case writing
  /// A block was written, and is not flushed yet.
  case written
  /// A block is durable.
  case flushed
}
