import Testing

@testable import SyncModel

struct ChangeSetCodecTests {
  @Test(arguments: ChangeSetSamples.all.map(\.name))
  func everySampleComesBackAsItWas(name: String) throws {
    let set = try #require(ChangeSetSamples.all.first { $0.name == name }?.set)
    let bytes = try ChangeSetCodec.encode(set)
    #expect(try ChangeSetCodec.decode(bytes) == set)
    #expect(try ChangeSetCodec.decodeHeader(bytes) == set.header)
    #expect(try ChangeSetCodec.encode(set) == bytes)
  }

  @Test func randomSetsComeBackAsTheyWere() throws {
    for seed in 0..<300 {
      var generator = SeededGenerator(seed: UInt64(seed))
      let set = RandomChangeSets.set(using: &generator)
      let bytes = try ChangeSetCodec.encode(set)
      let decoded = try ChangeSetCodec.decode(bytes)
      #expect(decoded == set, "seed \(seed)")
      #expect(try ChangeSetCodec.encode(decoded) == bytes, "seed \(seed)")
    }
  }

  @Test func realsKeepTheirBits() throws {
    let bytes = try ChangeSetCodec.encode(ChangeSetSamples.everyKind)
    let words = try ChangeSetCodec.decode(bytes).tables[0].cells[0].words
    #expect(words[4] == 0)
    #expect(words[5] == (-0.0).bitPattern)
  }

  @Test func columnOutOfOrderInMemoryIsWrittenInOrder() throws {
    var set = ChangeSetSamples.oneRow
    set.tables[0].cells[0] = try ValueColumn(
      kinds: [3], words: [2 << 32 | 3], bytes: Array("__abc__".utf8))
    let decoded = try ChangeSetCodec.decode(ChangeSetCodec.encode(set))
    #expect(decoded.tables[0].cells[0][0] == .text("abc"))
    #expect(decoded.tables[0].cells[0].bytes == Array("abc".utf8))
  }

  @Test func uuidTextsTakeSixteenBytesOnlyIfAllAreCanonical() throws {
    var generator = SeededGenerator(seed: 1)
    let uuids = (0..<200).map { _ in ChangeSetSamples.uuid(using: &generator) }
    func size(_ keys: [Value]) throws -> Int {
      let set = ChangeSetSamples.changeSet([
        ChangeSetSamples.table(
          "t", keys: ["k"], columns: [],
          rows: keys.map { (.delete, ChangeSetSamples.time(0), [$0], []) })
      ])
      let bytes = try ChangeSetCodec.encode(set)
      #expect(try ChangeSetCodec.decode(bytes) == set)
      return bytes.count
    }
    let packed = try size(uuids)
    #expect(packed < 200 * 16 + 600)
    var mixed = uuids
    mixed[57] = .text("AAAAAAAA-aaaa-aaaa-aaaa-aaaaaaaaaaaa")
    #expect(try size(mixed) > packed + 200)
    mixed[57] = .text("aaaaaaaa_aaaa-aaaa-aaaa-aaaaaaaaaaaa")
    #expect(try size(mixed) > packed + 200)
  }

