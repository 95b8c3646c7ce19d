import Foundation
import SyncModel

/// A block of the file with older conflicts (``ConflictArchive``), without its content.
///
/// A block begins with a header of ``headerCount`` bytes: `dsc`, a version, the journal (16 bytes), the
/// number of the block (8), how many conflicts it has (4), the lengths of its index, of its lines and of
/// its stored lines (4 each), and the first 16 bytes each of the hash of the stored lines and of the
/// hash of the header and the index. Numbers begin with their lowest byte. The index follows, and the
/// lines: one conflict each (``ArchivedConflict``), compressed if that makes them shorter.
struct ArchiveBlock {
  /// What a block has, readable without its lines.
  struct Index: Codable {
    /// The numbers of the conflicts, the first and the last one of each range, in order of the lines.
    var ranges: [[Int64]]
    /// When the first of them was noticed, in milliseconds since 1970.
    var first: Int64
    /// When the last of them was noticed.
    var last: Int64

    /// Whether the ranges are such as a writer makes.
    var isSound: Bool {
      ranges.allSatisfy { $0.count == 2 && $0[0] >= 0 && $0[0] <= $0[1] }
    }

    func contains(_ number: Int64) -> Bool {
      ranges.contains { ($0[0]...$0[1]).contains(number) }
    }

    mutating func add(_ number: Int64, at time: Int64) {
      if let range = ranges.last, range[1] + 1 == number {
        ranges[ranges.count - 1][1] = number
      } else {
        ranges.append([number, number])
      }
      first = min(first, time)
      last = max(last, time)
    }
  }

  /// Conflicts that are to become a block.
  struct Content {
    fileprivate(set) var lines: [UInt8] = []
    fileprivate(set) var count = 0
    private(set) var index = Index(ranges: [], first: .max, last: .min)

    var byteCount: Int { lines.count }

    mutating func add(_ line: [UInt8], number: Int64, at time: Int64) {
      lines += line
      lines.append(UInt8(ascii: "\n"))
      count += 1
      index.add(number, at: time)
    }
  }

  static let magic = Array("dsc".utf8)
  static let version: UInt8 = 1
  static let headerCount = 76
  /// A header promises no more than this.
  fileprivate static let greatestCount = Int(Int32.max)

  var journal: [UInt8]
  var number: UInt64
  var count: Int
  var index: Index
  /// Its place in the file.
  var offset: Int
  let byteCount: Int
  private let indexCount: Int
  private let lineCount: Int
  private let contentHash: [UInt8]

  var end: Int { offset + byteCount }

  /// Returns a block and its bytes.
  static func make(
    of content: Content, journal: Data, number: UInt64, at offset: Int
  ) throws -> (block: ArchiveBlock, bytes: [UInt8]) {
    let index = Array(try JSONEncoder().encode(content.index))
    let lines = content.lines
    let stored = try lines.withUnsafeBytes { try Deflate.deflateIfSmaller($0) } ?? lines
    var header = magic + [version] + Array(journal)
    header += (0..<8).map { UInt8(truncatingIfNeeded: number >> (8 * $0)) }
    for count in [content.count, index.count, lines.count, stored.count] {
      header += (0..<4).map { UInt8(truncatingIfNeeded: count >> (8 * $0)) }
    }
    let contentHash = hash(stored[...])
    header += contentHash
    header += hash((header + index)[...])
    let block = ArchiveBlock(
      journal: Array(journal), number: number, count: content.count, index: content.index,
      offset: offset, byteCount: header.count + index.count + stored.count,
      indexCount: index.count, lineCount: lines.count, contentHash: contentHash)
    return (block, header + index + stored)
  }

  /// Returns the conflicts of the block in order of its lines, or `nil` if it is damaged.
  func entries(_ file: ArchiveFile) throws -> [ArchivedConflict]? {
    let begin = offset + Self.headerCount + indexCount
    let stored = try file.read(end - begin, at: begin)
    guard stored.count == end - begin, Self.hash(stored[...]) == contentHash else { return nil }
    do {
      let lines =
        stored.count == lineCount
        ? stored
        : try stored.withUnsafeBytes {
          try Deflate.inflate($0, count: lineCount, what: "conflicts")
        }
      let decoder = JSONDecoder()
      return try lines.split(separator: UInt8(ascii: "\n")).map {
        try decoder.decode(ArchivedConflict.self, from: Data($0))
      }
    } catch is CodecError {
      return nil
    } catch is DecodingError {
      return nil
    }
  }

  fileprivate static func hash(_ bytes: ArraySlice<UInt8>) -> [UInt8] {
    Array(ContentHash(of: bytes).bytes.prefix(16))
  }
}

extension ArchiveBlock {
  /// Reads the block at an offset; `nil` if there is none. Its lines may go beyond the end of the file.
  init?(at offset: Int, _ file: ArchiveFile) throws {
    guard offset + Self.headerCount <= file.length else { return nil }
    let header = try file.read(Self.headerCount, at: offset)
    guard header.count == Self.headerCount, header.starts(with: Self.magic + [Self.version]) else {
      return nil
    }
    func number(_ range: Range<Int>) -> UInt64 {
      header[range].reversed().reduce(0) { $0 << 8 | UInt64($1) }
    }
    let counts = (0..<4).map { Int(number(28 + 4 * $0..<32 + 4 * $0)) }
    guard counts.allSatisfy({ $0 <= Self.greatestCount }) else { return nil }
    let byteCount = Self.headerCount + counts[1] + counts[3]
    let bytes = try file.read(counts[1], at: offset + Self.headerCount)
    guard Array(header[60...]) == Self.hash(header[..<60] + bytes) else { return nil }
    let index: Index
    do {
      index = try JSONDecoder().decode(Index.self, from: Data(bytes))
    } catch is DecodingError {
      return nil
    }
    guard index.isSound else { return nil }
    self.init(
      journal: Array(header[4..<20]), number: number(20..<28), count: counts[0], index: index,
      offset: offset, byteCount: byteCount, indexCount: counts[1], lineCount: counts[2],
      contentHash: Array(header[44..<60]))
  }
}
