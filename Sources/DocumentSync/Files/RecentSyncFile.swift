import SyncModel

/// A marker in RecentSyncs: what a client has published and applied.
struct RecentSyncFile: Hashable, Codable {
  /// A whole store that the client has uploaded or downloaded and found
  /// whole.
  struct WholeStore: Hashable, Codable {
    var client: ClientIdentifier
    var number: UInt64
    var hash: ContentHash
    /// The change sets that it contains.
    var vector: VersionVector
  }

  var root: RootIdentifier
  var document: DocumentName
  var generation: IntegrityKey
  var client: ClientIdentifier
  /// From 1; the highest counts.
  var revision: UInt64
  /// The hash of the client's previous marker.
  var previous: ContentHash?
  /// The last change set of its own.
  var changeHead: VersionVector.Entry?
  /// The last command of its own.
  var commandHead: VersionVector.Entry?
  /// What it has durably applied of the others.
  var applied: VersionVector
  /// The members of the document as it knows them, itself included.
  var members: [ClientIdentifier]
  var wholeStores: [WholeStore]
  /// The least number of its change sets that is still in the directory.
  var lowestKept: UInt64
  /// What it is waiting for.
  var waiting: [SyncWait]
  var readerVersion = FormatVersion.reader
  /// By its own clock; decides nothing.
  var milliseconds: Int64
}
