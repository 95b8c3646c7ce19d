import GRDB
import SyncModel

/// The identities of rows that no trigger saw, since a migration made them in a new table, or a program
/// inserted them into a table that it made again.
///
/// Rows that a migration makes alike on every device are one row. A reference counts by the row to which it
/// leads, whose number can be another one on each device, so a row is named after the rows to which it
/// refers. Where rows refer to one another in a circle, one reference counts by the local number.
final class NewRowNames {
  private let session: StoreSession
  /// The numbers of the rows that have no name yet, by table.
  private var unnamed: [Int: Set<Int64>] = [:]
  /// The new tables.
  private var new: Set<Int> = []
  /// The names of rows in new tables to which rows without a name may refer, by number: bookkeeping has
  /// none of them yet.
  private var named: [Int: [Int64: RowIdentity]] = [:]
  /// The identities that the log has for rows that triggers saw, by number.
  private var logged: [Int: [Int64: RowIdentity]] = [:]
  /// How many rows of a new table have the same values.
  private var counts: [Bits128: Int64] = [:]

  init(_ session: StoreSession) { self.session = session }

  /// Logs the rows of new tables, which have surrogate keys, and gives identities to the rows that were
  /// inserted unseen into remade tables.
  func run(new: [Int], remade: [Int]) throws {
    self.new = Set(new)
    for id in new { unnamed[id] = try keys(of: session.schema[id]) }
    for id in remade { unnamed[id] = try UnseenRows(session: session).keys(in: id) }
    let tables = unnamed.keys.sorted().map { session.schema[$0] }
    for parent in tables.flatMap(\.columns).compactMap(\.referredTable)
    where self.new.contains(parent) {
      named[parent] = [:]
    }
    for table in session.schema.inDependencyOrder(tables) {
      for key in (unnamed[table.id] ?? []).sorted() {
        try name(Row(table: table.id, key: key))
      }
    }
    // What is remembered of keys in the log is out of date.
    session.forgetGoneKeys()
  }

  private func keys(of table: TableSchema) throws -> Set<Int64> {
    try Int64.fetchSet(
      session.database,
      sql: "SELECT \(quoted(table.keyColumns[0])) FROM \(table.quotedName)")
  }

  // MARK: - The order

  private struct Row: Hashable {
    var table: Int
    var key: Int64
  }

  private func isUnnamed(_ row: Row) -> Bool { unnamed[row.table]?.contains(row.key) == true }

  /// Names a row after the rows to which it refers, however long the chain is.
  private func name(_ row: Row) throws {
    var path = [row]
    var isOnPath: Set<Row> = [row]
    while let last = path.last {
      let values = isUnnamed(last) ? try self.values(of: last) : nil
      let next = values.flatMap {
        parents($0, in: session.schema[last.table]).first { !isOnPath.contains($0) }
      }
      if let next {
        path.append(next)
        isOnPath.insert(next)
        continue
      }
      if let values { try name(last, values) }
      path.removeLast()
      isOnPath.remove(last)
    }
  }

  private func values(of row: Row) throws -> [Value]? {
    try session.access(row.table).row([.integer(row.key)])?.values
  }

  /// Returns the rows without a name to which a row with some local values refers.
  private func parents(_ values: [Value], in table: TableSchema) -> [Row] {
    zip(table.columns, values).compactMap { column, value in
      referred(value, column).flatMap { isUnnamed($0) ? $0 : nil }
    }
  }

  private func referred(_ value: Value, _ column: ColumnSchema) -> Row? {
    guard case .key(let parent) = column.domain, let key = column.key(value) else { return nil }
    return Row(table: parent, key: key)
  }

  // MARK: - Names

  private func name(_ row: Row, _ local: [Value]) throws {
    let table = session.schema[row.table]
    let identity = try identity(of: [.integer(row.key)], local, in: table)
    unnamed[row.table]?.remove(row.key)
    guard new.contains(row.table) else {
      return try session.access(row.table).setIdentity(identity, of: row.key)
    }
    named[row.table]?[row.key] = identity
    try log(row, identity)
  }

  /// Returns the identity of a row, by its values as change sets have them.
  ///
  /// Its own number counts if it refers to no row, if it is in a circle, or if its table is not new:
  /// otherwise each device may have given it another number.
  ///
  /// - Parameter local: The values of the row in its table.
  func identity(of key: [Value], _ local: [Value], in table: TableSchema) throws -> RowIdentity {
    let values = try zip(table.columns, local).map { try exported($1, $0) }
    let isInCircle = !parents(local, in: table).isEmpty
    guard new.contains(table.id), !isInCircle, values != local else {
      return SchemaRenewal.identity(of: key + values, in: table)
    }
    let first = SchemaRenewal.identity(of: [.null, .integer(0)] + values, in: table)
    guard let bits = Bits128(bytes: first.bytes) else { return first }
    let count = counts[bits, default: 0]
    counts[bits] = count + 1
    guard count > 0 else { return first }
    return SchemaRenewal.identity(of: [.null, .integer(count)] + values, in: table)
  }

  /// Returns the value that a change set will have for a reference, and any other value as it is. A
  /// reference to a row without a name stays as it is, too.
  private func exported(_ value: Value, _ column: ColumnSchema) throws -> Value {
    guard let row = referred(value, column), !isUnnamed(row) else { return value }
    if let known = try named[row.table]?[row.key] ?? loggedIdentities(of: row.table)[row.key] {
      return .identity(known)
    }
    return try session.exported(value, column)
  }

  private func loggedIdentities(of id: Int) throws -> [Int64: RowIdentity] {
    if let known = logged[id] { return known }
    let access = try session.access(id)
    let isNumbered = access.table.identity == .surrogate && !new.contains(id)
    let found = isNumbered ? try session.identitiesToAssign(access) : [:]
    logged[id] = found
    return found
  }

  private func log(_ row: Row, _ identity: RowIdentity) throws {
    let access = try session.access(row.table)
    let statement = try access.statement(
      "INSERT INTO \(access.table.logName) (op, at, k0, identity) VALUES "
        + "(\(CaptureTriggers.Entry.insert.rawValue), \(SchemaRenewal.beginning), ?, ?)")
    statement.bind(row.key, at: 1)
    statement.bind(blob: identity.bytes, at: 2)
    try statement.run()
  }
}
