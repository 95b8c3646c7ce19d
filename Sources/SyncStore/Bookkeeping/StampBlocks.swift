import GRDB
import SyncModel

/// The states of the rows of one table, packed: entries in order of
/// fingerprint, some two hundred to a block of less than a page.
///
/// With a b-tree entry of its own, each row would cost its key again and a random page. Here a row
/// costs about fifteen bytes, and a batch that is sorted by fingerprint reads and writes each block
/// once. A block covers the fingerprints from its key up to the key of the next block; the first
/// block has the key 0.
final class StampBlocks {
  /// The state of one row. A tuple would be copied several times slower.
  struct Entry: Hashable {
    var fingerprint: RowFingerprint
    var state: RowState
  }

  /// Blocks are cut so that they fit on a page of 4,096 bytes.
  static let standardCapacity = 3_900
  /// The most bytes of a block.
  private let capacity: Int
  /// The most bytes of a block if many more entries follow.
  private let packed: Int
  /// A state with a stamp for a column beyond this number is damaged.
  private let columnCount: Int

  private var covering: LazyStatement
  private var following: LazyStatement
  private var replacing: LazyStatement
  private var deleting: LazyStatement
  private var scanning: LazyStatement

  /// The states that were looked up row by row. The steps of merging ask for the same rows several
  /// times, and to look up a row, its whole block is decoded.
  private var recent: [RowFingerprint: RowState?] = [:]
  /// The most states that are remembered: about three megabytes.
  private static let recentLimit = 24_000

  init(
    table: TableSchema, database: Database, capacity: Int = StampBlocks.standardCapacity,
    columnCount: Int = .max
  ) {
    self.columnCount = columnCount
    self.capacity = capacity
    packed = capacity - 2 * capacity / 39
    let name = table.stampsName
    covering = LazyStatement(
      "SELECT first, block FROM \(name) WHERE first <= ? ORDER BY first DESC LIMIT 1", on: database)
    following = LazyStatement(
      "SELECT first FROM \(name) WHERE first > ? ORDER BY first LIMIT 1", on: database)
    replacing = LazyStatement(
      "INSERT OR REPLACE INTO \(name) (first, block) VALUES (?, ?)", on: database)
    deleting = LazyStatement("DELETE FROM \(name) WHERE first = ?", on: database)
    scanning = LazyStatement("SELECT block FROM \(name) ORDER BY first", on: database)
  }

  /// Returns the states of rows, `nil` for a row without one. The fingerprints must be in ascending
  /// order.
  func states(of fingerprints: [RowFingerprint]) throws -> [RowState?] {
    try states(of: fingerprints, inOrder: Array(fingerprints.indices))
  }

  /// Returns the states of rows, `nil` for a row without one.
  ///
  /// - Parameter order: The positions of all rows, in ascending order of fingerprint.
  func states(of fingerprints: [RowFingerprint], inOrder order: [Int]) throws -> [RowState?] {
    var result = [RowState?](repeating: nil, count: fingerprints.count)
    var index = 0
    while index < order.count {
      guard let block = try block(covering: fingerprints[order[index]].high) else { break }
      var position = 0
      while index < order.count {
        let row = order[index]
        let fingerprint = fingerprints[row]
        guard block.covers(fingerprint.high) else { break }
        while position < block.entries.count, block.entries[position].fingerprint < fingerprint {
          position += 1
        }
        if position < block.entries.count, block.entries[position].fingerprint == fingerprint {
          result[row] = block.entries[position].state
        }
        index += 1
      }
    }
    return result
  }

  /// Returns the state of a row, `nil` if it has none, and remembers it.
  func state(of fingerprint: RowFingerprint) throws -> RowState? {
    if let known = recent[fingerprint] { return known }
    let state = try states(of: [fingerprint])[0]
    if recent.count >= Self.recentLimit { recent.removeAll() }
    recent.updateValue(state, forKey: fingerprint)
    return state
  }

  /// Looks up the states of rows that ``state(of:)`` will be asked for, and decodes each block once.
  /// The fingerprints may be in any order.
  func readAhead(_ fingerprints: [RowFingerprint]) throws {
    let unknown = fingerprints.filter { recent[$0] == nil }.prefix(Self.recentLimit).sorted()
    guard unknown.count > 1 else { return }
    if recent.count + unknown.count > Self.recentLimit { recent.removeAll() }
    for (fingerprint, state) in zip(unknown, try states(of: unknown)) {
      recent.updateValue(state, forKey: fingerprint)
    }
  }

  /// Forgets the states that were looked up, after a rollback.
  func forgetMemory() { recent = [:] }

  /// Stores the states of rows, given in ascending order of fingerprint, each row once. `nil`
  /// removes a state.
  func store(_ changes: [(fingerprint: RowFingerprint, state: RowState?)]) throws {
    try store(
      changes.map(\.state), of: changes.map(\.fingerprint), inOrder: Array(changes.indices))
  }

