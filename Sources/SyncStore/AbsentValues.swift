import GRDB
import SyncModel

/// The values of cells that were never set, since their row came from a device
/// that does not have the column: the column's default.
///
/// A default that is not the same everywhere and always, such as the current
/// time, counts as NULL: every device has to show the same.
final class AbsentValues {
  private unowned let session: StoreSession
  private var known: [Int: [Value]] = [:]

  init(_ session: StoreSession) { self.session = session }

  /// The values of a table's columns, by position.
  func values(of table: TableSchema) throws -> [Value] {
    if let known = known[table.id] { return known }
    let values = try Self.read(table, session.database)
    known[table.id] = values
    return values
  }

  /// Reads the defaults, as the columns' affinities make them.
  static func read(_ table: TableSchema, _ database: Database) throws -> [Value] {
    let information = try Row.fetchAll(
      database, sql: "PRAGMA main.table_xinfo(\(quoted(table.name)))")
    return try table.columns.map { column in
      let row = information.first {
        ($0["name"] as SQLName).folded == column.name.folded
      }
      guard let expression = row?["dflt_value"] as String? else { return .null }
      return try value(of: expression, column.affinity, database)
    }
  }

  private static func value(
    of expression: String, _ affinity: ColumnSchema.Affinity, _ database: Database
  ) throws -> Value {
    let tokens = SQLTokens(expression).tokens
    // A bare word is a string here, and a column elsewhere.
    if tokens.count == 1, tokens[0].kind == .quotedName || isName(tokens[0]) {
      return .text(tokens[0].text)
    }
    // Each expression has a table of its own, which stays: SQLite drops no table while rows are
    // read from another.
    let content = ContentHash(of: Array("\(affinity.rawValue) \(expression)".utf8))
    let name = "temp.docsync_default_\(RowIdentity(bytes: content.bytes).hexadecimal)"
    do {
      // SQLite refuses expressions that are not deterministic in a generated column.
      try database.execute(
        sql: """
          CREATE TABLE IF NOT EXISTS \(name) \
          (x INTEGER PRIMARY KEY, v \(affinity.rawValue) AS (\(expression)));
          INSERT OR IGNORE INTO \(name) (x) VALUES (1)
          """)
      let statement = try SQLStatement("SELECT v FROM \(name)", on: database)
      guard try statement.step() else { return .null }
      defer { statement.reset() }
      return statement.value(at: 0)
    } catch let error as DatabaseError where error.resultCode == .SQLITE_ERROR {
      return .null
    }
  }

  private static func isName(_ token: SQLTokens.Token) -> Bool {
    let reserved = ["NULL", "TRUE", "FALSE", "CURRENT_TIME", "CURRENT_DATE", "CURRENT_TIMESTAMP"]
    return token.kind == .word && !reserved.contains(token.text.uppercased())
      && token.text.first?.isNumber == false
  }
}

extension WorkingSet {
  /// Fills the cells of an existing row that were never set.
  func fillAbsent(_ values: inout [Value?], _ table: TableSchema) throws {
    guard values.contains(where: { $0 == nil }) else { return }
    let absent = try absentValues.values(of: table)
    for position in values.indices where values[position] == nil {
      values[position] = absent[position]
    }
  }

  /// Brings the cells of a deleted row into one form, whether or not it was
  /// shown before its deletion: cells that were never set get their defaults if
  /// another cell is known, and otherwise no value.
  func settleAbsent(
    _ values: inout [Value?], _ state: RowState, _ key: RowKey, _ table: TableSchema
  ) throws {
    var isKnown = false
    var keyValues: [Value?]?
    for position in table.cellPositions where values[position] != nil {
      guard isAbsent(position, values, state, table) else {
        isKnown = true
        continue
      }
      keyValues = try keyValues ?? self.keyValues(of: key, table)
      values[position] = keyValues?[position]
    }
    if isKnown, !state.isErased { try fillAbsent(&values, table) }
  }

  /// Whether a cell was never set.
  private func isAbsent(
    _ column: Int, _ values: [Value?], _ state: RowState, _ table: TableSchema
  ) -> Bool {
    // An addition to a default makes the cell known.
    if case .counter = values[column].flatMap(CounterValue.init),
      table.columns[column].domain == .counter
    {
      return false
    }
    let stamp = state.stamp(of: column)
    guard state.silence == .zero else { return stamp == state.silence }
    // In rows that were there before syncing began, all cells are known.
    return stamp == .zero && !table.hasUnstampedRows
  }

  /// Applies a deletion that takes the cells along: all older cells count as
  /// never set, even if the row lives on. A change after the deletion brings
  /// its own cells, apart from columns that its author does not have.
  func silence(_ row: WorkingRow, before stamp: LocalStamp) throws {
    let precedes = session.clients.precedes
    guard precedes(row.state.silence, stamp) else { return }
    row.state.silence = stamp
    let table = session.schema[row.key.table]
    let key = try keyValues(of: row.key, table)
    // Also cells with the same stamp, which no honest author makes, so that it
    // does not matter which of the two came first.
    for position in table.cellPositions where !precedes(stamp, row.state.stamp(of: position)) {
      row.state.setStamp(stamp, of: position)
      row.values[position] = key[position]
    }
  }
}
