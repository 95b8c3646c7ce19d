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

  /// Throws `schemasDiffer` if tables that both have differ in their columns.
  func check(path: String) throws {
    var differences: [String] = []
    for table in schema.tables {
      let name = table.name.folded
      guard let here = former.tables[name] else {
        if former.virtualTables.contains(name)
          || former.entries.contains(where: { $0.type == "view" && $0.name.folded == name })
        {
          differences.append("\(table.name) is not an ordinary table here")
        }
        continue
      }
      let wanted = table.columns.map(\.name) + [table.localKey].compactMap(\.self)
      for column in wanted where here.column(column) == nil {
        differences.append("\(table.name).\(column) exists only in the document")
      }
      let known = Set((wanted + table.excludedColumns).map { $0.folded })
      for column in here.columns where !known.contains(column.folded) {
        differences.append("\(here.name).\(column) exists only in the database")
      }
    }
    guard !differences.isEmpty else { return }
    throw StoreError(
      .schemasDiffer, path: path,
      message: "The database and the document have different columns: "
        + differences.joined(separator: "; ") + ".",
      remedy: "Bring both to the same version of the application, or join without the rows "
        + "with \(.joinReplacing).")
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

  /// Adds the migrations that the database records and the document does not: the tables are those
  /// of both by now, so the application need not repeat a migration that it made in one of them.
  ///
  /// - Parameter schema: The schema with the new tables.
  func addMigrations(to schema: StoreSchema) throws {
    let new = Set(newTables.map { $0.name.folded })
    for name in schema.leftOut.filter({ $0.value == .schema }).keys.sorted() {
      guard let table = former.table(named: name) else { continue }
      let known = try SchemaTables.entry(of: name, database)
      // The document has no row yet that could differ from those of the database.
      let isNew = new.contains(name.folded)
      guard isNew || known.map({ $0.content == .migrations }) ?? true else { continue }
      let present = Set(try columnNames(of: name).map { $0.folded })
      let columns = table.columns.filter { present.contains($0.folded) }
      let identifying = known?.columns ?? columns
      // Another migration may have the number that the database gives to this one.
      let key = try known.map { _ in try integerKey(of: name) } ?? nil
      let others =
        isNew
        ? columns
        : columns.filter { column in
          !(key?.isSame(as: column) ?? false) || identifying.contains { $0.isSame(as: column) }
        }
      let reading = try SQLStatement(
        "SELECT \((identifying + others).map(quoted).joined(separator: ", ")) "
          + "FROM main.\(quoted(table.name))", on: former.database)
      let finding = try SQLStatement(
        "SELECT 1 FROM main.\(quoted(name)) WHERE "
          + identifying.map { "\(quoted($0)) IS ?" }.joined(separator: " AND "), on: database)
      let adding = try SQLStatement(
        "INSERT OR IGNORE INTO main.\(quoted(name)) "
          + "(\(others.map(quoted).joined(separator: ", "))) "
          + "VALUES (\(others.map { _ in "?" }.joined(separator: ", ")))", on: database)
      while try reading.step() {
        for index in identifying.indices { finding.bind(reading.value(at: index), at: index + 1) }
        let isThere = try finding.step()
        finding.reset()
        if isThere { continue }
        for index in others.indices {
          adding.bind(reading.value(at: identifying.count + index), at: index + 1)
        }
        try adding.run()
      }
    }
  }

  private func columnNames(of table: SQLName) throws -> [SQLName] {
    try Row.fetchAll(database, sql: "PRAGMA main.table_xinfo(\(quoted(table)))")
      .filter { ($0["hidden"] as Int) == 0 }.map { $0["name"] }
  }

  /// Returns the column of a single `INTEGER PRIMARY KEY` that tells no migration from others.
  private func integerKey(of table: SQLName) throws -> SQLName? {
    let key = try Row.fetchAll(database, sql: "PRAGMA main.table_xinfo(\(quoted(table)))")
      .filter { ($0["pk"] as Int) > 0 }
    guard key.count == 1, let column = key.first,
      (column["type"] as String).uppercased() == "INTEGER"
    else { return nil }
    return column["name"]
  }

  private func entries(of table: SQLName) -> [FormerDatabase.Entry] {
    former.entries.filter {
      ["index", "trigger"].contains($0.type) && $0.table.folded == table.folded
    }
  }

  // MARK: - What stays on the device

  private var localTables: [FormerDatabase.Table] {
    schema.localTables.compactMap { former.table(named: $0) }.sorted { $0.name < $1.name }
  }

  /// Takes along the tables that stay on the device, in the form that they have in the database,
  /// and the views, virtual tables and triggers that are missing. Returns the names of the tables.
  func takeAlong(_ translate: ([Value], _ keys: [Reference]) throws -> [Value]) throws
    -> [SQLName]
  {
    for table in localTables {
      try database.execute(sql: "DROP TABLE main.\(quoted(table.name))")
      try database.execute(sql: table.sql)
      try copyRows(of: table.name, columns: table.columns, references(of: table), translate)
      for entry in entries(of: table.name) where try !exists(entry.name) {
        try database.execute(sql: entry.sql)
      }
    }
    for entry in former.entries where try !exists(entry.name) {
      switch entry.type {
      case "view": try database.execute(sql: entry.sql)
      case "table":
        try database.execute(sql: entry.sql)
        try fill(entry)
      // The document decides which triggers synchronized tables have.
      case "trigger" where try schema.table(named: entry.table) == nil && exists(entry.table):
        try database.execute(sql: entry.sql)
      default: continue
      }
    }
    return localTables.map(\.name)
  }

  /// Updates the references of tables that stay on the device and in place: the rows that they
  /// refer to may have other keys by now. Returns the names of the tables.
  func follow(_ translate: ([Value], _ keys: [Reference]) throws -> [Value]) throws
    -> [SQLName]
  {
    for table in localTables where try exists(table.name) {
      let references = try references(of: table)
      guard !references.isEmpty,
        let key = try LocalReference.rowKey(of: table.name, database)?.map(quoted)
      else { continue }
      let name = "main.\(quoted(table.name))"
      let reading = try SQLStatement(
        "SELECT \((table.columns.map(quoted) + key).joined(separator: ", ")) FROM \(name)",
        on: database)
      var moved: [(key: [Value], columns: [Int], values: [Value])] = []
      var count = 0
      while try reading.step() {
        count += 1
        if count % 1_000 == 0 { try checkCancellation() }
        let before = table.columns.indices.map { reading.value(at: $0) }
        let after = try translate(before, references)
        let columns = before.indices.filter { before[$0] != after[$0] }
        guard !columns.isEmpty else { continue }
        moved.append(
          (
            key: key.indices.map { reading.value(at: table.columns.count + $0) },
            columns: columns, values: columns.map { after[$0] }
          ))
      }
      for (rowKey, columns, values) in moved {
        let writing = try SQLStatement(
          "UPDATE \(name) SET "
            + columns.map { "\(quoted(table.columns[$0])) = ?" }.joined(separator: ", ")
            + " WHERE " + key.map { "\($0) IS ?" }.joined(separator: " AND "), on: database)
        for (index, value) in (values + rowKey).enumerated() { writing.bind(value, at: index + 1) }
        try writing.run()
      }
    }
    return localTables.map(\.name)
  }

  private func exists(_ name: SQLName) throws -> Bool {
    try Bool.fetchOne(
      database,
      sql: "SELECT EXISTS (SELECT 1 FROM main.sqlite_schema WHERE name = ? COLLATE NOCASE)",
      arguments: [name]) ?? false
  }

  /// A reference from a table that stays on the device to a synchronized table.
  struct Reference {
    /// Positions of the referring columns.
    var columns: [Int]
    var parent: TableSchema
    var parentColumns: [SQLName]
  }

  private func references(of table: FormerDatabase.Table) throws -> [Reference] {
    let rows = try Row.fetchAll(
      database, sql: "PRAGMA main.foreign_key_list(\(quoted(table.name)))")
    return Dictionary(grouping: rows, by: { $0["id"] as Int }).values.compactMap { group in
      let terms = group.sorted { ($0["seq"] as Int) < ($1["seq"] as Int) }
      guard let parent = schema.table(named: terms[0]["table"]) else { return nil }
      let columns = terms.compactMap { term in
        table.columns.firstIndex { $0.folded == (term["from"] as SQLName).folded }
      }
      guard columns.count == terms.count else { return nil }
      let named = terms.compactMap { $0["to"] as SQLName? }
      return Reference(
        columns: columns, parent: parent,
        parentColumns: named.count == terms.count ? named : MergedKeys.keyColumns(parent))
    }
  }

  private func copyRows(
    of table: SQLName, columns: [SQLName], _ references: [Reference],
    _ translate: ([Value], _ keys: [Reference]) throws -> [Value]
  ) throws {
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
      if count % 1_000 == 0 { try checkCancellation() }
      let values = try translate(columns.indices.map { reading.value(at: $0) }, references)
      for (index, value) in values.enumerated() { writing.bind(value, at: index + 1) }
      try writing.run()
    }
  }

  /// Fills a virtual table that only the database has.
  private func fill(_ entry: FormerDatabase.Entry) throws {
    let words = SQLTokens(entry.sql).tokens
    let module = words.firstIndex { $0.isWord("USING") }.map { words[$0 + 1].name }
    let isFullText = module?.begins(with: "fts") ?? false
    if isFullText, let content = PrivateData.contentTable(entry.sql) {
      guard content != "" else { return }
      return try database.execute(
        sql: "INSERT INTO main.\(quoted(entry.name)) (\(quoted(entry.name))) VALUES ('rebuild')")
    }
    let columns = try former.columns(of: entry.name)
    try copyRows(of: entry.name, columns: (isFullText ? ["rowid"] : []) + columns, []) {
      values, _ in values
    }
  }
}
