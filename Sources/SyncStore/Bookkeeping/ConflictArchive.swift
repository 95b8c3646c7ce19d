import Foundation
import SyncModel

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// The file beside a store with the entries that have left the table of the conflict journal.
///
/// It consists of blocks. Each block has lines of JSON (``ArchivedConflict``), compressed, and an
/// index of their numbers before them. Beyond the greatest size, the oldest blocks are removed.
///
/// Entries are written and flushed before the transaction that removes them from the table commits.
/// If the transaction is rolled back, the file has entries that the table has too, and later has
/// them twice: readers take the table's, or else the last one of a number. A block that was not
/// written to its end is ignored, and the next one overwrites it. Only a process that writes to the
/// store writes to the file, so SQLite's lock protects both.
final class ConflictArchive {
  /// The part of the name after that of the store.
  static let suffix = "-docsync-conflicts"
  /// The most bytes of lines in a block, unless one line is longer.
  private static let blockBytes = 1 << 20

  let path: String
  private let store: String
  /// The most bytes of the file.
  private let bound: Int
  private let encoder = JSONEncoder()
  private var pending = Lines()
  private var writer: Writer?

  private struct Lines {
    var bytes: [UInt8] = []
    var index: Index?
  }

  private struct Writer {
    var handle: FileHandle
    var blocks: [Block]
    var end: Int
  }

  /// What a block has, readable without its lines.
  struct Index: Codable {
    /// The journal that the entries belong to: a new store at the same path has another one.
    var journal: String
    /// The numbers of the entries, the first and the last one of each range, in order of the lines.
    var ranges: [[Int64]]
    /// When the first of them was noticed, in milliseconds since 1970.
    var first: Int64
    /// When the last of them was noticed.
    var last: Int64

    mutating func add(_ number: Int64, at time: Int64) {
      if let range = ranges.last, range[1] + 1 == number {
        ranges[ranges.count - 1][1] = number
      } else {
        ranges.append([number, number])
      }
      first = min(first, time)
      last = max(last, time)
    }

    /// The numbers, without ranges that no writer makes.
    var numbers: [Int64] {
      ranges.filter { $0.count == 2 && $0[0] <= $0[1] && $0[1] - $0[0] < Int64(blockBytes) }
        .flatMap { Array($0[0]...$0[1]) }
    }
  }

  /// The place of a block in the file.
  struct Block {
    var offset: Int
    var indexCount: Int
    var lineCount: Int
    var storedCount: Int
    /// `nil` if the index is damaged.
    var index: Index?

    var end: Int { offset + headerCount + indexCount + storedCount }
  }

  /// Magic bytes, the lengths of the index, of the lines and of the stored lines, and a hash of
  /// these and of what follows.
  private static let headerCount = 48
  private static let magic = Array("dsc1".utf8)

  init(store: String, bound: Int) {
    self.store = store
    self.bound = bound
    path = store + Self.suffix
  }

  // MARK: - Writing

  /// Adds an entry. It is durable after ``flush()``. Throws `noSpace` if the disk is full.
  func append(_ entry: ArchivedConflict, of journal: String) throws {
    let line = try encoder.encode(entry)
    if pending.bytes.count + line.count > Self.blockBytes { try writePending() }
    pending.bytes += line
    pending.bytes.append(UInt8(ascii: "\n"))
    if pending.index == nil {
      pending.index = Index(journal: journal, ranges: [], first: entry.at, last: entry.at)
    }
    pending.index?.add(entry.number, at: entry.at)
  }

  /// Makes the added entries durable.
  func flush() throws {
    try writePending()
    guard let writer else { return }
    self.writer = nil
    try performing {
      try writer.handle.synchronize()
      try writer.handle.close()
      try flushFolder()
    }
  }

