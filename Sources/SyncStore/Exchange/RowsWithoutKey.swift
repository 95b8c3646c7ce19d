import GRDB
import SyncModel

/// The rows with NULL in their key during an exchange of content. Only this device has them, so the
/// whole store does not contain them.
///
/// They are put aside if their table is made again or given up, or if they may be in the way of the
/// document's rows. Later they are put back into the table. A row that its table does not take any
/// more is entered into the conflict journal.
struct RowsWithoutKey {
  let session: StoreSession
  let old: StoreSchema
  let new: StoreSchema
  /// The tables of this store that the exchange drops.
  let leaving: [TableSchema]

  private var database: Database { session.database }

  private static let aside = "temp.docsync_alone"

  /// A row that was put aside.
  private struct Entry {
    typealias Cell = (column: Int, value: Value)

    /// The number of the row in its table.
    var rowid: Int64
    /// The identity that its key would give it, for the journal.
    var identity: RowIdentity
    /// The values that the table had, by position; the excluded columns follow the others.
    var local: [Cell]
    /// The cells as the journal has them.
    var cells: [Cell]
  }

  // MARK: - Putting aside

  /// Puts the rows aside and removes them from their tables.
  func putAside() throws {
    try database.execute(
      sql: "CREATE TEMP TABLE docsync_alone "
        + "(seq INTEGER PRIMARY KEY, tbl INTEGER, number INTEGER, identity BLOB, local BLOB, "
        + "cells BLOB)")
    for table in try concerned() {
      try copy(table)
      try remove(from: table)
    }
  }

  /// Removes the rows from their tables without putting them aside.
  func remove() throws {
    for table in try concerned() { try remove(from: table) }
  }

  /// Returns the tables whose rows cannot just stay where they are.
  private func concerned() throws -> [TableSchema] {
    let leaving = Set(leaving.map(\.id))
    return try old.tables.filter { table in
      guard table.rowidName != nil, leaving.contains(table.id) || mayBeInTheWay(table) else {
        return false
      }
      return try session.rowsWithoutKey(table) > 0
    }
  }

  /// Returns whether rows of a table that stays as it is may differ from what the document allows.
  private func mayBeInTheWay(_ table: TableSchema) -> Bool {
    new.table(wireName: table.wireName) != nil
      && !(table.uniqueIndexes.isEmpty && table.foreignKeys.isEmpty)
  }

  /// Returns the columns of a table that a statement can write, but for the local key.
  private func names(_ table: TableSchema) -> [SQLName] {
    table.columns.map(\.name) + table.excludedColumns.sorted()
  }

  private func copy(_ table: TableSchema) throws {
    let names = [table.rowidName ?? "rowid"] + names(table).map(quoted)
    let reading = try SQLStatement(
      "SELECT \(names.map { "t.\($0)" }.joined(separator: ", ")) FROM main.\(table.quotedName) "
        + "AS t WHERE \(table.isWithoutKey("t")) ORDER BY 1", on: database)
    let writing = try SQLStatement(
      "INSERT INTO \(Self.aside) (tbl, number, identity, local, cells) VALUES (?, ?, ?, ?, ?)",
      on: database)
    let access = try session.access(table.id)
    while try reading.step() {
      let local = (1..<names.count).map { (column: $0 - 1, value: reading.value(at: $0)) }
      let cells = try zip(local, table.columns).map { cell, column in
        (column: cell.column, value: try session.exported(cell.value, column))
      }
      writing.bind(Int64(table.id), at: 1)
      writing.bind(reading.integer(at: 0), at: 2)
      let identity = try access.identity(ofKey: table.identityPositions.map { local[$0].value })
      writing.bind(blob: identity.bytes, at: 3)
      writing.bind(blob: KeptCells.encode(local), at: 4)
      writing.bind(blob: KeptCells.encode(cells), at: 5)
      try writing.run()
    }
  }

  private func remove(from table: TableSchema) throws {
    session.warnOfUnusableTriggers(of: table)
    let name = table.rowidName ?? "rowid"
    let rowids = try Int64.fetchAll(
      database,
      sql: "SELECT t.\(name) FROM main.\(table.quotedName) AS t WHERE \(table.isWithoutKey("t"))")
    let statement = try SQLStatement(
      "DELETE FROM main.\(table.quotedName) WHERE \(name) = ?", on: database)
    for rowid in rowids {
      statement.bind(rowid, at: 1)
      try session.write(statement)
    }
  }

  // MARK: - Putting back

  /// Puts the rows back into their tables, which have the document's rows by now, and enters those
  /// that are refused into the conflict journal. Returns how many were entered.
  func putBack() throws -> Int {
    var entered = 0
    for table in old.tables {
      let there = new.table(wireName: table.wireName)
      let count = try entries(of: table) { entry in
        guard let there else {
          try enter(
            entry, table, .existence, .deleteWins, "The document does not have the table any more.")
          return true
        }
        return try !putBack(entry, of: table, into: there)
      }
      entered += count
      guard count > 0 else { continue }
      var warning = SyncWarning(
        .keyMissing, table: table.name,
        message: "rows of \(table.name) had NULL in their key, and the document has no place for "
          + "them any more: their values are in the conflict journal")
      warning.count = count
      session.conflicts.warn(warning)
    }
    try database.execute(sql: "DROP TABLE \(Self.aside)")
    return entered
  }

