import Foundation
import GRDB
import SyncModel

/// The columns of a table as bookkeeping knows them, and as they are now.
///
/// Bookkeeping names columns by their position. When a column is gone, the
/// columns after it move up.
struct ColumnChange {
  let table: TableSchema
  /// For each former position the new one; `nil` for a column that has gone.
  let places: [Int?]
  /// The columns that have gone, by their former positions.
  let gone: [Int: FormerNames.Column]
  /// The positions of new columns.
  let added: [Int]
  /// The positions of columns that hold the keys of another table than before.
  let redirected: [Int]

  init(from known: SchemaReader.Registered, to table: TableSchema) {
    self.table = table
    let names = table.columns.map(\.wireName)
    let places = known.wireColumns.map { names.firstIndex(of: $0) }
    self.places = places
    gone = Dictionary(
      uniqueKeysWithValues: places.indices.filter { places[$0] == nil }.map {
        ($0, FormerNames.Column(name: known.storedColumns[$0], wireName: known.wireColumns[$0]))
      })
    added = names.indices.filter { !places.contains($0) }
    redirected = zip(places, known.references).compactMap { place, former in
      place.flatMap { table.columns[$0].referredTable == former ? nil : $0 }
    }
  }

  var isNone: Bool { gone.isEmpty && added.isEmpty }

  /// Updates all bookkeeping that names columns. The caller must have removed the capture triggers.
  func run(_ database: Database) throws {
    for column in gone.values.sorted(by: { $0.wireName < $1.wireName }) {
      try LostNames.note(column.wireName, of: table.wireName, database)
    }
    try rewriteStamps(database)
    guard !gone.isEmpty else { return }
    for table in Bookkeeping.tables where table.has(.table) {
      for cells in table.columns(.cells) {
        if table.has(.column) {
          try rewriteCells(of: table.name, cells, database)
        } else {
          try rewriteAllCells(of: table.name, cells, database)
        }
      }
    }
    try rewriteConflicts(database)
    try rewriteLog(database)
  }

  private func rewriteStamps(_ database: Database) throws {
    let cells = Set(table.cellPositions)
    let silent = added.filter(cells.contains)
    try StampBlocks(table: table, database: database).rewrite { state in
      var changed = state
      changed.exceptions = []
      for cell in state.exceptions {
        guard let place = place(of: Int(cell.column)) else { continue }
        changed.setStamp(cell.stamp, of: place)
      }
      // A new column was never set: neither with the row nor later.
      for column in silent { changed.setStamp(state.erasureStamp, of: column) }
      state = changed
    }
  }

  private func place(of column: Int) -> Int? {
    column < places.count ? places[column] : nil
  }

  /// Rewrites a bookkeeping table of rows, each with all its cells in one value.
  private func rewriteAllCells(of name: String, _ column: String, _ database: Database) throws {
    for row in try StoredRow.fetchAll(
      database, sql: "SELECT identity, \(column) AS cells FROM \(name) WHERE tbl = ?",
      arguments: [table.id])
    {
      let cells = try KeptCells.decode(Array(row["cells"] as Data)).compactMap { cell in
        place(of: cell.column).map { (column: $0, value: cell.value) }
      }
      try database.execute(
        sql: "UPDATE \(name) SET \(column) = ? WHERE tbl = ? AND identity = ?",
        arguments: [
          Data(KeptCells.encode(cells.sorted { $0.column < $1.column })), table.id,
          row["identity"] as Data,
        ])
    }
  }

  /// Rewrites a bookkeeping table of single cells, each with its position and its value.
  private func rewriteCells(of name: String, _ cell: String, _ database: Database) throws {
    let rows = try StoredRow.fetchAll(
      database, sql: "SELECT * FROM \(name) WHERE tbl = ?", arguments: [table.id])
    try database.execute(sql: "DELETE FROM \(name) WHERE tbl = ?", arguments: [table.id])
    for row in rows {
      guard let place = place(of: try row["col"]),
        let value = try KeptCells.decode(Array(try row[cell] as Data)).first?.value
      else { continue }
      var values = row.values
      values["col"] = place.databaseValue
      values[cell] = Data(KeptCells.encode([(place, value)])).databaseValue
      let names = values.keys.sorted()
      try database.execute(
        sql: "INSERT INTO \(name) (\(names.joined(separator: ", "))) "
          + "VALUES (\(names.map { _ in "?" }.joined(separator: ", ")))",
        arguments: StatementArguments(names.map { values[$0] }))
    }
  }

  /// Updates the journal. It still names columns that are gone; a question about such a column
  /// cannot be answered.
  private func rewriteConflicts(_ database: Database) throws {
    var former = try FormerNames.read(database)
    let numbers = former.note(gone, of: table.id)
    let hasEntries = try ConflictTable.moveColumns(
      of: table.id, database, isGone: { gone[$0] != nil },
      to: { place(of: $0) ?? numbers[$0] ?? $0 })
    if hasEntries { try former.write(database) }
  }

  /// Updates the log: edits that wait to be sealed use the former positions.
  private func rewriteLog(_ database: Database) throws {
    let former = try database.columns(in: table.logName).map(\.name)
    let old = "docsync_log_old"
    try database.execute(sql: "ALTER TABLE \(table.logName) RENAME TO \(old)")
    let triggers = CaptureTriggers(table: table)
    try database.execute(sql: triggers.logTable)
    let present = try Set(database.columns(in: table.logName).map(\.name))
    let columns = former.compactMap { name -> (old: String, new: String)? in
      // The columns o1, o2 … contain former values.
      guard name.first == "o", let position = Int(name.dropFirst()) else { return (name, name) }
      return place(of: position).map { (name, "o\($0)") }
    }.filter { present.contains($0.new) }
    try database.execute(
      sql: """
        INSERT INTO \(table.logName) (\(columns.map(\.new).joined(separator: ", "))) \
        SELECT \(columns.map(\.old).joined(separator: ", ")) FROM \(old) ORDER BY seq;
        DROP TABLE \(old)
        """)
    try rewriteMasks(database)
  }

  private func rewriteMasks(_ database: Database) throws {
    let reading = try SQLStatement(
      "SELECT seq, mask FROM \(table.logName) WHERE mask IS NOT NULL", on: database)
    var masks: [(seq: Int64, columns: ColumnSet)] = []
    while try reading.step() {
      let former = ColumnSet(reading, at: 1)
      var columns = ColumnSet()
      for (position, place) in places.enumerated() where former.contains(position) {
        if let place { columns.formUnion(ColumnSet(place)) }
      }
      masks.append((reading.integer(at: 0), columns))
    }
    let writing = try SQLStatement(
      "UPDATE \(table.logName) SET mask = ? WHERE seq = ?", on: database)
    for entry in masks {
      writing.bind(entry.columns.mask, at: 1)
      writing.bind(entry.seq, at: 2)
      try writing.run()
    }
    try database.execute(
      sql: "DELETE FROM \(table.logName) "
        + "WHERE op = \(CaptureTriggers.Entry.update.rawValue) AND mask = '0'")
  }
}
