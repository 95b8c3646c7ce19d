import SyncModel

/// The findings of verifying a store, and the store's records of itself.
package struct StoreVerification: Sendable {
  /// The findings.
  package var report = VerifyReport()
  /// The binding of the store; `nil` if it cannot be read.
  package var binding: StoreBinding?
  /// The change sets of all clients, this one included, that have been applied; `nil` if they
  /// cannot be read.
  package var vector: VersionVector?
  /// The change sets that the store has made, as far as it remembers them, in order. They include
  /// those that it made as another client.
  package var sealed: [SealedChangeSet] = []
  /// The commands that the store has made and sealed, in order.
  package var commands: [QueuedCommand] = []
  /// The result of all processed commands, as the layer above has written it.
  package var commandState: [UInt8]?
  /// The records of the layer above, by key.
  package var records: [String: [UInt8]] = [:]
}
