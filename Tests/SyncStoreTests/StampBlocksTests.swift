import GRDB
import Testing

@testable import SyncStore

/// The packed states of rows, against a dictionary.
@Suite struct StampBlocksTests {
  @Test(arguments: 1...6) func blocksHoldWhatWasStored(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    let scratch = try Scratch()
    let device = try scratch.devices(1, "CREATE TABLE t (k TEXT PRIMARY KEY, a, b)")[0]
    var expected: [RowFingerprint: RowState] = [:]
    try device.store.write { session in
      let blocks = try session.access(1).stamps
      for _ in 0..<25 {
        // Of all sizes; few upper parts, so that some rows share one.
        var changes: [RowFingerprint: RowState?] = [:]
        for _ in 0..<[1, 20, 3_000][random.below(3)] {
          let fingerprint = RowFingerprint(
            high: UInt64(random.below(6_000)) << 40, low: UInt16(random.below(3)))
          changes.updateValue(random.chance(15) ? nil : state(&random), forKey: fingerprint)
        }
        // What was looked up before counts no more.
        let some = Array(changes.keys.prefix(20))
        for fingerprint in some {
          #expect(try blocks.state(of: fingerprint) == expected[fingerprint], "seed \(seed)")
        }
        try blocks.store(changes.sorted { $0.key < $1.key }.map { ($0.key, $0.value) })
        for (fingerprint, state) in changes { expected[fingerprint] = state }
        var found: [RowFingerprint: RowState] = [:]
        var last: RowFingerprint?
        try blocks.forEach { fingerprint, state in
          if let last, !(last < fingerprint) { Issue.record("order, seed \(seed)") }
          last = fingerprint
          found[fingerprint] = state
        }
        #expect(found == expected, "seed \(seed)")
        try blocks.readAhead(Array(changes.keys))
        #expect(try some.map(blocks.state) == some.map { expected[$0] }, "seed \(seed)")
        let asked = changes.keys.sorted()
        #expect(try blocks.states(of: asked) == asked.map { expected[$0] }, "seed \(seed)")
      }
    }
  }

  @Test func aStateThatWasRolledBackIsForgotten() throws {
    let scratch = try Scratch()
    let device = try scratch.devices(1, "CREATE TABLE t (k TEXT PRIMARY KEY, a, b)")[0]
    try device.store.write { session in
      let blocks = try session.access(1).stamps
      let fingerprint = RowFingerprint(high: 1 << 40, low: 1)
      try session.database.execute(sql: "SAVEPOINT s")
      try blocks.store([(fingerprint, .unstamped)])
      #expect(try blocks.state(of: fingerprint) == .unstamped)
      try session.database.execute(sql: "ROLLBACK TO s; RELEASE s")
      session.forgetKeyMemory()
      #expect(try blocks.state(of: fingerprint) == nil)
    }
  }

  /// Only who forges identities gives two rows one fingerprint.
  @Test func twoRowsOfOneFingerprintDamageNothing() throws {
    let scratch = try Scratch()
    let device = try scratch.devices(1, "CREATE TABLE t (k TEXT PRIMARY KEY, a, b)")[0]
    try device.store.write { session in
      let blocks = try session.access(1).stamps
      let fingerprint = RowFingerprint(high: 1 << 40, low: 1)
      var (first, last) = (RowState.unstamped, RowState.unstamped)
      first.existence = .deleted
      last.existence = .inserted
      for _ in 0..<2 {
        try blocks.store([(fingerprint, first), (fingerprint, last)])
        #expect(try blocks.state(of: fingerprint) == last)
        #expect(try blocks.states(of: [fingerprint, fingerprint]) == [last, last])
      }
    }
  }

  /// What a damaged block is read as, if it is read at all, can be written again.
  @Test(arguments: 1...40) func aDamagedBlockIsRefusedOrCanBeWritten(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    var coder = StampBlockCoding()
    for high in 0..<20 {
      coder.append(
        StampBlocks.Entry(
          fingerprint: RowFingerprint(high: UInt64(high) << 40, low: 1), state: state(&random)))
    }
    for _ in 0..<300 {
      var bytes = coder.bytes
      for _ in 0...random.below(3) {
        bytes[random.below(bytes.count - 1) + 1] = UInt8(random.below(256))
      }
      if random.chance(30) { bytes.removeLast(random.below(bytes.count - 1)) }
      do {
        let entries = try bytes.withUnsafeBytes { try StampBlockCoding.decode($0) }
        var copy = StampBlockCoding()
        for entry in entries { copy.append(entry) }
        let again = try copy.bytes.withUnsafeBytes { try StampBlockCoding.decode($0) }
        #expect(again == entries, "seed \(seed)")
      } catch let error as DatabaseError {
        #expect(error.resultCode == .SQLITE_CORRUPT, "seed \(seed)")
      }
    }
  }

  private func state(_ random: inout SeededGenerator) -> RowState {
    func stamp() -> LocalStamp {
      random.chance(20)
        ? .zero
        : LocalStamp(
          time: random.chance(50) ? random.next() : random.next() << 16,
          client: Int32(random.below(4)))
    }
    var state = RowState(
      existence: random.chance(50) ? .inserted : .deleted, existenceStamp: stamp(),
      cellStamp: stamp())
    if random.chance(20) { state.erasureStamp = state.existenceStamp }
    if random.chance(20) { state.erasureStamp = stamp() }
    if random.chance(30) { state.localKey = Int64(random.below(1_000)) - 500 }
    for column in 0..<random.below(4) { state.setStamp(stamp(), of: column) }
    return state
  }
}
