import SyncModel

/// Where a sealed file belongs: its path, and what the path says about it.
package struct SealedPlace: Hashable, Sendable {
  /// The type of the file.
  package var type: Envelope.FileType
  /// The application.
  package var root: RootIdentifier
  /// The name of the folder of the document.
  package var document: DocumentName
  /// The generation; `nil` if the path does not name it.
  package var generation: IntegrityKey?
  /// The client; `nil` if the path does not name it.
  package var client: ClientIdentifier?
  /// The number: of a change set, the first of a segment, of a command or whole store, the revision
  /// of a marker, the ordinal of a generation or tombstone.
  package var number: UInt64
  /// The path below the root, up to the hash.
  package var pathBeforeHash: String
  /// The path from the hash on; `nil` if the name has no hash.
  package var pathAfterHash: String?
  /// The fragment of the hash in the name; `nil` for a file that is being made.
  package var fragment: String?

  /// Creates a place from its parts.
  package init(
    type: Envelope.FileType, root: RootIdentifier, document: DocumentName,
    generation: IntegrityKey?, client: ClientIdentifier?, number: UInt64, pathBeforeHash: String,
    pathAfterHash: String? = nil, fragment: String? = nil
  ) {
    self.type = type
    self.root = root
    self.document = document
    self.generation = generation
    self.client = client
    self.number = number
    self.pathBeforeHash = pathBeforeHash
    self.pathAfterHash = pathAfterHash
    self.fragment = fragment
  }

  /// The path without the hash: the key of the file depends on it.
  var pathWithoutHash: String { pathBeforeHash + (pathAfterHash ?? "") }

  /// Returns the path of the file with a trailer: the signature covers it.
  package func path(of trailer: ContentHash) -> String {
    pathAfterHash.map { pathBeforeHash + trailer.nameFragment + $0 } ?? pathBeforeHash
  }
}

/// The beginning of the public header of every sealed file.
package struct PublicPlace: Hashable, Sendable {
  /// The application.
  package var root: RootIdentifier
  /// The name of the folder of the document.
  package var document: DocumentName
  /// The integrity key of the generation.
  package var generation: IntegrityKey
  /// The client that the signer claims to be.
  package var client: ClientIdentifier
  /// The number, as in ``SealedPlace/number``.
  package var number: UInt64

  /// The length of ``bytes``.
  static let byteCount = 4 * 16 + 8

  /// Creates the beginning of a header.
  package init(
    root: RootIdentifier, document: DocumentName, generation: IntegrityKey,
    client: ClientIdentifier, number: UInt64
  ) {
    self.root = root
    self.document = document
    self.generation = generation
    self.client = client
    self.number = number
  }

  /// The bytes, as the public header of a change set begins.
  package var bytes: [UInt8] {
    var bytes = root.bits.bytes + document.bits.bytes + generation.bits.bytes + client.bits.bytes
    bytes.append(little: number)
    return bytes
  }

  init(reading header: [UInt8]) throws {
    var reader = CanonicalReader(header, name: "public header")
    self.init(
      root: RootIdentifier(bits: try reader.bits()),
      document: DocumentName(bits: try reader.bits()),
      generation: IntegrityKey(bits: try reader.bits()),
      client: ClientIdentifier(bits: try reader.bits()), number: try reader.number(UInt64.self))
  }

  /// Returns whether the header agrees with a path.
  func agrees(with place: SealedPlace) -> Bool {
    root == place.root && document == place.document && number == place.number
      && place.generation.map { $0 == generation } ?? true
      && place.client.map { $0 == client } ?? true
  }
}
