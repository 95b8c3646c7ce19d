import SyncModel

/// A check that change sets contain all columns of a register, with one stamp: the columns of a
/// composite foreign key, or the columns that one CHECK names.
struct TornRegisters {
  private let schema: FleetSchema
  /// The columns that were added since the last synchronization, by table: edits from before that
  /// do not contain them.
  private let arrived: [SQLName: Set<SQLName>]

  init(schema: FleetSchema, arrived: [SQLName: Set<SQLName>] = [:]) {
    self.schema = schema
    self.arrived = arrived
  }

  /// Returns a line for each register of which a change set contains only a part, or several
  /// stamps.
  func found(in set: SyncChangeSet) -> [String] {
    set.tables.flatMap { changes -> [String] in
      guard let table = schema.table(changes.table) else { return [] }
      let registers = registers(of: table)
      guard !registers.isEmpty else { return [] }
      return (0..<changes.count).flatMap { row in
        registers.compactMap { register in
          isWhole(register, row, changes)
            ? nil : "\(table.name): of \(register.sorted()) only a part, or with several stamps"
        }
      }
    }
  }

  private func registers(of table: FleetTable) -> [Set<SQLName>] {
    let whole = table.hasWholeRows ? [table.shared] : []
    return (table.checks.map(\.columns) + table.references.map(\.columns) + whole).compactMap {
      columns in
      let cells = columns.filter { !table.key.contains($0) }
      return cells.count > 1 ? Set(cells.map { table.columns[$0].name }) : nil
    }
  }

  private func isWhole(_ register: Set<SQLName>, _ row: Int, _ changes: TableChanges) -> Bool {
    let said = changes.shapes[Int(changes.rowShapes[row])].filter {
      register.contains(changes.columns[$0])
    }
    if said.isEmpty { return true }
    let stamps = said.map { column in
      changes.exceptions.first { $0.row == row && $0.column == column }?.stamp.time
        ?? changes.times[row]
    }
    let former = register.subtracting(arrived[changes.table] ?? [])
    return Set(stamps).count == 1
      && [register, former].contains(Set(said.map { changes.columns[$0] }))
  }
}
