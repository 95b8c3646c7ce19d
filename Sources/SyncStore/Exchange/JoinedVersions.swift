import GRDB
import SyncModel

/// The versions that the schemas of a document and of a database with rows have, when the database
/// becomes a store of the document: `user_version`, and the tables in which frameworks record their
/// migrations.
///
/// Afterwards the store has the greater `user_version`, and the migrations of both. So it must have
/// everything that these made on either side, since the application will not make it again
/// (``JoinedObjects``).
struct JoinedVersions {
  let database: Database
  let former: FormerDatabase
  /// The document's schema, with the tables that come with the rows.
  let schema: StoreSchema
  /// The names of these tables, in lower case.
  let newTables: Set<SQLName>

  /// Which of the two has something that the other lacks. It can be both.
  struct Newer {
    var isDatabase = false
    var isDocument = false
  }

  func compare() throws -> Newer {
    let (here, there) = try (userVersion(database), userVersion(former.database))
    var newer = Newer(isDatabase: there > here, isDocument: here > there)
    for record in try records() {
      if try !record.missing(from: record.former, in: record.document).isEmpty {
        newer.isDatabase = true
      }
      if try !record.missing(from: record.document, in: record.former).isEmpty {
        newer.isDocument = true
      }
    }
    for name in schemaTables where former.table(named: name) == nil {
      if try isRecord(name), try hasRows(name, database) { newer.isDocument = true }
    }
    if try hasExcludedRecords() { newer.isDatabase = true }
    return newer
  }

  private func hasRows(_ table: SQLName, _ database: Database) throws -> Bool {
    try Bool.fetchOne(database, sql: "SELECT EXISTS (SELECT 1 FROM main.\(quoted(table)))") ?? false
  }

  /// Returns whether the database has records in an excluded table: whole stores have none of them,
  /// so that they may stand for anything.
  private func hasExcludedRecords() throws -> Bool {
    try schema.leftOut.contains { name, reason in
      guard reason == .excluded, let table = former.table(named: name),
        let content = try SchemaTables.entry(of: name, database)?.content
      else { return false }
      return try (content == .migrations || content == .state)
        && hasRows(table.name, former.database)
    }
  }

  /// Gives the store the version of the database where that is greater, and the migrations of both.
  func join() throws {
    for record in try records() { try add(record) }
    let (here, there) = try (userVersion(database), userVersion(former.database))
    guard there > here else { return }
    try database.execute(sql: "PRAGMA main.user_version = \(there)")
    for name in schemaTables { try takeState(name) }
  }

  private func userVersion(_ database: Database) throws -> Int {
    try Int.fetchOne(database, sql: "PRAGMA main.user_version") ?? 0
  }

  private var schemaTables: [SQLName] {
    schema.leftOut.filter { $0.value == .schema }.keys.sorted()
  }

  // MARK: - Migrations

  /// A table in which both sides record migrations.
  private struct Record {
    struct Side {
      var database: Database
      var table: SQLName
    }

    var document: Side
    var former: Side
    /// The columns that tell a migration from others.
    var identifying: [SQLName]
    /// The columns that are written.
    var written: [SQLName]

    /// Returns the rows of one side that the other one lacks, with the values of the columns that are
    /// written.
    func missing(from side: Side, in other: Side) throws -> [[Value]] {
      let names = (identifying + written).map(quoted).joined(separator: ", ")
      let reading = try SQLStatement(
        "SELECT \(names) FROM main.\(quoted(side.table))", on: side.database)
      let finding = try SQLStatement(
        "SELECT 1 FROM main.\(quoted(other.table)) WHERE "
          + identifying.map { "\(quoted($0)) IS ?" }.joined(separator: " AND "),
        on: other.database)
      var rows: [[Value]] = []
      while try reading.step() {
        for index in identifying.indices { finding.bind(reading.value(at: index), at: index + 1) }
        let isThere = try finding.step()
        finding.reset()
        guard !isThere else { continue }
        rows.append(written.indices.map { reading.value(at: identifying.count + $0) })
      }
      return rows
    }
  }

  /// Returns whether the rows of a table stand for migrations. Those of a lock do not, and of two
  /// states there is no telling which is newer.
  private func isRecord(_ name: SQLName) throws -> Bool {
    // The document has no row yet that could differ from those of the database.
    if newTables.contains(name.folded) { return true }
    return try SchemaTables.entry(of: name, database).map { $0.content == .migrations } ?? true
  }

  private func records() throws -> [Record] {
    try schemaTables.compactMap { name in
      guard let table = former.table(named: name), try isRecord(name) else { return nil }
      let known = try SchemaTables.entry(of: name, database)
      let columns = try commonColumns(table)
      let identifying = known?.columns ?? columns
      guard !columns.isEmpty,
        identifying.allSatisfy({ name in columns.contains { $0.isSame(as: name) } })
      else { return nil }
      // Another migration may have the number that the database gives to this one.
      let key = try known.map { _ in try integerKey(of: name) } ?? nil
      let isNew = newTables.contains(name.folded)
      return Record(
        document: Record.Side(database: database, table: name),
        former: Record.Side(database: former.database, table: table.name),
        identifying: identifying,
        written: isNew
          ? columns
          : columns.filter { column in
            !(key?.isSame(as: column) ?? false) || identifying.contains { $0.isSame(as: column) }
          })
    }
  }

  private func commonColumns(_ table: FormerDatabase.Table) throws -> [SQLName] {
    let present = Set(
      try Row.fetchAll(database, sql: "PRAGMA main.table_xinfo(\(quoted(table.name)))")
        .filter { ($0["hidden"] as Int) == 0 }.map { ($0["name"] as SQLName).folded })
    return table.columns.filter { present.contains($0.folded) }
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

  private func add(_ record: Record) throws {
    let rows = try record.missing(from: record.former, in: record.document)
    try insert(rows, record.written, into: record.document.table)
  }

  private func insert(_ rows: [[Value]], _ columns: [SQLName], into table: SQLName) throws {
    guard !rows.isEmpty else { return }
    let adding = try SQLStatement(
      "INSERT OR IGNORE INTO main.\(quoted(table)) "
        + "(\(columns.map(quoted).joined(separator: ", "))) "
        + "VALUES (\(columns.map { _ in "?" }.joined(separator: ", ")))", on: database)
    for row in rows {
      for (index, value) in row.enumerated() { adding.bind(value, at: index + 1) }
      try adding.run()
    }
  }

  // MARK: - States

  /// Gives a table that describes the present version the rows of the database, as in Room: the
  /// version is that of the database from now on.
  private func takeState(_ name: SQLName) throws {
    guard let table = former.table(named: name), !newTables.contains(name.folded),
      try SchemaTables.entry(of: name, database)?.content == .state
    else { return }
    let columns = try commonColumns(table)
    guard columns.count == table.columns.count else { return }
    let reading = try SQLStatement(
      "SELECT \(columns.map(quoted).joined(separator: ", ")) FROM main.\(quoted(table.name))",
      on: former.database)
    var rows: [[Value]] = []
    while try reading.step() { rows.append(columns.indices.map { reading.value(at: $0) }) }
    try database.execute(sql: "DELETE FROM main.\(quoted(name))")
    try insert(rows, columns, into: name)
  }
}
