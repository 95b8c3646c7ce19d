import GRDB
import SyncModel

/// The integer keys that rows with declared columns had before the edits in the log: references to
/// the rows contain these keys.
extension TableAccess {
  private var earlierKeys: String { "temp.docsync_earlier_\(table.id)" }

  /// Copies the declared columns that rows had, as the log records them, into a table in which
  /// they are found by the rows' local keys: the first ones, by which other devices know the row, or
  /// the last ones, if these edits inserted the row.
  func rememberEarlierKeys() throws {
    let names = table.identityPositions.indices.map { "k\($0)" }.joined(separator: ", ")
    let log = table.logName
    try session.database.execute(
      sql: """
        CREATE TEMP TABLE IF NOT EXISTS docsync_earlier_\(table.id) \
        (identity INTEGER PRIMARY KEY, seq INTEGER, \(names));
        CREATE INDEX IF NOT EXISTS temp.docsync_earlier_\(table.id)_keys \
        ON docsync_earlier_\(table.id) (\(collatedKeys));
        DELETE FROM \(earlierKeys);
        INSERT OR IGNORE INTO \(earlierKeys) (identity, seq, \(names)) \
        SELECT identity, seq, \(names) FROM \(log) WHERE identity IS NOT NULL ORDER BY seq
        """)
    let match = table.identityPositions.enumerated().map {
      "e.k\($0) = i.k\($0) COLLATE \(quoted(SQLName(table.columns[$1].collation)))"
    }
    let given = try Int64.fetchSet(
      session.database,
      sql: """
        SELECT e.identity FROM (SELECT \(names), min(seq) AS seq FROM \(log) \
        WHERE op = \(CaptureTriggers.Entry.insert.rawValue) GROUP BY \(collatedKeys)) AS i \
        CROSS JOIN \(earlierKeys) AS e ON \(match.joined(separator: " AND ")) WHERE i.seq < e.seq
        """)
    if !given.isEmpty {
      try session.goneKeys.withList(of: given) { given in
        try session.database.execute(
          sql: """
            INSERT OR REPLACE INTO \(earlierKeys) (identity, seq, \(names)) \
            SELECT identity, seq, \(names) FROM \(log) WHERE identity IN \(given) ORDER BY seq
            """)
      }
    }
    remembersEarlierKeys = true
  }

  /// The log's columns for declared values, with the collations of the table's columns.
  private var collatedKeys: String {
    table.identityPositions.enumerated().map {
      "k\($0) COLLATE \(quoted(SQLName(table.columns[$1].collation)))"
    }.joined(separator: ", ")
  }

  /// Returns the local key that a row had until the edits in the log removed it: references that
  /// are left contain that key.
  func earlierLocalKey(of identity: RowIdentity, _ values: [Value]) throws -> Int64? {
    guard remembersEarlierKeys else { return nil }
    let match = table.identityPositions.enumerated().map {
      "k\($0) = ? COLLATE \(quoted(SQLName(table.columns[$1].collation)))"
    }
    let statement = try statement(
      "SELECT identity FROM \(earlierKeys) WHERE \(match.joined(separator: " AND "))")
    for (index, value) in values.enumerated() { statement.bind(value, at: index + 1) }
    var keys: [Int64] = []
    while try statement.step() { keys.append(statement.integer(at: 0)) }
    let left = try keys.filter {
      try !hasRow(localKey: $0) && earlierIdentity(ofLocalKey: $0) == identity
    }
    // A key that the row got and lost again by these edits seems to lead to no row.
    return try left.first { try wasTakenBefore($0) } ?? left.first
  }

  /// Writes into the log which declared columns belong to a number, so that the log can name rows
  /// whose keys contain it.
  ///
  /// - Parameter time: When the row is known to be gone, in milliseconds since 1970.
  func noteEarlierKey(_ number: Int64, of values: [Value], at time: Int64) throws {
    let names = table.identityPositions.indices.map { "k\($0)" }
    let marks = names.map { _ in "?" }.joined(separator: ", ")
    let logging = try statement(
      "INSERT INTO \(table.logName) (op, at, identity, \(names.joined(separator: ", "))) "
        + "VALUES (\(CaptureTriggers.Entry.renamed.rawValue), ?, ?, \(marks))")
    logging.bind(.real(HybridTime.julianDay(milliseconds: time)), at: 1)
    logging.bind(number, at: 2)
    for (index, value) in values.enumerated() { logging.bind(value, at: index + 3) }
    try logging.run()
    guard remembersEarlierKeys else { return }
    let remembering = try statement(
      "INSERT OR IGNORE INTO \(earlierKeys) (identity, \(names.joined(separator: ", "))) "
        + "VALUES (?, \(marks))")
    remembering.bind(number, at: 1)
    for (index, value) in values.enumerated() { remembering.bind(value, at: index + 2) }
    try remembering.run()
  }

  func forgetEarlierKeys() throws {
    guard remembersEarlierKeys else { return }
    remembersEarlierKeys = false
    try session.database.execute(sql: "DELETE FROM \(earlierKeys)")
  }

  /// Returns the declared columns of a row as it was before the edits in the log.
  func declaredValues(of key: Int64) throws -> [Value]? {
    guard case .columns = table.identity else { return nil }
    return try loggedKey(key) ?? presentKey(key)
  }

  /// Returns the declared columns of a row that was deleted, or given another key, since the last
  /// change set (``rememberEarlierKeys()``).
  func loggedKey(_ key: Int64) throws -> [Value]? {
    let keys = table.identityPositions.indices.map { "k\($0)" }
    let source =
      remembersEarlierKeys
      ? "\(earlierKeys) WHERE identity = ?"
      : "\(table.logName) WHERE identity = ? ORDER BY seq LIMIT 1"
    let statement = try statement("SELECT \(keys.joined(separator: ", ")) FROM \(source)")
    statement.bind(key, at: 1)
    guard try statement.step() else { return nil }
    defer { statement.reset() }
    return keys.indices.map { statement.value(at: $0) }
  }

  /// The local keys among some that rows with declared columns had until an edit in the log, or may
  /// have lost by one.
  func lostKeys(among keys: Set<Int64>) throws -> Set<Int64> {
    guard case .columns = table.identity else { return [] }
    return try Int64.fetchSet(
      session.database,
      sql: "SELECT DISTINCT identity FROM \(table.logName) WHERE identity IS NOT NULL"
    ).intersection(keys)
  }

  /// The number of the entry in the log from which ``loggedKey(_:)`` takes the declared columns.
  func firstEntry(ofLocalKey key: Int64) throws -> Int64? {
    if remembersEarlierKeys {
      let statement = try statement(
        "SELECT seq FROM \(earlierKeys) WHERE identity = ? AND seq IS NOT NULL")
      statement.bind(key, at: 1)
      defer { statement.reset() }
      if try statement.step() { return statement.integer(at: 0) }
    }
    let statement = try statement(
      "SELECT seq FROM \(table.logName) WHERE identity = ? ORDER BY seq LIMIT 1")
    statement.bind(key, at: 1)
    guard try statement.step() else { return nil }
    defer { statement.reset() }
    return statement.integer(at: 0)
  }
}
