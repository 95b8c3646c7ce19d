import SyncModel

/// The key of a row of the document: table and identity.
struct OracleKey: Hashable, Comparable, Sendable, CustomStringConvertible {
  var table: SQLName
  var identity: RowIdentity

  static func < (left: OracleKey, right: OracleKey) -> Bool {
    left.table == right.table ? left.identity < right.identity : left.table < right.table
  }

  var description: String { "\(table) \(identity.shortDescription)" }
}

/// The logical state: all merged change sets as plain dictionaries, by the first part of
/// `Documentation/Merging.md`.
///
/// The code is independent of the product's merging: it uses only the product's decoder of change
/// sets and encoding of identities.
struct LogicalState: Sendable {
  struct Row: Hashable, Sendable {
    enum Existence: String, Hashable, Sendable { case unsaid, inserted, deleted }

    var existence = Existence.unsaid
    var existenceStamp: Stamp?
    /// The stamp of the newest erase. Older cells have no effect.
    var erasureStamp: Stamp?
    /// The new identity of the row, if its key was changed.
    var moved: RowIdentity?
    /// The cells by name of column.
    var cells: [SQLName: Cell] = [:]
    /// Whether an edit has won over the row's deletion, in a table in which edits win.
    var isRevived = false

    var isLiving: Bool { existence == .inserted || isRevived }

    /// Whether the row was deleted with its cells, so that no other row can bring it back.
    var isErased: Bool {
      existence == .deleted && erasureStamp != nil && erasureStamp == existenceStamp
    }
  }

  struct Cell: Hashable, Sendable {
    /// The value to which the cell was set.
    var value: Value
    var stamp: Stamp
    var isCounter = false
    /// The sum of each client's additions, by the stamp of the setting that they follow.
    var added: [Stamp: [ClientIdentifier: Counter.Sum]] = [:]
  }

  private let schema: FleetSchema
  /// The collations of each table's key.
  private let collations: [SQLName: [KeyCollation]]
  private let origins: [SQLName: UInt64]
  private(set) var rows: [OracleKey: Row] = [:]
  /// The number of each device's last merged change set.
  private(set) var vector: [ClientIdentifier: UInt64] = [:]

  /// Creates the state before the first change set, with the rows that existed before syncing
  /// began.
  ///
  /// - Parameter origins: The first half of the identities of these rows, for each table with
  ///   surrogate keys.
  init(schema: FleetSchema, start: [OracleKey: [SQLName: Value]], origins: [SQLName: UInt64]) {
    self.origins = origins
    self.schema = schema
    collations = Dictionary(
      uniqueKeysWithValues: schema.tables.map { ($0.name, $0.keyCollations) })
    for (key, values) in start {
      rows[key] = Row(
        existence: .inserted, existenceStamp: .zero,
        cells: Dictionary(
          uniqueKeysWithValues: values.map { name, value in
            (name, Cell(value: value, stamp: .zero, isCounter: isCounter(name, key.table)))
          }))
    }
  }

  /// Returns the identity of the row that had a key before syncing began.
  func original(of key: Int64, in table: SQLName) -> RowIdentity {
    RowIdentity(bytes: Bits128(high: origins[table] ?? 0, low: UInt64(bitPattern: key)).bytes)
  }

  /// Gives a row other values, or deletes it if `values` is `nil`, as if change sets had done so.
  mutating func overwrite(_ key: OracleKey, with values: [SQLName: Value]?) {
    let row = rows[key]
    guard let values else {
      rows[key] = Row(existence: .deleted, existenceStamp: row?.existenceStamp)
      return
    }
    rows[key] = Row(
      existence: .inserted, existenceStamp: row?.existenceStamp ?? .zero,
      cells: Dictionary(
        uniqueKeysWithValues: values.map { name, value in
          let stamp = row?.cells[name]?.stamp ?? .zero
          return (name, Cell(value: value, stamp: stamp, isCounter: isCounter(name, key.table)))
        }))
  }

  /// Merges a change set. The order of change sets makes no difference.
  mutating func merge(_ set: SyncChangeSet) {
    vector[set.header.client] = max(vector[set.header.client] ?? 0, set.header.number)
    for changes in set.tables { merge(changes, by: set.header.client) }
  }

  private mutating func merge(_ changes: TableChanges, by author: ClientIdentifier) {
    var cursors = [Int](repeating: 0, count: changes.columns.count)
    let moves = Dictionary(uniqueKeysWithValues: changes.moves.map { ($0.row, $0.destination) })
    for index in 0..<changes.count {
      let stamp = Stamp(time: changes.times[index], client: author)
      let exceptions = changes.exceptions.filter { $0.row == index }
      let key = changes.oracleKey(index, collations: collations[changes.table] ?? [])
      var row = rows[key] ?? Row()
      if let action = RowAction(rawValue: changes.actions[index]), action != .update {
        let stamp = exceptions.first { $0.column == nil }?.stamp ?? stamp
        if row.existenceStamp.map({ $0 < stamp }) ?? true {
          row.existence = action == .insert ? .inserted : .deleted
          row.existenceStamp = stamp
          row.moved = action.isDeletion ? moves[index] : nil
        }
        if action == .erase { row.erasureStamp = max(row.erasureStamp ?? stamp, stamp) }
      }
      for column in changes.shapes[Int(changes.rowShapes[index])] {
        let value = changes.cells[column][cursors[column]]
        cursors[column] += 1
        let stamp = exceptions.first { $0.column == column }?.stamp ?? stamp
        let name = changes.columns[column]
        let isCounter = isCounter(name, changes.table)
        if isCounter, merge(value, at: stamp, into: &row.cells[name]) { continue }
        if row.cells[name].map({ $0.stamp < stamp }) ?? true {
          let added = row.cells[name]?.added ?? [:]
          row.cells[name] = Cell(value: value, stamp: stamp, isCounter: isCounter, added: added)
        }
      }
      if let erasureStamp = row.erasureStamp {
        row.cells = row.cells.compactMapValues { $0.surviving(erasureStamp) }
      }
      row.isRevived = schema.table(changes.table).map(row.isRevived) ?? false
      rows[key] = row
    }
  }

