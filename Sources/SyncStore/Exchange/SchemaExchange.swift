import GRDB
import SyncModel

/// The change of the synchronized tables to the schema that they have in an attached whole store,
/// with their indexes and triggers, and the views.
///
/// Data that stays on this device does not change. The exchange creates virtual tables that are
/// missing here, and tables without synchronization that the application has created elsewhere. If
/// such a table has another form there, it takes that form and keeps its rows, if they fit. A table
/// in which migrations are recorded takes the rows of the whole store, since they describe the
/// schema. A whole store contains no tables that cannot be synchronized: those of this device stay,
/// with the triggers that read or write them.
struct SchemaExchange {
  /// An object of a schema that neither SQLite nor bookkeeping has created.
  private struct Entry: Hashable {
    var type: String
    var name: SQLName
    var table: SQLName
    var sql: String

    var text: SQLText { SQLText(sql) }
    var key: SQLName { name.folded }
    var isVirtual: Bool { SQLTokens(sql).tokens.dropFirst().first?.isWord("VIRTUAL") ?? false }
    var isFullText: Bool {
      guard isVirtual else { return false }
      let words = SQLTokens(sql).tokens
      let module = words.firstIndex { $0.isWord("USING") }.map { words[$0 + 1].name }
      return module?.begins(with: "fts") ?? false
    }
  }

  let database: Database
  let old: StoreSchema
  let new: StoreSchema

  private let here: [SQLName: Entry]
  private let there: [Entry]
  /// The names, in lower case, of tables that belong to virtual tables.
  private let shadows: Set<SQLName>
  /// The virtual tables to create.
  private let virtualTables: [Entry]
  /// The tables of the whole store that are here in the same form.
  let kept: Set<Int>

  init(database: Database, old: StoreSchema, new: StoreSchema) throws {
    self.database = database
    self.old = old
    self.new = new
    let here = Dictionary(
      try Self.entries("main", database).map { ($0.key, $0) }, uniquingKeysWith: { $1 })
    let there = try Self.entries(KeyMapping.attached, database)
    shadows = Set(
      (old.leftOut.filter { $0.value == .virtualTablePart }
        .merging(new.leftOut.filter { $0.value == .virtualTablePart }) { $1 })
        .keys.map { $0.folded })
    let virtualTables = there.filter {
      $0.type == "table" && $0.isVirtual && here[$0.key]?.text != $0.text
    }
    // Triggers fill a new virtual table row by row, so the rows are inserted again.
    let triggers = there.filter { $0.type == "trigger" }.compactMap { AppTrigger($0.sql) }
    let feeding = Set(
      triggers.filter { trigger in
        virtualTables.contains { !trigger.statements(writingTo: $0.name).isEmpty }
      }.map { $0.tableName.folded })
    let texts = Dictionary(
      there.filter { $0.type == "table" }.map { ($0.key, $0.text) }, uniquingKeysWith: { $1 })
    kept = Set(
      new.tables.filter { table in
        let key = table.name.folded
        // A table that stays on this device may have the same form and other rows.
        return texts[key] == here[key]?.text && !feeding.contains(key)
          && old.table(named: table.name) != nil
      }.map(\.id))
    self.here = here
    self.there = there
    self.virtualTables = virtualTables
  }

  private static func entries(_ schema: String, _ database: Database) throws -> [Entry] {
    try Row.fetchAll(
      database,
      sql: "SELECT type, name, tbl_name, sql FROM \(schema).sqlite_schema WHERE sql IS NOT NULL "
        + "AND name NOT LIKE 'sqlite~_%' ESCAPE '~' AND name NOT LIKE 'docsync~_%' ESCAPE '~' "
        + "ORDER BY rowid"
    ).map { Entry(type: $0["type"], name: $0["name"], table: $0["tbl_name"], sql: $0["sql"]) }
  }

  // MARK: - Objects that go

  /// The synchronized tables of this store that do not stay as they are.
  var leavingTables: [TableSchema] {
    old.tables.filter { table in
      // A table that stays on the device from now on keeps its rows. One that cannot be synchronized
      // there takes that form, and its rows come back once it can be.
      if new.leftOut.contains(where: {
        $0.key.folded == table.name.folded && !$0.value.isProblem
      }) {
        return false
      }
      return new.table(named: table.name).map { !kept.contains($0.id) } ?? true
    }
  }

  /// Whether the schemas differ.
  var isNeeded: Bool {
    kept.count != new.tables.count || !leavingTables.isEmpty || !obsolete.isEmpty
      || !missing(["index", "trigger", "view"]).isEmpty || !virtualTables.isEmpty
      || !missing(["table"]).isEmpty
  }

  private func isSynchronized(_ table: SQLName) -> Bool {
    new.table(named: table) != nil || old.table(named: table) != nil
  }

