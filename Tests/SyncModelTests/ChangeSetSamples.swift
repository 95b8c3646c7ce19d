import SyncModel

/// Change sets built in code, each for a corner of the format. The golden
/// files hold them, so that what they are built from may never change.
enum ChangeSetSamples {
  static let all: [(name: String, set: SyncChangeSet)] = [
    ("empty", empty), ("one-row", oneRow), ("every-kind", everyKind), ("uuid-keys", uuidKeys),
    ("surrogates", surrogates), ("path-keys", pathKeys),
    ("exceptions-and-moves", exceptionsAndMoves), ("several-tables", severalTables),
  ]

  static func changeSet(number: UInt64 = 1, _ tables: [TableChanges]) -> SyncChangeSet {
    var generator = SeededGenerator(seed: number)
    return SyncChangeSet(
      header: SyncChangeSet.Header(
        root: .random(using: &generator), document: .random(using: &generator),
        generation: .random(using: &generator), client: .random(using: &generator),
        number: number,
        previous: number == 1 ? nil : ContentHash(of: [UInt8(truncatingIfNeeded: number)])),
      dependencies: VersionVector(), schema: ContentHash(of: Array("schema".utf8)), tables: tables)
  }

  static func time(_ milliseconds: Int, _ counter: UInt16 = 0) -> HybridTime {
    HybridTime(milliseconds: 1_790_000_000_000 + Int64(milliseconds), counter: counter)
  }

  static func client(_ number: UInt64) -> ClientIdentifier {
    ClientIdentifier(bits: Bits128(high: number, low: ~number))
  }

  static func uuid(using generator: inout SeededGenerator) -> Value {
    let bytes = generator.bytes(16)
    let digits = bytes.map { byte in
      let text = String(byte, radix: 16)
      return text.count == 1 ? "0" + text : text
    }
    let groups = [digits[0..<4], digits[4..<6], digits[6..<8], digits[8..<10], digits[10..<16]]
    return .text(groups.map { $0.joined() }.joined(separator: "-"))
  }

  /// A table in which every row of a kind has all columns; deletes have none.
  static func table(
    _ name: SQLName, identity: IdentityKind = .primaryKey, keys: [SQLName], columns: [SQLName],
    rows: [(action: RowAction, time: HybridTime, keys: [Value], cells: [Value])]
  ) -> TableChanges {
    var table = TableChanges(table: name, identity: identity, keyColumns: keys, columns: columns)
    let full = Array(columns.indices)
    for row in rows {
      table.actions.append(row.action.rawValue)
      table.times.append(row.time)
      for (index, key) in row.keys.enumerated() { table.keys[index].append(key) }
      let shape = row.action == .delete ? [] : full
      if !table.shapes.contains(shape) { table.shapes.append(shape) }
      table.rowShapes.append(UInt32(table.shapes.firstIndex(of: shape) ?? 0))
      if row.action != .delete {
        for (index, cell) in row.cells.enumerated() { table.cells[index].append(cell) }
      }
    }
    return table
  }

  static var empty: SyncChangeSet { changeSet([]) }

  static var oneRow: SyncChangeSet {
    changeSet(
      number: 2,
      [
        table(
          "note", keys: ["id"], columns: ["title", "rating"],
          rows: [(.insert, time(5), [.text("a")], [.text("Grüße"), .integer(-3)])])
      ])
  }

  static var everyKind: SyncChangeSet {
    let values: [Value] = [
      .null, .integer(0), .integer(.min), .integer(.max), .real(0), .real(-0.0), .real(.infinity),
      .real(1.5), .real(.leastNonzeroMagnitude), .text(""), .text("a\0b"), .text([0xFF, 0xFE]),
      .blob([]), .blob([0, 1, 2]), .identity(RowIdentity(bytes: [1, 2, 3])),
    ]
    return changeSet(
      number: 3,
      [
        table(
          "värde \"x\"", identity: .columns, keys: ["a", "b"], columns: ["c"],
          rows: values.enumerated().map { index, value in
            (.update, time(index * index, UInt16(index)), [value, .integer(Int64(index))], [value])
          })
      ])
  }

