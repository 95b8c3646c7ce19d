import Testing

@testable import SyncModel

struct EnvelopeTests {
  private struct Marker: Codable, Equatable {
    var zebra = 1
    var apple: String
    var path = "a/b"
  }

  private func expect(
    _ code: CodecError.Code, _ bytes: [UInt8], type: Envelope.FileType? = nil,
    limits: CodecLimits = .default
  ) {
    let error = #expect(throws: CodecError.self) {
      try Envelope.decode(bytes, expecting: type, limits: limits)
    }
    #expect(error?.code == code)
  }

  @Test(arguments: [0, 1, 100, 100_000])
  func partsComeBackAsTheyWere(count: Int) throws {
    for type in Envelope.FileType.allCases {
      let envelope = Envelope(
        type: type, publicHeader: [1, 2], privateHeader: [3],
        body: (0..<count).map { UInt8($0 % 7) })
      let bytes = try envelope.encoded()
      var decoded = try Envelope.decode(bytes, expecting: type)
      #expect(count < 1000 || bytes.count < count / 10)
      decoded.compression = .deflate
      #expect(decoded == envelope)
    }
  }

  @Test func bodyThatDoesNotShrinkIsStored() throws {
    var generator = SeededGenerator(seed: 1)
    let body = generator.bytes(1000)
    let bytes = try Envelope(type: .asset, body: body).encoded()
    #expect(bytes.count == 88 + 1000 + 36)
    #expect(try Envelope.decode(bytes).body == body)
  }

  @Test func equalValuesGiveEqualJSONWithSortedKeys() throws {
    let value = Marker(apple: "x")
    let bytes = try Envelope.encodeJSON(value, type: .recentSync)
    #expect(try Envelope.encodeJSON(value, type: .recentSync) == bytes)
    let body = try Envelope.decode(bytes).body
    #expect(String(decoding: body, as: UTF8.self) == #"{"apple":"x","path":"a/b","zebra":1}"#)
    #expect(try Envelope.decodeJSON(Marker.self, from: bytes, type: .recentSync) == value)
  }

  @Test func jsonOfAnotherTypeOrShapeIsRefused() throws {
    let bytes = try Envelope.encodeJSON(["other": 1], type: .recentSync)
    let wrong = #expect(throws: CodecError.self) {
      try Envelope.decodeJSON([String: Int].self, from: bytes, type: .generation)
    }
    #expect(wrong?.code == .wrongType)
    let malformed = #expect(throws: CodecError.self) {
      try Envelope.decodeJSON(Marker.self, from: bytes, type: .recentSync)
    }
    #expect(malformed?.code == .malformed)
  }

  @Test func unknownOptionalFieldsAndFlagsAreCarriedAndIgnored() throws {
    var envelope = Envelope(type: .generation, body: [1, 2, 3])
    envelope.fields = [
      Envelope.Field(tag: 1, content: [9]), Envelope.Field(tag: 0x7FFF, content: []),
    ]
    let bytes = try envelope.encoded()
    #expect(try Envelope.decode(bytes).fields == envelope.fields)
    let flagged = ChangeSetBytes.replacing(bytes, at: 12, with: [0xFF, 0xFF])
    #expect(try Envelope.decode(flagged).body == [1, 2, 3])
  }

  @Test func unknownCriticalThingsNeedANewerReader() throws {
    var envelope = Envelope(type: .generation, body: [1, 2, 3])
    let bytes = try envelope.encoded()
    envelope.fields = [Envelope.Field(tag: 0x8001, content: [])]
    for bytes in [
      try envelope.encoded(), ChangeSetBytes.replacing(bytes, at: 14, with: [2]),
      ChangeSetBytes.replacing(bytes, at: 11, with: [1]),
      ChangeSetBytes.replacing(bytes, at: 8, with: [2]),
    ] {
      let error = #expect(throws: CodecError.self) { try Envelope.decode(bytes) }
      #expect(error?.needsNewerReader == true)
    }
  }

  @Test func signatureIsCarriedButNotHashed() throws {
    var envelope = Envelope(type: .generation, body: [1, 2, 3])
    let unsigned = try envelope.encoded()
    envelope.signature = [UInt8](repeating: 7, count: 64)
    let signed = try envelope.encoded()
    #expect(signed.dropLast(68) == unsigned.dropLast(4))
    #expect(try Envelope.decode(signed).signature == envelope.signature)
  }

  @Test func lengthsOverTheCapsAreRefusedBeforeAnythingElse() throws {
    let bytes = try Envelope(type: .generation, body: [1, 2, 3]).encoded()
    for offset in [56, 60, 64, 72, 80] {
      var changed = bytes
      changed[offset + 3] = 0x7F
      expect(.lengthOverCap, changed)
    }
    var limits = CodecLimits.default
    limits.fileBytes = bytes.count - 1
    expect(.lengthOverCap, bytes, limits: limits)
    #expect(throws: CodecError.self) {
      try Envelope(type: .asset, body: [UInt8](repeating: 0, count: 100)).encoded(
        limits: CodecLimits(
          fileBytes: 1000, publicBytes: 10, privateBytes: 10, bodyBytes: 99, memoryBytes: 1000,
          tables: 1, rows: 1, columns: 1))
    }
  }

  @Test func announcedLengthThatDeflateCannotReachIsRefused() throws {
    let body = [UInt8](repeating: 0, count: 100_000)
    let bytes = try Envelope(type: .asset, body: body).encoded()
    #expect(try Envelope.decode(bytes).body == body)
    expect(.badCompression, ChangeSetBytes.replacing(bytes, at: 83, with: [0x05]))
    expect(.badCompression, ChangeSetBytes.replacing(bytes, at: 80, with: [0xA1]))
    expect(.badCompression, ChangeSetBytes.replacing(bytes, at: 80, with: [0x9F]))
  }

  @Test func errorsSayWhatToDo() {
    let error = CodecError(.unsupportedVersion, "format version 2", at: 8)
    #expect(
      error.description
        == "The file was written by a newer version of DocumentSync. (unsupportedVersion: "
        + "format version 2 at byte 8) Update DocumentSync on this device.")
  }
}
