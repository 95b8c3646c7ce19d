import GRDB
import SyncModel

/// Local values are the values in the table. Logical values are the same, but with identities in
/// place of keys that differ from device to device.
final class TableAccess {
  let table: TableSchema
  let stamps: StampBlocks
  unowned let session: StoreSession

  private let selecting: SQLStatement
  private let deleting: SQLStatement
  private var updating: [[Int]: SQLStatement] = [:]
  private var inserting: [[Int]: SQLStatement] = [:]
  /// See ``localDefaults()``.
  var knownLocalDefaults: [SQLName: (value: Value, isChanging: Bool)]?
  /// The greatest key in use, once the table has been asked for it.
  var greatestKey: Int64?
  /// Notes which rows of the table the transaction changes.
  private(set) lazy var changes = session.changes.rows(of: table)

  init(table: TableSchema, session: StoreSession) throws {
    self.table = table
    self.session = session
    let database = session.database
    stamps = StampBlocks(
      table: table, database: database, capacity: session.stampBlockBytes,
      columnCount: table.columns.count)
    let match = Self.match(table.keyColumns)
    let columns = table.columns.map { quoted($0.name) }
    selecting = try SQLStatement(
      "SELECT \((columns + [table.localKey.map(quoted) ?? "NULL"]).joined(separator: ", ")) "
        + "FROM \(table.quotedName) WHERE \(match)", on: database)
    deleting = try SQLStatement("DELETE FROM \(table.quotedName) WHERE \(match)", on: database)
  }

  static func match(_ columns: [SQLName]) -> String {
    columns.map { "\(quoted($0)) = ?" }.joined(separator: " AND ")
  }

  // MARK: - Identities

  /// Returns the identity of the row that has, or had, a local key.
  func identity(ofLocalKey key: Int64) throws -> RowIdentity {
    switch table.identity {
    case .surrogate:
      let statement = try statement(
        "SELECT identity FROM \(table.identityName) WHERE key = ?")
      statement.bind(key, at: 1)
      if try statement.step() {
        defer { statement.reset() }
        return RowIdentity(bytes: statement.bytes(at: 0))
      }
      return try originalIdentity(of: key)
    case .columns:
      guard let values = try presentKey(key) ?? loggedKey(key) else {
        return try session.goneKeys.heldIdentity(of: key, in: table) ?? danglingIdentity(of: key)
      }
      return identity(of: try logicalKey(values))
    case .primaryKey:
      return IdentityEncoding.encode([.integer(key)])
    }
  }

  /// Returns the identity that the row with a key has had since syncing began. If that row has
  /// another key by now, it retains its identity; then returns one that no row has.
  func originalIdentity(of key: Int64) throws -> RowIdentity {
    RowIdentity(
      bytes: Bits128(
        high: try hasOriginalMoved(from: key) ? ~table.origin : table.origin,
        low: UInt64(bitPattern: key)
      ).bytes)
  }

  /// Returns whether the row that had a surrogate key when syncing began has another key by now.
  func hasOriginalMoved(from key: Int64) throws -> Bool { try movedOriginals().contains(key) }

  /// The local keys in the log that no longer lead to a row; `nil` until they are first asked for.
  var loggedKeys: LoggedKeys?

  /// See ``rewrittenKeys()``; `nil` until they are first asked for.
  var rewritten: Set<Int64>?

  /// The identity that a row with a local key had before the edits that are
  /// in the log.
  func earlierIdentity(ofLocalKey key: Int64) throws -> RowIdentity {
    guard case .columns = table.identity else { return try identity(ofLocalKey: key) }
    guard let values = try loggedKey(key) ?? presentKey(key) else {
      return try session.goneKeys.heldIdentity(of: key, in: table) ?? danglingIdentity(of: key)
    }
    return identity(of: try earlierLogicalKey(values))
  }

  /// Returns the same for the local values of the key columns.
  func earlierIdentity(ofKey key: [Value]) throws -> RowIdentity {
    guard table.identity != .surrogate else { return try identity(ofKey: key) }
    return identity(of: try earlierLogicalKey(key))
  }

  /// Returns the values of the declared columns in the row with a local key.
  func presentKey(_ key: Int64) throws -> [Value]? {
    let columns = table.identityPositions.map { quoted(table.columns[$0].name) }
    let statement = try statement(
      "SELECT \(columns.joined(separator: ", ")) FROM \(table.quotedName) "
        + "WHERE \(quoted(table.localKey ?? "rowid")) = ?")
    statement.bind(key, at: 1)
    guard try statement.step() else { return nil }
    defer { statement.reset() }
    return columns.indices.map { statement.value(at: $0) }
  }

  /// Whether ``rememberEarlierKeys()`` has been called for the log as it is.
  var remembersEarlierKeys = false

  /// Returns the identity for a reference that leads nowhere. If declared columns identify the
  /// rows, no row can have it.
  private func danglingIdentity(of key: Int64) -> RowIdentity {
    RowIdentity(bytes: Bits128(high: table.origin, low: UInt64(bitPattern: key)).bytes)
  }

