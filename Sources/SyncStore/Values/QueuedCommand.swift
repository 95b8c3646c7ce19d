import SyncModel

/// A command of this client, from the request until its removal from the store.
package struct QueuedCommand: Hashable, Sendable {
  /// Its position in the order in which commands were requested.
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
