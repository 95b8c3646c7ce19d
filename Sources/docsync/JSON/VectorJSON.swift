import SyncModel

/// A version vector, as printed: an object from client to number and hash.
struct VectorJSON: Encodable, Sendable {
  /// The last change set of a client in the vector.
  struct Entry: Encodable, Sendable {
    var number: UInt64
    var hash: String
  }

  private let entries: [String: Entry]

  init(_ vector: VersionVector) {
    entries = Dictionary(
      uniqueKeysWithValues: vector.entries.map {
        ($0.key.description, Entry(number: $0.value.number, hash: $0.value.hash.description))
      })
  }

  func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(entries)
  }
}
