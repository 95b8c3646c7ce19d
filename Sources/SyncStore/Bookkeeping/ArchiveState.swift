import Foundation
import SyncModel

/// What a store records of the file with its older conflicts (``ConflictArchive``).
///
/// It is written in the transaction that moves the conflicts, so it decides what of the file counts:
/// blocks of the journal with numbers from ``first`` to ``last``.
struct ArchiveState: Codable {
  /// The 16 bytes that mark the blocks of this store. Another store's file at the same path has
  /// others.
  var journal: Data
  /// The number of the oldest block that counts.
  var first: UInt64 = 1
  /// The number of the newest block that counts; less than ``first`` if there is none.
  var last: UInt64 = 0
  /// How many conflicts are in the blocks that count, without those that came back.
  var count = 0
  /// How many conflicts of a block came back to the store, by the number of the block.
  var returned: [Int: Int] = [:]
  /// When the first of the conflicts was noticed, in milliseconds since 1970.
  var firstMilliseconds: Int64?
  /// When the last of them was noticed.
  var lastMilliseconds: Int64?
  /// Why the file cannot be used at present.
  var problem: ArchiveProblem?
  /// Warnings that the next synchronization reports.
  var notices: [SyncWarning] = []

  init(journal: [UInt8]) { self.journal = Data(journal) }

  /// Throws ``StoredNumbers/OutOfBounds`` if it holds a number that the program never writes.
  func checkNumbers() throws {
    try StoredNumbers.check("archive.first", first, from: 1)
    try StoredNumbers.check("archive.last", last)
    try StoredNumbers.check("archive.count", count: count)
    for (number, count) in returned {
      try StoredNumbers.check("archive.returned", count: number)
      try StoredNumbers.check("archive.returned", count: count)
    }
    try StoredNumbers.check("archive", milliseconds: firstMilliseconds)
    try StoredNumbers.check("archive", milliseconds: lastMilliseconds)
  }

  /// How many conflicts of a block count.
  func count(of block: ArchiveBlock) -> Int {
    max(block.count - (returned[Int(clamping: block.number)] ?? 0), 0)
  }

  /// How many conflicts should be in the file and are in none of its blocks that count.
  func missingCount(_ live: [ArchiveBlock]) -> Int {
    max(count - live.reduce(0) { $0 + count(of: $1) }, 0)
  }

  /// Notes a block that was added.
  mutating func add(_ index: ArchiveBlock.Index, count added: Int) {
    last += 1
    count += added
    firstMilliseconds = min(firstMilliseconds ?? index.first, index.first)
    lastMilliseconds = max(lastMilliseconds ?? index.last, index.last)
  }

  /// Notes that a conflict of a block came back to the store.
  mutating func takeBack(from block: UInt64) {
    returned[Int(clamping: block), default: 0] += 1
    count = max(count - 1, 0)
  }

  /// Forgets all conflicts of the file, and returns a summary of them.
  mutating func forgetAll() -> Conflict.Dropped {
    var lost = Conflict.Dropped()
    if count > 0, let firstMilliseconds, let lastMilliseconds {
      lost.add(count, at: firstMilliseconds)
      lost.add(0, at: lastMilliseconds)
    }
    count = 0
    first = last + 1
    returned = [:]
    (firstMilliseconds, lastMilliseconds) = (nil, nil)
    return lost
  }

  /// Forgets the oldest of some blocks until the others have at most some bytes. Returns a summary of
  /// the conflicts that are no longer kept.
  mutating func forgetOldest(of live: [ArchiveBlock], downTo bytes: Int) -> Conflict.Dropped {
    var rest = live[...]
    var byteCount = live.reduce(0) { $0 + $1.byteCount }
    var lost = Conflict.Dropped()
    let missing = missingCount(live)
    while byteCount > bytes, rest.count > 1, let oldest = rest.popFirst() {
      byteCount -= oldest.byteCount
      let number = count(of: oldest)
      lost.add(number, at: oldest.index.first)
      lost.add(0, at: oldest.index.last)
      count = max(count - number, 0)
      returned[Int(clamping: oldest.number)] = nil
      first = oldest.number + 1
    }
    guard lost.count > 0 else { return lost }
    firstMilliseconds = rest.map(\.index.first).min()
    // Conflicts of damaged blocks were older than those that are left.
    if missing > 0, let firstMilliseconds, UInt64(rest.count) == last - first + 1 {
      lost.add(missing, at: firstMilliseconds)
      count = max(count - missing, 0)
    }
    return lost
  }
}

extension Conflict.Dropped {
  /// Counts entries that were noticed at a time.
  mutating func add(_ number: Int, at time: Int64) {
    count += number
    firstMilliseconds = min(firstMilliseconds ?? time, time)
    lastMilliseconds = max(lastMilliseconds ?? time, time)
  }

  /// Counts the entries of another summary.
  mutating func add(_ other: Conflict.Dropped) {
    guard other.count > 0, let first = other.firstMilliseconds, let last = other.lastMilliseconds
    else { return }
    add(other.count, at: first)
    add(0, at: last)
  }
}