  /// Indexes, triggers and views that the whole store does not have, or has in another form. Those
  /// of tables and views that stay here stay as well, if no object of the whole store has their
  /// names.
  private var obsolete: [Entry] {
    let texts = Dictionary(there.map { ($0.key, $0) }, uniquingKeysWith: { $1 })
    return here.values.filter { entry in
      guard entry.type != "table" else { return false }
      if let other = texts[entry.key] { return other != entry }
      return entry.type != "view" && isSynchronized(entry.table) && !isOwn(entry)
    }.sorted { ($0.type, $0.name) < ($1.type, $1.name) }
  }

  /// Returns whether a trigger reads or writes a table that stays on this device since it cannot be
  /// synchronized.
  private func isOwn(_ entry: Entry) -> Bool {
    guard entry.type == "trigger" else { return false }
    let tokens = SQLTokens(entry.sql)
    return old.problems.keys.contains(where: tokens.namesTable)
  }

  private func missing(_ types: Set<String>) -> [Entry] {
    there.filter { entry in
      types.contains(entry.type) && here[entry.key] != entry && !entry.isVirtual
        && !shadows.contains(entry.key)
    }
  }

  // MARK: - Exchanging

  /// Drops the objects that differ, and creates those that the whole store has, except indexes. The
  /// caller has removed the rows of the dropped tables.
  func run() throws {
    for entry in obsolete {
      try database.execute(sql: "DROP \(entry.type) IF EXISTS main.\(quoted(entry.name))")
    }
    for table in leavingTables {
      try database.execute(sql: "DROP TABLE main.\(quoted(table.name))")
    }
    for table in new.tables where !kept.contains(table.id) {
      try removeNamesake(table.name)
      try make(table.name)
    }
    for entry in virtualTables {
      if let namesake = here[entry.key] {
        try database.execute(sql: "DROP \(namesake.type) IF EXISTS main.\(quoted(namesake.name))")
      }
      try database.execute(sql: entry.sql)
      try copyUnfilled(entry)
    }
    for entry in missing(["table"]) where new.table(named: entry.name) == nil {
      try adapt(entry)
    }
    // Triggers go with a table that takes another form.
    let own = here.values.filter(isOwn).sorted { $0.name < $1.name }
    for entry in there.filter({ ["view", "trigger"].contains($0.type) }) + own {
      let isPresent = try Bool.fetchOne(
        database,
        sql: "SELECT EXISTS (SELECT 1 FROM main.sqlite_schema "
          + "WHERE type IN ('view', 'trigger') AND name = ? COLLATE NOCASE)",
        arguments: [entry.name])
      guard isPresent != true, try entry.type == "view" || exists(entry.table) else { continue }
      try database.execute(sql: entry.sql)
    }
  }

  /// Gives the tables in which migrations are recorded the rows that they have in the whole store.
  func takeSchemaTables() throws {
    for name in new.leftOut.filter({ $0.value == .schema }).keys.sorted() {
      let isKept = here[name.folded] != nil
      // A migration that runs here holds the lock.
      if isKept, case .lock? = try SchemaTables.entry(of: name, database)?.content { continue }
      let columns = try columnNames(name).map { "t.\(quoted($0))" }.joined(separator: ", ")
      let here = "SELECT \(columns) FROM main.\(quoted(name)) AS t"
      let there = "SELECT \(columns) FROM \(KeyMapping.attached).\(quoted(name)) AS t"
      let differs = try Bool.fetchOne(
        database,
        sql: "SELECT EXISTS (\(here) EXCEPT \(there)) OR EXISTS (\(there) EXCEPT \(here)) "
          + "OR (SELECT count(*) FROM (\(here))) <> (SELECT count(*) FROM (\(there)))")
      guard differs == true else { continue }
      let names = try columnNames(name).map(quoted).joined(separator: ", ")
      try database.execute(
        sql: "DELETE FROM main.\(quoted(name)); "
          + "INSERT INTO main.\(quoted(name)) (\(names)) \(there)")
    }
  }

  /// Creates the indexes, once the rows are inserted.
  func makeIndexes() throws {
    let present = try SQLName.fetchSet(
      database, sql: "SELECT lower(name) FROM main.sqlite_schema WHERE type = 'index'")
    for entry in there where entry.type == "index" && !present.contains(entry.key) {
      guard try exists(entry.table) else { continue }
      try database.execute(sql: entry.sql)
    }
  }

  private func exists(_ name: SQLName) throws -> Bool {
    try Bool.fetchOne(
      database,
      sql: "SELECT EXISTS (SELECT 1 FROM main.sqlite_schema "
        + "WHERE type IN ('table', 'view') AND name = ? COLLATE NOCASE)", arguments: [name])
      ?? false
  }

  /// Drops a table that stays on this device, or a view, if a table that is synchronized elsewhere
  /// has its name. The rows of a table that cannot be synchronized remain under another name.
  private func removeNamesake(_ name: SQLName) throws {
    let type = try String.fetchOne(
      database,
      sql: "SELECT type FROM main.sqlite_schema WHERE name = ? COLLATE NOCASE", arguments: [name])
    guard let type else { return }
    let isUnsuitable = old.problems.keys.contains { $0.isSame(as: name) }
    if isUnsuitable, old.table(named: name) == nil { try copyRows(of: name) }
    try database.execute(sql: "DROP \(type) main.\(quoted(name))")
  }