  /// Stores the states of rows. `nil` removes a state. If two rows have the same fingerprint, which
  /// only a forger makes, the last state is stored: a block with a fingerprint twice would be
  /// damaged.
  ///
  /// - Parameter order: The positions of the rows whose states are stored, each once, in ascending
  ///   order of fingerprint.
  func store(
    _ states: [RowState?], of fingerprints: [RowFingerprint], inOrder order: [Int]
  ) throws {
    // If writing fails, nothing is remembered.
    var remembered: [RowFingerprint: RowState?] = [:]
    swap(&remembered, &recent)
    var index = 0
    /// Entries that did not fill a block and go into the next one.
    var rest: [Entry] = []
    while index < order.count {
      var block =
        try block(covering: fingerprints[order[index]].high)
        ?? Block(first: 0, end: nil, entries: [])
      var merged = rest
      if let first = rest.first {
        // The block begins with the rest of the block before.
        try delete(block.first)
        block.first = first.fingerprint.high
        rest = []
      }
      merged.reserveCapacity(merged.count + block.entries.count + 16)
      var position = 0
      while index < order.count {
        let row = order[index]
        let fingerprint = fingerprints[row]
        guard block.covers(fingerprint.high) else { break }
        while position < block.entries.count, block.entries[position].fingerprint < fingerprint {
          merged.append(block.entries[position])
          position += 1
        }
        if position < block.entries.count, block.entries[position].fingerprint == fingerprint {
          position += 1
        }
        index += 1
        if index < order.count, fingerprints[order[index]] == fingerprint { continue }
        if let state = states[row] {
          merged.append(Entry(fingerprint: fingerprint, state: state))
        }
      }
      merged.append(contentsOf: block.entries[position...])
      let isNextTouched =
        try index < order.count && block.end != nil
        && covers(block.end, fingerprints[order[index]].high)
      rest = try write(merged, replacing: block, handsOnRest: isNextTouched)
    }
    if !remembered.isEmpty {
      for row in order where remembered[fingerprints[row]] != nil {
        remembered.updateValue(states[row], forKey: fingerprints[row])
      }
    }
    swap(&remembered, &recent)
  }

  /// Calls `body` with every state, in order of fingerprint.
  func forEach(_ body: (RowFingerprint, RowState) throws -> Void) throws {
    let scanning = try scanning()
    while try scanning.step() {
      for entry in try StampBlockCoding.decode(scanning.content(at: 0), columnCount: columnCount) {
        try body(entry.fingerprint, entry.state)
      }
    }
  }

  /// Lets `body` change every state.
  func rewrite(_ body: (inout RowState) throws -> Void) throws {
    recent = [:]
    var first: UInt64? = 0
    while let next = first, var block = try block(covering: next) {
      for index in block.entries.indices { try body(&block.entries[index].state) }
      _ = try write(block.entries, replacing: block, handsOnRest: false)
      first = block.end
    }
  }

  // MARK: - Blocks

  private struct Block {
    var first: UInt64
    /// The key of the next block.
    var end: UInt64?
    var entries: [Entry]

    func covers(_ high: UInt64) -> Bool {
      guard let end else { return true }
      return high < end
    }
  }

  private func block(covering high: UInt64) throws -> Block? {
    let covering = try covering()
    covering.bind(Int64(high), at: 1)
    guard try covering.step() else { return nil }
    let first: UInt64 = try covering.number(at: 0)
    let entries = try StampBlockCoding.decode(covering.content(at: 1), columnCount: columnCount)
    covering.reset()
    let following = try following()
    following.bind(Int64(first), at: 1)
    let end = try following.step() ? try following.number(at: 0) as UInt64 : nil
    following.reset()
    // Under another key, the entries would come out of order.
    if let lowest = entries.first?.fingerprint.high, let highest = entries.last?.fingerprint.high,
      lowest < first || highest >= end ?? .max
    {
      throw StampBlockCoding.damage
    }
    return Block(first: first, end: end, entries: entries)
  }

  /// Returns whether the block with a key is the one that covers a fingerprint.
  private func covers(_ first: UInt64?, _ high: UInt64) throws -> Bool {
    let covering = try covering()
    covering.bind(Int64(high), at: 1)
    defer { covering.reset() }
    return try covering.step() && covering.number(at: 0) == first
  }

  private func delete(_ first: UInt64) throws {
    let deleting = try deleting()
    deleting.bind(Int64(first), at: 1)
    try deleting.run()
  }

  /// Writes entries in place of a block. With `handsOnRest`, returns the last entries, unwritten,
  /// if they do not fill a block of their own.
  private func write(
    _ entries: [Entry], replacing block: Block, handsOnRest: Bool
  ) throws -> [Entry] {
    if entries.isEmpty, block.first != 0 {
      try delete(block.first)
      return []
    }
    var first = block.first
    var start = 0
    var coder = StampBlockCoding()
    for index in entries.indices {
      // Two rows whose upper bits agree have to stay in one block.
      let canCut =
        index > 0 && entries[index - 1].fingerprint.high != entries[index].fingerprint.high
      let limit = entries.count - index > 40 ? packed : capacity
      if canCut, coder.byteCount > limit {
        try put(coder, at: first)
        coder = StampBlockCoding()
        first = entries[index].fingerprint.high
        start = index
      }
      coder.append(entries[index])
    }
    if handsOnRest, start > 0, coder.byteCount < packed { return Array(entries[start...]) }
    try put(coder, at: first)
    return []
  }

  private func put(_ coder: StampBlockCoding, at first: UInt64) throws {
    let replacing = try replacing()
    replacing.bind(Int64(first), at: 1)
    replacing.bind(blob: coder.bytes, at: 2)
    try replacing.run()
  }
}
