import GRDB
import SyncModel

/// The values of excluded columns, which stay on this device.
extension RowExchange {
  private func aside(_ table: TableSchema) -> String { "temp.docsync_own_\(table.id)" }

  /// Returns the excluded columns of a table of the whole store that are excluded here too, by the
  /// name that they have in both.
  private func excludedColumns(_ table: TableSchema) -> [SQLName] {
    guard let here = mapping.old.table(wireName: table.wireName) else { return [] }
    return table.excludedColumns.intersection(here.excludedColumns).sorted()
  }

  /// Puts aside the values of excluded columns in rows that will be removed.
  func putAside() throws {
    for table in tables where !excludedColumns(table).isEmpty {
      guard let here = mapping.old.table(wireName: table.wireName),
        here.identityDescription == table.identityDescription,
        matchColumns(here).count == matchColumns(table).count,
        // Only then does a key identify the same row.
        table.identity != .surrogate || here.origin == table.origin
      else { continue }
      let keys = matchColumns(here).enumerated().map { "t.\(quoted($1)) AS k\($0)" }
      let values = excludedColumns(table).enumerated().map { "t.\(quoted($1)) AS x\($0)" }
      let identity = here.keyColumns.enumerated().map { "t.\(quoted($1)) AS i\($0)" }
      let condition = kept.contains(table.id) ? isDoomed(table) : "1"
      try database.execute(
        sql: "CREATE TEMP TABLE docsync_own_\(table.id) AS "
          + "SELECT \((keys + values + identity).joined(separator: ", ")), NULL AS identity "
          + "FROM main.\(here.quotedName) AS t WHERE \(condition)")
      try nameRows(aside(table), here)
    }
  }

  /// Adds the rows' identities to the values that were put aside.
  private func nameRows(_ aside: String, _ here: TableSchema) throws {
    let access = try session.access(here.id)
    let names = here.keyColumns.indices.map { "i\($0)" }
    let reading = try SQLStatement(
      "SELECT rowid, \(names.joined(separator: ", ")) FROM \(aside)", on: database)
    var found: [(row: Int64, identity: RowIdentity)] = []
    while try reading.step() {
      let key = names.indices.map { reading.value(at: $0 + 1) }
      found.append((reading.integer(at: 0), try access.identity(ofKey: key)))
    }
    let writing = try SQLStatement(
      "UPDATE \(aside) SET identity = ? WHERE rowid = ?", on: database)
    for (row, identity) in found {
      writing.bind(blob: identity.bytes, at: 1)
      writing.bind(row, at: 2)
      try writing.run()
    }
  }

  /// Puts the values back into the rows that exist again.
  ///
  /// - Parameters:
  ///   - session: The session with the new schema.
  ///   - keepsRest: Whether to store the rest for rows that come back later
  ///     (``StoreSession/putBackAside(into:key:)``).
  func putBack(_ session: StoreSession, keepsRest: Bool) throws {
    for table in tables where try isPutAside(table) {
      let terms = excludedColumns(table).enumerated().map { "\(quoted($1)) = o.x\($0)" }
      let isThere =
        "EXISTS (SELECT 1 FROM main.\(table.quotedName) AS t WHERE \(isNamed(table)))"
      // Another row may have the key by now.
      if mapping.hasPlainRows(table) {
        try keep(table, where: keepsRest ? "1" : isThere)
        try putBackByIdentity(table, session)
        try database.execute(sql: "DROP TABLE \(aside(table))")
        continue
      }
      do {
        try database.execute(
          sql: "UPDATE OR ABORT main.\(table.quotedName) AS t "
            + "SET \(terms.joined(separator: ", ")) FROM \(aside(table)) AS o "
            + "WHERE \(isNamed(table))")
        if keepsRest { try keep(table, where: "NOT \(isThere)") }
      } catch let error as DatabaseError where error.resultCode == .SQLITE_CONSTRAINT {
        try TransactionEnded.check(database, after: error)
        // A constraint refuses one of the values, so they are put back row by row.
        try keep(table, where: keepsRest ? "1" : isThere)
        try putBackKept(table, session)
      }
      try database.execute(sql: "DROP TABLE \(aside(table))")
    }
  }

  /// Returns the SQL condition that a row `t` here is the row of the values `o` that were put
  /// aside.
  private func isNamed(_ table: TableSchema) -> String {
    matchColumns(table).enumerated().map { "t.\(quoted($1)) = o.k\($0)" }
      .joined(separator: " AND ")
  }

  private func keep(_ table: TableSchema, where condition: String) throws {
    for (index, column) in excludedColumns(table).enumerated() {
      try AsideValues.store(
        column, in: table.wireName, identity: "o.identity", value: "o.x\(index)",
        from: "\(aside(table)) AS o WHERE \(condition)", database)
    }
  }

  private func putBackByIdentity(_ table: TableSchema, _ session: StoreSession) throws {
    let access = try session.access(table.id)
    let reading = try SQLStatement("SELECT identity FROM \(aside(table))", on: database)
    var rows: [RowIdentity] = []
    while try reading.step() { rows.append(RowIdentity(bytes: reading.bytes(at: 0))) }
    for row in rows.map({ RowKey(table: table.id, identity: $0) }) {
      guard try session.keptRows.row(row)?.reason.isShown ?? true,
        let shown = try access.shown(row.identity)
      else { continue }
      try session.putBackAside(into: row, key: shown.key)
    }
  }

  private func putBackKept(_ table: TableSchema, _ session: StoreSession) throws {
    let names = table.keyColumns.map { "t.\(quoted($0))" }
    let reading = try SQLStatement(
      "SELECT o.identity, \(names.joined(separator: ", ")) FROM \(aside(table)) AS o "
        + "JOIN main.\(table.quotedName) AS t ON \(isNamed(table))", on: database)
    var rows: [(identity: RowIdentity, key: [Value])] = []
    while try reading.step() {
      rows.append(
        (
          RowIdentity(bytes: reading.bytes(at: 0)),
          names.indices.map { reading.value(at: $0 + 1) }
        ))
    }
    for row in rows {
      try session.putBackAside(
        into: RowKey(table: table.id, identity: row.identity), key: row.key)
    }
  }

  private func isPutAside(_ table: TableSchema) throws -> Bool {
    try database.tableExists("docsync_own_\(table.id)", in: "temp")
  }
}
