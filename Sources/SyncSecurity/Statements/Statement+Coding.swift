import SyncModel

extension Statement {
  private static let version: UInt8 = 1
  /// The greatest length of a statement's file, without its frame.
  package static let greatestByteCount = 2 << 20
  /// The most documents that a grant or a removal can name.
  package static let greatestDocuments = 1024
  /// The most recipients of one statement with keys. For more, several statements are made.
  package static let greatestRecipients = 1024

  private enum Kind: UInt8 {
    case ownerGrant = 1
    case ownerRemoval = 2
    case grant = 3
    case removal = 4
    case keys = 5
    case file = 6
  }

  /// Encodes the statement as the bytes of its file.
  package func encoded() -> [UInt8] {
    OuterForm(
      type: .statement, body: Self.body(root, author, number, previous, content),
      signature: signature
    ).encoded()
  }

  /// Decodes the bytes of a file, and refuses every file that ``encoded()`` does not give.
  ///
  /// It does not verify the signature: only the other statements tell whose key it has to be.
  /// Throws ``CodecError``.
  package init(decoding bytes: [UInt8]) throws {
    let form = try OuterForm(
      decoding: bytes, expecting: .statement, greatestBody: Self.greatestByteCount)
    guard form.signature.count == VerifyingKey.signatureByteCount else {
      throw CodecError(.malformed, "statement: signature")
    }
    var reader = CanonicalReader(form.body, name: "statement")
    let version = try reader.byte()
    guard version == Self.version else {
      throw CodecError(.unsupportedVersion, "statement: version \(version)")
    }
    guard let kind = Kind(rawValue: try reader.byte()) else {
      throw CodecError(.unknownCriticalField, "statement: kind", at: 1)
    }
    let root = RootIdentifier(bits: try reader.bits())
    let author = DeviceIdentifier(bits: try reader.bits())
    let number = try reader.number(UInt64.self)
    let previous = try reader.optional(32).map { ContentHash(of: $0, isHash: true) }
    let content = try Self.content(kind, &reader)
    try reader.expectEnd()
    try Self.check(kind, isOfEnrolment: author == .enrolment(of: root), number, previous)
    self.init(
      root: root, author: author, number: number, previous: previous, content: content,
      signature: form.signature)
    guard hash == form.hash else { throw CodecError(.malformed, "statement: other bytes") }
  }

  /// Refuses statements of a kind that is not the author's, and places that no chain has.
  private static func check(
    _ kind: Kind, isOfEnrolment: Bool, _ number: UInt64, _ previous: ContentHash?
  ) throws {
    let isKindOfEnrolment = kind == .ownerGrant || kind == .ownerRemoval
    guard isKindOfEnrolment == isOfEnrolment else {
      throw CodecError(.malformed, "statement: kind \(kind.rawValue) of this author")
    }
    let isPlaceRight =
      isOfEnrolment
      ? number == 0 && previous == nil
      : number >= 1 && number <= VersionVector.greatestNumber && (number == 1) == (previous == nil)
    guard isPlaceRight else { throw CodecError(.malformed, "statement: place in the chain") }
  }

  // MARK: The body

  static func body(
    _ root: RootIdentifier, _ author: DeviceIdentifier, _ number: UInt64,
    _ previous: ContentHash?, _ content: Content
  ) -> [UInt8] {
    let (kind, part) = encoded(content)
    var bytes = [version, kind.rawValue] + root.bits.bytes + author.bits.bytes
    bytes.append(little: number)
    bytes.append(optional: previous?.bytes)
    return bytes + part
  }

