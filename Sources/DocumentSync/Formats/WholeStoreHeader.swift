import SyncModel

/// The private header of a whole store, which describes its database.
struct WholeStoreHeader: Hashable, Codable {
  var root: RootIdentifier
  var document: DocumentName
  var generation: IntegrityKey
  var generationOrdinal: UInt64
  /// The client that uploaded it.
  var client: ClientIdentifier
  /// Its number among that client's whole stores.
  var number: UInt64
  /// The change sets that it contains, including the uploader's own.
  var vector: VersionVector
  /// The commands that it has processed.
  var commands: VersionVector
  /// The hash of the schema.
  var schema: ContentHash
  /// The length of the database, in bytes.
  var storeByteCount: Int
  /// The SHA-256 of the database.
  var storeHash: ContentHash
  var milliseconds: Int64
}
