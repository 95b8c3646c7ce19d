import GRDB
import SyncModel

/// Rows that have another identity than before although their local values are the same: they
/// refer, directly or through others, to a row whose declared columns changed, or that REPLACE has
/// put in another's place.
///
/// They are written to the log, so that they are exported like all other edits.
struct MovedKeys {
  let session: StoreSession

  private var database: Database { session.database }

  /// Returns the name of the temporary table with the local keys that stand for another row now.
  private static func name(_ table: TableSchema) -> String { "temp.docsync_moved_\(table.id)" }

  /// Cells that referred to a row whose local key has changed, and cells that only seemed to.
  struct Followed {
    /// Cells that hold the new key as a reference, where it is a plain value in other cells.
    var references: Set<CellKey> = []
    /// Cells that hold the old key as a plain value.
    var plain: [StoreSession.PlainCell] = []
    /// Rows that have to be checked: those that have the old key as a plain value in their own key,
    /// and those that still have it as a reference, since another row has the new key in a unique
    /// column.
    var rows: Set<RowKey> = []
  }

  func log() throws -> Followed {
    let declared = session.schema.inDependencyOrder(session.schema.tables).filter {
      if case .columns = $0.identity { true } else { false }
    }
    guard try declared.contains(where: { try hasFormerKeys($0) }) else { return Followed() }
    for table in declared {
      try session.access(table.id).rememberEarlierKeys()
      try database.execute(
        sql: "CREATE TEMP TABLE docsync_moved_\(table.id) (key INTEGER PRIMARY KEY, at REAL)")
    }
    var followed = Followed()
    for table in declared {
      let others = try follow(table)
      followed.references.formUnion(others.references)
      followed.plain += others.plain
      followed.rows.formUnion(others.rows)
    }
    try find(declared)
    for table in declared { try logReferences(to: table) }
    for table in declared { try database.execute(sql: "DROP TABLE \(Self.name(table))") }
    return followed
  }

  private func hasFormerKeys(_ table: TableSchema) throws -> Bool {
    try Bool.fetchOne(
      database,
      sql: "SELECT EXISTS (SELECT 1 FROM \(table.logName) WHERE identity IS NOT NULL)") ?? false
  }

  // MARK: - Other keys

  /// Makes references follow rows that have another local key by now, as a foreign key does. With
  /// foreign keys off, references are left behind if a key was changed, or a row was replaced by
  /// one of the same identity. For other devices nothing has changed.
  ///
  /// If a row that had several keys is gone, rows that have one of these keys in their own keys get
  /// the one by which the row is looked up.
  private func follow(_ table: TableSchema) throws -> Followed {
    let access = try session.access(table.id)
    let statement = try SQLStatement(
      "SELECT DISTINCT identity FROM \(table.logName) WHERE identity IS NOT NULL", on: database)
    let moves = try KeyMoves(access: access)
    var found: [(old: Int64, new: Int64, isGone: Bool)] = []
    while try statement.step() {
      let old = statement.integer(at: 0)
      guard try !access.hasRow(localKey: old), let new = try laterKey(of: old, access, moves)
      else { continue }
      found.append((old, new, try !access.hasRow(localKey: new)))
    }
    guard !found.isEmpty else { return Followed() }
    try database.execute(
      sql: "CREATE TEMP TABLE docsync_followed "
        + "(old INTEGER PRIMARY KEY, new INTEGER, gone INTEGER)")
    for (old, new, isGone) in found {
      try database.execute(
        sql: "INSERT INTO temp.docsync_followed (old, new, gone) VALUES (?, ?, ?)",
        arguments: [old, new, isGone])
    }
    let plain = try session.plainKeys.keys(of: table.id)
    let former = found.map(\.old).filter(plain.contains)
    let given = try found.filter { try plain.contains($0.new) && access.isGiven($0.new) }
    var followed = Followed()
    for child in session.schema.tables {
      for position in child.columns.indices
      where child.columns[position].domain == .key(of: table.id) {
        let staying = try plainCells(child, position, holding: former, of: table)
        followed.plain += staying
        if !child.columns[position].isIdentity {
          for (old, _, _) in given {
            for cell in try session.plainCells(child, position, holding: old) {
              followed.references.insert(try session.cellKey(cell))
            }
          }
        }
        let rows = try rowsStaying(child, position, holding: former)
        let access = try session.access(child.id)
        for key in rows {
          followed.rows.insert(
            RowKey(table: child.id, identity: try access.earlierIdentity(ofKey: key)))
        }
        for key in try redirect(position, of: child, except: rows) where !key.contains(.null) {
          followed.rows.insert(RowKey(table: child.id, identity: try access.identity(ofKey: key)))
        }
        for cell in staying { try restore(cell, child) }
      }
    }
    try database.execute(sql: "DROP TABLE temp.docsync_followed")
    return followed
  }

