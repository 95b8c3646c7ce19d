import GRDB
import SyncModel

/// Rows of the whole store with a plain number in their key for which the map has another meaning.
///
/// Such a number is the key of a row here, or in the whole store, and does not stand for that row.
/// So the keys of these rows must not be mapped like those of others.
extension KeyMapping {
  /// Returns the name of the temporary table of these rows: `k0`, `k1`… are the values of the key
  /// columns in the whole store, `p0`, `p1`… tell which of them are plain, and `parked` whether
  /// another row has the row's key here.
  static func plainRows(_ id: Int) -> String { "temp.docsync_plain_rows_\(id)" }

  /// Returns the SQL condition that a row of the whole store is one of them.
  func isPlainRow(_ table: TableSchema, row: String) -> String {
    guard hasPlainRows(table) else { return "0" }
    return "EXISTS (SELECT 1 FROM \(Self.plainRows(table.id)) AS a WHERE "
      + "\(Self.match(table, row: row, plain: "a")))"
  }

  /// Returns the SQL condition that an entry of the temporary table belongs to a row.
  static func match(_ table: TableSchema, row: String, plain: String) -> String {
    table.keyColumns.enumerated().map { "\(row).\(quoted($1)) = \(plain).k\($0)" }
      .joined(separator: " AND ")
  }

  /// Returns the key columns of the temporary table, with the collations of the table's own.
  private static func collatedKeys(_ table: TableSchema) -> [String] {
    zip(table.keyColumns.indices, table.identityPositions).map {
      "k\($0) COLLATE \(quoted(SQLName(table.columns[$1].collation)))"
    }
  }

  /// Returns the SQL condition that a row here has this number for its key, and no row of the whole
  /// store.
  func isOnlyHere(_ term: String, _ table: Int) -> String {
    guard mapped.contains(table) else { return "0" }
    let keys = Self.keys(table)
    return "(\(term) IN (SELECT new FROM \(keys)) AND \(term) NOT IN (SELECT old FROM \(keys)))"
  }

  /// Notes the rows of a table. The maps of the tables to which their keys refer must be complete.
  mutating func notePlainRows(of table: TableSchema) throws {
    let keyed = table.identityPositions.enumerated().compactMap { index, position in
      if case .key(let parent) = table.columns[position].domain, mapped.contains(parent) {
        (index: index, position: position, parent: parent)
      } else {
        nil
      }
    }
    guard !keyed.isEmpty else { return }
    let name = Self.plainRows(table.id)
    let keys = table.keyColumns.enumerated().map { "s.\(quoted($1)) AS k\($0)" }
    let flags = table.keyColumns.indices.map { index in
      guard let column = keyed.first(where: { $0.index == index }) else { return "0 AS p\(index)" }
      return isOnlyHere("s.\(quoted(table.keyColumns[index]))", column.parent) + " AS p\(index)"
    }
    let isPlain = keyed.map { isOnlyHere("s.\(quoted(table.keyColumns[$0.index]))", $0.parent) }
    let collated = Self.collatedKeys(table)
    try database.execute(
      sql: """
        DROP TABLE IF EXISTS \(name);
        CREATE TEMP TABLE docsync_plain_rows_\(table.id) AS \
        SELECT \((keys + flags).joined(separator: ", ")), 0 AS parked \
        FROM \(Self.attached).\(table.quotedName) AS s WHERE \(isPlain.joined(separator: " OR "));
        CREATE INDEX temp.docsync_plain_rows_\(table.id)_keys \
        ON docsync_plain_rows_\(table.id) (\(collated.joined(separator: ", ")));
        """)
    try addNotedRows(of: table, keyed.map { ($0.index, $0.position, $0.parent) })
    if try Bool.fetchOne(database, sql: "SELECT EXISTS (SELECT 1 FROM \(name))") == true {
      plainTables.insert(table.id)
    }
  }

