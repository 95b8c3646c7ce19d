import GRDB
import SyncModel

extension StoreSession {
  /// Writes what is known of remade tables. All changes of it during a session go through here.
  func write(_ remade: RemadeTables) throws {
    try remade.write(database)
    uncomparedTables = nil
    knownHoldingKeys = nil
    goneKeys.knownHeldKeys = nil
  }

  /// Notes that a program has remade tables. Tables that refer to rows with declared columns in
  /// them are compared as well.
  func noteRemade(_ tables: [Int]) throws {
    guard !tables.isEmpty else { return }
    let tables = schema.tablesToCompare(remade: tables)
    var remade = try RemadeTables.read(database)
    let sealed = RemadeTables.Sealed(
      client: ownClient, number: try clients.vector().number(of: ownClient))
    for table in tables {
      remade.noticed[table] = now
      remade.sealed = (remade.sealed ?? [:]).merging([table: sealed]) { $1 }
    }
    try write(remade)
  }

  /// Returns the remade tables that still exist, and the times at which the remakes were noticed,
  /// in milliseconds since 1970.
  func remadeTables() throws -> [(table: TableSchema, noticed: Int64)] {
    let remade = try RemadeTables.read(database).noticed
    return schema.tables.compactMap { table in remade[table.id].map { (table, $0) } }
  }

  /// Returns the vector of the change sets that the store contained when the remake of a table was
  /// noticed.
  func vector(beforeRemakeOf table: Int) throws -> VersionVector {
    var vector = try clients.vector()
    guard let sealed = try RemadeTables.read(database).sealed?[table],
      let entry = vector[sealed.client], entry.number > sealed.number
    else { return vector }
    vector[sealed.client] =
      sealed.number > 0 ? VersionVector.Entry(number: sealed.number, hash: entry.hash) : nil
    return vector
  }

  /// Notes that tables have been compared.
  func forgetRemadeTables(_ tables: [Int]) throws {
    var remade = try RemadeTables.read(database)
    for table in tables {
      remade.noticed[table] = nil
      remade.sealed?[table] = nil
    }
    remade.isSettlingDue = true
    try write(remade)
  }

  /// Makes the rows to which ``NewRowNames`` has given identities findable by them: these
  /// rows have no state, and rows that refer to them are looked at before they are sealed.
  func findUnseenRows(of id: Int) throws {
    let table = schema[id]
    guard table.identity == .surrogate else { return }
    let access = try access(id)
    let reading = try SQLStatement("SELECT key, identity FROM \(table.identityName)", on: database)
    var batch: [(row: RowFingerprint, key: Int64, identity: RowIdentity)] = []
    func flush() throws {
      batch.sort { $0.row < $1.row }
      for (named, state) in zip(batch, try access.stamps.states(of: batch.map(\.row)))
      where state == nil {
        access.rememberUnseen(named.key, of: named.identity)
      }
      batch = []
    }
    while try reading.step() {
      let identity = RowIdentity(bytes: reading.bytes(at: 1))
      batch.append((access.fingerprint(identity), reading.integer(at: 0), identity))
      if batch.count == 20_000 { try flush() }
    }
    try flush()
  }

  /// Returns whether a row is known not to be shown.
  func isGone(_ identity: RowIdentity, _ access: TableAccess) throws -> Bool {
    guard let state = try access.stamps.state(of: access.fingerprint(identity)) else {
      return false
    }
    return try !wasShown(RowKey(table: access.table.id, identity: identity), state)
  }

  /// Returns whether the next sealing has to decide again which rows are shown: the tables have
  /// been compared, and ``isUncompared(_:_:)`` has excluded rows from every decision until now.
  func isSettlingDue() throws -> Bool {
    let remade = try RemadeTables.read(database)
    return remade.isSettlingDue == true && remade.noticed.isEmpty
  }

  /// Returns whether keys of deleted rows still mean these rows: remade tables are not compared yet,
  /// or what the comparison found is not sealed.
  func areKeysHeld() throws -> Bool {
    if let knownHoldingKeys { return knownHoldingKeys }
    let areHeld = try !tablesToCompare().isEmpty || isSettlingDue()
    knownHoldingKeys = areHeld
    return areHeld
  }

