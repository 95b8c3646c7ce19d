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
    /// The commands that it has processed.
    var commands: VersionVector
    /// The length of its file.
    var byteCount: Int
  }

  /// A segment that the client has made, or read and found whole.
  struct Segment: Hashable, Codable {
    var client: ClientIdentifier
    var first: UInt64
    var last: UInt64
    var hash: ContentHash
  }

  /// A client that is retired, and what is left of it.
  struct Retired: Hashable, Codable {
    var client: ClientIdentifier
    /// Up to which number its change sets are applied; `nil` as long as not
    /// everybody has stopped.
    var cut: UInt64?
    /// The least numbers of its change sets and of its commands that were
    /// not cleared away.
    var lowestKept: UInt64
    var lowestKeptCommand: UInt64
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
  /// The commands that it has processed, its own among them.
  var commandsApplied: VersionVector
  /// The members of the document as it knows them, itself included.
  var members: [ClientIdentifier]
  /// The whole stores that it has found whole.
  var wholeStores: [WholeStore]
  /// The segments that it has found whole, its own among them.
  var segments: [Segment]
  /// The least number of its change sets that was not cleared away.
  var lowestKept: UInt64
  /// The least number of its commands that was not cleared away.
  var lowestKeptCommand: UInt64
  /// The clients that are retired, as far as it knows, in order.
  var retired: [Retired]
  /// What it is waiting for.
  var waiting: [SyncWait]
  var readerVersion = FormatVersion.reader
  /// By its own clock; decides nothing.
  var milliseconds: Int64
}