  static var uuidKeys: SyncChangeSet {
    var generator = SeededGenerator(seed: 4)
    let keys = (0..<300).map { _ in uuid(using: &generator) }.sorted { left, right in
      "\(left)" < "\(right)"
    }
    let parents = (0..<3).map { _ in
      Value.identity(IdentityEncoding.encode([uuid(using: &generator)]))
    }
    var result = changeSet(
      number: 4,
      [
        table(
          "task", keys: ["id"], columns: ["parent", "other", "state", "done", "price"],
          rows: keys.map { key in
            let other = Value.identity(IdentityEncoding.encode([uuid(using: &generator)]))
            return (
              .insert, time(generator.below(50)), [key],
              [
                parents[generator.below(3)], other,
                .text(["open", "waiting", "closed"][generator.below(3)]),
                generator.below(2) == 0 ? .null : .integer(Int64(generator.below(5))),
                .real(Double(generator.below(100_000)) / 100),
              ]
            )
          })
      ])
    result.dependencies = VersionVector([
      client(7): VersionVector.Entry(number: 9, hash: ContentHash(of: [9])),
      client(3): VersionVector.Entry(number: 1 << 40, hash: ContentHash(of: [3])),
    ])
    return result
  }

  static var surrogates: SyncChangeSet {
    var generator = SeededGenerator(seed: 5)
    return changeSet(
      number: 5,
      [
        table(
          "event", identity: .surrogate, keys: ["id"], columns: ["image"],
          rows: (0..<100).map { index in
            (
              RowAction.insert, time(index / 10, UInt16(index % 10)),
              [.blob(generator.bytes(16)), index % 7 == 0 ? .null : .integer(Int64(1000 + index))],
              [.blob(generator.bytes(40))]
            )
          })
      ])
  }

  static var pathKeys: SyncChangeSet {
    var generator = SeededGenerator(seed: 6)
    let words = ["quick", "brown", "fox", "jumps", "over", "the", "lazy", "dog"]
    return changeSet(
      number: 6,
      [
        table(
          "file", keys: ["path"], columns: ["content"],
          rows: (0..<200).map { index in
            let text = (0..<generator.below(12)).map { _ in words[generator.below(8)] }
            return (
              RowAction.insert, time(generator.below(100_000)),
              [.text("/home/someone/documents/\(1000 + index / 10)/\(index).txt")],
              [.text(text.joined(separator: " "))]
            )
          })
      ])
  }

  static var exceptionsAndMoves: SyncChangeSet {
    var table = table(
      "item", keys: ["id"], columns: ["a", "b", "c"],
      rows: [
        (.insert, time(1), [.integer(1)], [.integer(1), .text("x"), .null]),
        (.delete, time(2), [.integer(2)], []),
        (.delete, time(3), [.integer(3)], []),
        (.insert, time(4), [.integer(4)], [.integer(1), .text("y"), .null]),
      ])
    table.actions.append(RowAction.update.rawValue)
    table.keys[0].append(.integer(9))
    table.times.append(time(5))
    table.shapes.append([0, 2])
    table.rowShapes.append(UInt32(table.shapes.count - 1))
    table.cells[0].append(.integer(7))
    table.cells[2].append(.real(2.5))
    table.exceptions = [
      StampException(row: 0, column: nil, stamp: Stamp(time: time(-9), client: client(2))),
      StampException(row: 0, column: 1, stamp: Stamp(time: .zero, client: client(1))),
      StampException(row: 1, column: nil, stamp: Stamp(time: .maximum, client: client(2))),
      StampException(row: 4, column: 2, stamp: Stamp(time: time(4), client: client(1))),
    ]
    table.moves = [
      RowMove(row: 1, destination: IdentityEncoding.encode([.integer(4)])),
      RowMove(row: 2, destination: IdentityEncoding.encode([.text("elsewhere")])),
    ]
    return changeSet(number: 7, [table])
  }

  static var severalTables: SyncChangeSet {
    let tables = (0..<5).map { number in
      table(
        "table\(number)", keys: ["id"], columns: (0..<number).map { "column\($0)" },
        rows: (0..<number * 20).map { row in
          (
            RowAction.insert, time(row), [.integer(Int64(row * 3))],
            (0..<number).map { .integer(Int64($0 * row)) }
          )
        })
    }
    return changeSet(number: 8, tables)
  }
}