  /// Returns the local key that the row with a former key has now, or by which it is looked up;
  /// `nil` if it has no other.
  private func laterKey(of key: Int64, _ access: TableAccess, _ moves: KeyMoves) throws -> Int64? {
    let known = try access.localKey(of: try access.earlierIdentity(ofLocalKey: key))
    if let known, known != key, try access.hasRow(localKey: known) { return known }
    // The row was inserted by the edits in the log, and its declared columns were edited before it
    // got another key: other devices only know it as it is now.
    if try !access.wasTakenBefore(key, orMoved: true), let values = try access.loggedKey(key),
      let first = try access.firstEntry(ofLocalKey: key),
      let identity = try moves.destination(of: values, after: first - 1),
      let later = try access.localKey(of: identity)
    {
      return later
    }
    return known == key ? nil : known
  }

  /// Returns the cells of a column that held keys of a table as plain values before the edits in
  /// the log, and that the edits have not written.
  private func plainCells(
    _ child: TableSchema, _ position: Int, holding keys: [Int64], of table: TableSchema
  ) throws -> [StoreSession.PlainCell] {
    guard !child.columns[position].isIdentity else { return [] }
    let access = try session.access(table.id)
    return try keys.flatMap { key in
      let isGiven = try access.isGiven(key)
      return try session.plainCells(child, position, holding: key).filter {
        try isGiven || session.isKeptPlain($0)
      }
    }
  }

  /// Restores the plain value of a cell. The value was the key of a row.
  private func restore(_ cell: StoreSession.PlainCell, _ table: TableSchema) throws {
    let keys = table.keyColumns.map { "\(quoted($0)) = ?" }.joined(separator: " AND ")
    let writing = try session.access(table.id).statement(
      "UPDATE OR IGNORE \(table.quotedName) SET \(quoted(table.columns[cell.column].name)) = ? "
        + "WHERE \(keys)")
    for (index, value) in ([cell.value] + cell.key).enumerated() {
      writing.bind(value, at: index + 1)
    }
    try writing.run()
    try noteChanges(of: table)
  }

  /// Notes that the last statement may have changed any of a table's rows.
  private func noteChanges(of table: TableSchema) throws {
    if database.changesCount > 0 { try session.access(table.id).changes.noteAll() }
  }

  /// Returns the keys of the rows that have keys of a table as plain values in their own key.
  private func rowsStaying(
    _ child: TableSchema, _ position: Int, holding keys: [Int64]
  ) throws -> [[Value]] {
    guard let index = child.identityPositions.firstIndex(of: position) else { return [] }
    let access = try session.access(child.id)
    let names = child.keyColumns.map(quoted).joined(separator: ", ")
    let logged = child.keyColumns.indices.map { "k\($0)" }.joined(separator: ", ")
    let reading = try access.statement(
      "SELECT \(names) FROM \(child.quotedName) WHERE \(quoted(child.keyColumns[index])) = ?1 "
        + "UNION SELECT \(logged) FROM \(child.logName) WHERE k\(index) = ?1")
    var found: [[Value]] = []
    for key in keys {
      reading.bind(key, at: 1)
      while try reading.step() { found.append(child.keyColumns.indices.map(reading.value)) }
    }
    return try found.filter { key in
      try !key.contains(.null) && access.earlierLogicalKey(key)[index].kind != .identity
    }
  }

