import SyncModel

/// What exchanging a store's content did.
public struct ContentReplacement: Hashable, Sendable {
  /// A change set of this store that the new content does not contain, and
  /// that belongs to the generation that the store has left.
  public struct OwnChangeSet: Hashable, Sendable {
    /// The client as which the store has sealed it: the one that it is, or
    /// one that it was.
    public var client: ClientIdentifier
    /// Its number.
    public var number: UInt64
    /// The hash of its file.
    public var hash: ContentHash
    /// Its file, as it was sealed.
    public var bytes: [UInt8]

    /// Joins the parts.
    public init(
      client: ClientIdentifier, number: UInt64, hash: ContentHash, bytes: [UInt8]
    ) {
      self.client = client
      self.number = number
      self.hash = hash
      self.bytes = bytes
    }
  }

  /// Where the copy is of the store as it was.
  public var backup: String
  /// What the new content contained, before own change sets were applied
  /// again.
  public var vector = VersionVector()
  /// The own change sets that were applied again.
  public var reapplied: [AppliedChangeSet] = []
  /// The own change sets that wait until what they depend on has come.
  public var waiting: [WaitingChangeSet] = []
  /// With another binding: the own change sets that have to be written anew.
  /// The store keeps them until ``LocalStore/writeReturningAnew(checkCancellation:)``.
  public var pendingOwn: [OwnChangeSet] = []
  /// What became of the rows that the store had, where these were merged.
  public var merged: MergedRows?
  /// Whether the tables took the schema of the whole store.
  public var changedSchema = false
  /// Rows that the exchange put into tables, and those that it took out.
  public var insertedRows = 0
  /// Rows that the exchange took out of tables, or replaced by others.
  public var deletedRows = 0
  /// Cells and rows for which own change sets and the new content contradict.
  public var conflicts = 0
  /// What people may want to know.
  public var warnings: [SyncWarning] = []

  /// A report of nothing but the copy.
  public init(backup: String) { self.backup = backup }
}
