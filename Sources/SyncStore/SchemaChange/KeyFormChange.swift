import GRDB
import SyncModel

/// The change of bookkeeping after a program has made tables again with another affinity or
/// collation of a key column: identities that bookkeeping stores, or by which it finds rows, take
/// the new form.
///
/// States of rows stay whose keys bookkeeping does not know, until these keys come
/// (``TableAccess/adoptFormerState(of:)``).
struct KeyFormChange {
  private let session: StoreSession
  private let former: [Int: [KeyForm]]
  /// The tables whose identities have another form: also those whose keys refer to such a table.
  private let tables: [TableSchema]

  /// With two identities each, the states of a batch are remembered at once.
  private static let rowsPerBatch = 10_000

  /// - Parameter former: The former forms of the tables whose keys have others now.
  init(_ session: StoreSession, former: [Int: [KeyForm]]) {
    self.session = session
    self.former = former
    var concerned = Set(former.keys)
    func isConcerned(_ table: TableSchema) -> Bool {
      table.identityPositions.contains {
        table.columns[$0].referredTable.map(concerned.contains) ?? false
      }
    }
    while let next = session.schema.tables.first(where: {
      $0.identity != .surrogate && !concerned.contains($0.id) && isConcerned($0)
    }) {
      concerned.insert(next.id)
    }
    tables = session.schema.tables.filter { concerned.contains($0.id) }
  }

  func run() throws {
    guard !tables.isEmpty else { return }
    // The log tells what the keys of rows that are gone stood for.
    for table in tables { try rewriteLog(of: table) }
    var renamed: [Int: [RowIdentity: RowIdentity]] = [:]
    for table in tables { renamed[table.id] = try renameRows(of: table) }
    try rewriteCells(renamed)
    try session.rename(renamed)
  }

  // MARK: - Identities

  /// Returns the identity that a row had, by the logical values of its key. `nil` if the recorded forms
  /// do not fit the table.
  ///
  /// - Parameter local: The local values, if they are known. They lead to the spelling that an
  ///   identity no longer has.
  private func formerIdentity(
    of values: [Value], local: [Value]?, in table: TableSchema
  ) throws -> RowIdentity? {
    let values = try values.indices.map { index in
      try formerValue(
        values[index], local: local?[index], table.columns[table.identityPositions[index]])
    }
    let access = try session.access(table.id)
    guard let forms = former[table.id] else { return access.identity(of: values) }
    return access.identity(of: values, in: forms)
  }

  private func formerValue(_ value: Value, local: Value?, _ column: ColumnSchema) throws -> Value {
    guard case .identity(let row) = value, let parent = table(referredBy: column) else {
      return value
    }
    let access = try session.access(parent.id)
    if let number = local.flatMap(Value.key), let key = try access.declaredValues(of: number) {
      let values = try access.earlierLogicalKey(key)
      if access.identity(of: values) == row {
        return try formerIdentity(of: values, local: key, in: parent).map(Value.identity) ?? value
      }
    }
    guard let values = IdentityEncoding.values(of: row, count: parent.identityPositions.count)
    else { return value }
    return try formerIdentity(of: values, local: nil, in: parent).map(Value.identity) ?? value
  }

  /// Returns the table to which a column refers, if its identities have another form.
  private func table(referredBy column: ColumnSchema) -> TableSchema? {
    column.referredTable.flatMap { parent in tables.first { $0.id == parent } }
  }

  // MARK: - Rows

