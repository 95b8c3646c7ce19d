import GRDB
import SyncModel

/// Edits on the store's own connection, where the capture triggers do not fire. They are logged as
/// the triggers would log them: to other devices they are edits like any others.
///
/// The app's triggers do not run, apart from those that maintain what stays on this device. Each
/// edit is made as a whole or not at all.
struct LocalEdits {
  let session: StoreSession
  /// The rows whose references are checked at the end of several edits; `nil` if each edit is checked at once.
  var deferred: DeferredReferences?
  /// Whether to refuse to change values by which other rows refer to a row, unless these edits have set their
  /// references.
  var refusesLosingReferrers = false
  let ownReferences = OwnReferences()

  init(session: StoreSession) { self.session = session }

  typealias Cell = (column: Int, value: Value)

  /// The reason why an edit could not be made.
  struct Refusal: Error, Hashable {
    /// A sentence for the user.
    var message: String
    /// The message of SQLite.
    var detail: String?
  }

  /// Inserts a row that is not shown, under its identity.
  ///
  /// - Parameter time: The time of the edit, in milliseconds since 1970; `nil` for now.
  func insert(_ cells: [Cell], as row: RowKey, at time: Int64? = nil) throws {
    let access = try session.access(row.table)
    let table = access.table
    if let key = try access.key(of: row.identity), try access.row(key) != nil {
      throw Refusal(message: "The row exists again.")
    }
    var values: [Int: Value] = [:]
    for cell in cells where cell.column < table.columns.count {
      values[cell.column] = try localValue(cell, table)
    }
    if table.identity != .surrogate {
      let identifying = try IdentityEncoding.decode(
        row.identity, count: table.identityPositions.count)
      for (position, value) in zip(table.identityPositions, identifying)
      where values[position] == nil {
        values[position] = try localValue((position, value), table)
      }
    }
    let plainKey = try plainNumbers(inKeyOf: row, table)
    if !plainKey.isEmpty { session.writtenPlainRows.insert(row) }
    do {
      try insert(cells, values, as: row, access, plainKey: plainKey, at: time)
    } catch {
      session.writtenPlainRows.remove(row)
      throw error
    }
  }

  private func insert(
    _ cells: [Cell], _ values: [Int: Value], as row: RowKey, _ access: TableAccess,
    plainKey: Set<Int>, at time: Int64?
  ) throws {
    let table = access.table
    try atomically {
      var localKey: Int64?
      if table.localKey != nil {
        let preferred = try access.stamps.state(of: access.fingerprint(row.identity))?.localKey
        let known = try access.key(of: row.identity)?.first.flatMap(Value.key)
        localKey = try access.assignKey(to: row.identity, preferring: preferred)
        // Its state names the key only when the insertion is sealed.
        if let localKey, table.identity == .surrogate {
          access.rememberUnseen(localKey, of: row.identity)
          if localKey != known { session.hasAssignedKeys = true }
        }
      }
      let columns = values.keys.sorted()
      let statement = try access.insert(columns)
      for (index, column) in columns.enumerated() {
        statement.bind(values[column] ?? .null, at: index + 1)
      }
      if let localKey { statement.bind(localKey, at: columns.count + 1) }
      try session.write(statement)
      // For a row that was never here, nothing else gives its key yet.
      let key =
        table.identity == .surrogate
        ? localKey.map { [.integer($0)] } : try access.key(of: row.identity)
      guard let key, let after = try access.row(key) else {
        throw Refusal(message: "The edit would change another row.")
      }
      try session.putBackAside(into: row, key: key)
      if table.localKey != nil { try session.putBackReferences(to: [row]) }
      try checkReferences(
        of: row, at: key, after.values, table, concerning: Set(table.columns.indices))
      let named = try self.localKey(of: after, table)
      let plain = try plainCells(cells, of: table, key: named)
      try checkPlain(plainKey.union(plain.map(\.column)), of: after.values, table)
      try log(
        .insert, key: named, mask: nil, table, at: time,
        further: table.identity == .surrogate ? [("identity", .blob(row.identity.bytes))] : [])
      access.changes.note(.inserted, key)
      session.writtenPlainCells[row] = plain.isEmpty ? nil : plain
      noteReferences(of: row, table, Set(table.columns.indices))
    }
  }

