import GRDB
import SyncModel

/// The data that stays on the device when a database with rows becomes a store of a document:
/// tables that are not synchronized, and views, triggers and virtual tables that the document does
/// not have.
struct LocalTables {
  let database: Database
  let former: FormerDatabase
  let schema: StoreSchema
  let checkCancellation: () throws -> Void

  // MARK: - The schema

  /// Throws `schemasDiffer` if tables that both have differ in their columns, or if a name stands for
  /// something else in the document.
  ///
  /// - Parameter document: The objects of the document.
  func check(path: String, _ document: SchemaObjects) throws {
    var differences = SchemaDifferences()
    for object in former.objects.objects { addNamesake(of: object, document, &differences) }
    for table in schema.tables {
      guard let here = former.table(named: table.name) else { continue }
      addColumns(of: table, here, &differences)
    }
    try differences.check(
      path: path, "The database and the document have different schemas",
      remedy: "Bring both to the same version of the application, or join without the rows "
        + "with \(.joinReplacing).")
  }

  private func addNamesake(
    of object: SchemaObjects.Object, _ document: SchemaObjects,
    _ differences: inout SchemaDifferences
  ) {
    guard let other = document.namesake(of: object) else { return }
    if other.kind != object.kind {
      differences.add(
        "\(object.name) is \(other.kind.rawValue) in the document and \(object.kind.rawValue) in "
          + "the database")
    } else if object.isPart, !other.table.isSame(as: object.table),
      former.table(named: object.table) != nil, schema.table(named: object.table) == nil
    {
      // It could not be made.
      differences.add(
        "\(object.name) belongs to \(other.table) in the document and to \(object.table) in the "
          + "database")
    }
  }

  private func addColumns(
    of table: TableSchema, _ here: FormerDatabase.Table, _ differences: inout SchemaDifferences
  ) {
    func has(_ names: [SQLName], _ name: SQLName) -> Bool { names.contains { $0.isSame(as: name) } }
    let wanted = table.columns.map(\.name) + [table.localKey].compactMap(\.self)
    for column in wanted where here.column(column) == nil {
      differences.add(
        "\(table.name).\(column) "
          + (has(here.generated, column)
            ? "is generated in the database only" : "exists only in the document"))
    }
    let known = wanted + table.excludedColumns
    for column in here.columns where !has(known, column) {
      differences.add(
        "\(here.name).\(column) "
          + (has(table.allColumns, column)
            ? "is generated in the document only" : "exists only in the database"))
    }
    // The application would miss it.
    for column in here.generated where !has(table.allColumns, column) {
      differences.add("\(here.name).\(column) exists only in the database")
    }
  }

  /// The tables that the document does not know.
  var newTables: [FormerDatabase.Table] {
    let known = Set(
      (schema.tables.map(\.name) + Array(schema.leftOut.keys)).map { $0.folded })
    return former.tables.filter { !known.contains($0.key) }.map(\.value).sorted {
      $0.name < $1.name
    }
  }

  /// Creates the tables that come into the document with the rows, with their indexes and triggers.
  func makeNewTables() throws {
    for table in newTables where try !exists(table.name) {
      try database.execute(sql: table.sql)
      for entry in entries(of: table.name) { try database.execute(sql: entry.sql) }
    }
  }

  private func entries(of table: SQLName) -> [SchemaObjects.Object] {
    former.objects.parts(of: table)
  }

  // MARK: - What stays on the device

  private var localTables: [FormerDatabase.Table] {
    schema.localTables.compactMap { former.table(named: $0) }.sorted { $0.name < $1.name }
  }

  /// Takes along the tables that stay on the device, in the form that they have in the database,
  /// and the views, virtual tables and triggers that are missing. Returns the names of the tables.
  func takeAlong(_ merge: DatabaseMerge) throws -> [SQLName] {
    for table in localTables {
      try database.execute(sql: "DROP TABLE main.\(quoted(table.name))")
      try database.execute(sql: table.sql)
      let leftOut = try rows(of: table, merge).copy(from: former.database)
      merge.session.warnOfRowsLeftOut(leftOut, of: table.name)
      for entry in entries(of: table.name) where try !isTaken(entry) {
        try database.execute(sql: entry.sql)
      }
    }
    for entry in former.entries where try !isTaken(entry) {
      switch entry.kind {
      case .view: try database.execute(sql: entry.sql)
      case .virtualTable:
        try database.execute(sql: entry.sql)
        try fill(entry)
      // Those of synchronized tables come last (``JoinedObjects``).
      case .trigger where try schema.table(named: entry.table) == nil && exists(entry.table):
        try database.execute(sql: entry.sql)
      default: continue
      }
    }
    return localTables.map(\.name)
  }

