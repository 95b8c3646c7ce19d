import GRDB
import SyncModel

/// The reader of a database's schema, which decides how each table is synchronized.
struct SchemaReader {
  /// The schema of a table as bookkeeping records it.
  struct Registered {
    var id: Int
    /// The table's name in change sets.
    var wireName: SQLName
    /// ``TableSchema/identityDescription``
    var identity: SQLText
    /// The table's name when it was last registered.
    var storedName: SQLName
    /// The names of the columns, by bit.
    var columns: [SQLName] = []
    /// The names of the columns when the table was last registered.
    var storedColumns: [SQLName] = []
    /// The names of the columns in change sets, by bit.
    var wireColumns: [SQLName] = []
    /// The tables whose keys the columns stand for, by bit.
    var references: [Int?] = []
    /// The names of columns that stay on this device, if they are known to differ from the
    /// configuration's.
    var excluded: [SQLName]
    /// The same names when the table was last registered.
    var storedExcluded: [SQLName]
    /// Whether the triggers that record renamings exist.
    var isWatched: Bool
    /// Whether a column seems to have the name of a dropped one, so that the triggers mean another.
    var hasOtherColumns = false
    /// Whether all edits are in the log.
    var isLogged: Bool { isWatched && !hasOtherColumns }
    var hasUnstampedRows: Bool
    var origin: UInt64
  }

  let database: Database
  let configuration: StoreConfiguration
  let path: String
  /// Whether the store was under sync before, so that its schema may differ from the one that the
  /// configuration was made for.
  private(set) var isUnderSync = false
  /// The tables that are known not to be suitable, by name.
  private(set) var problems: [SQLName: TableProblem] = [:]

  /// Reads the schema. Tables that are not registered get new ids.
  ///
  /// Throws `unsupportedSchema` or `badConfiguration` if a database that is to be put under sync has
  /// tables that cannot be synchronized. Once the store is under sync, such tables are left out.
  func read(registered: [SQLName: Registered]? = nil) throws -> StoreSchema {
    var reader = self
    reader.isUnderSync = registered != nil
    while true {
      var found: [TableProblem] = []
      let schema = try reader.readSchema(registered ?? [:], &found)
      if found.isEmpty, let schema {
        guard reader.isUnderSync || reader.problems.isEmpty else {
          throw TableProblem.refusal(Array(reader.problems.values), path: path)
        }
        return schema
      }
      // Tables that refer to these tables may be concerned as well.
      for var problem in found {
        problem.wireName = registered?[problem.table]?.wireName ?? problem.table
        reader.problems[problem.table] = problem
      }
    }
  }