  /// Notes that the next sealing need not decide again (``isSettlingDue()``).
  func forgetSettling() throws { try write(RemadeTables()) }

  /// Returns whether a row that is in its table may have been inserted unseen into a remade table.
  ///
  /// Such a row takes no part in deciding what is shown until the tables are compared and it is
  /// sealed. If it were hidden before that, it would never be sent.
  ///
  /// - Parameter state: The known state of the row.
  func isUncompared(_ row: RowKey, _ state: RowState?) throws -> Bool {
    guard try tablesToCompare().contains(row.table) else { return false }
    guard let state else { return true }
    return try !wasShown(row, state) || mayHaveComeUnseen(row, state)
  }

  /// Returns whether only edits of a row are known, and a program has remade its table: the row is
  /// as old as its table, or it was inserted unseen and then edited.
  func mayHaveComeUnseen(_ row: RowKey, _ state: RowState) throws -> Bool {
    guard state.existence == .unsaid, try tablesToCompare().contains(row.table) else {
      return false
    }
    return try wasShown(row, state)
  }

  /// Returns the same for a row whose state is to be looked up.
  func mayHaveComeUnseen(_ row: RowKey) throws -> Bool {
    guard try tablesToCompare().contains(row.table) else { return false }
    let access = try access(row.table)
    let state = try access.stamps.state(of: access.fingerprint(row.identity))
    return try state.map { try mayHaveComeUnseen(row, $0) } ?? false
  }

  /// Returns whether a row that is in its table was not shown at its last decision, so that a
  /// program may have inserted it again unseen. Until the tables are compared, it counts as absent
  /// from its table.
  ///
  /// - Parameter state: The known state of the row. A row without one, or with edits only, may be
  ///   as old as its table.
  func countsAsAbsent(_ row: RowKey, _ state: RowState?) throws -> Bool {
    guard let state, try tablesToCompare().contains(row.table) else { return false }
    return try !wasShown(row, state)
  }

  /// Returns whether a row that is not in its table was there before a program remade the table.
  ///
  /// Such a row is not written until the tables are compared and its deletion is sealed. Otherwise
  /// nothing would show any more that it was deleted, and it would come back changed.
  ///
  /// - Parameter state: The known state of the row.
  func wentUnseen(_ row: RowKey, _ state: RowState?) throws -> Bool {
    guard let state, try tablesToCompare().contains(row.table) else { return false }
    return try wasShown(row, state)
  }

  /// Returns whether a row was shown after the last decision about it.
  func wasShown(_ row: RowKey, _ state: RowState) throws -> Bool {
    if state.isKept {
      if let kept = try keptRows.row(row) { return kept.reason.isShown }
    }
    return state.existence != .deleted || isRevived(state, schema[row.table])
  }

  /// Returns the numbers of the tables that are to be compared.
  func tablesToCompare() throws -> Set<Int> {
    if let known = uncomparedTables { return known }
    let tables = Set(try remadeTables().map(\.table.id))
    uncomparedTables = tables
    return tables
  }
}

extension StoreSchema {
  /// Returns remade tables, and the tables of which a column contains numbers of rows with declared
  /// columns in these tables. A number may mean another of these rows than before the remake, and
  /// nothing records which.
  fileprivate func tablesToCompare(remade: [Int]) -> [Int] {
    var found = remade
    var seen = Set(remade)
    var next = remade
    while let id = next.popLast() {
      guard case .columns = self[id].identity else { continue }
      for table in tables where table.columns.contains(where: { $0.domain == .key(of: id) }) {
        guard seen.insert(table.id).inserted else { continue }
        found.append(table.id)
        next.append(table.id)
      }
    }
    return found
  }
}

/// A table that a program has remade, and whose rows have not been compared yet.
package struct RemadeTable: Hashable, Sendable {
  /// The name that the table has now.
  package var name: SQLName
  /// The change sets that the store contained before it sealed the edits made since the remake.
  package var vector: VersionVector
}
