import Testing

@testable import SyncModel

struct LaneTests {
  /// Bytes that stay where they are as long as a test runs.
  private final class Memory {
    private var buffers: [UnsafeMutableRawBufferPointer] = []

    deinit { for buffer in buffers { buffer.deallocate() } }

    func keep(_ bytes: [UInt8]) -> UnsafeRawBufferPointer {
      let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: bytes.count, alignment: 1)
      buffer.copyBytes(from: bytes)
      buffers.append(buffer)
      return UnsafeRawBufferPointer(buffer)
    }
  }

  private let memory = Memory()

  private func reader(_ writer: LaneWriter) throws -> LaneReader {
    let parts = [writer.structure, writer.text, writer.symbols, writer.raw].map {
      LanePart(isDeflated: false, bytes: memory.keep($0), count: $0.count)
    }
    return try LaneReader(parts: parts, budget: 1 << 30)
  }

  private func roundTrip(_ words: [UInt64], patterns: Bool = false) throws -> LaneWriter {
    var writer = LaneWriter()
    words.withUnsafeBufferPointer {
      if patterns { writer.append(patterns: $0) } else { writer.append(integers: $0) }
    }
    let reader = try reader(writer)
    #expect(try reader.integers(words.count) == words)
    try reader.expectEnd()
    return writer
  }

  @Test func integersOfEveryShapeComeBack() throws {
    var generator = SeededGenerator(seed: 12)
    for count in [0, 1, 2, 3, 63, 64, 65, 1000, 5000] {
      for bits in [0, 1, 8, 9, 31, 63, 64] as [UInt64] {
        let mask: UInt64 = bits == 64 ? .max : (1 << bits) - 1
        let random = (0..<count).map { _ in generator.next() & mask }
        for words in [random, random.sorted(), random.map { UInt64.max - $0 }] {
          _ = try roundTrip(words)
          _ = try roundTrip(words, patterns: true)
        }
      }
    }
  }

  @Test func modeFollowsTheNumbers() throws {
    #expect(try roundTrip(Array(repeating: 9, count: 500)).structure == [0, 18])
    // An arithmetic progression is its beginning and its step.
    let steps = try roundTrip((0..<500).map { 1_000_000 + $0 * 7 })
    #expect(steps.structure.first == IntegerMode.delta.rawValue)
    #expect(steps.byteCount < 10)
    // Few distinct values in no order are indices of one byte.
    var generator = SeededGenerator(seed: 1)
    let far = (0..<500).map { _ in UInt64(generator.below(4)) << 40 }
    let dictionary = try roundTrip(far)
    #expect(dictionary.structure.first == IntegerMode.dictionary.rawValue)
    #expect(dictionary.byteCount < 540)
    // Random bytes are not given to deflate.
    let random = try roundTrip((0..<5000).map { _ in generator.next() })
    #expect(random.raw.count == 40_000)
  }

  @Test func dictionaryOfMoreThan256ValuesHasIndicesOfTwoBytes() throws {
    var generator = SeededGenerator(seed: 4)
    let words = (0..<20_000).map { _ in
      UInt64(generator.below(100) < 90 ? 3 : generator.below(3000)) << 33
    }
    let writer = try roundTrip(words)
    #expect(writer.structure.first == IntegerMode.dictionary.rawValue)
    #expect(writer.byteCount < 60_000)
  }

  @Test func sortedTextIsWrittenWithoutItsSharedBeginnings() throws {
    let texts = (0..<1000).map { Array("a/long/common/beginning/\(100_000 + $0 * $0)".utf8) }
    var column = ValueColumn()
    for text in texts { column.append(.text(text)) }
    var writer = LaneWriter()
    column.bytes.withUnsafeBytes { bytes in
      column.words.withUnsafeBufferPointer {
        writer.append(contents: ContentSpans(bytes: bytes, spans: $0), sorted: true)
      }
    }
    #expect(writer.structure.first == ContentMode.front.rawValue)
    #expect(writer.byteCount < 10_000)
    let contents = try reader(writer).contents(1000)
    #expect(contents.bytes == column.bytes)
    #expect(contents.spans == column.words)
  }

  @Test(
    arguments: [
      [4], [1, 0, 0], [1, 0, 9], [1, 0, 1, 7], [2, 0, 0, 9], [3, 0], [3, 200, 1, 0],
      [3, 1, 0, 0, 5, 5, 5], [1, 0, 1, 255, 9],
    ] as [[UInt8]])
  func integersThatBreakARuleAreRefused(structure: [UInt8]) throws {
    var writer = LaneWriter()
    writer.structure = structure
    let reader = try reader(writer)
    #expect(throws: CodecError.self) { try reader.integers(3) }
  }

  @Test(
    arguments: [
      [4], [0, 0, 20, 0, 1], [1, 8, 1, 0], [1, 3, 16, 0], [1, 1, 8, 0], [1, 0, 0], [1, 4, 7, 0],
      [2, 0, 2, 0, 0, 0], [3, 1, 3, 1, 0, 0], [3, 2, 0, 0, 0, 0, 4],
    ] as [[UInt8]])
  func contentsThatBreakARuleAreRefused(structure: [UInt8]) throws {
    var writer = LaneWriter()
    writer.structure = structure
    let reader = try reader(writer)
    #expect(throws: CodecError.self) { try reader.contents(2) }
  }
}