  /// Returns the schema without the known ``problems``, or `nil` if it finds others.
  private func readSchema(
    _ registered: [SQLName: Registered], _ found: inout [TableProblem]
  ) throws -> StoreSchema? {
    @discardableResult
    func collecting<Result>(_ body: () throws -> Result) throws -> Result? {
      do {
        return try body()
      } catch let problem as TableProblem {
        found.append(problem)
        return nil
      }
    }
    var leftOut = problems.mapValues(\.reason)
    var drafts: [Draft] = []
    var nextID = try firstFreeID(registered)
    let all = try tableNames(leftOut: &leftOut)
    try checkConfiguration(against: all + Array(leftOut.keys))
    let undefined = try missingDefinitions(
      of: all.filter { registered[$0] == nil } + leftOut.keys, leftOut)
    let names = all.filter { problems[$0] == nil }
    let suspended = Dictionary(
      problems.keys.compactMap { name in registered[name].map { ($0.id, name) } },
      uniquingKeysWith: { first, _ in first })
    for name in names {
      try collecting {
        try checkDefinitions(of: name, registered[name], undefined)
        try checkIsNoExcludedTable(name, registered, present: all + Array(leftOut.keys))
        try checkRecordedReferences(of: name, registered[name], suspended: suspended)
      }
    }
    guard found.isEmpty else { return nil }
    let keyReferences = try keyReferences(among: names, registered: registered)
    for name in names {
      let known = registered[name]
      let keyParent = keyReferences.parent(of: name)
      let made = try collecting {
        let draft = try self.draft(
          of: name, id: known?.id ?? nextID, keyParent: keyParent, registered: known)
        guard let known, known.identity != draft.table.identityDescription else {
          return draft
        }
        // Its rows are identified in another way: it is another table of the same name.
        return try self.draft(of: name, id: nextID, keyParent: keyParent, registered: nil)
      }
      guard var draft = made else { continue }
      if draft.id == nextID {
        draft.table.wireName = Self.free(
          draft.name, among: registered.filter { $0.key != name }.values.map(\.wireName))
        nextID += 1
        if try collecting({ try checkDeclaredIdentity(of: draft.table) }) == nil { continue }
      }
      drafts.append(draft)
    }
    guard found.isEmpty else { return nil }
    let identifiers = Dictionary(
      drafts.map { ($0.table.wireName.folded, $0.id) }, uniquingKeysWith: min)
    var tables = drafts.map(\.table)
    var ordinal = 0
    for index in tables.indices {
      try collecting {
        tables[index].foreignKeys = try foreignKeys(
          of: tables[index], drafts: drafts, identifiers: identifiers, ordinal: &ordinal)
        tables[index].uniqueIndexes = try uniqueIndexes(of: tables[index])
      }
    }
    keepReferences(of: &tables, registered)
    guard found.isEmpty, try collecting({ try resolveDomains(&tables, registered) }) != nil else {
      return nil
    }
    addImpliedReferences(&tables, ordinal: ordinal)
    resolveRequirements(&tables)
    try resolveDeletions(
      &tables, staying: leftOut.filter { $0.value == .excluded }.map(\.key) + problems.keys)
    for table in tables { try collecting { try checkSurrogate(table) } }
    guard found.isEmpty else { return nil }
    var schema = StoreSchema(tables: tables.sorted { $0.id < $1.id }, leftOut: leftOut)
    schema.problems = problems
    schema.suspendedTables = suspended
    schema.undefined = Set(undefined.keys.filter { leftOut[$0] != nil })
    schema.missingExclusions = missingExclusions(present: all + Array(leftOut.keys))
    return schema
  }

  /// A table before its references are known.
  struct Draft {
    var table: TableSchema
    var primaryKey: [SQLName]
    var id: Int { table.id }
    var name: SQLName { table.name }
  }

  // MARK: - Tables

  private func tableNames(
    leftOut: inout [SQLName: StoreStatus.LeftOutReason]
  ) throws -> [SQLName] {
    let excluded = Set(configuration.excludedTables.map { $0.folded })
    var names: [SQLName] = []
    for (name, type) in try TableType.all(database) {
      guard !name.begins(with: "sqlite_"), !name.begins(with: "docsync_") else { continue }
      switch type {
      case .ordinary where excluded.contains(name.folded),
        .virtualTablePart(isShadow: false) where excluded.contains(name.folded):
        leftOut[name] = .excluded
      case .ordinary where try SchemaTables.include(name, configuration, database):
        leftOut[name] = .schema
      case .ordinary: names.append(name)
      case .virtual: leftOut[name] = .virtualTable
      case .virtualTablePart: leftOut[name] = .virtualTablePart
      case .view: continue
      }
    }
    return names.sorted()
  }

  /// Returns the first number for new tables. No record uses it or a later one, so that leftovers
  /// of one table are not taken for another's.
  private func firstFreeID(_ registered: [SQLName: Registered]) throws -> Int {
    guard isUnderSync else { return 1 }
    var free = 1
    for (column, table) in [("id", "docsync_table"), ("tbl", "docsync_conflict")] {
      let greatest =
        try Int.fetchOne(database, sql: "SELECT \(column) FROM \(table) ORDER BY 1 DESC LIMIT 1")
        ?? 0
      guard let next = Int32(exactly: greatest).map(Int.init) else {
        throw StoreError(damagedTable: table, "The number of a table is \(greatest).")
      }
      free = max(free, next + 1)
    }
    return free
  }

