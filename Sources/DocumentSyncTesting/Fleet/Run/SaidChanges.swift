import SyncModel

/// The content of all change sets of a sealing by row, since one row can be in several of them.
struct SaidChanges {
  let schema: FleetSchema
  var actions: [OracleKey: Set<RowAction>] = [:]
  var cells: [OracleKey: [SQLName: Set<Value>]] = [:]
  var moves: [OracleKey: Set<RowIdentity>] = [:]
  /// The totals of counters after each change set. A policy's decision, which is sealed in the same
  /// synchronization, may set another value.
  var counters: [OracleKey: [SQLName: Set<Value>]] = [:]
  /// The identities of the author's keys by table, each from the first change set that has the key,
  /// of those that were sealed last.
  var identities: [SQLName: [Int64: RowIdentity]] = [:]
  /// The rows that the change sets sealed earlier insert.
  var insertedEarlier: Set<OracleKey> = []
  /// The inserted rows whose number is not said: they are held, and not shown.
  var numberless: Set<OracleKey> = []

  init(schema: FleetSchema) { self.schema = schema }

  /// Adds all change sets of one synchronization.
  ///
  /// - Parameter count: The number of the first ones that were sealed earlier, when the store noticed
  ///   that its schema had changed. Rows of them may have been hidden then, and programs may have
  ///   given their keys to other rows.
  mutating func add(_ sets: [SyncChangeSet], noticed count: Int) {
    sets.prefix(count).forEach { add($0) }
    insertedEarlier = Set(actions.filter { $0.value.contains(.insert) }.keys)
    let former = identities
    identities = [:]
    sets.dropFirst(count).forEach { add($0) }
    for (table, keys) in former {
      identities[table, default: [:]].merge(keys) { latest, _ in latest }
    }
  }

  func says(_ action: RowAction, of key: OracleKey) -> Bool {
    actions[key]?.contains(action) ?? false
  }

  /// Finds the numbers of held rows that are not shown, among the rows before sealing, by their
  /// values. References do not count, since their values differ.
  ///
  /// - Parameter isKnown: Whether a number was that of a row before the edits.
  mutating func addNumbers(
    from tables: [SQLName: [[Value]]], isKnown: (SQLName, Int64) -> Bool
  ) {
    for row in numberless {
      guard let table = schema.table(row.table) else { continue }
      let names = VisibleRows.columns(of: table).map { table.columns[$0].name }
      let said = cells[row, default: [:]]
      for values in tables[row.table, default: []] {
        guard case .integer(let number)? = values.first, identities[row.table]?[number] == nil,
          !isKnown(row.table, number),
          zip(names, values).dropFirst().allSatisfy({ name, value in
            said[name].map { $0.contains(value) || $0.contains { $0.kind == .identity } } ?? false
          })
        else { continue }
        identities[row.table, default: [:]][number] = row.identity
        break
      }
    }
  }

  /// - Parameter state: The state after merging the change set.
  mutating func addCounters(of set: SyncChangeSet, in state: LogicalState) {
    for changes in set.tables {
      guard let table = schema.table(changes.table) else { continue }
      let names = table.columns.filter(\.isCounter).map(\.name)
      for index in changes.actions.indices where !names.isEmpty {
        let key = changes.oracleKey(index, collations: table.keyCollations)
        for name in names {
          guard let cell = state.rows[key]?.cells[name] else { continue }
          counters[key, default: [:]][name, default: []].insert(cell.shown)
        }
      }
    }
  }

  private mutating func add(_ set: SyncChangeSet) {
    for changes in set.tables {
      let collations = schema.table(changes.table)?.keyCollations ?? []
      var cursors = [Int](repeating: 0, count: changes.columns.count)
      for move in changes.moves {
        moves[changes.oracleKey(move.row, collations: collations), default: []].insert(
          move.destination)
      }
      for index in 0..<changes.count {
        let key = changes.oracleKey(index, collations: collations)
        let action = RowAction(rawValue: changes.actions[index])
        if let action { actions[key, default: []].insert(action) }
        if changes.identity == .surrogate, case .integer(let local) = changes.keys[1][index],
          action?.isDeletion != true, identities[changes.table]?[local] == nil
        {
          identities[changes.table, default: [:]][local] = key.identity
        }
        if changes.identity == .surrogate, action == .insert, changes.keys[1][index] == .null {
          numberless.insert(key)
        }
        for column in changes.shapes[Int(changes.rowShapes[index])] {
          cells[key, default: [:]][changes.columns[column], default: []].insert(
            changes.cells[column][cursors[column]])
          cursors[column] += 1
        }
      }
    }
  }
}
