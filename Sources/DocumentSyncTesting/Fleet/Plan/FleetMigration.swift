import SyncModel

/// A change of the schema by ALTER. All devices make the same migrations in the same order, each
/// device at its own time. Names are those in change sets.
enum FleetMigration: Hashable, Sendable {
  /// Adds a table. Of a table of the same name without a primary key it takes over the rows.
  case addTable(FleetTable)
  /// Adds a column after the others.
  case addColumn(FleetColumn, table: SQLName, FleetReference?)
  /// Drops a column that no constraint names.
  case dropColumn(SQLName, table: SQLName)
  /// Renames a column, on one device or on all.
  case renameColumn(SQLName, table: SQLName, to: SQLName, device: Int?)
  /// Renames a table, on one device or on all.
  case renameTable(SQLName, to: SQLName, device: Int?)
  /// Gives a column of a key, or one that refers to it, another affinity.
  case changeForm(FleetFormChange)

  /// The table that the migration changes.
  var table: SQLName {
    switch self {
    case .addTable(let table): table.name
    case .addColumn(_, let table, _), .dropColumn(_, let table),
      .renameColumn(_, let table, _, _), .renameTable(let table, _, _):
      table
    case .changeForm(let change): change.table
    }
  }

  /// Whether the migration drops a column or recreates a table, which then has no trigger of ours.
  var isRemoval: Bool {
    switch self {
    case .dropColumn, .changeForm: true
    case .addTable, .addColumn, .renameColumn, .renameTable: false
    }
  }

  /// The table that the migration recreates.
  var remade: SQLName? { if case .changeForm(let change) = self { change.table } else { nil } }

  /// Whether the migration adds a table.
  var isNewTable: Bool { if case .addTable = self { true } else { false } }

  /// The table to which the added column refers.
  var parent: SQLName? {
    if case .addColumn(_, _, let reference?) = self { reference.parent } else { nil }
  }

  /// The column that the migration adds or drops.
  var column: SQLName? {
    switch self {
    case .addColumn(let column, _, _): column.name
    case .dropColumn(let column, _): column
    case .renameColumn, .renameTable, .addTable, .changeForm: nil
    }
  }
}

/// The schema of a device after the migrations that it has made.
///
/// A renamed table or column has its new name in SQL and its former name in change sets. Both
/// schemas have tables and columns at the same positions.
struct FleetVersion: Hashable, Sendable {
  /// The schema with the names in change sets.
  private(set) var shared: FleetSchema
  /// The schema with the names of the device's tables and columns.
  private(set) var local: FleetSchema

  init(_ schema: FleetSchema) {
    shared = schema
    local = schema
  }

  /// Returns the device's table for a table in change sets.
  func here(_ table: FleetTable) -> FleetTable? {
    shared.position(of: table.name).map { local.tables[$0] }
  }

  /// Returns the name in change sets for the name of a table on the device.
  func sharedName(of table: SQLName) -> SQLName {
    local.position(of: table).map { shared.tables[$0].name } ?? table
  }

  /// Returns the name in change sets for the name of a column on the device.
  func sharedName(of column: SQLName, in table: SQLName) -> SQLName {
    guard let index = local.position(of: table),
      let position = local.tables[index].position(of: column)
    else { return column }
    return shared.tables[index].columns[position].name
  }

  /// Returns the statement of a migration on a device; `nil` if the migration is for another
  /// device, or the table or the column does not exist, or the migration takes several statements.
  func statement(_ migration: FleetMigration, on device: Int) -> String? {
    if case .addTable(let table) = migration { return table.sql[0] }
    guard let index = shared.position(of: migration.table) else { return nil }
    let table = local.tables[index]
    switch migration {
    case .addTable, .changeForm: return nil
    case .addColumn(let column, _, let reference):
      let parent = reference.flatMap { shared.position(of: $0.parent) }.map { local.tables[$0] }
      return "ALTER TABLE \(table.name.sql) ADD COLUMN \(table.declaration(of: column))"
        + (reference.flatMap { reference in
          parent.map { " " + table.clause(reference, to: $0) }
        } ?? "")
    case .dropColumn(let name, _):
      return shared.tables[index].position(of: name).map {
        "ALTER TABLE \(table.name.sql) DROP COLUMN \(table.columns[$0].name.sql)"
      }
    case .renameColumn(let name, _, let new, let only):
      guard only ?? device == device else { return nil }
      return shared.tables[index].position(of: name).map {
        "ALTER TABLE \(table.name.sql) RENAME COLUMN \(table.columns[$0].name.sql) TO \(new.sql)"
      }
    case .renameTable(_, let new, let only):
      return only ?? device == device ? "ALTER TABLE \(table.name.sql) RENAME TO \(new.sql)" : nil
    }
  }

