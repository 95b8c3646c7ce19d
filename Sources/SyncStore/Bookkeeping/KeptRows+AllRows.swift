import Foundation
import GRDB
import SyncModel

/// The queries for the rows of a table, and for all rows.
extension KeptRows {
  /// Returns all stored rows, without those of tables that are not synchronized at present.
  func all() throws -> [RowKey] {
    try StoredRow.fetchAll(
      database,
      sql: "SELECT tbl, identity FROM docsync_kept WHERE \(isPresent)"
    ).map { row in
      RowKey(
        table: try row["tbl"], identity: RowIdentity(bytes: Array(try row["identity"] as Data)))
    }
  }

  /// Returns the stored rows of a table, in order of identity.
  func identities(in table: Int) throws -> [RowIdentity] {
    let statement = try SQLStatement(
      "SELECT identity FROM docsync_kept WHERE tbl = ? ORDER BY identity", on: database)
    statement.bind(Int64(table), at: 1)
    return try statement.identities()
  }

  /// Returns the rows of a table that are stored for a reason.
  func identities(in table: Int, for reason: KeptRow.Reason) throws -> [RowIdentity] {
    let statement = try SQLStatement(
      "SELECT identity FROM docsync_kept WHERE tbl = ? AND reason = ?", on: database)
    statement.bind(Int64(table), at: 1)
    statement.bind(.text(Array(reason.rawValue.utf8)), at: 2)
    return try statement.identities()
  }

  /// Returns the stored rows of a table that are not shown, without deleted ones.
  func hiddenRows(of table: Int) throws -> [RowIdentity] {
    try SQLStatement(
      Self.hiddenRows(of: table) + " AND reason <> \(literal(KeptRow.Reason.tombstone.rawValue))",
      on: database
    ).identities()
  }

  /// Returns an SQL query for the stored rows of a table that are not shown.
  static func hiddenRows(of table: Int) -> String {
    let shown = [KeptRow.Reason.rescued, .overlaid, .borrowed].map { literal($0.rawValue) }
    return "SELECT identity FROM docsync_kept WHERE tbl = \(table) "
      + "AND reason NOT IN (\(shown.joined(separator: ", ")))"
  }

  /// Returns the number of parked rows.
  func parkedCount() throws -> Int {
    try Int.fetchOne(
      database,
      sql: "SELECT count(*) FROM docsync_kept WHERE reason NOT IN \(KeptRow.Reason.silentList) "
        + "AND \(isPresent)") ?? 0
  }

  /// Returns the parked rows, with their reasons and the numbers of their tables.
  ///
  /// - Parameter areAll: Whether to return those of tables that are not synchronized at present as
  ///   well.
  func parked(areAll: Bool = false) throws -> [(row: ParkedRow, table: Int)] {
    try StoredRow.fetchAll(
      database,
      sql: "SELECT tbl, identity, reason FROM docsync_kept "
        + "WHERE reason NOT IN \(KeptRow.Reason.silentList) AND \(areAll ? "1" : isPresent)"
    ).map { row in
      guard let reason = ParkedRow.Reason(rawValue: try row["reason"]) else {
        throw Self.definition.damaged()
      }
      let id: Int = try row["tbl"]
      let name =
        schema.contains(id) ? schema[id].name : try TableRegistry.names(of: id, database).table
      guard let name else { throw Self.definition.damaged() }
      let parked = ParkedRow(
        table: name, identity: RowIdentity(bytes: Array(try row["identity"] as Data)),
        reason: reason)
      return (parked, id)
    }
  }

  /// Returns the plain values that are stored for the rows of a table, by row and column.
  func plainValues(of table: TableSchema) throws -> [RowIdentity: [Int: Value]] {
    try plainValues(of: table, in: table.keyedPositions)
  }

  /// Returns the same for some columns, which may be columns of the key.
  func plainValues(
    of table: TableSchema, in columns: [Int]
  ) throws -> [RowIdentity: [Int: Value]] {
    guard !columns.isEmpty else { return [:] }
    let reading = try SQLStatement(
      "SELECT identity, cells FROM docsync_kept WHERE tbl = ? "
        + "AND reason IN ('overlaid', 'rescued')", on: database)
    reading.bind(Int64(table.id), at: 1)
    var found: [RowIdentity: [Int: Value]] = [:]
    while try reading.step() {
      let cells = try KeptCells.decode(reading.bytes(at: 1)).filter {
        columns.contains($0.column) && table.columns[$0.column].key($0.value) != nil
      }
      guard !cells.isEmpty else { continue }
      found[RowIdentity(bytes: reading.bytes(at: 0))] = Dictionary(
        cells.map { ($0.column, $0.value) }, uniquingKeysWith: { first, _ in first })
    }
    return found
  }

  /// Returns the rows of a table for which a plain number in their key is stored, with the positions
  /// of these numbers.
  ///
  /// - Parameter schema: The name under which the store with the rows is attached.
  static func plainNumbersInKeys(
    of table: TableSchema, in schema: String, _ database: Database
  ) throws -> [RowIdentity: Set<Int>] {
    let columns = table.identityPositions.filter { table.columns[$0].isKeyed }
    guard !columns.isEmpty, try database.tableExists(definition.name, in: schema) else {
      return [:]
    }
    let reading = try SQLStatement(
      "SELECT identity, cells FROM \(schema).docsync_kept WHERE tbl = ? "
        + "AND reason IN ('overlaid', 'rescued')", on: database)
    reading.bind(Int64(table.id), at: 1)
    var found: [RowIdentity: Set<Int>] = [:]
    while try reading.step() {
      let cells = try KeptCells.decode(reading.bytes(at: 1)).map(\.column)
      let plain = columns.filter(cells.contains)
      if !plain.isEmpty { found[RowIdentity(bytes: reading.bytes(at: 0))] = Set(plain) }
    }
    return found
  }

  // MARK: - Reading them as they are

  /// Returns a statement that reads the number of the table, the reason, the cells and the identity
  /// of every stored row, unchecked.
  static func reading(_ database: Database) throws -> SQLStatement {
    try SQLStatement("SELECT tbl, reason, cells, identity FROM docsync_kept", on: database)
  }

  /// Returns a statement that reads identity, cells, new identity and reason of the stored rows of
  /// a table, in order of identity.
  static func reading(of table: Int, _ database: Database) throws -> SQLStatement {
    let statement = try SQLStatement(
      "SELECT identity, cells, moved, reason FROM docsync_kept WHERE tbl = ? ORDER BY identity",
      on: database)
    statement.bind(Int64(table), at: 1)
    return statement
  }
}
