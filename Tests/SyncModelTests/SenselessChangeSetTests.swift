import Foundation
import Testing

@testable import SyncModel

/// What files stand for costs no more than their bytes are worth, and what no
/// store can do anything with is refused.
struct SenselessChangeSetTests {
  private typealias Samples = ChangeSetSamples

  private func expectRefused(
    _ set: SyncChangeSet, _ what: String, sourceLocation: SourceLocation = #_sourceLocation
  ) {
    #expect(sourceLocation: sourceLocation) {
      try ChangeSetCodec.encode(set)
    } throws: {
      ($0 as? CodecError)?.code == .malformed && "\($0)".contains(what)
    }
  }

  private func item(_ rows: [(RowAction, [Value], [Value])], identity: IdentityKind = .primaryKey)
    -> TableChanges
  {
    Samples.table(
      "item", identity: identity, keys: ["id"], columns: ["a"],
      rows: rows.map { ($0.0, Samples.time(1), $0.1, $0.2) })
  }

  @Test func rowThatComesTwiceIsRefused() {
    let twice: (RowAction, [Value], [Value]) = (.insert, [.text("b")], [.null])
    let other: (RowAction, [Value], [Value]) = (.insert, [.text("a")], [.null])
    expectRefused(Samples.changeSet([item([twice, twice])]), "a row twice")
    expectRefused(Samples.changeSet([item([other, twice, twice])]), "a row twice")
    expectRefused(Samples.changeSet([item([twice, other, twice])]), "a row twice")
    let identity = Value.blob([UInt8](repeating: 7, count: 16))
    let surrogate: (RowAction, [Value], [Value]) = (.insert, [identity, .integer(1)], [.null])
    let again: (RowAction, [Value], [Value]) = (.update, [identity, .null], [.integer(1)])
    expectRefused(
      Samples.changeSet([item([surrogate, again], identity: .surrogate)]), "a row twice")
  }

  @Test func numbersThatNoClientReachesAreRefused() {
    var set = Samples.oneRow
    for number in [0, 1 << 63, UInt64.max, VersionVector.greatestNumber + 1] {
      set.header.number = number
      expectRefused(set, "public header")
      var depending = Samples.oneRow
      depending.dependencies[Samples.client(7)] = VersionVector.Entry(
        number: number, hash: ContentHash(of: []))
      expectRefused(depending, "dependency")
    }
    set.header.number = VersionVector.greatestNumber
    #expect(throws: Never.self) { try ChangeSetCodec.encode(set) }
    set.header.client = Stamp.zero.client
    expectRefused(set, "client")
  }

  @Test func dependencyOnItsOwnAuthorIsRefused() {
    var set = Samples.oneRow
    set.dependencies[set.header.client] = VersionVector.Entry(
      number: 1, hash: ContentHash(of: []))
    expectRefused(set, "author itself")
  }

  @Test func erasedRowWithCellsIsRefused() {
    expectRefused(
      Samples.changeSet([item([(.erase, [.integer(1)], [.null])])]), "cells of an erased row")
  }

  @Test func realThatIsNoNumberIsRefused() {
    expectRefused(
      Samples.changeSet([item([(.insert, [.integer(1)], [.real(.nan)])])]), "not a number")
    expectRefused(
      Samples.changeSet([item([(.insert, [.real(.signalingNaN)], [.null])])]), "not a number")
  }

  @Test func existenceWithTheStampOfNothingIsRefused() {
    var table = item([(.insert, [.integer(1)], [.null])])
    table.exceptions = [StampException(row: 0, column: nil, stamp: .zero)]
    expectRefused(Samples.changeSet([table]), "before syncing began")
    table.actions = [RowAction.update.rawValue]
    #expect(throws: Never.self) { try ChangeSetCodec.encode(Samples.changeSet([table])) }
  }

  private static func bigEndian(_ word: UInt64) -> [UInt8] {
    (0..<8).map { UInt8(truncatingIfNeeded: word >> (56 - 8 * $0)) }
  }

  @Test func moveThatLeadsNowhereIsRefused() {
    func move(_ destination: [UInt8], _ identity: IdentityKind = .primaryKey) -> SyncChangeSet {
      let key: [Value] =
        identity == .surrogate
        ? [.blob([UInt8](repeating: 1, count: 16)), .null] : [.integer(1)]
      var table = item([(.delete, key, [])], identity: identity)
      table.moves = [RowMove(row: 0, destination: RowIdentity(bytes: destination))]
      return Samples.changeSet([table])
    }
    let one = IdentityEncoding.encode([.integer(1)]).bytes
    let two = IdentityEncoding.encode([.integer(2)]).bytes
    expectRefused(move(one), "to itself")
    expectRefused(move([UInt8](repeating: 1, count: 16), .surrogate), "to itself")
    expectRefused(move(Array(two.dropLast())), "identity")
    expectRefused(move(two + [0]), "identity")
    expectRefused(move([9]), "identity")
    // 2.0 is the same key as 2, and has its bytes.
    let real = [ValueKind.real.rawValue] + Self.bigEndian(2.0.bitPattern | 1 << 63)
    expectRefused(move(real), "real that is an integer")
    expectRefused(move(two, .surrogate), "16 bytes")
    #expect(throws: Never.self) { try ChangeSetCodec.encode(move(two)) }
  }

  @Test func bodyThatIsCompressedAsAWholeIsRefused() throws {
    var envelope = try Envelope.decode(ChangeSetCodec.encode(Samples.pathKeys))
    envelope.body += [UInt8](repeating: 0, count: 1000)
    envelope.compression = .deflate
    let bytes = try envelope.encoded()
    #expect {
      try ChangeSetCodec.decode(bytes)
    } throws: {
      ($0 as? CodecError)?.code == .malformed
    }
  }

  // MARK: - Time and memory

  /// Paths that have most in common, as many as told.
  private func paths(_ count: Int) -> [UInt8] {
    let rows = (0..<count).map { number -> (RowAction, [Value], [Value]) in
      let name = String(format: "/home/someone/documents/%08d.txt", number)
      return (.insert, [.text(Array(name.utf8))], [.null])
    }
    do {
      return try ChangeSetCodec.encode(Samples.changeSet([item(rows)]))
    } catch {
      Issue.record("\(error)")
      return []
    }
  }

  /// The time that this thread has computed for, which other work on the
  /// machine does not lengthen.
  private func seconds(_ body: () throws -> Void) rethrows -> Double {
    func now() -> Double {
      var time = timespec()
      clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
      return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }
    let start = now()
    try body()
    return now() - start
  }

  @Test func timeToReadFrontCodedContentsGrowsWithTheirLength() throws {
    let (few, many) = (paths(4_000), paths(16_000))
    _ = try ChangeSetCodec.decode(few)
    var (short, long) = (Double.infinity, Double.infinity)
    // The least of several: what the machine adds to one of them does not count.
    for _ in 0..<5 {
      short = min(short, try seconds { _ = try ChangeSetCodec.decode(few) })
      long = min(long, try seconds { _ = try ChangeSetCodec.decode(many) })
    }
    // Four times as many; sixteen times as long if each copied all before it.
    #expect(long < 8 * short, "\(short) s, \(long) s")
  }

  @Test func readingIsCancelledBetweenColumns() throws {
    struct Cancelled: Error {}
    let bytes = paths(100)
    var calls = 0
    #expect(throws: Cancelled.self) {
      try ChangeSetCodec.decode(bytes) {
        calls += 1
        if calls == 2 { throw Cancelled() }
      }
    }
  }

  /// Tables of constants: 2,000 columns of 100,000 rows in some kilobytes.
  @Test func fewBytesThatStandForTooManyCellsAreRefused() throws {
    var set = try ChangeSetBytes.stored(ChangeSetCodec.encode(Samples.empty))
    let (rows, columns) = (100_000, 2_000)
    var lane: [UInt8] = [1, UInt8(ascii: "t"), 0, 1, 1, UInt8(ascii: "k")]
    lane.append(varint: columns)
    for column in 0..<columns {
      let name = Array("c\(column)".utf8)
      lane.append(varint: name.count)
      lane += name
    }
    lane.append(varint: rows)
    lane += [0, 0, 0, 2, 2, 0, 2, 0, 0, 0, 1]  // inserts; keys 1, 2, 3…; one time; one shape
    var header: [UInt8] = [0] + Samples.empty.schema.bytes
    header += [1] + [UInt8](repeating: 0, count: 16) + [1]
    header.append(varint: rows)
    header.append(0)
    lane.append(varint: columns)
    lane += [UInt8](repeating: 0, count: columns) + [0, 0]
    for _ in 0..<columns { lane += [0, 0] }
    lane += [0, 0]
    header.append(varint: lane.count)
    header += [0, 0, 0, 0, 0, 0]
    set.privateHeader = header
    set.body = lane
    let bytes = try set.encoded()
    let taken = seconds {
      #expect {
        try ChangeSetCodec.decode(bytes)
      } throws: {
        ($0 as? CodecError)?.code == .lengthOverCap
      }
    }
    #expect(taken < 20)
  }
}