  /// Writes the new keys into a column. Returns the keys of the rows that cannot follow, since
  /// another row has the new key in a unique column.
  ///
  /// - Parameter staying: The keys of rows that are not to follow.
  private func redirect(
    _ position: Int, of table: TableSchema, except staying: [[Value]]
  ) throws -> [[Value]] {
    let index = table.identityPositions.firstIndex(of: position)
    let counted = index == nil ? " WHERE NOT gone" : ""
    let exception = try exception(staying)
    func terms(_ column: String, _ keys: [String]) -> (value: String, condition: String) {
      (
        "\(column) = (SELECT new FROM temp.docsync_followed WHERE old = \(column))",
        "\(column) IN (SELECT old FROM temp.docsync_followed\(counted))\(exception(keys))"
      )
    }
    let keyNames = table.keyColumns.map(quoted)
    if let index {
      // The log entries of such a row get its new key, but not where another row has that key: the
      // entries are not about that row.
      let (number, condition) = terms("k\(index)", table.keyColumns.indices.map { "k\($0)" })
      let value =
        table.columns[position].affinity == .text
        ? number.replacing("SELECT new", with: "SELECT CAST(new AS TEXT)") : number
      func row(_ key: (Int) -> String) -> String {
        let match = table.keyColumns.enumerated().map { "c.\(quoted($1)) = \(key($0))" }
        return "EXISTS (SELECT 1 FROM \(table.quotedName) AS c "
          + "WHERE \(match.joined(separator: " AND ")))"
      }
      let new = "(SELECT new FROM temp.docsync_followed WHERE old = k\(index))"
      try database.execute(
        sql: "UPDATE \(table.logName) SET \(value) WHERE \(condition) AND \(row { "k\($0)" }) "
          + "AND NOT \(row { $0 == index ? new : "k\($0)" })")
    }
    let (value, condition) = terms(quoted(table.columns[position].name), keyNames)
    try database.execute(
      sql: "UPDATE OR IGNORE \(table.quotedName) SET \(value) WHERE \(condition)")
    try noteChanges(of: table)
    if index != nil {
      // A row with that key is there already: it is the same row.
      try database.execute(sql: "DELETE FROM \(table.quotedName) WHERE \(condition)")
      try noteChanges(of: table)
      return []
    }
    let reading = try SQLStatement(
      "SELECT \(keyNames.joined(separator: ", ")) FROM \(table.quotedName) WHERE \(condition)",
      on: database)
    var left: [[Value]] = []
    while try reading.step() { left.append(keyNames.indices.map(reading.value)) }
    return left
  }

  /// Returns the SQL that excepts rows, by the names of their key columns.
  private func exception(_ staying: [[Value]]) throws -> ([String]) -> String {
    guard let first = staying.first else { return { _ in "" } }
    let names = first.indices.map { "docsync_k\($0)" }
    try database.execute(
      sql: "DROP TABLE IF EXISTS temp.docsync_staying; "
        + "CREATE TEMP TABLE docsync_staying (\(names.joined(separator: ", ")))")
    let adding = try SQLStatement(
      "INSERT INTO temp.docsync_staying VALUES (\(names.map { _ in "?" }.joined(separator: ", ")))",
      on: database)
    for key in staying {
      for (position, value) in key.enumerated() { adding.bind(value, at: position + 1) }
      try adding.run()
    }
    return { keys in
      let match = zip(names, keys).map { "s.\($0) IS \($1)" }
      return " AND NOT EXISTS (SELECT 1 FROM temp.docsync_staying AS s "
        + "WHERE \(match.joined(separator: " AND ")))"
    }
  }

  // MARK: - Other identities

