import SyncModel

/// The findings of verifying a store, and the store's records of itself.
public struct StoreVerification: Sendable {
  /// The findings.
  public var report = VerifyReport()
  /// The binding of the store; `nil` if it cannot be read.
  public var binding: StoreBinding?
  /// The change sets of all clients, this one included, that have been applied; `nil` if that
  /// cannot be read.
  public var vector: VersionVector?
  /// The change sets that the store has made, as far as it remembers them,
  /// those that it made as another client included, in order.
  public var sealed: [SealedChangeSet] = []
  /// The commands that the store has made and sealed, in order.
  public var commands: [QueuedCommand] = []
  /// The state that commands have led to, as the layer above has written it.
  public var commandState: [UInt8]?
  /// The small values of the layer above, by key.
  public var records: [String: [UInt8]] = [:]
}