  /// Returns the state on a device that has only the tables and columns of a schema. Edits of other
  /// columns bring no row back there.
  func known(in schema: FleetSchema) -> LogicalState {
    var known = self
    if schema.tables.count < self.schema.tables.count {
      known.rows = rows.filter { schema.table($0.key.table) != nil }
    }
    for (key, row) in known.rows where row.isRevived {
      known.rows[key]?.isRevived = schema.table(key.table).map(row.isRevived) ?? false
    }
    return known
  }
}

extension LogicalState.Row {
  /// Returns whether an edit of one of a table's columns wins over the deletion of the row.
  fileprivate func isRevived(in table: FleetTable) -> Bool {
    table.mergeType == .editWins && existence == .deleted
      && table.columns.contains { column in
        cells[column.name].map { $0.stamp > existenceStamp ?? .zero } ?? false
      }
  }
}

// MARK: - Counters

extension LogicalState {
  private func isCounter(_ column: SQLName, _ table: SQLName) -> Bool {
    schema.table(table)?.columns.contains { $0.name == column && $0.isCounter } ?? false
  }

  /// Merges the value of a counter. Returns false if the caller must merge it like any other cell.
  private func merge(
    _ value: Value, at stamp: Stamp, into cell: inout Cell?
  ) -> Bool {
    switch CounterValue(value) {
    case .added(let sum, _, let since):
      var counter = cell ?? Cell(value: .null, stamp: .zero, isCounter: true)
      let known = counter.added[since]?[stamp.client]
      if known.map({ $0.time < stamp.time }) ?? true {
        counter.added[since, default: [:]][stamp.client] = Counter.Sum(sum, at: stamp.time)
      }
      cell = counter
      return true
    case .counter(let whole):
      if cell.map({ $0.stamp < stamp }) ?? true {
        var counter = Cell(
          value: whole.base, stamp: stamp, isCounter: true, added: cell?.added ?? [:])
        counter.added[stamp, default: [:]].merge(whole.sums) { $0.time < $1.time ? $1 : $0 }
        cell = counter
      }
      return true
    case .plain, nil: return false
    }
  }
}

extension LogicalState.Cell {
  /// Returns what an erasure with the stamp `erasureStamp` leaves of the cell. Additions to a later
  /// value stay, since that value may be merged after them.
  fileprivate func surviving(_ erasureStamp: Stamp) -> LogicalState.Cell? {
    guard stamp < erasureStamp else { return self }
    let later = added.filter { $0.key > erasureStamp }
    guard !later.isEmpty else { return nil }
    return LogicalState.Cell(value: .null, stamp: .zero, isCounter: true, added: later)
  }

  /// The value that tables show; for a counter, with all sums since it was set.
  var shown: Value {
    guard isCounter, let sums = added[stamp], !sums.isEmpty else { return value }
    let numbers = [value] + sums.sorted { $0.key < $1.key }.map(\.value.value)
    let integers = numbers.compactMap {
      if case .integer(let integer) = $0 { integer } else { nil }
    }
    if integers.count == numbers.count {
      let sum = integers.reduce(Int128(0)) { $0 + Int128($1) }
      return .integer(Int64(clamping: sum))
    }
    var sum = 0.0
    for number in numbers {
      switch number {
      case .integer(let integer): sum += Double(integer)
      case .real(let real) where real.isFinite: sum += real
      default: return value
      }
    }
    return .real(sum)
  }
}

extension TableChanges {
  func oracleKey(_ index: Int, collations: [KeyCollation]) -> OracleKey {
    if identity == .surrogate, case .blob(let bytes) = keys[0][index] {
      return OracleKey(table: table, identity: RowIdentity(bytes: bytes))
    }
    return OracleKey(
      table: table,
      identity: IdentityEncoding.encode(keys.map { $0[index] }, collations: collations))
  }
}

extension RowIdentity {
  /// A short text that distinguishes rows in a report.
  var shortDescription: String {
    for count in 1...4 {
      do {
        return try IdentityEncoding.decode(self, count: count).map(\.sqlDescription)
          .joined(separator: ",")
      } catch {
        // The identity has another number of columns, or does not encode values.
        continue
      }
    }
    // Identities from before syncing end with the row's key; others are random.
    return (bytes.prefix(2) + bytes.suffix(2)).map(\.hexadecimal).joined()
  }
}

extension Value {
  /// The value as SQL writes it, of long values only the start; identities in angle brackets.
  var sqlDescription: String {
    switch self {
    case .null: "NULL"
    case .integer(let integer): "\(integer)"
    case .real(let real): "\(real)"
    case .text(let bytes):
      "'" + String(decoding: bytes.prefix(60), as: UTF8.self) + "'" + Self.rest(bytes)
    case .blob(let bytes):
      "x'" + bytes.prefix(60).map(\.hexadecimal).joined() + "'" + Self.rest(bytes)
    case .identity(let row): "<\(row.shortDescription)>"
    }
  }

  private static func rest(_ bytes: [UInt8]) -> String {
    bytes.count > 60 ? "…(\(bytes.count))" : ""
  }
}

extension UInt8 {
  /// Two digits.
  var hexadecimal: String { String(self >> 4, radix: 16) + String(self & 15, radix: 16) }
}