  /// Notes the keys whose identities changed, and repeats this until there are no further ones: an
  /// identity may contain others.
  private func find(_ declared: [TableSchema]) throws {
    for table in declared {
      try note(
        in: table,
        among:
          "SELECT identity, max(at) FROM \(table.logName) WHERE identity IS NOT NULL GROUP BY 1")
    }
    var hasGrown = true
    while hasGrown {
      hasGrown = false
      for table in declared {
        for (column, parent) in keyColumns(of: table, in: declared) where column.isIdentity {
          let grown = try note(
            in: table,
            among: """
              SELECT t.\(quoted(table.localKey ?? "rowid")), m.at FROM \(table.quotedName) AS t \
              JOIN \(Self.name(parent)) AS m ON m.key = t.\(quoted(column.name))
              """)
          hasGrown = hasGrown || grown
        }
      }
    }
  }

  /// Notes the keys from a query that stand for another identity now. Returns true if there were
  /// new ones.
  @discardableResult
  private func note(in table: TableSchema, among query: String) throws -> Bool {
    let access = try session.access(table.id)
    let statement = try SQLStatement(query, on: database)
    var found: [(key: Int64, time: Double)] = []
    while try statement.step() {
      let key = statement.integer(at: 0)
      guard try access.hasRow(localKey: key),
        try access.identity(ofLocalKey: key) != access.earlierIdentity(ofLocalKey: key)
      else { continue }
      found.append((key, statement.real(at: 1)))
    }
    var isNew = false
    for (key, time) in found {
      try database.execute(
        sql: "INSERT OR IGNORE INTO \(Self.name(table)) (key, at) VALUES (?, ?)",
        arguments: [key, time])
      if database.changesCount > 0 { isNew = true }
    }
    return isNew
  }

  /// Returns the columns of a table that hold keys of some other tables.
  private func keyColumns(
    of table: TableSchema, in parents: [TableSchema]
  ) -> [(column: ColumnSchema, parent: TableSchema)] {
    table.columns.compactMap { column in
      guard case .key(let id) = column.domain, let parent = parents.first(where: { $0.id == id })
      else { return nil }
      return (column, parent)
    }
  }

  private func logReferences(to parent: TableSchema) throws {
    let isEmpty = try Bool.fetchOne(
      database, sql: "SELECT NOT EXISTS (SELECT 1 FROM \(Self.name(parent)))")
    guard isEmpty == false else { return }
    let plain = try session.plainKeys.keys(of: parent.id)
    let keys = try plain.isEmpty ? [] : movedKeys(of: parent).filter(plain.contains)
    for table in session.schema.tables {
      let names = table.keyColumns.indices.map { "k\($0)" }
      for position in table.columns.indices
      where table.columns[position].domain == .key(of: parent.id) {
        let column = table.columns[position]
        let kind: CaptureTriggers.Entry = column.isIdentity ? .renamed : .update
        let plainCells = try plainCells(table, position, holding: keys, of: parent)
        try database.execute(
          sql: """
            INSERT INTO \(table.logName) (op, at, mask, \(names.joined(separator: ", "))) \
            SELECT \(kind.rawValue), m.at, \
            \(column.isIdentity ? "NULL" : literal(ColumnSet(position).mask)), \
            \(table.keyColumns.map { "c.\(quoted($0))" }.joined(separator: ", ")) \
            FROM \(Self.name(parent)) AS m JOIN \(table.quotedName) AS c \
            ON c.\(quoted(column.name)) = m.key
            """)
        for cell in plainCells { try forgetUpdate(of: cell, table) }
      }
    }
  }

  private func movedKeys(of table: TableSchema) throws -> [Int64] {
    try Int64.fetchAll(database, sql: "SELECT key FROM \(Self.name(table))")
  }

  /// Removes the log entry for the edit of a cell. No other edit has written the cell.
  private func forgetUpdate(of cell: StoreSession.PlainCell, _ table: TableSchema) throws {
    let keys = table.keyColumns.indices.map { "k\($0) = ?" }.joined(separator: " AND ")
    let deleting = try session.access(table.id).statement(
      "DELETE FROM \(table.logName) WHERE op = \(CaptureTriggers.Entry.update.rawValue) "
        + "AND mask = \(literal(ColumnSet(cell.column).mask)) AND \(keys)")
    for (index, value) in cell.key.enumerated() { deleting.bind(value, at: index + 1) }
    try deleting.run()
  }
}