  /// Updates the references of tables that stay on the device and in place: the rows that they
  /// refer to may have other keys by now. Returns the names of the tables.
  func follow(_ merge: DatabaseMerge) throws -> [SQLName] {
    for table in localTables where try exists(table.name) {
      let rows = try rows(of: table, merge)
      guard !rows.references.isEmpty else { continue }
      merge.session.warnOfRowsLeftOut(try rows.follow(), of: table.name)
    }
    return localTables.map(\.name)
  }

  private func rows(of table: FormerDatabase.Table, _ merge: DatabaseMerge) throws -> LocalRows {
    var table = table
    // A table that is in place may have got the form of the document.
    let present = try Set(
      SQLName.fetchAll(
        database, sql: "SELECT name FROM pragma_table_xinfo(?, 'main')", arguments: [table.name]
      ).map(\.folded))
    table.columns.removeAll { !present.contains($0.folded) }
    return LocalRows(
      database: database, table: table.name, columns: table.columns,
      references: try references(of: table), merge: merge, checkCancellation: checkCancellation)
  }

  private func exists(_ name: SQLName, isTrigger: Bool = false) throws -> Bool {
    try Bool.fetchOne(
      database,
      sql: "SELECT EXISTS (SELECT 1 FROM main.sqlite_schema WHERE name = ? COLLATE NOCASE "
        + "AND (type = 'trigger') = ?)", arguments: [name, isTrigger]) ?? false
  }

  private func isTaken(_ entry: SchemaObjects.Object) throws -> Bool {
    try exists(entry.name, isTrigger: entry.kind == .trigger)
  }

  /// Returns the references from a table that stays on the device to synchronized tables.
  private func references(of table: FormerDatabase.Table) throws -> [RowReference] {
    let rows = try Row.fetchAll(
      database, sql: "PRAGMA main.foreign_key_list(\(quoted(table.name)))")
    let groups = Dictionary(grouping: rows, by: { $0["id"] as Int }).sorted { $0.key < $1.key }
    let declared = try groups.compactMap { _, group -> RowReference? in
      let terms = group.sorted { ($0["seq"] as Int) < ($1["seq"] as Int) }
      guard let parent = schema.table(named: terms[0]["table"]) else { return nil }
      let columns = terms.compactMap { term in
        table.columns.firstIndex { $0.folded == (term["from"] as SQLName).folded }
      }
      let named = terms.compactMap { $0["to"] as SQLName? }
      let referred =
        named.count == terms.count
        ? named : try LocalReference.primaryKey(of: parent.name, database)
      // SQLite allows a reference with fewer columns than the key, which leads nowhere.
      guard columns.count == terms.count, referred.count == terms.count else { return nil }
      return RowReference(columns, parent, referred)
    }
    return RowReference.withImplied(declared, schema)
  }

  /// Fills a virtual table that only the database has.
  private func fill(_ entry: SchemaObjects.Object) throws {
    let words = SQLTokens(entry.sql).tokens
    let module = words.firstIndex { $0.isWord("USING") }.map { words[$0 + 1].name }
    let isFullText = module?.begins(with: "fts") ?? false
    if isFullText, let content = PrivateData.contentTable(entry.sql) {
      guard content != "" else { return }
      return try database.execute(
        sql: "INSERT INTO main.\(quoted(entry.name)) (\(quoted(entry.name))) VALUES ('rebuild')")
    }
    try copyRows(
      of: entry.name, columns: (isFullText ? ["rowid"] : []) + former.columns(of: entry.name))
  }

  private func copyRows(of table: SQLName, columns: [SQLName]) throws {
    guard !columns.isEmpty else { return }
    let names = columns.map(quoted).joined(separator: ", ")
    let reading = try SQLStatement(
      "SELECT \(names) FROM main.\(quoted(table))", on: former.database)
    let writing = try SQLStatement(
      "INSERT INTO main.\(quoted(table)) (\(names)) "
        + "VALUES (\(columns.map { _ in "?" }.joined(separator: ", ")))", on: database)
    var count = 0
    while try reading.step() {
      count += 1
      if count % DatabaseMerge.interval == 0 { try checkCancellation() }
      for index in columns.indices { writing.bind(reading.value(at: index), at: index + 1) }
      try writing.run()
    }
  }
}
