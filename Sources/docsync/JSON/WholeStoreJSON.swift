import DocumentSync

/// A whole store in the shared directory, as printed.
struct WholeStoreJSON: Encodable, Sendable {
  var client: String
  var number: UInt64
  var hash: String
  var vector: VectorJSON
  /// The length of the file, in bytes.
  var byteCount: Int
  /// The length of the database, in bytes.
  var storeByteCount: Int

  init(_ store: WholeStoreDescription) {
    client = store.client.description
    number = store.number
    hash = store.hash.description
    vector = VectorJSON(store.vector)
    byteCount = store.byteCount
    storeByteCount = store.storeByteCount
  }
}