  /// Notes the plain numbers in the key of a row, and returns the positions of those that are keys
  /// of rows here.
  private func plainNumbers(inKeyOf row: RowKey, _ table: TableSchema) throws -> Set<Int> {
    guard table.hasKeysInIdentity else { return [] }
    let positions = table.identityPositions
    let values = try IdentityEncoding.decode(row.identity, count: positions.count)
    var found: Set<Int> = []
    for (position, value) in zip(positions, values) {
      try session.plainKeys.note(value, in: table.columns[position])
      if try session.isKeyHere(value, table.columns[position]) { found.insert(position) }
    }
    return found
  }

  /// Returns the cells with plain values that are keys of rows here.
  func plainCells(
    _ cells: [Cell], of table: TableSchema, key: [Value]
  ) throws -> [StoreSession.PlainCell] {
    try cells.filter { cell in
      cell.column < table.columns.count && !table.columns[cell.column].isIdentity
        && cell.value.kind != .identity
    }.filter { try session.exported($0.value, table.columns[$0.column]).kind == .identity }.map {
      StoreSession.PlainCell(table: table.id, key: key, column: $0.column, value: $0.value)
    }
  }

  /// Refuses foreign keys with a plain value: it refers to no row, though a row here has that
  /// number.
  func checkPlain(_ plain: Set<Int>, of values: [Value], _ table: TableSchema) throws {
    for key in table.foreignKeys where key.isEnforced && !plain.isDisjoint(with: key.columns) {
      if key.columns.contains(where: { values[$0] == .null }) { continue }
      let parent = session.schema[key.parent].name
      throw Refusal(message: "The row of \(parent) that it refers to does not exist.")
    }
  }

  /// Deletes a row that is shown, unless other rows refer to it. Throws ``Refusal``.
  func delete(_ row: RowKey) throws {
    let access = try session.access(row.table)
    let table = access.table
    guard let key = try access.key(of: row.identity), let shown = try access.row(key) else {
      throw Refusal(message: "The row does not exist.")
    }
    if let deferred {
      deferred.deleted.append((row, key, shown.values, shown.localKey))
    } else {
      try checkReferrers(to: ShownRow(key: key, values: shown.values), shown.localKey, table)
    }
    try atomically {
      try LocalReferrers(session).follow(deletionOf: [key], of: table)
      try access.delete(key)
      // Rows refer by the number to a row that is identified by declared columns.
      let number =
        table.identity == .surrogate ? [] : shown.localKey.map { [("identity", Value.integer($0))] }
      try log(
        .delete, key: try localKey(of: shown, table), mask: nil, table,
        further: (number ?? [])
          + table.recordedColumns.map { (CaptureTriggers.Column.old($0), shown.values[$0]) })
      access.changes.note(.deleted, key)
    }
  }

  /// Inserts a row by the values that its table will hold, under a new identity. Does not check
  /// where its references lead. Returns the key that names the row in statements.
  func insert(
    localValues values: [Value], as row: RowKey, preferring hint: Int64?
  ) throws -> [Value] {
    let access = try session.access(row.table)
    return try atomically {
      let localKey =
        access.table.localKey == nil
        ? nil : try access.assignKey(to: row.identity, preferring: hint)
      return try write(values, as: row, under: localKey, access)
    }
  }

  /// Does the same for a row that has a key beside its identity already, if its table has one.
  func insert(
    localValues values: [Value], as row: RowKey, under localKey: Int64?
  ) throws -> [Value] {
    try atomically { try write(values, as: row, under: localKey, session.access(row.table)) }
  }

