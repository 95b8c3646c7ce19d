import SyncModel

extension SealedHead {
  /// The lengths in the fixed part.
  struct Lengths: Hashable, Sendable {
    var fields: Int
    var publicHeader: Int
    var stream: Int

    /// The length of the bytes before the stream.
    var head: Int { SealedHead.fixedByteCount + fields + publicHeader }
    /// The length of the file.
    var file: Int { head + stream + SealedHead.endByteCount }

    /// Reads the fixed part, and checks the caps. Throws ``CodecError``.
    init(fixedPart bytes: [UInt8], limits: SealedLimits) throws {
      var reader = CanonicalReader(bytes, name: "envelope")
      guard try reader.take(8) == SealedHead.magic else {
        throw CodecError(.badMagic, "magic", at: 0)
      }
      let version = try reader.number(UInt16.self)
      guard version == 1 else {
        throw CodecError(.unsupportedVersion, "format version \(version)", at: 8)
      }
      _ = try reader.byte()
      let suite = try reader.byte()
      guard suite == SealedHead.suite else {
        throw CodecError(.unknownCriticalField, "suite \(suite)", at: 11)
      }
      _ = try reader.take(44)
      fields = try reader.count("bytes of extension fields", cap: limits.publicBytes)
      publicHeader = try reader.count("bytes of public header", cap: limits.publicBytes)
      _ = try reader.take(8)
      let stream = try reader.number(UInt64.self)
      guard stream <= UInt64(limits.streamBytes) else {
        throw CodecError(.lengthOverCap, "stream of \(stream) bytes", at: 72)
      }
      self.stream = Int(stream)
    }
  }

  /// Decodes the bytes before the stream. Throws ``CodecError``.
  init(decoding bytes: [UInt8], lengths: Lengths) throws {
    var reader = CanonicalReader(bytes, name: "envelope")
    _ = try reader.take(10)
    type = try reader.byte()
    _ = try reader.byte()
    let flags = try reader.number(UInt32.self)
    guard flags & 0xFFFF_0000 == 0 else {
      throw CodecError(.unknownCriticalField, "critical flags", at: 12)
    }
    epochNumber = try reader.number(UInt32.self)
    guard try reader.number(UInt32.self) == UInt32(Self.chunkByteCount) else {
      throw CodecError(.malformed, "size of the chunks", at: 20)
    }
    salt = try reader.take(Self.saltByteCount)
    signer = DeviceIdentifier(bits: try reader.bits())
    _ = try reader.take(8)
    guard try reader.number(UInt64.self) == 0, try reader.number(UInt64.self) == lengths.stream,
      try reader.number(UInt64.self) == 0, epochNumber > 0
    else { throw CodecError(.malformed, "lengths that are inside", at: 64) }
    streamByteCount = lengths.stream

    var fields = CanonicalReader(try reader.take(lengths.fields), name: "extension fields")
    var last = -1
    var seed: ClientSeed?
    var identifier: ContentHash?
    otherFields = []
    while fields.remaining > 0 {
      let tag = try fields.number(UInt16.self)
      let content = try fields.take(Int(try fields.number(UInt16.self)))
      guard Int(tag) > last else { throw CodecError(.malformed, "order of extension fields") }
      last = Int(tag)
      switch tag {
      case Tag.client: seed = Bits128(bytes: content).map(ClientSeed.init)
      case Tag.epoch: identifier = ContentHash(bytes: content)
      case Envelope.Field.firstCriticalTag...:
        throw CodecError(.unknownCriticalField, "extension field \(tag)")
      default: continue
      }
    }
    guard let seed, let identifier else {
      throw CodecError(.malformed, "extension fields of suite 1")
    }
    self.seed = seed
    epochIdentifier = identifier
    publicHeader = try reader.take(lengths.publicHeader)
    try reader.expectEnd()
  }
}
