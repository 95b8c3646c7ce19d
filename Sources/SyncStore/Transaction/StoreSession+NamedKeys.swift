import GRDB
import SyncModel

/// Integer keys of rows that are not in their tables, and that other rows contain in their own keys
/// without a foreign key that holds the row (``StoreSchema/namers(of:)``). Such a key stands for its
/// row as long as a row contains it.
extension StoreSession {
  /// Returns whether a row contains a key of a table in its own key.
  func isNamed(_ key: Int64, in table: Int) throws -> Bool {
    try schema.namers(of: table).contains { namer in
      let statement = try access(namer.table).statement(
        "SELECT 1 FROM \(schema[namer.table].quotedName) WHERE \(name(of: namer)) = ? LIMIT 1")
      statement.bind(key, at: 1)
      defer { statement.reset() }
      return try statement.step()
    }
  }

  /// Returns whether a key may stand for a row that is gone.
  func isNamedOrPlain(_ key: Int64, in table: Int) throws -> Bool {
    guard !schema.namers(of: table).isEmpty else { return false }
    return try isNamed(key, in: table) || plainKeys.keys(of: table).contains(key)
  }

  /// Returns the local keys of the rows that contain a key in a column.
  func rows(of namer: StoreSchema.Namer, containing key: Int64) throws -> [[Value]] {
    let table = schema[namer.table]
    let statement = try access(namer.table).statement(
      "SELECT \(table.keyColumns.map(quoted).joined(separator: ", ")) FROM \(table.quotedName) "
        + "WHERE \(name(of: namer)) = ?")
    statement.bind(key, at: 1)
    var found: [[Value]] = []
    while try statement.step() {
      found.append(table.keyColumns.indices.map { statement.value(at: $0) })
    }
    return found
  }

  private func name(of namer: StoreSchema.Namer) -> String {
    quoted(schema[namer.table].columns[namer.column].name)
  }

  /// Returns the SQL condition that a row contains a key of a table, as `key`, in its own key.
  func namedCondition(_ key: String, in table: Int) -> String {
    let terms = schema.namers(of: table).map { namer in
      "EXISTS (SELECT 1 FROM \(schema[namer.table].quotedName) AS n "
        + "WHERE n.\(name(of: namer)) = \(key))"
    }
    return terms.isEmpty ? "0" : "(\(terms.joined(separator: " OR ")))"
  }

  /// Frees the keys of rows that are gone and that no row contains in its own key any more. If other
  /// rows have such a key as a plain value, bookkeeping has a note of that, and the key stays.
  func freeKeysThatNothingNames(in id: Int) throws {
    let table = schema[id]
    // Until then, a row that was inserted unseen may contain them.
    guard try tablesToCompare().isEmpty else { return }
    try database.execute(
      sql: """
        DELETE FROM \(table.identityName) WHERE NOT EXISTS (SELECT 1 FROM \(table.quotedName) AS t \
        WHERE t.\(quoted(table.keyColumns[0])) = \(table.identityName).key) \
        AND NOT EXISTS (SELECT 1 FROM \(table.logName) AS l WHERE l.k0 = \(table.identityName).key) \
        AND NOT \(PlainKeys.condition("\(table.identityName).key", in: id)) \
        AND NOT \(namedCondition("\(table.identityName).key", in: id))
        """)
  }
}

extension TableAccess {
  /// Lets a key stand for a row that is not in its table.
  func keepNamedKey(_ key: Int64, of identity: RowIdentity) throws {
    guard try explicitIdentity(of: key) ?? identity == identity else { return }
    try setIdentity(identity, of: key)
    namedKeys?[identity] = key
  }

  /// Gives a key to a row that is not in its table, unless it has one.
  func assignKeyToHiddenRow(_ identity: RowIdentity) throws {
    if let key = try localKey(of: identity),
      try explicitIdentity(of: key) == identity || hasRow(localKey: key)
    {
      return
    }
    let key = try assignKey(to: identity, preferring: nil)
    namedKeys?[identity] = key
  }

  /// Returns the key that stands for a row that is not in its table, since another row contains it
  /// in its own key; `nil` if there is none.
  func namedKey(of identity: RowIdentity) throws -> Int64? {
    guard !session.schema.namers(of: table.id).isEmpty else { return nil }
    if namedKeys == nil {
      var keys: [RowIdentity: Int64] = [:]
      let reading = try SQLStatement(
        "SELECT i.key, i.identity FROM \(table.identityName) AS i WHERE NOT EXISTS (SELECT 1 "
          + "FROM \(table.quotedName) AS t WHERE t.\(quoted(table.keyColumns[0])) = i.key)",
        on: session.database)
      while try reading.step() {
        keys[RowIdentity(bytes: reading.bytes(at: 1))] = reading.integer(at: 0)
      }
      namedKeys = keys
    }
    guard let key = namedKeys?[identity], try explicitIdentity(of: key) == identity else {
      return nil
    }
    return key
  }
}