  private func write(
    _ values: [Value], as row: RowKey, under localKey: Int64?, _ access: TableAccess
  ) throws -> [Value] {
    let table = access.table
    let columns = Array(table.columns.indices)
    let statement = try access.insert(columns)
    for column in columns { statement.bind(values[column], at: column + 1) }
    if let localKey { statement.bind(localKey, at: columns.count + 1) }
    try session.write(statement)
    let key =
      table.identity == .surrogate
      ? localKey.map { [.integer($0)] } ?? [] : table.identityPositions.map { values[$0] }
    guard let after = try access.row(key) else {
      throw Refusal(message: "The edit would change another row.")
    }
    try log(
      .insert, key: try self.localKey(of: after, table), mask: nil, table,
      further: table.identity == .surrogate ? [("identity", .blob(row.identity.bytes))] : [])
    access.changes.note(.inserted, key)
    return key
  }

  /// Inserts a row with NULL in its key, by the values that its table holds. Such a row stays on the
  /// device. Returns its rowid.
  func insertWithoutKey(
    localValues values: [Value], into access: TableAccess, localKey: Int64?
  ) throws -> Int64 {
    let table = access.table
    var rowid: Int64 = 0
    try atomically {
      let columns = Array(table.columns.indices)
      let statement = try access.insert(columns)
      for column in columns { statement.bind(values[column], at: column + 1) }
      if let localKey { statement.bind(localKey, at: columns.count + 1) }
      try session.write(statement)
      rowid = session.database.lastInsertedRowID
      // Not sealed; the next sealing warns of it.
      try log(
        .insert, key: table.identityPositions.map { values[$0] }, mask: nil, table, further: [])
      access.changes.noteAll()
    }
    return rowid
  }

  // MARK: - Parts

  /// Returns the key that names a row in the log.
  func localKey(
    of row: (values: [Value], localKey: Int64?), _ table: TableSchema
  ) throws -> [Value] {
    guard table.identity != .surrogate else { return row.localKey.map { [.integer($0)] } ?? [] }
    return table.identityPositions.map { row.values[$0] }
  }

  func localValue(_ cell: Cell, _ table: TableSchema) throws -> Value {
    let column = table.columns[cell.column]
    guard let value = try session.imported(cell.value, column) else {
      throw Refusal(message: "The row that \(quoted(column.name)) refers to does not exist.")
    }
    guard value.kind != .identity else {
      throw Refusal(message: "\(quoted(column.name)) is not a reference to another row.")
    }
    return value
  }

  /// Checks the references of a row, at once or at the end of several edits.
  func checkReferences(
    of row: RowKey, at key: [Value], _ values: [Value], _ table: TableSchema,
    concerning columns: Set<Int>
  ) throws {
    guard let deferred else {
      return try checkReferences(of: values, table, concerning: columns)
    }
    deferred.edited[row] = key
  }

  /// Checks the references, since foreign keys are off on this connection.
  func checkReferences(
    of values: [Value], _ table: TableSchema, concerning columns: Set<Int>
  ) throws {
    for key in table.foreignKeys
    where key.isEnforced && !columns.isDisjoint(with: key.columns) {
      let referring = key.columns.map { values[$0] }
      if referring.contains(.null) { continue }
      let parent = session.schema[key.parent]
      guard try hasRow(parent, key.parentColumns, referring) else {
        throw Refusal(message: "The row of \(parent.name) that it refers to does not exist.")
      }
    }
  }

  /// Returns whether a table has a row with the given values.
  private func hasRow(_ table: TableSchema, _ columns: [SQLName], _ values: [Value]) throws -> Bool
  {
    let statement = try SQLStatement(
      "SELECT 1 FROM \(table.quotedName) WHERE \(TableAccess.match(columns)) LIMIT 1",
      on: session.database)
    for (index, value) in values.enumerated() { statement.bind(value, at: index + 1) }
    return try statement.step()
  }

