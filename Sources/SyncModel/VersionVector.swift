/// The number and the hash of the last applied change set of each client.
package struct VersionVector: Hashable, Sendable, Codable {
  /// A client's last applied change set.
  package struct Entry: Hashable, Sendable, Codable {
    /// Its number, from 1.
    package var number: UInt64
    /// The hash of its file.
    package var hash: ContentHash

    /// Creates an entry from its number and hash.
    package init(number: UInt64, hash: ContentHash) {
      self.number = number
      self.hash = hash
    }

    /// Reads `{number, hash}`; throws if the number is above
    /// ``VersionVector/greatestNumber``.
    package init(from decoder: any Decoder) throws {
      let container = try decoder.container(keyedBy: CodingKeys.self)
      number = try container.decode(UInt64.self, forKey: .number)
      hash = try container.decode(ContentHash.self, forKey: .hash)
      guard number <= VersionVector.greatestNumber else {
        throw DecodingError.dataCorruptedError(
          forKey: .number, in: container, debugDescription: "\(number) is no number of a change set"
        )
      }
    }
  }

  /// The greatest number of a change set, so that adding one to it does not overflow.
  package static let greatestNumber = UInt64(Int64.max) - 1

  /// The entries. A client without an applied change set has none.
  package private(set) var entries: [ClientIdentifier: Entry]

  /// Creates a vector with the given entries.
  package init(_ entries: [ClientIdentifier: Entry] = [:]) { self.entries = entries }

  /// A client's entry.
  package subscript(client: ClientIdentifier) -> Entry? {
    get { entries[client] }
    set { entries[client] = newValue }
  }

  /// Returns the number of a client's last applied change set; 0 if none is applied.
  package func number(of client: ClientIdentifier) -> UInt64 { entries[client]?.number ?? 0 }

  /// Returns whether this vector contains every change set that `other` contains. It does not
  /// compare hashes.
  package func contains(_ other: VersionVector) -> Bool {
    other.entries.allSatisfy { number(of: $0.key) >= $0.value.number }
  }

  /// Returns the clients for which `other` is ahead of this vector, in order.
  package func missing(from other: VersionVector) -> [ClientIdentifier] {
    other.entries.filter { number(of: $0.key) < $0.value.number }.keys.sorted()
  }

  /// The entries in order of client, as files have them.
  package var sorted: [(client: ClientIdentifier, entry: Entry)] {
    entries.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
  }

  /// Reads an object of `client: {number, hash}`.
  package init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    let texts = try container.decode([String: Entry].self)
    var entries: [ClientIdentifier: Entry] = [:]
    for (text, entry) in texts {
      guard let client = ClientIdentifier(text) else {
        throw DecodingError.dataCorruptedError(
          in: container, debugDescription: "\(text) is not a client identifier")
      }
      entries[client] = entry
    }
    self.entries = entries
  }

  /// Writes an object of `client: {number, hash}`.
  package func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(
      Dictionary(uniqueKeysWithValues: entries.map { ($0.key.description, $0.value) }))
  }
}
