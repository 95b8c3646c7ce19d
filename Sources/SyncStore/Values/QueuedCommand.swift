import SyncModel

/// A command of this client, from when it was asked for until it is cleared
/// away.
package struct QueuedCommand: Hashable, Sendable {
  /// The order in which commands were asked for.
  package var sequence: Int64
  /// Its content, from which the layer above makes a file.
  package var content: [UInt8]
  /// Its number and the hash of its file, once it is sealed.
  package var sealed: VersionVector.Entry?
  /// Whether it is known to be in the shared directory.
  package var isPublished: Bool

  /// Creates a queued command from its parts.
  package init(
    sequence: Int64, content: [UInt8], sealed: VersionVector.Entry?, isPublished: Bool
  ) {
    self.sequence = sequence
    self.content = content
    self.sealed = sealed
    self.isPublished = isPublished
  }
}