  /// Adds the rows for which the whole store's bookkeeping notes that a number is plain.
  private func addNotedRows(
    of table: TableSchema, _ keyed: [(index: Int, position: Int, parent: Int)]
  ) throws {
    let name = Self.plainRows(table.id)
    let noted = try KeptRows.plainNumbersInKeys(of: table, in: Self.attached, database)
    for (identity, columns) in noted.sorted(by: { $0.key < $1.key }) {
      let plain = keyed.filter { columns.contains($0.position) }
      guard let key = try wholeKey(of: identity, table),
        try plain.contains(where: { try isMapped(key[$0.index], $0.parent) })
      else { continue }
      // The identity contains text in the form that its collation makes of it.
      let match = Self.collatedKeys(table).enumerated().map { "\($1) = ?\($0 + 1)" }
        .joined(separator: " AND ")
      let source = table.keyColumns.enumerated().map { "s.\(quoted($1)) = ?\($0 + 1)" }
        .joined(separator: " AND ")
      let columns = table.keyColumns.map { "s.\(quoted($0))" }
      // None is plain yet, and the row is not parked.
      let zeros = columns.map { _ in "0" } + ["0"]
      for sql in [
        "INSERT INTO \(name) SELECT \((columns + zeros).joined(separator: ", ")) "
          + "FROM \(Self.attached).\(table.quotedName) AS s "
          + "WHERE \(source) AND NOT EXISTS (SELECT 1 FROM \(name) AS a WHERE "
          + "\(Self.match(table, row: "s", plain: "a")))",
        "UPDATE \(name) SET \(plain.map { "p\($0.index) = 1" }.joined(separator: ", ")) "
          + "WHERE \(match)",
      ] {
        let statement = try SQLStatement(sql, on: database)
        for (index, value) in key.enumerated() { statement.bind(value, at: index + 1) }
        try statement.run()
      }
    }
  }

  /// Returns whether a number is the key, here or in the whole store, of a row whose keys differ.
  private func isMapped(_ value: Value, _ table: Int) throws -> Bool {
    guard mapped.contains(table), let number = Value.key(value) else { return false }
    return try Bool.fetchOne(
      database,
      sql: "SELECT EXISTS (SELECT 1 FROM \(Self.keys(table)) WHERE old = ?1 OR new = ?1)",
      arguments: [number]) ?? false
  }

  // MARK: - Keys in the whole store

  /// Returns the values of the key columns that a row has in the whole store; `nil` if it is not
  /// there.
  private func wholeKey(of identity: RowIdentity, _ table: TableSchema) throws -> [Value]? {
    let positions = table.identityPositions
    guard let values = IdentityEncoding.values(of: identity, count: positions.count) else {
      return nil
    }
    var key: [Value] = []
    for (position, value) in zip(positions, values) {
      guard case .identity(let row) = value else {
        key.append(value)
        continue
      }
      guard case .key(let parent) = table.columns[position].domain,
        let number = try wholeNumber(of: row, new[parent])
      else { return nil }
      key.append(.integer(number))
    }
    return key
  }

  /// Returns the integer key that a row has in the whole store; `nil` if it has none.
  private func wholeNumber(of identity: RowIdentity, _ table: TableSchema) throws -> Int64? {
    if table.identity == .surrogate {
      let names = "\(Self.attached).\(table.identityName)"
      let reading = try SQLStatement("SELECT key FROM \(names) WHERE identity = ?", on: database)
      reading.bind(blob: identity.bytes, at: 1)
      if try reading.step() { return reading.integer(at: 0) }
      guard let bits = Bits128(bytes: identity.bytes), bits.high == table.origin else { return nil }
      return Int64(bitPattern: bits.low)
    }
    guard let number = table.localKey, let key = try wholeKey(of: identity, table) else {
      return nil
    }
    let reading = try SQLStatement(
      "SELECT \(quoted(number)) FROM \(Self.attached).\(table.quotedName) "
        + "WHERE \(TableAccess.match(table.keyColumns))", on: database)
    for (index, value) in key.enumerated() { reading.bind(value, at: index + 1) }
    return try reading.step() ? reading.integer(at: 0) : nil
  }
}