  /// Returns a name that differs from all of `taken`: the given one, or that with a number.
  static func free(_ name: SQLName, among taken: [SQLName]) -> SQLName {
    let taken = Set(taken.map { $0.folded })
    var candidate = name
    var number = 2
    while taken.contains(candidate.folded) {
      candidate = "\(name) (\(number))"
      number += 1
    }
    return candidate
  }

  /// Checks that the tables that the configuration names exist. Once a store is under sync, the
  /// application may drop or rename them (``checkIsNoExcludedTable(_:_:present:)``).
  private func checkConfiguration(
    against names: [SQLName]
  ) throws {
    let known = Set(names.map { $0.folded })
    if isUnderSync { return }
    let named =
      Array(configuration.excludedTables) + Array(configuration.excludedColumns.keys)
      + Array(configuration.identities.keys) + Array(configuration.references.keys)
      + Array(configuration.tableMergeTypes.keys) + Array(configuration.columnMergeTypes.keys)
      + Array(configuration.tablesWithoutStandIns) + Array(configuration.schemaTables)
    for name in named.sorted() where !known.contains(name.folded) {
      throw StoreError(
        .badConfiguration, path: path, message: "There is no table \(quoted(name)).",
        remedy: "Name one of: \(names.sorted().joined(separator: ", ")).")
    }
  }

  func lookup<Element>(_ values: [SQLName: Element], _ name: SQLName) -> Element? {
    values.first { $0.key.folded == name.folded }?.value
  }

  private func draft(
    of name: SQLName, id: Int, keyParent: SQLName?, registered: Registered?
  ) throws -> Draft {
    let information = try Row.fetchAll(database, sql: "PRAGMA main.table_xinfo(\(quoted(name)))")
    let wireName = registered?.wireName ?? name
    let present = Set(information.map { ($0["name"] as SQLName).folded })
    let configured = lookup(configuration.excludedColumns, wireName) ?? []
    let excluded = Set((configured + (registered?.excluded ?? [])).map { $0.folded })
      .intersection(present)
    let sql =
      try String.fetchOne(
        database, sql: "SELECT sql FROM main.sqlite_schema WHERE type = 'table' AND name = ?",
        arguments: [name]) ?? ""
    let list = try Row.fetchOne(database, sql: "PRAGMA main.table_list(\(quoted(name)))")
    let isWithoutRowid = (list?["wr"] ?? 0) != 0

    let primaryKey =
      information.filter { ($0["pk"] as Int) > 0 }
      .sorted { ($0["pk"] as Int) < ($1["pk"] as Int) }.map { $0["name"] as SQLName }
    guard !primaryKey.isEmpty else { throw TableProblem.noPrimaryKey(name) }
    let rowidAlias = try rowidAlias(
      of: name, primaryKey: primaryKey, information: information, isWithoutRowid: isWithoutRowid)
    let identity = try chosenIdentity(
      for: name, wireName: wireName, primaryKey: primaryKey, rowidAlias: rowidAlias,
      keyParent: keyParent, registered: registered)

    var localKey: SQLName?
    var identityNames: [SQLName] = []
    switch identity {
    case .surrogate: localKey = rowidAlias
    case .primaryKey: identityNames = primaryKey
    case .columns(let names):
      localKey = rowidAlias
      identityNames = names
    }
    let identitySet = Set(identityNames.map { $0.folded })

    var columns: [ColumnSchema] = []
    for row in information {
      let column: SQLName = row["name"]
      let hidden: Int = row["hidden"]
      if hidden != 0 || column.folded == localKey?.folded { continue }
      if excluded.contains(column.folded) {
        try checkExcludable(row, of: name, isIdentity: identitySet.contains(column.folded))
        continue
      }
      columns.append(try columnSchema(row, of: name, identity: identitySet))
    }
    columns = ordered(columns, registered: registered)
    let positions = try identityNames.map { wanted in
      guard
        let position = columns.firstIndex(where: { $0.name.folded == wanted.folded })
      else {
        throw mismatch(
          name,
          message: "The table \(quoted(name)) has no column \(quoted(wanted)) to identify rows by.",
          remedy: "Name columns of the table that are neither generated nor excluded.",
          later: "To synchronize it, give the column its name back; ALTER TABLE … RENAME COLUMN "
            + "can rename it then. If it was dropped, create it with the values that it had: "
            + "rows without them count as deleted on other devices.")
      }
      return position
    }
    let chosen: TableSchema.Identity =
      switch identity {
      case .surrogate: .surrogate
      case .primaryKey: .primaryKey(positions)
      case .columns: .columns(positions)
      }
    var table = TableSchema(
      id: id, name: name, wireName: wireName, identity: chosen, columns: columns,
      excludedColumns: excluded, excludedNames: Set(configured.map { $0.folded }),
      localKey: localKey, rowidAlias: rowidAlias,
      allColumns: information.filter { ($0["hidden"] as Int) != 1 }.map { $0["name"] },
      generatedColumns: try generatedColumns(information, of: name, sql: sql),
      isWithoutRowid: isWithoutRowid,
      hasUnstampedRows: registered?.hasUnstampedRows ?? false, origin: registered?.origin ?? 0,
      foreignKeys: [], uniqueIndexes: [])
    try checkWidth(of: table)
    table.misidentifiedParent = localKey == nil ? nil : keyParent
    table.hasConflictClause = SQLTokens(sql).tokens.contains { $0.isWord("CONFLICT") }
    readChecks(of: &table, sql: sql)
    try readMergeTypes(of: &table)
    return Draft(table: table, primaryKey: primaryKey)
  }