  private func writePending() throws {
    let lines = pending
    pending = Lines()
    guard let index = lines.index else { return }
    let block = try Self.encode(lines.bytes, Array(JSONEncoder().encode(index)))
    // A block that is greater than the file may be is counted as no longer kept.
    guard block.count <= bound else { return }
    try performing {
      var writer = try self.writer ?? open()
      self.writer = writer
      if writer.end + block.count > bound {
        writer = try makingRoom(for: block.count, writer)
      }
      try writer.handle.seek(toOffset: UInt64(writer.end))
      try writer.handle.write(contentsOf: block)
      writer.blocks.append(
        Block(
          offset: writer.end, indexCount: 0, lineCount: 0,
          storedCount: block.count - Self.headerCount))
      writer.end += block.count
      self.writer = writer
    }
  }

  /// Opens the file, and removes what follows the last sound block.
  private func open() throws -> Writer {
    let handle = try handle(path, O_RDWR)
    let blocks = try Self.blocks(in: handle)
    let end = blocks.last?.end ?? 0
    try handle.truncate(atOffset: UInt64(end))
    return Writer(handle: handle, blocks: blocks, end: end)
  }

  /// Writes the newest blocks to a new file, which takes the place of the present one: an eighth
  /// stays free, so that this is seldom necessary.
  private func makingRoom(for count: Int, _ old: Writer) throws -> Writer {
    let limit = max(bound - bound / 8 - count, 0)
    let kept = old.blocks.drop { old.end - $0.offset > limit }
    let handle = try handle(path + "-new", O_RDWR | O_TRUNC)
    let begin = kept.first?.offset ?? old.end
    var offset = begin
    while offset < old.end {
      let part = try Self.read(min(1 << 20, old.end - offset), at: offset, old.handle)
      guard !part.isEmpty else { break }
      try handle.write(contentsOf: part)
      offset += part.count
    }
    try handle.synchronize()
    guard rename(path + "-new", path) == 0 else {
      throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO)
    }
    try old.handle.close()
    let moved = kept.map { block in
      var block = block
      block.offset -= begin
      return block
    }
    return Writer(handle: handle, blocks: moved, end: offset - begin)
  }

  private func handle(_ path: String, _ flags: Int32) throws -> FileHandle {
    let descriptor = StoreFileMode.open(path, flags, like: store)
    guard descriptor >= 0 else { throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO) }
    return FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
  }

  /// Makes the name of the file durable, where the file system supports that.
  private func flushFolder() throws {
    let folder = URL(fileURLWithPath: path).deletingLastPathComponent().path
    let handle = try FileHandle(forReadingFrom: URL(fileURLWithPath: folder))
    if fsync(handle.fileDescriptor) != 0, errno == EIO || errno == ENOSPC {
      throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO)
    }
    try handle.close()
  }

  /// Removes the file beside a store, if there is one.
  static func remove(beside store: String) throws {
    for path in [store + suffix, store + suffix + "-new"]
    where FileManager.default.fileExists(atPath: path) {
      do {
        try FileManager.default.removeItem(atPath: path)
      } catch {
        throw StoreError(
          .notWritable, path: path, message: "The file of older conflicts could not be removed.",
          remedy: "Remove it yourself.", detail: "\(error)")
      }
    }
  }

  // MARK: - Reading

  /// Returns the sound blocks, the oldest first; none if there is no file.
  func blocks() throws -> [Block] { try reading { try Self.blocks(in: $0) } ?? [] }

  /// Returns the entries of blocks of one journal, the newest first, and each number once. Leaves
  /// out damaged blocks.
  func entries(of blocks: [Block]) throws -> [ArchivedConflict] {
    try reading { handle in
      var seen: Set<Int64> = []
      var found: [ArchivedConflict] = []
      for block in blocks.reversed() {
        for entry in try Self.entries(of: block, in: handle)?.reversed() ?? []
        where seen.insert(entry.number).inserted {
          found.append(entry)
        }
      }
      return found.sorted { $0.number > $1.number }
    } ?? []
  }

  /// Returns how many blocks cannot be read.
  func damagedCount() throws -> Int {
    try reading { handle in
      try Self.blocks(in: handle).count { try Self.entries(of: $0, in: handle) == nil }
    } ?? 0
  }

  private func reading<Result>(_ body: (FileHandle) throws -> Result) throws -> Result? {
    guard FileManager.default.fileExists(atPath: path) else { return nil }
    return try performing {
      let handle = try FileHandle(forReadingFrom: URL(fileURLWithPath: path))
      let result = try body(handle)
      try handle.close()
      return result
    }
  }

  private static func read(_ count: Int, at offset: Int, _ handle: FileHandle) throws -> [UInt8] {
    try handle.seek(toOffset: UInt64(offset))
    return Array(try handle.read(upToCount: count) ?? Data())
  }

  /// Returns the blocks up to the last one that was written to its end.
  private static func blocks(in handle: FileHandle) throws -> [Block] {
    let length = Int(try handle.seekToEnd())
    var blocks: [Block] = []
    var offset = 0
    while offset + headerCount <= length {
      let header = try read(headerCount, at: offset, handle)
      guard header.count == headerCount, Array(header[..<4]) == magic else { break }
      let lengths = (1...3).map { field in
        (0..<4).reduce(0) { $0 | Int(header[4 * field + $1]) << (8 * $1) }
      }
      var block = Block(
        offset: offset, indexCount: lengths[0], lineCount: lengths[1], storedCount: lengths[2])
      guard block.end <= length else { break }
      let index = try read(block.indexCount, at: offset + headerCount, handle)
      do {
        block.index = try JSONDecoder().decode(Index.self, from: Data(index))
      } catch {
        block.index = nil
      }
      blocks.append(block)
      offset = block.end
    }
    // What was written last may not have reached the disk as a whole.
    while let last = blocks.last, try entries(of: last, in: handle) == nil { blocks.removeLast() }
    return blocks
  }

  /// Returns the entries of a block in order of its lines, or `nil` if it is damaged.
  private static func entries(
    of block: Block, in handle: FileHandle
  ) throws -> [ArchivedConflict]? {
    let bytes = try read(block.end - block.offset, at: block.offset, handle)
    guard bytes.count == block.end - block.offset, block.index != nil else { return nil }
    let content = bytes[headerCount...]
    guard Array(bytes[16..<headerCount]) == hash(bytes[..<16], content) else { return nil }
    do {
      let stored = Array(content[(headerCount + block.indexCount)...])
      // Compression is left out where it does not pay.
      let lines =
        stored.count == block.lineCount
        ? stored
        : try stored.withUnsafeBytes {
          try Deflate.inflate($0, count: block.lineCount, what: "conflicts")
        }
      return try lines.split(separator: UInt8(ascii: "\n")).map {
        try JSONDecoder().decode(ArchivedConflict.self, from: Data($0))
      }
    } catch is CodecError {
      return nil
    } catch is DecodingError {
      return nil
    }
  }

  private static func encode(_ lines: [UInt8], _ index: [UInt8]) throws -> [UInt8] {
    let stored = try lines.withUnsafeBytes { try Deflate.deflateIfSmaller($0) } ?? lines
    var block = magic
    for length in [index.count, lines.count, stored.count] {
      block += (0..<4).map { UInt8(truncatingIfNeeded: length >> (8 * $0)) }
    }
    return block + hash(block[...], (index + stored)[...]) + index + stored
  }

  private static func hash(_ lengths: ArraySlice<UInt8>, _ content: ArraySlice<UInt8>) -> [UInt8] {
    ContentHash(of: Array(lengths + content)).bytes
  }

  // MARK: - Errors

  /// Runs `body`; turns errors of the file into errors of the store.
  private func performing<Result>(_ body: () throws -> Result) throws -> Result {
    do {
      return try body()
    } catch let error as StoreError {
      throw error
    } catch let error as CodecError {
      throw error
    } catch {
      let code = (error as? POSIXError)?.code
      let isFull =
        (error as? CocoaError)?.code == .fileWriteOutOfSpace || code == .ENOSPC || code == .EDQUOT
      throw StoreError(
        isFull ? .noSpace : .notWritable, path: path,
        message: "The file of older conflicts could not be read or written.",
        remedy: isFull
          ? "Free some space on the disk of the database."
          : "Check that this user may read and write the file and its folder.",
        detail: "\(error)")
    }
  }
}
