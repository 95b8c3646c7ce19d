import SyncStore

extension FleetSchema {
  /// The configuration with which stores with this schema are put under sync.
  var configuration: StoreConfiguration {
    var configuration = StoreConfiguration()
    for name in looseTables.map(\.name) + markTables.map(\.name) {
      configuration.excludedTables.insert(name)
    }
    for table in tables {
      if table.isLocal { configuration.excludedTables.insert(table.name) }
      let local = table.columns.filter(\.isLocal).map(\.name)
      if !table.isLocal, !local.isEmpty { configuration.excludedColumns[table.name] = Set(local) }
      if table.mergeType != .latestWins {
        configuration.tableMergeTypes[table.name] = table.mergeType
      }
      for reference in table.references where !reference.isEnforced {
        let column = table.columns[reference.columns[0]].name
        configuration.references[table.name, default: [:]][column] = reference.parent
      }
      if table.localKey != nil {
        configuration.identities[table.name] = .columns(table.key.map { table.columns[$0].name })
      }
      if !table.hasStandIns { configuration.tablesWithoutStandIns.insert(table.name) }
      for column in table.columns where column.isCounter {
        configuration.columnMergeTypes[table.name, default: [:]][column.name] = .counter
      }
    }
    return configuration
  }

  /// Makes the tables and fills them, before syncing begins. Statements
  /// that the schema refuses are skipped.
  ///
  /// - Parameter rowsWithoutKey: Statements that insert rows with NULL in their key; the others
  ///   insert none.
  func make(
    in database: FleetSQLite, filledBy statements: [String], _ rowsWithoutKey: [String] = []
  ) throws {
    if isWide { try database.run("PRAGMA encoding = 'UTF-16le'") }
    try database.run("PRAGMA foreign_keys = ON")
    for statement in sql { try database.run(statement) }
    for statement in statements { try fill(database, by: statement) }
    for statement in rowsWithoutKey { try fill(database, by: statement, hasKeys: false) }
  }

  /// Runs a statement that fills tables, unless the schema refuses it.
  ///
  /// - Parameter hasKeys: Whether no row may have NULL in its key.
  func fill(_ database: FleetSQLite, by statement: String, hasKeys: Bool = true) throws {
    try database.run("SAVEPOINT start")
    do {
      try database.run(statement)
      let isSound = try isSound(database, hasKeys: hasKeys)
      try database.run(isSound ? "RELEASE start" : "ROLLBACK TO start; RELEASE start")
    } catch is FleetSQLite.Refusal {
      // Refused by the schema.
      try database.run("ROLLBACK TO start; RELEASE start")
    }
  }

  /// The number of rows in all synchronized tables.
  func rowCount(in database: FleetSQLite) throws -> Int {
    try synchronized.reduce(0) { sum, table in
      guard
        case .integer(let count) = try database.rows("SELECT count(*) FROM \(table.name.sql)")[0][0]
      else { return sum }
      return sum + Int(count)
    }
  }

  /// Whether the rows can be put under sync: a trigger's REPLACE can leave references
  /// that lead nowhere.
  ///
  /// - Parameter hasKeys: Whether no row may have NULL in its key.
  private func isSound(_ database: FleetSQLite, hasKeys: Bool) throws -> Bool {
    guard try database.rows("PRAGMA foreign_key_check").isEmpty else { return false }
    guard hasKeys else { return true }
    return try synchronized.filter(\.canLoseKeys).allSatisfy { table in
      let condition = table.key.map { "\(table.columns[$0].name.sql) IS NULL" }
      return try database.rows(
        "SELECT 1 FROM \(table.name.sql) WHERE \(condition.joined(separator: " OR ")) LIMIT 1"
      ).isEmpty
    }
  }
}
