import Foundation
import Testing

@testable import SyncModel

/// Segments, and the files in Fixtures/Segments, which stay for ever.
///
/// With `DOCSYNC_WRITE_FIXTURES=1` in the environment they are written again,
/// which is right only while a format version is being made.
@Suite(.serialized)
struct SegmentCodecTests {
  private static let directory = URL(filePath: #filePath)
    .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
    .appending(path: "Fixtures/Segments/v1")

  private static let damages: [(directory: String, code: CodecError.Code)] = [
    ("truncated", .truncated), ("bad-magic", .badMagic), ("bad-checksum", .badChecksum),
    ("wrong-type", .wrongType), ("wrong-part-hash", .badChecksum), ("no-parts", .malformed),
    ("first-zero", .malformed), ("length-over-body", .lengthOverCap),
    ("bytes-left-over", .wrongCount), ("empty-part", .malformed),
    ("count-over-index", .lengthOverCap), ("compressed", .malformed),
  ]

  private static let sample = segment([[1, 2, 3], [4], Array(repeating: 7, count: 300)])

  private static func segment(_ parts: [[UInt8]], first: UInt64 = 41) -> Segment {
    var generator = SeededGenerator(seed: 5)
    return Segment(
      root: .random(using: &generator), document: .random(using: &generator),
      generation: .random(using: &generator), client: .random(using: &generator), first: first,
      parts: parts.map { Segment.Part(hash: ContentHash(of: $0), bytes: $0) })
  }

  /// Writes the files, if the environment asks for it.
  init() throws {
    guard ProcessInfo.processInfo.environment["DOCSYNC_WRITE_FIXTURES"] != nil else { return }
    try write(SegmentCodec.encode(Self.sample), "ok")
    for damage in Self.damages { try write(damaged(damage.directory), damage.directory) }
  }

  @Test func goodFileGivesWhatItWasMadeFrom() throws {
    let bytes = try read("ok")
    let segment = try SegmentCodec.decode(bytes)
    #expect(segment == Self.sample)
    #expect(try SegmentCodec.encode(segment) == bytes)
    #expect(segment.last == 43)
    #expect(segment[40] == nil)
    #expect(segment[42]?.bytes == [4])
    #expect(segment[44] == nil)
  }

  @Test(arguments: damages.map(\.directory))
  func damagedFileGivesTheErrorOfItsDirectory(directory: String) throws {
    let code = try #require(Self.damages.first { $0.directory == directory }?.code)
    let bytes = try read(directory)
    let error = #expect(throws: CodecError.self) { try SegmentCodec.decode(bytes) }
    #expect(error?.code == code)
  }

  @Test func whatCannotBeReadIsNotWritten() throws {
    var wrong = Self.sample
    wrong.parts[1].bytes = [5]
    #expect(throws: CodecError.self) { try SegmentCodec.encode(wrong) }
    #expect(throws: CodecError.self) { try SegmentCodec.encode(Self.segment([])) }
    #expect(throws: CodecError.self) { try SegmentCodec.encode(Self.segment([[]])) }
    #expect(throws: CodecError.self) { try SegmentCodec.encode(Self.segment([[1]], first: 0)) }
  }

  @Test func mutatedFilesWithTheRightHashNeverCrash() throws {
    var generator = SeededGenerator(seed: 3)
    let bytes = try SegmentCodec.encode(Self.sample)
    var accepted = 0
    for run in 0..<2_000 {
      var mutated = bytes
      for _ in 0...generator.below(3) {
        mutated[generator.below(mutated.count - 36)] = generator.bytes(1)[0]
      }
      do {
        let file = ChangeSetBytes.rehashed(mutated)
        let segment = try SegmentCodec.decode(file)
        accepted += 1
        // There is one file for each segment, but for the flags that readers ignore.
        let withoutFlags = ChangeSetBytes.replacing(file, at: 12, with: [0, 0])
        #expect(try SegmentCodec.encode(segment) == withoutFlags, "run \(run)")
      } catch is CodecError {
        continue
      }
    }
    #expect(accepted > 20 && accepted < 500, "\(accepted)")
  }

  private func damaged(_ name: String) throws -> [UInt8] {
    let good = try SegmentCodec.encode(Self.sample)
    var envelope = try Envelope.decode(good)
    // The index: the count, then a hash and a length for each.
    switch name {
    case "truncated": return Array(good.dropLast(50))
    case "bad-magic": return ChangeSetBytes.replacing(good, at: 6, with: [0x0A])
    case "bad-checksum": return good.dropLast(60) + [good[good.count - 60] ^ 1] + good.suffix(59)
    case "wrong-type": return ChangeSetBytes.replacing(good, at: 10, with: [6])
    case "wrong-part-hash": envelope.privateHeader[1] ^= 1
    case "no-parts":
      envelope.privateHeader = [0]
      envelope.body = []
    case "first-zero": envelope.publicHeader[64] = 0
    case "length-over-body":
      envelope.privateHeader[33] = 0x7F; envelope.body = Array(envelope.body.prefix(5))
    case "bytes-left-over": envelope.body.append(0)
    case "empty-part": envelope.privateHeader[33] = 0
    case "count-over-index": envelope.privateHeader[0] = 9
    default:
      envelope.compression = .deflate
    }
    return try envelope.encoded()
  }

  private func path(_ directory: String) -> URL {
    Self.directory.appending(path: directory).appending(path: "segment.segment")
  }

  private func read(_ directory: String) throws -> [UInt8] {
    [UInt8](try Data(contentsOf: path(directory)))
  }

  private func write(_ bytes: [UInt8], _ directory: String) throws {
    let file = path(directory)
    try FileManager.default.createDirectory(
      at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
    try Data(bytes).write(to: file)
  }
}