  /// Returns the declarations of the column of which a migration changes the form, before and after
  /// it.
  func declarations(_ change: FleetFormChange) -> (old: String, new: String)? {
    guard let index = shared.position(of: change.table),
      let position = shared.tables[index].position(of: change.column)
    else { return nil }
    let table = local.tables[index]
    var column = table.columns[position]
    column.declaredType = change.declaredType
    return (table.declaration(of: table.columns[position]), table.declaration(of: column))
  }

  /// Records the effect of a migration.
  mutating func carryOut(_ migration: FleetMigration) {
    if case .addTable(let table) = migration {
      shared.tables.append(table)
      local.tables.append(table)
      return
    }
    guard let index = shared.position(of: migration.table) else { return }
    switch migration {
    case .addTable: break
    case .addColumn(let column, _, let reference):
      for path in [\FleetVersion.shared, \.local] {
        self[keyPath: path].tables[index].columns.append(column)
        guard var reference else { continue }
        let parent = shared.position(of: reference.parent).map { self[keyPath: path].tables[$0] }
        if let parent {
          reference.parent = parent.name
          reference.parentNames = reference.parentColumns.map { parent.columns[$0].name }
        }
        self[keyPath: path].tables[index].references.append(reference)
      }
    case .dropColumn(let name, _):
      guard let column = shared.tables[index].position(of: name) else { return }
      shared.removeColumn(column, of: index)
      local.removeColumn(column, of: index)
    case .renameColumn(let name, _, let new, _):
      guard let column = shared.tables[index].position(of: name) else { return }
      let table = local.tables[index].name
      local.tables[index].columns[column].name = new
      for other in local.tables.indices {
        for position in local.tables[other].references.indices
        where local.tables[other].references[position].parent == table {
          local.tables[other].references[position].rename(column, to: new)
        }
      }
    case .changeForm(let change):
      guard let column = shared.tables[index].position(of: change.column) else { return }
      shared.tables[index].columns[column].declaredType = change.declaredType
      local.tables[index].columns[column].declaredType = change.declaredType
    case .renameTable(_, let new, _):
      let table = local.tables[index].name
      local.tables[index].name = new
      for other in local.tables.indices {
        for position in local.tables[other].references.indices
        where local.tables[other].references[position].parent == table {
          local.tables[other].references[position].parent = new
        }
      }
    }
  }
}

extension FleetReference {
  /// Renames a column of the referenced table.
  fileprivate mutating func rename(_ column: Int, to name: SQLName) {
    for index in parentColumns.indices where parentColumns[index] == column {
      parentNames[index] = name
    }
  }
}

extension FleetSchema {
  /// Returns the schema with all tables and columns that devices ever have, and their references.
  func with(_ migrations: [FleetMigration]) -> FleetSchema {
    var version = FleetVersion(self)
    for migration in migrations {
      switch migration {
      case .addColumn, .addTable: version.carryOut(migration)
      case .dropColumn, .renameColumn, .renameTable, .changeForm: break
      }
    }
    return version.shared
  }

  /// Removes a column that no constraint names, and adapts the positions of the columns after it.
  fileprivate mutating func removeColumn(_ column: Int, of index: Int) {
    func moved(_ positions: [Int]) -> [Int] { positions.map { $0 > column ? $0 - 1 : $0 } }
    let name = tables[index].name
    tables[index].columns.remove(at: column)
    tables[index].key = moved(tables[index].key)
    tables[index].localKey = tables[index].localKey.map { moved([$0])[0] }
    for position in tables[index].references.indices {
      tables[index].references[position].columns = moved(tables[index].references[position].columns)
    }
    for position in tables[index].checks.indices {
      tables[index].checks[position].columns = moved(tables[index].checks[position].columns)
    }
    for position in tables[index].uniques.indices {
      tables[index].uniques[position].terms = tables[index].uniques[position].terms.map { term in
        if case .column(let column, let collation) = term {
          .column(moved([column])[0], collation)
        } else {
          term
        }
      }
    }
    for other in tables.indices {
      for position in tables[other].references.indices
      where tables[other].references[position].parent == name {
        tables[other].references[position].parentColumns = moved(
          tables[other].references[position].parentColumns)
      }
    }
  }
}
