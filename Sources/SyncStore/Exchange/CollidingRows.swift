import GRDB
import SyncModel

/// Rows of a whole store that would have a unique value of another row here.
///
/// A plain value and a reference can be one number on this device and two in the whole store. Such
/// rows are inserted with another number in place of each value in question, so that they are there
/// when all rows are decided: then one of the two is parked, as when the two arrive in change sets.
final class CollidingRows {
  /// A value that was replaced.
  private struct Cell {
    var table: Int
    var column: Int
    /// The number that is in its place. No other row contains it.
    var placeholder: Int64
    /// The value in the whole store.
    var value: Value
  }

  private var cells: [Cell] = []
  private var nextPlaceholder = Int64.min + 1

  /// Returns the columns outside the identity that stand for keys and must be unique, alone or with
  /// others.
  private static func columns(_ table: TableSchema) -> [Int] {
    let unique = Set(table.uniqueIndexes.flatMap(\.columns).compactMap { $0 })
    return table.keyedPositions.filter(unique.contains)
  }

  /// Returns the result of `body`, which inserts rows of a table; `nil`, with nothing inserted, if a
  /// unique index refuses a row for which such a value may be the reason.
  static func unlessColliding(
    _ table: TableSchema, _ database: Database, _ body: () throws -> Int
  ) throws -> Int? {
    guard !columns(table).isEmpty else { return try body() }
    do {
      return try database.atomically(body)
    } catch let error as DatabaseError
      where error.extendedResultCode == .SQLITE_CONSTRAINT_UNIQUE
    {
      return nil
    }
  }

  /// Inserts rows one by one. Returns how many.
  ///
  /// - Parameters:
  ///   - keys: The statement that reads the columns by which a row of the whole store is found.
  ///   - names: The columns to insert, beginning with those of the table.
  ///   - terms: Their values here, for a row `s` of the whole store.
  ///   - source: The rest of a statement that selects the row with such a key.
  ///   - count: The number of columns of a key.
  func insert(
    _ table: TableSchema, keys: String, names: [SQLName], terms: [String], from source: String,
    count: Int, _ session: StoreSession
  ) throws -> Int {
    let database = session.database
    let columns = Self.columns(table)
    let reading = try SQLStatement(keys, on: database)
    var found: [[Value]] = []
    while try reading.step() { found.append((0..<count).map { reading.value(at: $0) }) }
    let insertion =
      "INSERT OR ABORT INTO main.\(table.quotedName) "
      + "(\(names.map(quoted).joined(separator: ", "))) SELECT "
    let inserting = try SQLStatement(
      insertion + terms.joined(separator: ", ") + " FROM \(source)", on: database)
    let values = try SQLStatement(
      "SELECT \(columns.map { "s.\(quoted(table.columns[$0].name))" }.joined(separator: ", ")) "
        + "FROM \(source)", on: database)
    for key in found {
      do {
        try inserting.withBound(key[...]) { try session.write(inserting) }
      } catch let error as DatabaseError
        where error.extendedResultCode == .SQLITE_CONSTRAINT_UNIQUE
      {
        try TransactionEnded.check(database, after: error)
        var terms = terms
        var whole: [Value] = []
        try values.withBound(key[...]) {
          guard try values.step() else { return }
          whole = columns.indices.map { values.value(at: $0) }
          values.reset()
        }
        for (column, value) in zip(columns, whole) where value != .null {
          terms[column] = "\(nextPlaceholder)"
          cells.append(
            Cell(table: table.id, column: column, placeholder: nextPlaceholder, value: value))
          nextPlaceholder += 1
        }
        let replacing = try SQLStatement(
          insertion + terms.joined(separator: ", ") + " FROM \(source)", on: database)
        try replacing.withBound(key[...]) { try session.write(replacing) }
      }
    }
    return found.count
  }

  /// Adds the rows of a table to those that are decided, with their values.
  func add(of table: TableSchema, _ mapping: KeyMapping, to set: WorkingSet) throws {
    let access = try set.session.access(table.id)
    for cell in cells where cell.table == table.id {
      let name = quoted(table.columns[cell.column].name)
      let reading = try access.statement(
        "SELECT \(table.keyColumns.map(quoted).joined(separator: ", ")) "
          + "FROM \(table.quotedName) WHERE \(name) = ?")
      reading.bind(cell.placeholder, at: 1)
      guard try reading.step() else { continue }
      let key = table.keyColumns.indices.map { reading.value(at: $0) }
      reading.reset()
      let row = try set.row(RowKey(table: table.id, identity: try access.identity(ofKey: key)))
      row.isEdited = true
      // Bookkeeping has the value of a cell that is shown in another way in the whole store.
      guard row.values[cell.column].flatMap(table.columns[cell.column].key) == cell.placeholder
      else { continue }
      row.values[cell.column] = try logical(cell, table, mapping, set.session)
    }
  }

  private func logical(
    _ cell: Cell, _ table: TableSchema, _ mapping: KeyMapping, _ session: StoreSession
  ) throws -> Value {
    guard case .key(let parent) = table.columns[cell.column].domain,
      let number = table.columns[cell.column].key(cell.value)
    else { return cell.value }
    let name = session.schema[parent].quotedName
    let key = quoted(session.schema[parent].localKey ?? "rowid")
    let isReference = try Bool.fetchOne(
      session.database,
      sql: "SELECT EXISTS (SELECT 1 FROM \(KeyMapping.attached).\(name) WHERE \(key) = ?)",
      arguments: [number])
    guard isReference == true else { return cell.value }
    let moved =
      mapping.isMapped(session.schema[parent])
      ? try Int64.fetchOne(
        session.database, sql: "SELECT new FROM \(KeyMapping.keys(parent)) WHERE old = ?",
        arguments: [number]) : nil
    return .identity(try session.access(parent).identity(ofLocalKey: moved ?? number))
  }
}
