import SyncModel

/// The outcome of exchanging a store's content.
package struct ContentReplacement: Hashable, Sendable {
  /// A change set of this store that the new content does not contain, and
  /// that belongs to the generation that the store has left.
  package struct OwnChangeSet: Hashable, Sendable {
    /// The client as which the store has sealed it: its present client or a
    /// former one.
    package var client: ClientIdentifier
    /// Its number among the change sets of that client, from 1 on.
    package var number: UInt64
    /// The hash of its file.
    package var hash: ContentHash
    /// Its file, as it was sealed.
    package var bytes: [UInt8]

    /// Creates an own change set from its parts.
    package init(
      client: ClientIdentifier, number: UInt64, hash: ContentHash, bytes: [UInt8]
    ) {
      self.client = client
      self.number = number
      self.hash = hash
      self.bytes = bytes
    }
  }

  /// The path of the copy of the former file.
  package var backup: String
  /// The change sets that the new content contained, before own change sets
  /// were applied again.
  package var vector = VersionVector()
  /// The own change sets that were applied again.
  package var reapplied: [AppliedChangeSet] = []
  /// The own change sets that wait for others on which they depend.
  package var waiting: [StoreStatus.WaitingChangeSet] = []
  /// With another binding: the own change sets that have to be rewritten. The store has them until
  /// ``LocalStore/rewriteReturning(checkCancellation:)``.
  package var pendingOwn: [OwnChangeSet] = []
  /// The result of merging the store's former rows, if they were merged.
  package var merged: MergedRows?
  /// Whether the tables took the schema of the whole store.
  package var changedSchema = false
  /// Rows that the exchange put into tables.
  package var insertedRows = 0
  /// Rows that the exchange took out of tables, or replaced by others.
  package var deletedRows = 0
  /// Cells and rows in which own change sets contradict the new content.
  package var conflicts = 0
  /// Warnings for the user.
  package var warnings: [SyncWarning] = []

  /// Creates a report that has only the path of the copy.
  package init(backup: String) { self.backup = backup }
}