  /// Gives the rows of a table, and all other rows of it that bookkeeping names, their present
  /// identities. Returns these by the former ones, as far as bookkeeping names them.
  private func renameRows(of table: TableSchema) throws -> [RowIdentity: RowIdentity] {
    let access = try session.access(table.id)
    try settleSpellings(of: table, access)
    let named = try session.namedRows(of: table)
    let shared = try sharedFormerIdentities(of: table, access)
    var renamed: [RowIdentity: RowIdentity] = [:]
    var batch: [(former: RowIdentity, present: RowIdentity)] = []
    func move(rowsOf reading: SQLStatement, areLogged: Bool) throws {
      while try reading.step() {
        let key = table.keyColumns.indices.map { reading.value(at: $0) }
        guard let row = try identities(of: key, areLogged: areLogged, access) else { continue }
        let isShared = shared?.contains(access.fingerprint(row.former))
        if isShared == true, !areLogged { try forgetState(row.former, access) }
        guard row.former != row.present, renamed[row.former] == nil else { continue }
        if try access.presentIdentity(row.former) != row.present, isShared ?? true {
          // It is another row that was inserted since: its key would have been the same before.
          continue
        }
        if named.contains(row.former) { renamed[row.former] = row.present }
        batch.append(row)
        if batch.count == Self.rowsPerBatch {
          try moveStates(batch, access, replacing: !areLogged)
          batch = []
        }
      }
      try moveStates(batch, access, replacing: !areLogged)
      batch = []
    }
    try move(
      rowsOf: SQLStatement(
        "SELECT \(table.keyColumns.map(quoted).joined(separator: ", ")) FROM \(table.quotedName)",
        on: session.database), areLogged: false)
    for names in try logKeys(of: table) {
      try move(
        rowsOf: SQLStatement(
          "SELECT DISTINCT \(names.joined(separator: ", ")) FROM \(table.logName)",
          on: session.database), areLogged: true)
    }
    for former in named.sorted() where renamed[former] == nil {
      let present = try access.presentIdentity(former)
      if present == former { continue }
      renamed[former] = present
      batch.append((former, present))
    }
    try moveStates(batch, access, replacing: false)
    return renamed
  }

  /// Returns the identities that a row had and has, by the local values of its key.
  private func identities(
    of key: [Value], areLogged: Bool, _ access: TableAccess
  ) throws -> (former: RowIdentity, present: RowIdentity)? {
    if key.contains(.null) { return nil }
    let values = try areLogged ? access.earlierLogicalKey(key) : access.logicalKey(key)
    return try formerIdentity(of: values, local: key, in: access.table).map {
      (former: $0, present: access.identity(of: values))
    }
  }

  /// Forgets the state of a row, since bookkeeping cannot tell which of several rows it is: all of them
  /// count as inserted.
  private func forgetState(_ former: RowIdentity, _ access: TableAccess) throws {
    let fingerprint = access.fingerprint(former)
    guard let state = try access.stamps.state(of: fingerprint) else { return }
    if state.isKept {
      try session.keptRows.remove(RowKey(table: access.table.id, identity: former))
    }
    try access.stamps.store([(fingerprint, nil)])
  }

  /// Returns the former identities that several rows of a table would have, if keys that were equal can
  /// differ now. `nil` if such keys can differ only by what a migration has not made of the former
  /// ones, such as `'007'` where 7 was.
  private func sharedFormerIdentities(
    of table: TableSchema, _ access: TableAccess
  ) throws -> Set<RowFingerprint>? {
    let isFiner = tables.contains { table in
      zip(former[table.id] ?? [], table.identityPositions).contains { form, position in
        form.collation != .binary && form.collation != table.columns[position].keyCollation
      }
    }
    guard isFiner else { return nil }
    var known: Set<RowFingerprint> = []
    var shared: Set<RowFingerprint> = []
    let reading = try SQLStatement(
      "SELECT \(table.keyColumns.map(quoted).joined(separator: ", ")) FROM \(table.quotedName)",
      on: session.database)
    while try reading.step() {
      let key = table.keyColumns.indices.map { reading.value(at: $0) }
      guard let row = try identities(of: key, areLogged: false, access) else { continue }
      let fingerprint = access.fingerprint(row.former)
      if !known.insert(fingerprint).inserted { shared.insert(fingerprint) }
    }
    return shared
  }

  /// Returns the columns of the log that contain keys: those of an edited row, and those that it
  /// got, if the log has them.
  private func logKeys(of table: TableSchema) throws -> [[String]] {
    let present = try session.database.columns(in: table.logName).map(\.name)
    return [
      table.keyColumns.indices.map { "k\($0)" },
      table.keyColumns.indices.map(CaptureTriggers.Column.destination),
    ].filter { Set($0).isSubset(of: present) }
  }

