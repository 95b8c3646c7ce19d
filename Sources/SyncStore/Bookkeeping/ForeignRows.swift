import Foundation
import GRDB
import SyncModel

/// Other devices' changes to tables and columns that this store does not have. The store merges
/// them with their stamps, like all others, until the application creates the table or the column.
///
/// Whole stores contain them, so that a device that starts from one misses
/// nothing.
final class ForeignRows {
  /// The rows.
  static let definition = TableDefinition(
    "docsync_foreign", .document,
    columns: [.integer("tbl"), .blob("identity"), .blob("content", "NOT NULL")],
    constraint: "PRIMARY KEY (tbl, identity)", isWithoutRowID: true)

  /// Tables of other devices' change sets that this store does not have, or of which it lacks
  /// columns.
  static let tables = TableDefinition(
    "docsync_foreign_table", .document,
    columns: [
      .integer("id", "PRIMARY KEY"), .text("wire", "NOT NULL"), .integer("kind", "NOT NULL"),
      .text("keys", "NOT NULL"),
    ], constraint: "UNIQUE (wire, kind, keys)")

  /// The columns that this store lacks, by table.
  static let columns = TableDefinition(
    "docsync_foreign_column", .document,
    columns: [.integer("tbl"), .integer("col", "", .position), .text("wire", "NOT NULL")],
    constraint: "PRIMARY KEY (tbl, col)", isWithoutRowID: true)

  /// A table as change sets name it.
  struct Table {
    var id: Int
    var wireName: SQLName
    var kind: IdentityKind
    var keyColumns: [SQLName]
    /// The names of columns, by number.
    var columns: [SQLName]
  }

  private let database: Database
  private var tables: [Table] = []
  private var isLoaded = false

  init(_ database: Database) { self.database = database }

  // MARK: - Keeping

  /// Merges a change set's changes to one table into the stored rows.
  ///
  /// - Parameters:
  ///   - columns: The change set's columns to store; `nil` stores all, and the rows' existence as
  ///     well.
  ///   - identity: Returns the identity of the row at an index; `nil` if the store does not have
  ///     the table.
  func keep(
    _ changes: TableChanges, columns: [Int]? = nil, author: Int32,
    clients: ClientRegistry, identity: ((Int) -> RowIdentity)? = nil
  ) throws {
    let table = try self.table(of: changes, columns: columns)
    let places = Dictionary(
      zip(table.columns, table.columns.indices), uniquingKeysWith: { first, _ in first })
    let numbers = changes.columns.map { places[$0] }
    let wanted = columns.map(Set.init)
    var cursors = [Int](repeating: 0, count: changes.columns.count)
    var exceptions = changes.exceptions[...]
    var moves = changes.moves[...]
    for row in 0..<changes.count {
      let time = changes.times[row].rawValue
      let stamp = LocalStamp(time: time, client: author)
      var stamps: [Int?: LocalStamp] = [:]
      while let exception = exceptions.first, exception.row == row {
        stamps[exception.column] = LocalStamp(
          time: exception.stamp.time.rawValue,
          client: try clients.number(of: exception.stamp.client))
        exceptions.removeFirst()
      }
      var destination: RowIdentity?
      while let move = moves.first, move.row == row {
        destination = move.destination
        moves.removeFirst()
      }
      var said = ForeignRow()
      if columns == nil {
        switch RowAction(rawValue: changes.actions[row]) {
        case .insert: said.existence = .inserted
        case .delete, .erase: said.existence = .deleted
        case .update, nil: break
        }
        said.existenceStamp = stamps[nil] ?? stamp
        if changes.actions[row] == RowAction.erase.rawValue {
          said.erasureStamp = said.existenceStamp
        }
        said.destination = destination
        if changes.identity == .surrogate { said.keyHint = Value.key(changes.keys[1][row]) }
      }
      for column in changes.shapes[Int(changes.rowShapes[row])] {
        defer { cursors[column] += 1 }
        guard wanted?.contains(column) ?? true, let number = numbers[column] else { continue }
        said.cells.append(
          ForeignRow.Cell(
            column: number, value: changes.cells[column][cursors[column]],
            stamp: stamps[column] ?? stamp))
      }
      guard !said.isEmpty else { continue }
      let key = identity?(row) ?? Self.identity(of: row, changes)
      try merge(said, into: key, of: table, clients.precedes)
    }
  }

  /// Returns the identity of a row of an unknown table. Without the table's schema, this store
  /// cannot tell which spellings of a key are the same.
  private static func identity(of row: Int, _ changes: TableChanges) -> RowIdentity {
    if changes.identity == .surrogate, case .blob(let bytes) = changes.keys[0][row] {
      return RowIdentity(bytes: bytes)
    }
    return IdentityEncoding.encode(changes.keys.map { $0[row] })
  }

  private func merge(
    _ said: ForeignRow, into identity: RowIdentity, of table: Table,
    _ precedes: (LocalStamp, LocalStamp) -> Bool
  ) throws {
    var row = try self.row(identity, of: table.id) ?? ForeignRow()
    if said.existence != .unsaid {
      row.merge(
        said.existence, said.existenceStamp, destination: said.destination, precedes)
    }
    row.erase(before: said.erasureStamp, precedes)
    row.keyHint = said.keyHint ?? row.keyHint
    for cell in said.cells { row.merge(cell, precedes) }
    try store(row, identity, of: table.id)
  }

