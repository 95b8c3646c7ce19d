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

  private static let aside = "temp.docsync_rows_without_key"

  /// A row that was put aside.
  private struct Entry {
    typealias Cell = (column: Int, value: Value)

    /// The number by which the row was put aside.
    var number: Int64
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
      sql: "CREATE TEMP TABLE docsync_rows_without_key "
        + "(seq INTEGER PRIMARY KEY, tbl INTEGER, number INTEGER, identity BLOB, local BLOB, "
        + "cells BLOB, placed INTEGER)")
    for (table, rowid) in try concerned() {
      try copy(table, rowid)
      try remove(from: table, rowid)
    }
  }

  /// Removes the rows from their tables without putting them aside.
  func remove() throws {
    for (table, rowid) in try concerned() { try remove(from: table, rowid) }
  }

  /// Returns the tables whose rows cannot just stay where they are, and the names of their rowids.
  private func concerned() throws -> [(table: TableSchema, rowid: String)] {
    let leaving = Set(leaving.map(\.id))
    return try old.tables.compactMap { table in
      guard let rowid = table.rowidName, leaving.contains(table.id) || mayBeInTheWay(table),
        try session.rowsWithoutKey(table) > 0
      else { return nil }
      return (table, rowid)
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

  private func copy(_ table: TableSchema, _ rowid: String) throws {
    let names = [rowid] + names(table).map(quoted)
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

  private func remove(from table: TableSchema, _ name: String) throws {
    session.warnOfUnusableTriggers(of: table)
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
  ///
  /// All of them are inserted before their references are checked: they may refer to each other.
  func putBack() throws -> Int {
    let tables = old.tables.map { (old: $0, new: new.table(wireName: $0.wireName)) }
    var entered: [Int: Int] = [:]
    var moved: [Int: [Int64: Int64]] = [:]
    for (table, there) in tables {
      try entries(of: table) { entry in
        guard let there else {
          try enter(
            entry, table, .existence, .deleteWins, "The document does not have the table any more.")
          entered[table.id, default: 0] += 1
          return
        }
        guard let rowid = try putBack(entry, of: table, into: there) else {
          entered[table.id, default: 0] += 1
          return
        }
        try place(entry, at: rowid)
        if rowid != entry.rowid { moved[there.id, default: [:]][entry.rowid] = rowid }
      }
    }
    if !moved.isEmpty {
      for case (let table, let there?) in tables { try redirect(table, there, moved) }
    }
    var isSettled = false
    while !isSettled {
      isSettled = true
      for case (let table, let there?) in tables {
        let count = try takeOutOrphans(table, there)
        guard count > 0 else { continue }
        isSettled = false
        entered[table.id, default: 0] += count
      }
    }
    for table in old.tables {
      guard let count = entered[table.id] else { continue }
      var warning = SyncWarning(
        .keyMissing, table: table.name,
        message: "rows of \(table.name) had NULL in their key, and could not be put back into the "
          + "table: their values and the reasons are in the conflict journal")
      warning.count = count
      session.conflicts.warn(warning)
    }
    try database.execute(sql: "DROP TABLE \(Self.aside)")
    return entered.values.reduce(0, +)
  }

  /// Calls `body` with each row of a table that was put aside; with those alone that are placed and
  /// for which a condition holds, if one is given.
  private func entries(
    of table: TableSchema, where condition: String? = nil, _ body: (Entry) throws -> Void
  ) throws {
    let reading = try SQLStatement(
      "SELECT a.seq, a.number, a.identity, a.local, a.cells, a.placed FROM \(Self.aside) AS a "
        + "WHERE a.tbl = ?\(condition.map { " AND a.placed NOT NULL AND \($0)" } ?? "") ORDER BY a.seq",
      on: database)
    reading.bind(Int64(table.id), at: 1)
    var found: [Entry] = []
    while try reading.step() {
      found.append(
        Entry(
          number: reading.integer(at: 0), rowid: reading.integer(at: condition == nil ? 1 : 5),
          identity: RowIdentity(bytes: reading.bytes(at: 2)),
          local: try KeptCells.decode(reading.bytes(at: 3)),
          cells: try KeptCells.decode(reading.bytes(at: 4))))
    }
    for entry in found { try body(entry) }
  }

  /// Notes where a row is now; `nil` if it is not in its table.
  private func place(_ entry: Entry, at rowid: Int64?) throws {
    try database.execute(
      sql: "UPDATE \(Self.aside) SET placed = ? WHERE seq = ?", arguments: [rowid, entry.number])
  }

  /// Lets the rows follow those among them that have another number now.
  private func redirect(
    _ table: TableSchema, _ there: TableSchema, _ moved: [Int: [Int64: Int64]]
  ) throws {
    guard there.canLoseKeys, let rowid = there.rowidName else { return }
    for key in there.foreignKeys {
      guard let numbers = moved[key.parent], let column = key.columns.first,
        key.columns.count == 1, key.parentColumns == [new[key.parent].rowidAlias]
      else { continue }
      let statement = try SQLStatement(
        "UPDATE main.\(there.quotedName) SET \(quoted(there.columns[column].name)) = ? "
          + "WHERE \(rowid) = ?", on: database)
      let wireName = there.columns[column].wireName
      guard let place = table.columns.firstIndex(where: { $0.wireName == wireName }) else {
        continue
      }
      try entries(of: table, where: "1") { entry in
        guard let value = entry.local.first(where: { $0.column == place })?.value,
          let number = there.columns[column].key(value).flatMap({ numbers[$0] })
        else { return }
        statement.bind(number, at: 1)
        statement.bind(entry.rowid, at: 2)
        try session.write(statement)
      }
    }
  }

  /// Enters the rows that refer to a row that does not exist. Returns how many there are.
  private func takeOutOrphans(_ table: TableSchema, _ there: TableSchema) throws -> Int {
    guard there.canLoseKeys, let rowid = there.rowidName else { return 0 }
    let removing = try SQLStatement(
      "DELETE FROM main.\(there.quotedName) WHERE \(rowid) = ?", on: database)
    var count = 0
    for key in there.foreignKeys where key.isEnforced {
      let parent = new[key.parent]
      let columns = key.columns.map { "c.\(quoted(there.columns[$0].name))" }
      let isPresent = columns.map { "\($0) NOT NULL" }.joined(separator: " AND ")
      let match = zip(key.parentColumns, key.columns).map { name, column in
        "p.\(quoted(name)) = "
          + there.columns[column].compared(with: parent.affinity(of: name), row: "c")
      }
      let isOrphan =
        "EXISTS (SELECT 1 FROM main.\(there.quotedName) AS c WHERE c.\(rowid) = a.placed "
        + "AND \(isPresent) AND NOT EXISTS (SELECT 1 FROM main.\(parent.quotedName) AS p "
        + "WHERE \(match.joined(separator: " AND "))))"
      try entries(of: table, where: isOrphan) { entry in
        removing.bind(entry.rowid, at: 1)
        try session.write(removing)
        try place(entry, at: nil)
        try enter(
          entry, table, .reference, .reference,
          "The row of \(parent.name) that it refers to does not exist any more.")
        count += 1
      }
    }
    return count
  }

  /// Inserts a row, or enters it if it is refused. Returns its number; `nil` if it is refused.
  private func putBack(
    _ entry: Entry, of table: TableSchema, into there: TableSchema
  ) throws -> Int64? {
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
        entry, table, .condition, .condition,
        "Its table has another key now, or does not let keys be NULL any more.")
      return nil
    }
    // The application may know the row by its number.
    for rowid in [entry.rowid, nil] {
      let failure = try insert(values, rowid: rowid, into: there)
      guard let failure else { return database.lastInsertedRowID }
      let isKey = [.SQLITE_CONSTRAINT_PRIMARYKEY, .SQLITE_CONSTRAINT_ROWID].contains(
        failure.extendedResultCode)
      if rowid != nil, isKey { continue }
      let isUnique = failure.extendedResultCode == .SQLITE_CONSTRAINT_UNIQUE
      try enter(
        entry, table, isUnique ? .uniqueValue : .condition, isUnique ? .uniqueValue : .condition,
        "A constraint refuses the row: \(failure.message ?? "no detail").")
      return nil
    }
    return nil
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
