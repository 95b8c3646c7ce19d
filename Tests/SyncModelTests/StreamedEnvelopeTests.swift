import SyncModel
import Testing

struct StreamedEnvelopeTests {
  private func file(body: [UInt8], pieces: Int) throws -> [UInt8] {
    let zlib = try ZlibStream(.deflate)
    var stored: [UInt8] = []
    for start in stride(from: 0, to: body.count, by: pieces) {
      try zlib.push(Array(body[start..<min(start + pieces, body.count)]), isLast: false) {
        stored += $0
      }
    }
    try zlib.push([], isLast: true) { stored += $0 }
    let head = StreamedEnvelope(
      type: .wholeStore, publicHeader: [1, 2], privateHeader: [3, 4, 5], isCompressed: true,
      storedByteCount: stored.count, bodyByteCount: body.count)
    let bytes = head.encodedHead() + stored
    var hasher = ContentHasher()
    hasher.update(bytes)
    return bytes + StreamedEnvelope.trailer(for: hasher.hash)
  }

  private let body = (0..<700_000).map { UInt8(truncatingIfNeeded: $0 &* $0 >> 7) }

  @Test func fileWrittenInPartsIsAnEnvelope() throws {
    let bytes = try file(body: body, pieces: 100_001)
    let envelope = try Envelope.decode(bytes, expecting: .wholeStore)
    #expect(envelope.body == body)
    #expect(envelope.publicHeader == [1, 2])
    #expect(envelope.privateHeader == [3, 4, 5])
  }

  @Test func headOfAnEnvelopeIsRead() throws {
    let bytes = try Envelope(
      type: .wholeStore, publicHeader: [1], privateHeader: [2, 3], body: body
    ).encoded()
    let count = try StreamedEnvelope.headByteCount(
      fixedPart: Array(bytes.prefix(StreamedEnvelope.fixedByteCount)))
    let head = try StreamedEnvelope(
      head: Array(bytes.prefix(count)), fileByteCount: bytes.count, expecting: .wholeStore)
    #expect(head.publicHeader == [1])
    #expect(head.privateHeader == [2, 3])
    #expect(head.bodyByteCount == body.count)
    #expect(head.headByteCount == count)
    #expect(
      count + head.storedByteCount + StreamedEnvelope.trailerByteCount == bytes.count)
    let zlib = try ZlibStream(.inflate(limit: body.count))
    var inflated: [UInt8] = []
    try zlib.push(Array(bytes[count..<count + head.storedByteCount]), isLast: true) {
      inflated += $0
    }
    #expect(inflated == body)
    #expect(zlib.isAtEnd)
  }

  @Test func headOfAnotherTypeIsRefused() throws {
    let bytes = try Envelope(type: .changeSet, body: [1, 2, 3]).encoded()
    let error = #expect(throws: CodecError.self) {
      try StreamedEnvelope(
        head: Array(bytes.prefix(StreamedEnvelope.fixedByteCount)), fileByteCount: bytes.count,
        expecting: .wholeStore)
    }
    #expect(error?.code == .wrongType)
  }

  @Test func bodyThatGrowsOverItsLimitIsStopped() throws {
    let zlib = try ZlibStream(.deflate)
    var bomb: [UInt8] = []
    for _ in 0..<64 {
      try zlib.push([UInt8](repeating: 0, count: 1 << 20), isLast: false) { bomb += $0 }
    }
    try zlib.push([], isLast: true) { bomb += $0 }
    var written = 0
    let inflate = try ZlibStream(.inflate(limit: 1 << 20))
    let error = #expect(throws: CodecError.self) {
      try inflate.push(bomb, isLast: true) { written += $0.count }
    }
    #expect(error?.code == .badCompression)
    #expect(written <= 1 << 20)
  }

  @Test func bytesAfterTheEndOfTheBodyAreRefused() throws {
    let zlib = try ZlibStream(.deflate)
    var bytes: [UInt8] = []
    try zlib.push([1, 2, 3], isLast: true) { bytes += $0 }
    let inflate = try ZlibStream(.inflate(limit: 100))
    #expect(throws: CodecError.self) {
      try inflate.push(bytes + [0], isLast: true) { _ in }
    }
  }
}
