import SyncModel

@testable import SyncStore

/// Makes of honest change sets such as are well-formed and senseless.
struct HostileMutations {
  var generator: SeededGenerator
  /// Who has made change sets.
  let clients: [ClientIdentifier]
  /// What rows are known by, of all tables.
  let identities: [RowIdentity]
  /// Times that edits have.
  let times: [HybridTime]
  /// Names of columns of all tables.
  let names: [SQLName]

  init(of sets: [SyncChangeSet], seed: UInt64) {
    generator = SeededGenerator(seed: seed)
    clients = Array(Set(sets.map(\.header.client))).sorted() + [Stamp.zero.client]
    let tables = sets.flatMap(\.tables)
    times =
      Array(Set(tables.flatMap(\.times))).sorted() + [.zero, .maximum, HybridTime(rawValue: 1)]
    var named: Set<SQLName> = []
    for table in tables { named.formUnion(table.columns + table.keyColumns + [table.table]) }
    names = named.sorted()
    identities = tables.flatMap { table in
      (0..<table.count).map { row in
        if table.identity == .surrogate, case .blob(let bytes) = table.keys[0][row] {
          return RowIdentity(bytes: bytes)
        }
        return IdentityEncoding.encode(table.keys.map { $0[row] })
      }
    }
  }

  mutating func mutate(_ set: SyncChangeSet) -> SyncChangeSet {
    var set = set
    guard !set.tables.isEmpty else { return set }
    var tables = set.tables.map(LooseChanges.init)
    for _ in 0...generator.below(4) {
      let index = generator.below(tables.count)
      mutate(&tables[index])
      if generator.chance(3) { tables.append(tables[index]) }
      if generator.chance(2) {
        set.dependencies[any(clients)] = VersionVector.Entry(
          number: [0, 1, 5, .max, 1 << 63][generator.below(5)], hash: ContentHash(of: []))
      }
    }
    set.tables = tables.map(\.changes)
    return set
  }

  private mutating func any<Element>(_ elements: [Element]) -> Element {
    elements[generator.below(elements.count)]
  }

  private mutating func identity() -> RowIdentity {
    switch generator.below(4) {
    case 0: return RowIdentity(bytes: (0..<generator.below(20)).map { UInt8($0) })
    case 1:
      var bytes = any(identities).bytes
      // Not where it would get the fingerprint of the other: Reliability.md,
      // “Open faults”.
      let places = bytes.indices.filter { bytes.count != 16 || !(2..<8).contains($0) }
      bytes[any(places)] ^= UInt8(1 << generator.below(8))
      return RowIdentity(bytes: bytes)
    default: return any(identities)
    }
  }

  mutating func value() -> Value {
    let texts = ["", "a", "A", "a ", "1", "1.0", "0x1", "b\0c", "B\0C", " 5 ", "é", "e\u{301}"]
    switch generator.below(16) {
    case 0: return .null
    case 1: return .integer(any([0, 1, 2, -1, .max, .min, 1 << 53 + 1]))
    case 2: return .real(any([0, -0.0, 1, 1.5, .infinity, 9.3e18, 1e300, .leastNonzeroMagnitude]))
    case 3: return .real(.nan)
    case 4: return .blob(any([[], [0], [1, 2], Array("a".utf8), [0, 1, 2, 3]]))
    case 5: return .text(any([[0xFF], [0xED, 0xA0, 0x80], [0]]))
    case 6: return .identity(identity())
    case 7: return counter()
    default: return .text(Array(any(texts).utf8))
    }
  }

  /// What has been added to a counter, or a counter as it is kept.
  private mutating func counter() -> Value {
    func sum(_ generator: inout SeededGenerator) -> Counter.Sum {
      let values: [Value] = [.integer(1), .integer(.max), .real(1), .real(-2.5), .integer(-7)]
      return Counter.Sum(
        values[generator.below(values.count)], at: times[generator.below(times.count)])
    }
    guard generator.chance(50), var counter = Counter(base: sum(&generator).value) else {
      let isLater = generator.chance(50)
      return CounterValue.added(
        sum: sum(&generator).value, before: isLater ? sum(&generator) : nil, since: stamp()
      ).encoded
    }
    for _ in 0..<generator.below(3) { counter.sums[any(clients)] = sum(&generator) }
    return CounterValue.counter(counter).encoded
  }

  private mutating func stamp() -> Stamp { Stamp(time: any(times), client: any(clients)) }

  private mutating func mutate(_ table: inout LooseChanges) {
    switch generator.below(24) {
    case 0: table.table = any(names)
    case 1:
      guard !table.columns.isEmpty else { return }
      table.columns[generator.below(table.columns.count)] = any(names)
    case 2: table.keyColumns[generator.below(table.keyColumns.count)] = any(names)
    case 3:
      table.identity = any([.primaryKey, .surrogate, .columns])
    case 4:
      table.columns.append(any(names + ["unknown"]))
      let value = value()
      for row in table.rows.indices {
        table.rows[row].cells.append((table.columns.count - 1, value))
      }
    default:
      guard !table.rows.isEmpty else { return }
      mutate(&table, row: generator.below(table.rows.count))
    }
  }

  private mutating func mutate(_ table: inout LooseChanges, row: Int) {
    switch generator.below(10) {
    case 0:
      var twice = table.rows[row]
      if generator.chance(50), !twice.cells.isEmpty {
        twice.cells[generator.below(twice.cells.count)].value = value()
      }
      if generator.chance(50), !twice.keys.isEmpty {
        twice.keys[generator.below(twice.keys.count)] = value()
      }
      table.rows.insert(twice, at: generator.below(table.rows.count + 1))
    case 1: table.rows[row].keys[generator.below(table.rows[row].keys.count)] = value()
    case 2, 3:
      guard !table.rows[row].cells.isEmpty else { return }
      table.rows[row].cells[generator.below(table.rows[row].cells.count)].value = value()
    case 4: table.rows[row].action = UInt8(generator.below(4))
    case 5: table.rows[row].time = any(times)
    case 6:
      table.rows[row].stamps[nil] = stamp()
    case 7:
      guard let cell = table.rows[row].cells.first else { return }
      table.rows[row].stamps[cell.column] = stamp()
    case 8:
      table.rows[row].action = RowAction.delete.rawValue
      table.rows[row].destination = identity()
    default:
      guard !table.rows[row].cells.isEmpty else { return }
      let column = table.rows[row].cells[generator.below(table.rows[row].cells.count)].column
      table.rows[row].cells.removeAll { $0.column == column }
      table.rows[row].stamps[column] = nil
    }
  }
}
