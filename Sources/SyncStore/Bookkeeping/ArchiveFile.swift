import Foundation

/// The open file with older conflicts (``ConflictArchive``), and its blocks.
struct ArchiveFile {
  let handle: FileHandle
  /// Its length when it was opened.
  let length: Int
  private(set) var blocks: [ArchiveBlock] = []
  /// The end that a block would have of which the file has the begin only; `nil` if there is none.
  /// Nothing can be added before it: it would count as the rest of that block.
  private(set) var tornEnd: Int?
  /// Whether a later version of the program has written to the file. Then only the blocks before that
  /// are known.
  private(set) var isOfLaterVersion = false

  /// Finds the blocks. Beyond damaged ones, it searches for the next sound one.
  init(_ handle: FileHandle) throws {
    self.handle = handle
    length = Int(try handle.seekToEnd())
    var offset = 0
    while offset < length {
      if let block = try ArchiveBlock(at: offset, self) {
        if block.end <= length {
          blocks.append(block)
          offset = block.end
          continue
        }
        tornEnd = max(tornEnd ?? 0, block.end)
      }
      let begin = try read(ArchiveBlock.magic.count + 1, at: offset)
      if begin.starts(with: ArchiveBlock.magic), let version = begin.dropFirst(3).first,
        version > ArchiveBlock.version
      {
        isOfLaterVersion = true
        return
      }
      offset = try nextBlock(after: offset) ?? length
    }
  }

  /// Returns the bytes at an offset, fewer at the end of the file.
  func read(_ count: Int, at offset: Int) throws -> [UInt8] {
    guard count > 0 else { return [] }
    try handle.seek(toOffset: UInt64(offset))
    return Array(try handle.read(upToCount: count) ?? Data())
  }

  /// Returns the blocks that count, the oldest first.
  func live(_ state: ArchiveState) -> [ArchiveBlock] {
    guard state.first <= state.last else { return [] }
    var found: [UInt64: ArchiveBlock] = [:]
    for block in blocks
    where block.journal == Array(state.journal)
      && (state.first...state.last).contains(block.number)
    {
      found[block.number] = block
    }
    return found.values.sorted { $0.number < $1.number }
  }

  func hasBlocks(of journal: Data) -> Bool {
    blocks.contains { $0.journal == Array(journal) }
  }

  /// Whether the file has nothing but the begin of a first block that was not written to its end.
  func isTornBegin(of journal: Data) throws -> Bool {
    guard blocks.isEmpty else { return false }
    let expected = ArchiveBlock.magic + [ArchiveBlock.version] + Array(journal)
    let begin = try read(expected.count, at: 0)
    return expected.starts(with: begin) || begin.allSatisfy { $0 == 0 }
  }

  /// Returns the offset of the next block after an offset; `nil` if there is none.
  private func nextBlock(after start: Int) throws -> Int? {
    let wanted = ArchiveBlock.magic + [ArchiveBlock.version]
    var offset = start + 1
    while offset + ArchiveBlock.headerCount <= length {
      let part = try read(1 << 16, at: offset)
      guard part.count >= wanted.count else { return nil }
      for position in 0...(part.count - wanted.count)
      where part[position] == wanted[0] && part[position..<(position + 4)].elementsEqual(wanted) {
        if try ArchiveBlock(at: offset + position, self) != nil { return offset + position }
      }
      offset += part.count - wanted.count + 1
    }
    return nil
  }
}