  @Test func setsThatNoReaderWouldTakeAreNotWritten() {
    func refused(
      _ code: CodecError.Code, _ what: Comment, _ change: (inout SyncChangeSet) -> Void
    ) {
      var set = ChangeSetSamples.exceptionsAndMoves
      change(&set)
      #expect(what) { try ChangeSetCodec.encode(set) } throws: {
        ($0 as? CodecError)?.code == code
      }
    }
    refused(.malformed, "number 0") { $0.header.number = 0 }
    refused(.malformed, "no previous hash") { $0.header.previous = nil }
    refused(.malformed, "action") { $0.tables[0].actions[0] = 4 }
    refused(.wrongCount, "times") { $0.tables[0].times.removeLast() }
    refused(.wrongCount, "keys") { $0.tables[0].keys[0].appendNull() }
    refused(.wrongCount, "cells") { $0.tables[0].cells[1].appendNull() }
    refused(.malformed, "shape of a row") { $0.tables[0].rowShapes[0] = 9 }
    refused(.malformed, "descending shape") { $0.tables[0].shapes[2] = [2, 0] }
    refused(.malformed, "shape out of range") { $0.tables[0].shapes[2] = [0, 3] }
    refused(.malformed, "shape twice") { $0.tables[0].shapes[2] = [0, 1, 2] }
    refused(.malformed, "exceptions out of order") { $0.tables[0].exceptions.swapAt(0, 1) }
    refused(.malformed, "exception for no cell") { $0.tables[0].exceptions[3].column = 1 }
    refused(.malformed, "exception for no row") { $0.tables[0].exceptions[3].row = 5 }
    refused(.malformed, "move of a living row") { $0.tables[0].moves[1].row = 3 }
    refused(.malformed, "moves out of order") { $0.tables[0].moves.swapAt(0, 1) }
    refused(.malformed, "time") { $0.tables[0].times[0] = HybridTime(rawValue: 1 << 63) }
    refused(.malformed, "table twice") { $0.tables.append($0.tables[0]) }
    refused(.malformed, "column twice") { $0.tables[0].columns[1] = "a" }
    refused(.malformed, "NUL in a name") { $0.tables[0].table = "a\0" }
    refused(.wrongCount, "key columns") { $0.tables[0].keyColumns.append("more") }
  }

  @Test func surrogatesMustBeSixteenBytes() {
    for value in [Value.null, .blob([1, 2, 3]), .text("0123456789abcdef")] {
      let set = ChangeSetSamples.changeSet([
        ChangeSetSamples.table(
          "t", identity: .surrogate, keys: ["id"], columns: [],
          rows: [(.delete, ChangeSetSamples.time(0), [value, .integer(1)], [])])
      ])
      #expect { try ChangeSetCodec.encode(set) } throws: {
        ($0 as? CodecError)?.code == .malformed
      }
    }
  }

  @Test func rowsAndTablesOverTheCapsAreRefused() throws {
    let bytes = try ChangeSetCodec.encode(ChangeSetSamples.severalTables)
    var rows = CodecLimits.default
    rows.rows = 199
    var tables = CodecLimits.default
    tables.tables = 4
    var memory = CodecLimits.default
    memory.memoryBytes = 1000
    var columns = CodecLimits.default
    columns.columns = 3
    for limits in [rows, tables, memory, columns] {
      #expect { try ChangeSetCodec.decode(bytes, limits: limits) } throws: {
        ($0 as? CodecError)?.code == .lengthOverCap
      }
      #expect {
        try ChangeSetCodec.encode(ChangeSetSamples.severalTables, limits: limits)
      } throws: {
        ($0 as? CodecError)?.code == .lengthOverCap
      }
    }
  }

  @Test func rangeOfTimesThatIsNotThatOfTheRowsIsRefused() throws {
    var envelope = try ChangeSetBytes.stored(ChangeSetCodec.encode(ChangeSetSamples.oneRow))
    // After the number of dependencies, the schema, the flag and the least time.
    envelope.privateHeader[1 + 32 + 1 + 8] ^= 1
    let bytes = try envelope.encoded()
    #expect { try ChangeSetCodec.decode(bytes) } throws: {
      ($0 as? CodecError)?.code == .wrongCount
    }
  }

  @Test func fewBytesThatStandForTooMuchMemoryAreRefused() throws {
    // 200,000 rows of five columns in a file of some bytes, all constant.
    var limits = CodecLimits.default
    limits.memoryBytes = 20 << 20
    var lane: [UInt8] = [1, UInt8(ascii: "t"), 0, 1, 1, UInt8(ascii: "k")]
    let columns = 5
    lane.append(varint: columns)
    for column in 0..<columns {
      let name = Array("c\(column)".utf8)
      lane.append(varint: name.count)
      lane += name
    }
    let rows = 200_000
    lane.append(varint: rows)
    let constant: [UInt8] = [0, 0]  // all actions are inserts, all kinds null…
    lane += constant + constant + constant
    lane += [1]
    lane.append(varint: columns)
    lane += [UInt8](repeating: 0, count: columns)
    lane += constant
    for _ in 0..<columns { lane += constant }
    lane += [0, 0]
    var set = try ChangeSetBytes.stored(ChangeSetCodec.encode(ChangeSetSamples.empty))
    var header: [UInt8] = [0]
    header += ChangeSetSamples.empty.schema.bytes
    header += [1] + [UInt8](repeating: 0, count: 16) + [1]
    header.append(varint: rows)
    header.append(0)
    header.append(varint: lane.count)
    header += [0, 0, 0, 0, 0, 0]
    set.privateHeader = header
    set.body = lane
    let bytes = try set.encoded()
    #expect { try ChangeSetCodec.decode(bytes, limits: limits) } throws: {
      ($0 as? CodecError)?.code == .lengthOverCap
    }
  }
}