  private static func encoded(_ content: Content) -> (Kind, [UInt8]) {
    switch content {
    case .ownerGrant(let grant):
      var bytes = grant.keys.bytes
      bytes.append(optional: grant.person?.bytes)
      return (.ownerGrant, bytes)
    case .ownerRemoval(let removal):
      var bytes = removal.device.bits.bytes
      bytes.append(optional: removal.head?.bytes)
      return (.ownerRemoval, bytes)
    case .grant(let grant):
      var bytes = grant.keys.bytes + [grant.role.rawValue]
      bytes.append(documents: grant.documents)
      bytes.append(optional: grant.newest?.bytes)
      bytes.append(optional: grant.person?.bytes)
      return (.grant, bytes)
    case .removal(let removal):
      var bytes = removal.device.bits.bytes
      bytes.append(documents: removal.documents)
      return (.removal, bytes)
    case .keys(let keys):
      return (.keys, keys.encoded())
    case .file(let file):
      return (.file, [file.kind.rawValue] + file.document.bits.bytes + file.hash.bytes)
    }
  }

  private static func content(_ kind: Kind, _ reader: inout CanonicalReader) throws -> Content {
    switch kind {
    case .ownerGrant:
      return .ownerGrant(
        OwnerGrant(
          keys: try DevicePublicKeys(reading: &reader),
          person: try SealedPerson(readingOptional: &reader)))
    case .ownerRemoval:
      return .ownerRemoval(
        OwnerRemoval(
          device: DeviceIdentifier(bits: try reader.bits()),
          head: try reader.optional(32).map { ContentHash(of: $0, isHash: true) }))
    case .grant:
      let keys = try DevicePublicKeys(reading: &reader)
      guard let role = Role(rawValue: try reader.byte()), role <= .writer else {
        throw CodecError(.malformed, "statement: role")
      }
      let documents = try documents(&reader)
      guard !documents.isEmpty else { throw CodecError(.malformed, "statement: documents") }
      return .grant(
        Grant(
          keys: keys, role: role, documents: documents,
          newest: try MarkerReference(readingOptional: &reader),
          person: try SealedPerson(readingOptional: &reader)))
    case .removal:
      return .removal(
        Removal(
          device: DeviceIdentifier(bits: try reader.bits()), documents: try documents(&reader)))
    case .keys:
      return .keys(try EpochKeys(reading: &reader))
    case .file:
      guard let kind = CountedFile.Kind(rawValue: try reader.byte()) else {
        throw CodecError(.malformed, "statement: kind of file")
      }
      return .file(
        CountedFile(
          kind: kind, document: DocumentName(bits: try reader.bits()), hash: try reader.hash()))
    }
  }
}

extension Statement {
  private static func documents(_ reader: inout CanonicalReader) throws -> [DocumentName] {
    var documents: [DocumentName] = []
    for _ in 0..<(try reader.count("documents", cap: greatestDocuments)) {
      let document = DocumentName(bits: try reader.bits())
      guard documents.last.map({ $0 < document }) ?? true else {
        throw CodecError(.malformed, "\(reader.name): order of documents", at: reader.offset)
      }
      documents.append(document)
    }
    return documents
  }
}

extension Statement.MarkerReference {
  fileprivate var bytes: [UInt8] {
    var bytes = client.bits.bytes
    bytes.append(little: revision)
    return bytes + hash.bytes
  }

  fileprivate init?(readingOptional reader: inout CanonicalReader) throws {
    guard let bytes = try reader.optional(16 + 8 + 32) else { return nil }
    var part = CanonicalReader(bytes, name: reader.name)
    self.init(
      client: ClientIdentifier(bits: try part.bits()), revision: try part.number(UInt64.self),
      hash: try part.hash())
  }
}

extension SealedPerson {
  fileprivate init?(readingOptional reader: inout CanonicalReader) throws {
    guard let bytes = try reader.optional(SealedPerson.byteCount) else { return nil }
    self.init(bytes: bytes)
  }
}

extension [UInt8] {
  fileprivate mutating func append(documents: [DocumentName]) {
    append(little: UInt32(documents.count))
    for document in documents { append(contentsOf: document.bits.bytes) }
  }
}

extension ContentHash {
  /// Takes 32 bytes that were read as the hash that they are.
  init(of bytes: [UInt8], isHash: Bool) {
    self = ContentHash(bytes: bytes) ?? ContentHash(of: bytes)
  }
}