  /// Calls `body` with each row of a table that was put aside. Returns how often it returned true.
  private func entries(of table: TableSchema, _ body: (Entry) throws -> Bool) throws -> Int {
    let reading = try SQLStatement(
      "SELECT number, identity, local, cells FROM \(Self.aside) WHERE tbl = ? ORDER BY seq",
      on: database)
    reading.bind(Int64(table.id), at: 1)
    var count = 0
    while try reading.step() {
      let entry = Entry(
        rowid: reading.integer(at: 0), identity: RowIdentity(bytes: reading.bytes(at: 1)),
        local: try KeptCells.decode(reading.bytes(at: 2)),
        cells: try KeptCells.decode(reading.bytes(at: 3)))
      if try body(entry) { count += 1 }
    }
    return count
  }

  /// Inserts a row, or enters it if it is refused. Returns whether it was inserted.
  private func putBack(
    _ entry: Entry, of table: TableSchema, into there: TableSchema
  ) throws -> Bool {
    var values: [(name: SQLName, value: Value)] = []
    var isWithoutKey = false
    for cell in entry.local {
      if cell.column < table.columns.count {
        let wireName = table.columns[cell.column].wireName
        guard let place = there.columns.firstIndex(where: { $0.wireName == wireName }) else {
          continue
        }
        let name = there.columns[place].name
        if there.identityPositions.contains(place), cell.value == .null,
          name != there.rowidAlias
        {
          isWithoutKey = true
        }
        values.append((name, cell.value))
      } else {
        let name = names(table)[cell.column].folded
        if there.excludedColumns.contains(name) { values.append((name, cell.value)) }
      }
    }
    guard isWithoutKey, there.canLoseKeys else {
      try enter(
        entry, table, .condition, .condition, "Its table does not let keys be NULL any more.")
      return false
    }
    if let parent = try missingParent(of: values, there) {
      try enter(
        entry, table, .reference, .reference,
        "The row of \(parent) that it refers to does not exist any more.")
      return false
    }
    // The application may know the row by its number.
    for rowid in [entry.rowid, nil] {
      let failure = try insert(values, rowid: rowid, into: there)
      guard let failure else { return true }
      let isKey = [.SQLITE_CONSTRAINT_PRIMARYKEY, .SQLITE_CONSTRAINT_ROWID].contains(
        failure.extendedResultCode)
      if rowid != nil, isKey { continue }
      let isUnique = failure.extendedResultCode == .SQLITE_CONSTRAINT_UNIQUE
      try enter(
        entry, table, isUnique ? .uniqueValue : .condition, isUnique ? .uniqueValue : .condition,
        "A constraint refuses the row: \(failure.message ?? "no detail").")
      return false
    }
    return false
  }

  /// Returns the error of the constraint that refuses the row; `nil` if it was inserted.
  private func insert(
    _ values: [(name: SQLName, value: Value)], rowid: Int64?, into there: TableSchema
  ) throws -> DatabaseError? {
    var terms = values.map { (name: quoted($0.name), value: $0.value) }
    if let rowid, let name = there.rowidName { terms.append((name, .integer(rowid))) }
    let statement = try SQLStatement(
      "INSERT OR ABORT INTO main.\(there.quotedName) "
        + "(\(terms.map(\.name).joined(separator: ", "))) "
        + "VALUES (\(terms.map { _ in "?" }.joined(separator: ", ")))", on: database)
    for (index, term) in terms.enumerated() { statement.bind(term.value, at: index + 1) }
    do {
      try session.write(statement)
      return nil
    } catch let error as DatabaseError where error.resultCode == .SQLITE_CONSTRAINT {
      try TransactionEnded.check(database, after: error)
      return error
    }
  }

  /// Returns the table in which a row does not exist to which these values refer; `nil` if there is
  /// none.
  private func missingParent(
    of values: [(name: SQLName, value: Value)], _ there: TableSchema
  ) throws -> SQLName? {
    for key in there.foreignKeys where key.isEnforced {
      let referring = key.columns.map { position in
        values.first { $0.name == there.columns[position].name }?.value ?? .null
      }
      if referring.contains(.null) { continue }
      let parent = new[key.parent]
      let statement = try SQLStatement(
        "SELECT 1 FROM main.\(parent.quotedName) WHERE \(TableAccess.match(key.parentColumns))",
        on: database)
      for (index, value) in referring.enumerated() { statement.bind(value, at: index + 1) }
      guard try statement.step() else { return parent.name }
    }
    return nil
  }

  private func enter(
    _ entry: Entry, _ table: TableSchema, _ kind: Conflict.Kind, _ rule: Conflict.Rule,
    _ message: String
  ) throws {
    let key = table.identityPositions.map { position in
      (column: position, value: entry.local.first { $0.column == position }?.value ?? .null)
    }
    try session.conflicts.journal.addSettled(
      ConflictJournal.Entry(
        kind: kind, row: RowKey(table: table.id, identity: entry.identity), rule: rule,
        outcome: .remote, message: message, key: key, local: entry.cells))
  }
}