  /// Gives the keys in the log the form in which the table has them.
  private func rewriteLog(of table: TableSchema) throws {
    guard former[table.id] != nil else { return }
    for names in try logKeys(of: table) {
      for (name, position) in zip(names, table.identityPositions)
      where !table.columns[position].isKeyed {
        let reading = try SQLStatement(
          "SELECT seq, \(name) FROM \(table.logName)", on: session.database)
        var changed: [(entry: Int64, value: Value)] = []
        while try reading.step() {
          let value = reading.value(at: 1)
          let present = value.kept(in: table.columns[position])
          if present != value { changed.append((reading.integer(at: 0), present)) }
        }
        let writing = try SQLStatement(
          "UPDATE \(table.logName) SET \(name) = ? WHERE seq = ?", on: session.database)
        for (entry, value) in changed {
          writing.bind(value, at: 1)
          writing.bind(entry, at: 2)
          try writing.run()
        }
      }
    }
  }

  /// - Parameter replacing: Whether the states take the place of those that the present identities
  ///   have, which belong to rows that are gone. Otherwise these stay: what another device has said
  ///   under the present form is newer.
  private func moveStates(
    _ rows: [(former: RowIdentity, present: RowIdentity)], _ access: TableAccess, replacing: Bool
  ) throws {
    var changes: [RowFingerprint: RowState?] = [:]
    try access.stamps.readAhead(rows.flatMap { [$0.former, $0.present].map(access.fingerprint) })
    for row in rows {
      let (former, present) = (access.fingerprint(row.former), access.fingerprint(row.present))
      guard let state = try access.stamps.state(of: former) else { continue }
      if changes[former] == nil { changes.updateValue(nil, forKey: former) }
      let other = try access.stamps.state(of: present)
      if let other, !replacing || isDeletedLater(other, than: state) {
        if state.isKept {
          try session.keptRows.remove(RowKey(table: access.table.id, identity: row.former))
        }
      } else {
        if other?.isKept == true {
          try session.keptRows.remove(RowKey(table: access.table.id, identity: row.present))
        }
        changes.updateValue(state, forKey: present)
      }
    }
    let sorted = changes.sorted { $0.key < $1.key }
    try access.stamps.store(sorted.map { (fingerprint: $0.key, state: $0.value) })
  }

  /// Returns whether a row was deleted after the last insertion or deletion of another one that gets
  /// its identity. Then all devices take that deletion for one of the other row.
  private func isDeletedLater(_ deleted: RowState, than state: RowState) -> Bool {
    deleted.existence == .deleted
      && session.clients.precedes(state.existenceStamp, deleted.existenceStamp)
  }

  /// Drops the stamps of the spellings of keys that have one form only now. A key that has several
  /// now has the spelling with which it came, as on devices to which the row comes later.
  private func settleSpellings(of table: TableSchema, _ access: TableAccess) throws {
    guard let forms = former[table.id] else { return }
    let changed = zip(table.identityPositions, forms).filter { position, form in
      form.applied(to: table.columns[position]).isLoose != table.columns[position].isLoose
    }.map(\.0)
    guard !changed.isEmpty else { return }
    try access.stamps.rewrite { state in
      for position in changed {
        state.setStamp(
          table.columns[position].isLoose ? state.erasureStamp : state.cellStamp, of: position)
      }
    }
  }

  // MARK: - Cells

  /// Rewrites the references to renamed rows in cells that bookkeeping stores.
  private func rewriteCells(_ renamed: [Int: [RowIdentity: RowIdentity]]) throws {
    for table in session.schema.tables {
      let columns = table.columns.map { self.table(referredBy: $0) }
      guard columns.contains(where: { $0 != nil }) else { continue }
      for definition in Bookkeeping.tables where definition.has(.table) {
        for name in definition.columns(.cells) {
          try definition.rewrite(name, of: table.id, session.database) { column, value in
            guard case .identity(let row) = value, let parent = columns[safely: column] else {
              return value
            }
            return try .identity(
              renamed[parent.id]?[row] ?? session.access(parent.id).presentIdentity(row))
          }
        }
      }
    }
  }
}

extension Array {
  fileprivate subscript<Wrapped>(safely index: Int) -> Wrapped? where Element == Wrapped? {
    indices.contains(index) ? self[index] : nil
  }
}