  /// Returns the form that an identity has in this table: numbers and text as the columns store
  /// them, text folded. `nil` if no row of the table can have it.
  func canonical(_ identity: RowIdentity) throws -> RowIdentity? {
    guard table.identity != .surrogate else {
      return identity.bytes.count == 16 ? identity : nil
    }
    let positions = table.identityPositions
    guard let values = IdentityEncoding.values(of: identity, count: positions.count),
      !values.contains(.null)
    else { return nil }
    return self.identity(of: try presentValues(values))
  }

  /// Returns the identity for logical values of the identity's columns.
  func identity(of values: [Value]) -> RowIdentity {
    IdentityEncoding.encode(
      values, collations: table.identityPositions.map { table.columns[$0].keyCollation })
  }

  /// Returns the identity of a row of a change set.
  func identity(of row: Int, in changes: TableChanges) -> RowIdentity {
    if changes.identity == .surrogate, case .blob(let bytes) = changes.keys[0][row] {
      return RowIdentity(bytes: bytes)
    }
    return identity(of: changes.keys.map { $0[row] })
  }

  /// Returns the key under which the row with an identity is in the table, will be, or was until
  /// the edits in the log removed it: a key that it was given in this store. `nil` if it has none.
  func localKey(of identity: RowIdentity) throws -> Int64? {
    switch table.identity {
    case .surrogate:
      guard let bits = Bits128(bytes: identity.bytes) else { return nil }
      if let key = try stamps.state(of: fingerprint(identity))?.localKey,
        try explicitIdentity(of: key) == identity
      {
        return key
      }
      if let key = unseenKeys[identity], try explicitIdentity(of: key) == identity { return key }
      if let key = try session.goneKeys.key(of: rowKey(identity)) { return key }
      // A reference that leads nowhere also has the identity that its key would have had from the
      // beginning.
      guard bits.high == table.origin || bits.high == ~table.origin else { return nil }
      let key = Int64(bitPattern: bits.low)
      if bits.high == table.origin, try hasOriginalMoved(from: key) { return nil }
      // The key may have passed to another row since.
      guard let present = try explicitIdentity(of: key) else { return key }
      return present == identity ? key : nil
    case .columns(let positions):
      if let bits = Bits128(bytes: identity.bytes), bits.high == table.origin { return nil }
      // A value that is not an identity of this table leads nowhere.
      guard let values = IdentityEncoding.values(of: identity, count: positions.count) else {
        return nil
      }
      let statement = try statement(
        "SELECT \(quoted(table.localKey ?? "rowid")) FROM \(table.quotedName) "
          + "WHERE \(Self.match(table.keyColumns))")
      guard let local = try localKey(values, of: identity) else { return nil }
      for (index, value) in local.enumerated() { statement.bind(value, at: index + 1) }
      guard try statement.step() else {
        return try earlierLocalKey(of: identity, local)
          ?? session.goneKeys.heldKey(of: rowKey(identity))
      }
      defer { statement.reset() }
      return statement.integer(at: 0)
    case .primaryKey:
      return nil
    }
  }

  /// The keys of rows without a state, such as rows that were inserted and deleted since the last
  /// sealing: the identities of other rows may contain these keys.
  private var unseenKeys: [RowIdentity: Int64] = [:]

  func rememberUnseen(_ key: Int64, of identity: RowIdentity) { unseenKeys[identity] = key }

  var moved: Set<Int64>?

  /// Returns the former keys of rows from before syncing that have another key here.
  private func movedOriginals() throws -> Set<Int64> {
    if let moved { return moved }
    var found: Set<Int64> = []
    let statement = try statement(
      "SELECT key, identity FROM \(table.identityName) WHERE identity BETWEEN ? AND ?")
    statement.bind(blob: Bits128(high: table.origin, low: 0).bytes, at: 1)
    statement.bind(blob: Bits128(high: table.origin, low: .max).bytes, at: 2)
    while try statement.step() {
      guard let bits = Bits128(bytes: statement.bytes(at: 1)) else { continue }
      let original = Int64(bitPattern: bits.low)
      if original != statement.integer(at: 0) { found.insert(original) }
    }
    moved = found
    return found
  }

  /// Returns the key that bookkeeping still has for a row that is gone.
  func registeredKey(of identity: RowIdentity, _ state: RowState) throws -> Int64? {
    guard table.identity == .surrogate, let key = state.localKey,
      try explicitIdentity(of: key) == identity
    else { return nil }
    return key
  }

  func explicitIdentity(of key: Int64) throws -> RowIdentity? {
    let statement = try statement("SELECT identity FROM \(table.identityName) WHERE key = ?")
    statement.bind(key, at: 1)
    guard try statement.step() else { return nil }
    defer { statement.reset() }
    return RowIdentity(bytes: statement.bytes(at: 0))
  }

  func rowKey(_ identity: RowIdentity) -> RowKey {
    RowKey(table: table.id, identity: identity)
  }

  func fingerprint(_ identity: RowIdentity) -> RowFingerprint {
    session.fingerprint(identity, of: table.identity.kind)
  }

  /// The keys that rows had here before they were removed with the rest of the store's content, if
  /// no other record has these keys.
  var formerKeys: [RowIdentity: Int64] = [:]