  private func copyRows(of name: SQLName) throws {
    let isEmpty = try Bool.fetchOne(
      database, sql: "SELECT NOT EXISTS (SELECT 1 FROM main.\(quoted(name)) NOT INDEXED)")
    guard isEmpty == false else { return }
    let taken = try SQLName.fetchAll(database, sql: "SELECT name FROM main.sqlite_schema")
    let columns = try columnNames(name).map(quoted).joined(separator: ", ")
    try database.execute(
      sql: "CREATE TABLE main.\(quoted(SchemaReader.free(name, among: taken + there.map(\.name)))) "
        + "AS SELECT \(columns) FROM main.\(quoted(name)) NOT INDEXED")
  }

  private func make(_ table: SQLName) throws {
    guard let entry = there.first(where: { $0.type == "table" && $0.key == table.folded })
    else { return }
    try database.execute(sql: entry.sql)
  }

  /// Creates a table that is not synchronized, or gives it the form that it has in the whole store,
  /// and the rows that it has here. A table in which migrations are recorded gets its rows later.
  private func adapt(_ entry: Entry) throws {
    guard let former = here[entry.key] else { return try database.execute(sql: entry.sql) }
    // Each device has its own form of a table that cannot be synchronized. If it was synchronized
    // here, it is gone by now.
    if new.problems.keys.contains(where: { $0.folded == entry.key }) {
      if old.table(named: entry.name) != nil { try database.execute(sql: entry.sql) }
      return
    }
    // The whole store has a plain form of it, and SQLite cannot read this one.
    if old.undefined.contains(where: { $0.folded == entry.key }) { return }
    guard former.type == "table", !former.isVirtual else { return }
    let name = quoted(former.name)
    if new.leftOut.contains(where: { $0.value == .schema && $0.key.folded == entry.key }) {
      try database.execute(sql: "DROP TABLE main.\(name)")
      return try database.execute(sql: entry.sql)
    }
    let sequences = try AutoincrementSequences(database)
    do {
      try database.atomically {
        let columns = Set(try columnNames(former.name).map { $0.folded })
        try database.execute(
          sql: "CREATE TEMP TABLE docsync_adapted AS SELECT * FROM main.\(name); "
            + "DROP TABLE main.\(name)")
        try database.execute(sql: entry.sql)
        let common = try columnNames(entry.name).filter { columns.contains($0.folded) }
          .map(quoted).joined(separator: ", ")
        if !common.isEmpty {
          try database.execute(
            sql: "INSERT INTO main.\(name) (\(common)) SELECT \(common) FROM temp.docsync_adapted")
        }
        try database.execute(sql: "DROP TABLE temp.docsync_adapted")
        try sequences.raise(of: entry.name)
      }
    } catch let error as DatabaseError where error.resultCode == .SQLITE_CONSTRAINT {
      // The rows of the table are more important than its form.
    }
  }

  /// Returns the names of the columns that can be written.
  private func columnNames(_ table: SQLName) throws -> [SQLName] {
    try Row.fetchAll(database, sql: "PRAGMA main.table_xinfo(\(quoted(table)))")
      .filter { ($0["hidden"] as Int) == 0 }.map { $0["name"] }
  }

  // MARK: - Full-text tables

  /// Fills a virtual table that is new here and that no trigger fills.
  private func copyUnfilled(_ entry: Entry) throws {
    guard !Self.isFilled(entry.name, there), PrivateData.contentTable(entry.sql) == nil else {
      return
    }
    let names = try columnNames(entry.name).map(quoted)
    guard !names.isEmpty else { return }
    let columns = ((entry.isFullText ? ["rowid"] : []) + names).joined(separator: ", ")
    try database.execute(
      sql: "INSERT INTO main.\(quoted(entry.name)) (\(columns)) "
        + "SELECT \(columns) FROM \(KeyMapping.attached).\(quoted(entry.name))")
  }

  private static func isFilled(_ table: SQLName, _ entries: [Entry]) -> Bool {
    entries.filter { $0.type == "trigger" }.compactMap { AppTrigger($0.sql) }
      .contains { !$0.statements(writingTo: table).isEmpty }
  }

  /// Rebuilds full-text tables that index the rows of a synchronized table and that no trigger
  /// maintains.
  func rebuildUnfilled() throws {
    let entries = try Self.entries("main", database)
    for entry in entries where entry.type == "table" && entry.isFullText {
      guard let content = PrivateData.contentTable(entry.sql), new.table(named: content) != nil,
        !Self.isFilled(entry.name, entries)
      else { continue }
      try database.execute(
        sql: "INSERT INTO main.\(quoted(entry.name)) (\(quoted(entry.name))) VALUES ('rebuild')")
    }
  }
}
