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
    /// The tables that name one version in the document and another one in the database, where nothing
    /// tells which is newer.
    var states: [SQLName] = []
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
    // Otherwise the rows of such a table are those of the greater version.
    if here == there { newer.states = try differingStates() }
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
  /// Returns the records of migrations that the tables of the document refuse.
  func join() throws -> SchemaDifferences {
    var refused = SchemaDifferences()
    for record in try records() { try add(record, &refused) }
    let (here, there) = try (userVersion(database), userVersion(former.database))
    guard there > here else { return refused }
    try database.execute(sql: "PRAGMA main.user_version = \(there)")
    for name in schemaTables { try takeState(name) }
    return refused
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
    /// The columns that tell a row from others.
    var identifying: [SQLName]
    /// The columns that are written.
    var written: [SQLName] = []
    /// The column of a key that gets the next number.
    var numbered: SQLName?
    /// Whether a record may be left out if the table refuses it: nothing is known of its columns.
    var isUnknown = false

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
      let columns = try commonColumns(table)
      guard !columns.isEmpty else { return nil }
      let known = try SchemaTables.entry(of: name, database)
      var record = Record(
        document: Record.Side(database: database, table: name),
        former: Record.Side(database: former.database, table: table.name),
        identifying: columns, written: columns, isUnknown: known == nil)
      guard let known, !newTables.contains(name.folded) else { return record }
      func has(_ names: [SQLName]) -> Bool {
        names.allSatisfy { name in columns.contains { $0.isSame(as: name) } }
      }
      record.identifying = has(known.naming) ? known.naming : known.columns
      guard has(record.identifying) else { return nil }
      // Another migration may have the number that the database gives to this one.
      if let key = try numberKey(of: name),
        !record.identifying.contains(where: { $0.isSame(as: key.column) })
      {
        record.written.removeAll { $0.isSame(as: key.column) }
        record.numbered = key.isRowid ? nil : key.column
      }
      return record
    }
  }

  private func commonColumns(_ table: FormerDatabase.Table) throws -> [SQLName] {
    let present = Set(
      try Row.fetchAll(database, sql: "PRAGMA main.table_xinfo(\(quoted(table.name)))")
        .filter { ($0["hidden"] as Int) == 0 }.map { ($0["name"] as SQLName).folded })
    return table.columns.filter { present.contains($0.folded) }
  }

  /// Returns the column of a primary key that contains numbers, and whether SQLite chooses the next
  /// one; `nil` if the table has no such key.
  private func numberKey(of table: SQLName) throws -> (column: SQLName, isRowid: Bool)? {
    let key = try Row.fetchAll(database, sql: "PRAGMA main.table_xinfo(\(quoted(table)))")
      .filter { ($0["pk"] as Int) > 0 }
    guard key.count == 1, let column = key.first else { return nil }
    let type = (column["type"] as String).uppercased()
    return type.contains("INT") ? (column["name"], type == "INTEGER") : nil
  }

  private func add(_ record: Record, _ refused: inout SchemaDifferences) throws {
    let rows = try record.missing(from: record.former, in: record.document)
    do {
      try insert(
        rows, record.written, numbered: record.numbered, isUnknown: record.isUnknown,
        into: record.document.table)
    } catch let error as DatabaseError where error.resultCode == .SQLITE_CONSTRAINT {
      refused.add("a record in \(record.document.table): \(error.message ?? "\(error)")")
    }
  }

  private func insert(
    _ rows: [[Value]], _ columns: [SQLName], numbered: SQLName? = nil, isUnknown: Bool = false,
    into table: SQLName
  ) throws {
    guard !rows.isEmpty else { return }
    let name = "main.\(quoted(table))"
    let places =
      columns.map { _ in "?" }
      + (numbered.map { ["(SELECT coalesce(max(\(quoted($0))), 0) + 1 FROM \(name))"] } ?? [])
    let adding = try SQLStatement(
      "INSERT OR \(isUnknown ? "IGNORE" : "ABORT") INTO \(name) "
        + "(\((columns + (numbered.map { [$0] } ?? [])).map(quoted).joined(separator: ", "))) "
        + "VALUES (\(places.joined(separator: ", ")))", on: database)
    for row in rows {
      for (index, value) in row.enumerated() { adding.bind(value, at: index + 1) }
      try adding.run()
    }
  }

  // MARK: - States

  /// Returns the tables of both sides that name different versions.
  private func differingStates() throws -> [SQLName] {
    try schemaTables.filter { name in
      guard let table = former.table(named: name), !newTables.contains(name.folded),
        let known = try SchemaTables.entry(of: name, database), known.content == .state,
        !known.naming.isEmpty
      else { return false }
      let columns = try commonColumns(table)
      guard known.naming.allSatisfy({ name in columns.contains { $0.isSame(as: name) } })
      else { return false }
      let state = Record(
        document: Record.Side(database: database, table: name),
        former: Record.Side(database: former.database, table: table.name),
        identifying: known.naming)
      return try !state.missing(from: state.former, in: state.document).isEmpty
        || !state.missing(from: state.document, in: state.former).isEmpty
    }
  }

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