  /// See ``formerKeyForms()``; `nil` until they are first asked for.
  var knownFormerKeyForms: [[KeyForm]]?

  /// Keys of rows that are out of the table for a moment.
  var reservedKeys: Set<Int64> = []

  // MARK: - Rows

  /// Returns the local values of the key columns, which name a row in statements; `nil` if the row
  /// has no key here, or no row of the table can have the identity.
  func key(of identity: RowIdentity) throws -> [Value]? {
    guard table.identity != .surrogate else {
      return try localKey(of: identity).map { [.integer($0)] }
    }
    let positions = table.identityPositions
    guard let values = IdentityEncoding.values(of: identity, count: positions.count) else {
      return nil
    }
    return try localKey(values, of: identity)
  }

  /// Returns the identity for the local values of the key columns.
  func identity(ofKey key: [Value]) throws -> RowIdentity {
    guard table.identity != .surrogate else {
      return try identity(ofLocalKey: Value.key(key[0]) ?? 0)
    }
    return identity(of: try logicalKey(key))
  }

  /// Reads the row with a key: its local values in order of column, and its
  /// local key if it has one beside its identity.
  func row(_ key: [Value]) throws -> (values: [Value], localKey: Int64?)? {
    for (index, value) in key.enumerated() { selecting.bind(value, at: index + 1) }
    guard try selecting.step() else { return nil }
    defer { selecting.reset() }
    let count = table.columns.count
    return (
      (0..<count).map { selecting.value(at: $0) },
      table.localKey == nil ? nil : selecting.integer(at: count)
    )
  }

  /// Returns the row that the table shows with an identity, and the local values of its key.
  func shown(_ identity: RowIdentity) throws -> (
    key: [Value], values: [Value], localKey: Int64?
  )? {
    guard let key = try namingKey(of: identity), let found = try row(key) else { return nil }
    return (key, found.values, found.localKey)
  }

  /// Returns the local values of the key that names the row with an identity here, and no other
  /// row; `nil` if there is none.
  func namingKey(of identity: RowIdentity) throws -> [Value]? {
    guard let key = try key(of: identity) else { return nil }
    // A deleted row may have left its number in the keys of other rows as a plain value.
    if table.hasKeysInIdentity, try self.identity(ofKey: key) != identity { return nil }
    return key
  }

  /// Positions the statement that reads all columns on the row with a key, and returns it; the
  /// caller resets it. Returns `nil` if there is no such row.
  @inline(__always)
  func select(_ bind: (SQLStatement) -> Void) throws -> SQLStatement? {
    bind(selecting)
    return try selecting.step() ? selecting : nil
  }

  func delete(_ key: [Value]) throws {
    for (index, value) in key.enumerated() { deleting.bind(value, at: index + 1) }
    try session.write(deleting)
  }

  /// Forgets what is remembered of keys and states outside the tables, after a rollback.
  func forgetKeyMemory() {
    greatestKey = nil
    moved = nil
    loggedKeys = nil
    rewritten = nil
    session.goneKeys.forgetMemory(of: table.id)
    stamps.forgetMemory()
  }

  /// The statement that deletes by key.
  var deletion: SQLStatement { deleting }

  /// Returns a statement that sets columns, in the given order, of the row whose key follows.
  func update(_ columns: [Int]) throws -> SQLStatement {
    if let statement = updating[columns] { return statement }
    let terms = columns.map { "\(quoted(table.columns[$0].name)) = ?" }
    let statement = try SQLStatement(
      "UPDATE\(table.orAbort) \(table.quotedName) SET \(terms.joined(separator: ", ")) "
        + "WHERE \(Self.match(table.keyColumns))", on: session.database)
    updating[columns] = statement
    return statement
  }

  /// Returns a statement that inserts a row: the columns in the given order, then the local key
  /// where there is one.
  func insert(_ columns: [Int]) throws -> SQLStatement {
    if let statement = inserting[columns] { return statement }
    let names =
      columns.map { quoted(table.columns[$0].name) } + (table.localKey.map { [quoted($0)] } ?? [])
    let marks = names.map { _ in "?" }
    let statement = try SQLStatement(
      "INSERT\(table.orAbort) INTO \(table.quotedName) (\(names.joined(separator: ", "))) "
        + "VALUES (\(marks.joined(separator: ", ")))", on: session.database)
    inserting[columns] = statement
    return statement
  }

  private var evaluation: RowEvaluation?

  /// Returns the evaluation of indexes and conditions on rows that are not in the table.
  func rowEvaluation() throws -> RowEvaluation {
    if let evaluation { return evaluation }
    let made = try RowEvaluation(table: table, database: session.database)
    evaluation = made
    return made
  }

  // MARK: - Statements

  private var statements: [SQLText: SQLStatement] = [:]

  /// Returns a statement of this table, prepared once.
  func statement(_ sql: String) throws -> SQLStatement {
    let text = SQLText(sql)
    if let statement = statements[text] { return statement }
    let statement = try SQLStatement(sql, on: session.database)
    statements[text] = statement
    return statement
  }
}