/// Change sets in which anything that is allowed may occur.
enum RandomChangeSets {
  static func set(using generator: inout SeededGenerator) -> SyncChangeSet {
    ChangeSetSamples.changeSet(
      number: UInt64(1 + generator.below(1000)),
      (0..<generator.below(4)).map { table("table \($0)", using: &generator) })
  }

  private static func table(
    _ name: SQLName, using generator: inout SeededGenerator
  ) -> TableChanges {
    let identity = IdentityKind.allCases[generator.below(3)]
    let keyCount = identity == .surrogate ? 1 : 1 + generator.below(3)
    let columnCount = generator.below(5)
    var table = TableChanges(
      table: name, identity: identity, keyColumns: (0..<keyCount).map { "k\($0)" },
      columns: (0..<columnCount).map { "c\($0)" })
    var styles = (0..<8).map { _ in generator.below(9) }
    // One key column tells the rows apart.
    styles[5 + keyCount - 1] = [1, 3, 4][generator.below(3)]
    for shape in 0..<1 << columnCount {
      table.shapes.append((0..<columnCount).filter { shape >> $0 & 1 == 1 })
    }
    let spread = [1, 5, 10_000][generator.below(3)]
    for row in 0..<[0, 1, 20, 200, 2000][generator.below(5)] {
      let action = generator.below(3)
      let shape = action == 2 ? 0 : generator.below(table.shapes.count)
      table.actions.append(UInt8(action))
      table.rowShapes.append(UInt32(shape))
      table.times.append(ChangeSetSamples.time(generator.below(spread)))
      if identity == .surrogate {
        table.keys[0].append(.blob(generator.bytes(16)))
        table.keys[1].append(generator.below(9) == 0 ? .null : .integer(Int64(row)))
      } else {
        for key in 0..<keyCount {
          table.keys[key].append(value(styles[5 + key], row: row, using: &generator))
        }
      }
      for column in table.shapes[shape] {
        table.cells[column].append(value(styles[column], row: row, using: &generator))
      }
      let places = [nil] + table.shapes[shape].map { $0 as Int? }
      for column in places where generator.below(20) == 0 {
        table.exceptions.append(
          StampException(
            row: row, column: column,
            stamp: Stamp(
              time: ChangeSetSamples.time(generator.below(100)),
              client: ChangeSetSamples.client(UInt64(generator.below(3))))))
      }
      if action == 2, generator.below(10) == 0 {
        let destination =
          identity == .surrogate
          ? RowIdentity(bytes: generator.bytes(16))
          : IdentityEncoding.encode(
            (0..<keyCount).map { _ in value(generator.below(8), row: row, using: &generator) })
        let own = IdentityEncoding.encode(table.keys.map { $0[row] })
        if destination != own {
          table.moves.append(RowMove(row: row, destination: destination))
        }
      }
    }
    // Shapes that no row has are allowed, but there are no more than rows.
    if table.count < table.shapes.count {
      let used = Set(table.rowShapes).sorted()
      let index = Dictionary(uniqueKeysWithValues: used.enumerated().map { ($1, UInt32($0)) })
      table.shapes = used.map { table.shapes[Int($0)] }
      table.rowShapes = table.rowShapes.compactMap { index[$0] }
    }
    return table
  }

  private static func value(
    _ style: Int, row: Int, using generator: inout SeededGenerator
  ) -> Value {
    switch style {
    case 0: return .integer(Int64(generator.below(5)))
    case 1: return .integer(Int64(bitPattern: generator.next()))
    case 2:
      let real = Double(bitPattern: generator.next())
      return .real(real.isNaN ? 0.5 : real)
    case 3: return ChangeSetSamples.uuid(using: &generator)
    case 4: return .text("row \(10_000 + row) of some table")
    case 5: return .blob(generator.bytes(generator.below(40)))
    case 6: return .text(["red", "green", "blue"][generator.below(3)])
    case 7: return .identity(IdentityEncoding.encode([ChangeSetSamples.uuid(using: &generator)]))
    default: return value(generator.below(8), row: row, using: &generator)
    }
  }
}