  /// Returns the tables, and the columns as `table.column`, that a schema does not have and of
  /// which rows are stored.
  func unknownNames(_ schema: StoreSchema) throws -> [SQLName] {
    var names: Set<SQLName> = []
    for table in try all() where try !rows(of: table, after: nil, limit: 1).isEmpty {
      guard let here = table.table(in: schema) else {
        names.insert(table.wireName)
        continue
      }
      for column in table.columns where !here.columns.contains(where: { $0.wireName == column }) {
        names.insert("\(table.wireName).\(column)")
      }
    }
    return names.sorted()
  }

  // MARK: - Rows

  private lazy var selecting = Result {
    try SQLStatement(
      "SELECT content FROM docsync_foreign WHERE tbl = ? AND identity = ?", on: database)
  }
  private lazy var replacing = Result {
    try SQLStatement(
      "INSERT OR REPLACE INTO docsync_foreign (tbl, identity, content) VALUES (?, ?, ?)",
      on: database)
  }
  private lazy var deleting = Result {
    try SQLStatement("DELETE FROM docsync_foreign WHERE tbl = ? AND identity = ?", on: database)
  }

  /// Returns the stored part of a row, or `nil` if there is none.
  func row(_ identity: RowIdentity, of table: Int) throws -> ForeignRow? {
    let statement = try selecting.get()
    statement.bind(Int64(table), at: 1)
    statement.bind(blob: identity.bytes, at: 2)
    guard try statement.step() else { return nil }
    defer { statement.reset() }
    return try ForeignRow(bytes: statement.bytes(at: 0))
  }

  /// Stores a row, or removes it if nothing of it is left.
  func store(_ row: ForeignRow, _ identity: RowIdentity, of table: Int) throws {
    let statement = try row.isEmpty ? deleting.get() : replacing.get()
    statement.bind(Int64(table), at: 1)
    statement.bind(blob: identity.bytes, at: 2)
    if !row.isEmpty { statement.bind(blob: row.bytes, at: 3) }
    try statement.run()
  }

  /// Returns the next rows of a table after `last`, in order of identity.
  func rows(
    of table: Table, after last: RowIdentity?, limit: Int
  ) throws -> [(identity: RowIdentity, row: ForeignRow)] {
    let statement = try SQLStatement(
      "SELECT identity, content FROM docsync_foreign WHERE tbl = ? AND identity > ? "
        + "ORDER BY identity LIMIT ?", on: database)
    statement.bind(Int64(table.id), at: 1)
    statement.bind(blob: last?.bytes ?? [], at: 2)
    statement.bind(Int64(limit), at: 3)
    var rows: [(identity: RowIdentity, row: ForeignRow)] = []
    while try statement.step() {
      rows.append(
        (RowIdentity(bytes: statement.bytes(at: 0)), try ForeignRow(bytes: statement.bytes(at: 1))))
    }
    return rows
  }

  // MARK: - Names

  /// Returns the names in change sets of the tables whose rows were stored.
  static func tableNames(_ database: Database) throws -> [SQLName] {
    try SQLName.fetchAll(database, sql: "SELECT wire FROM docsync_foreign_table")
  }

  /// Returns the tables whose rows, or some of their cells, were stored.
  func all() throws -> [Table] {
    if isLoaded { return tables }
    tables = try StoredRow.fetchAll(
      database, sql: "SELECT * FROM docsync_foreign_table ORDER BY id"
    ).map {
      row in
      let id: Int = try row["id"]
      return Table(
        id: id, wireName: try row["wire"],
        kind: IdentityKind(rawValue: try row["kind"]) ?? .primaryKey,
        keyColumns: Self.names(try row["keys"]),
        columns: try SQLName.fetchAll(
          database, sql: "SELECT wire FROM docsync_foreign_column WHERE tbl = ? ORDER BY col",
          arguments: [id]))
    }
    isLoaded = true
    return tables
  }

  private func table(of changes: TableChanges, columns: [Int]?) throws -> Table {
    let keys = changes.identity == .surrogate ? [] : changes.keyColumns
    var position = try all().firstIndex {
      $0.wireName == changes.table && $0.kind == changes.identity && $0.keyColumns == keys
    }
    if position == nil {
      try database.execute(
        sql: "INSERT INTO docsync_foreign_table (wire, kind, keys) VALUES (?, ?, ?)",
        arguments: [changes.table, changes.identity.rawValue, Self.text(keys)])
      tables.append(
        Table(
          id: Int(database.lastInsertedRowID), wireName: changes.table, kind: changes.identity,
          keyColumns: keys, columns: []))
      position = tables.count - 1
    }
    guard let position else { return tables[0] }
    var known = Set(tables[position].columns)
    for column in columns ?? Array(changes.columns.indices)
    where known.insert(changes.columns[column]).inserted {
      try database.execute(
        sql: "INSERT INTO docsync_foreign_column (tbl, col, wire) VALUES (?, ?, ?)",
        arguments: [
          tables[position].id, tables[position].columns.count, changes.columns[column],
        ])
      tables[position].columns.append(changes.columns[column])
    }
    return tables[position]
  }

  /// Returns names in one text, each quoted as in SQL.
  private static func text(_ names: [SQLName]) -> String {
    names.map(quoted).joined(separator: " ")
  }

  private static func names(_ text: String) -> [SQLName] { SQLTokens(text).tokens.map(\.name) }
}

extension ForeignRows.Table {
  /// Returns the table of a schema that has the same name and identifies rows in the same way;
  /// `nil` if there is none.
  func table(in schema: StoreSchema) -> TableSchema? {
    guard let table = schema.table(wireName: wireName), table.identity.kind == kind,
      table.identity == .surrogate || table.wireKeyColumns == keyColumns
    else { return nil }
    return table
  }
}