  /// Returns the column that is another name of the rowid, or `nil` if there is none.
  /// `INTEGER PRIMARY KEY DESC` makes no such column: SQLite makes an index for it, as for every
  /// other key.
  func rowidAlias(
    of name: SQLName, primaryKey: [SQLName], information: [Row], isWithoutRowid: Bool
  ) throws -> SQLName? {
    guard primaryKey.count == 1, !isWithoutRowid else { return nil }
    let type = information.first { ($0["pk"] as Int) > 0 }?["type"] as String?
    guard type?.uppercased() == "INTEGER" else { return nil }
    let indexes = try Row.fetchAll(database, sql: "PRAGMA main.index_list(\(quoted(name)))")
    return indexes.contains { ($0["origin"] as String) == "pk" } ? nil : primaryKey[0]
  }

  private func chosenIdentity(
    for name: SQLName, wireName: SQLName, primaryKey: [SQLName], rowidAlias: SQLName?,
    keyParent: SQLName?, registered: Registered?
  ) throws -> StoreConfiguration.Identity {
    var wanted = lookup(configuration.identities, wireName)
    if let registered, case .columns(let names) = wanted {
      // The configuration has the names that the columns had at first.
      wanted = .columns(
        names.map { name in
          registered.wireColumns.firstIndex { $0.folded == name.folded }
            .map { registered.columns[$0] } ?? name
        })
    }
    switch wanted {
    case .surrogate where rowidAlias == nil:
      throw mismatch(
        name,
        message: "The table \(quoted(name)) has no INTEGER PRIMARY KEY.",
        remedy: "Surrogate identities are for such keys; use \(.identifyByPrimaryKey(name)).",
        later: "To synchronize it, give it such a key again.")
    case .columns where rowidAlias == nil:
      throw mismatch(
        name,
        message: "The table \(quoted(name)) has no INTEGER PRIMARY KEY beside its natural key.",
        remedy: "Use \(.identifyByPrimaryKey(name)), or give the table an integer key.",
        later: "To synchronize it, give it an integer key again.")
    case .surrogate, .columns:
      if let keyParent, !isUnderSync {
        throw StoreError(
          .badConfiguration, path: path,
          message:
            "The key of the table \(quoted(name)) refers to \(quoted(keyParent)): each row is "
            + "identified by the row that it refers to.",
          remedy: "Leave out \(.identify(name)).")
      }
      return wanted ?? .surrogate
    case .primaryKey:
      return .primaryKey
    case nil:
      // Earlier versions gave such rows identities of their own.
      let wasSurrogate = registered?.identity.text.hasPrefix("\(IdentityKind.surrogate)") ?? false
      return rowidAlias == nil || keyParent != nil && !wasSurrogate ? .primaryKey : .surrogate
    }
  }
}