  /// Refuses to delete a row to which others refer.
  ///
  /// - Parameters:
  ///   - columns: The columns by which they may refer to it; `nil` for all.
  ///   - isGone: Whether it is deleted, or has other values, already. Then another row may have the values by which
  ///     they refer to it.
  ///   - onlyOwn: Whether they may refer to that other row only if these edits have set their references. If not,
  ///     they would get another parent that nothing has chosen.
  func checkReferrers(
    to shown: ShownRow, _ localKey: Int64?, _ table: TableSchema, by columns: Set<SQLName>? = nil,
    isGone: Bool = false, onlyOwn: Bool = false
  ) throws {
    for child in session.schema.tables {
      for reference in child.foreignKeys where reference.parent == table.id {
        if let columns, columns.isDisjoint(with: reference.parentColumns) { continue }
        let match = zip(reference.columns, reference.parentColumns).enumerated().map {
          index, pair in
          child.columns[pair.0].refers(
            to: index + 1...index + 1, of: table.affinity(of: pair.1),
            collation: table.collation(of: pair.1))
        }
        let key = child.keyColumns.map(quoted).joined(separator: ", ")
        let statement = try SQLStatement(
          "SELECT \(key) FROM \(child.quotedName) WHERE \(match.joined(separator: " AND "))",
          on: session.database)
        let values = reference.parentColumns.map {
          table.localValue($0, shown, localKey: localKey)
        }
        for (index, value) in values.enumerated() { statement.bind(value, at: index + 1) }
        if try statement.step() {
          if try isGone && hasRow(table, reference.parentColumns, values)
            && (!onlyOwn || areOwn(statement, child, reference)
              || isFound(shown, reference, values, table))
          {
            continue
          }
          throw Refusal(message: "A row of \(child.name) refers to it.")
        }
      }
    }
  }

  /// Returns whether a row is still found by values that refer to it: it may have them in another spelling.
  private func isFound(
    _ row: ShownRow, _ reference: ForeignKey, _ values: [Value], _ table: TableSchema
  ) throws -> Bool {
    try hasRow(table, reference.parentColumns + table.keyColumns, values + row.key)
  }

  func log(
    _ kind: CaptureTriggers.Entry, key: [Value], mask: String?, _ table: TableSchema,
    at time: Int64? = nil, further: [(name: String, value: Value)]
  ) throws {
    let keys = key.indices.map { "k\($0)" }
    let names = ["op", "at", "mask"] + keys + further.map(\.name)
    let statement = try SQLStatement(
      "INSERT INTO \(table.logName) (\(names.joined(separator: ", "))) "
        + "VALUES (\(names.map { _ in "?" }.joined(separator: ", ")))", on: session.database)
    statement.bind(kind.rawValue, at: 1)
    statement.bind(.real(Double(time ?? session.now) / 86_400_000 + 2_440_587.5), at: 2)
    if let mask { statement.bind(mask, at: 3) } else { statement.bind(null: 3) }
    for (index, value) in (key + further.map(\.value)).enumerated() {
      statement.bind(value, at: index + 4)
    }
    try statement.run()
  }

  /// Runs `body`, and undoes what it did if it throws. Throws ``Refusal`` if a constraint refuses
  /// the edit.
  func atomically<Result>(_ body: () throws -> Result) throws -> Result {
    do {
      return try session.database.atomically(body)
    } catch {
      session.forgetKeyMemory()
      guard let failure = error as? DatabaseError, failure.resultCode == .SQLITE_CONSTRAINT else {
        throw error
      }
      throw Refusal(message: Self.sentence(failure), detail: failure.description)
    }
  }

  /// Returns why a constraint refuses an edit.
  private static func sentence(_ failure: DatabaseError) -> String {
    let (message, unique) = (failure.message ?? "no detail", "UNIQUE constraint failed: ")
    guard message.hasPrefix(unique) else { return "A constraint refuses the edit: \(message)." }
    // SQLite names the columns as TABLE.COLUMN, or the index if it is on an expression.
    return "Another row already has this value, which must be unique: "
      + "\(message.dropFirst(unique.count))."
  }
}
