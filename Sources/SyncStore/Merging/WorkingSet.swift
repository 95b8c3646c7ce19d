import GRDB
import SyncModel

/// The rows that a transaction works on beyond the simple cases: loaded on
/// demand, merged in memory, and written by ``Materializer``.
final class WorkingSet {
  let session: StoreSession
  /// The rows in the order in which they were added.
  private(set) var rows: [WorkingRow] = []
  private var index: [RowKey: WorkingRow] = [:]
  /// The tables with rows with NULL in their key that refer to rows of the set.
  var referrersWithoutKey: Set<Int> = []

  /// The values of cells that no change has set.
  let absentValues: AbsentValues
  let conflicts: MergedConflicts

  init(session: StoreSession) {
    self.session = session
    absentValues = AbsentValues(session.database)
    conflicts = MergedConflicts(session)
  }

  var count: Int { rows.count }

  subscript(key: RowKey) -> WorkingRow? { index[key] }

  func contains(_ key: RowKey) -> Bool { index[key] != nil }

  func removeAll() {
    rows = []
    index = [:]
    referrersWithoutKey = []
  }

  /// Returns the row with a key. Loads it if the set does not have it yet.
  @discardableResult
  func row(_ key: RowKey) throws -> WorkingRow {
    if let row = index[key] { return row }
    let access = try session.access(key.table)
    let fingerprint = access.fingerprint(key.identity)
    return try load(key, fingerprint: fingerprint, state: try access.stamps.state(of: fingerprint))
  }

  /// Adds rows of a table, given by their keys there, except those that await a comparison
  /// (``StoreSession/isUncompared(_:_:)``).
  func add(_ rows: [[Value]], _ access: TableAccess) throws {
    let keys = try rows.map {
      RowKey(table: access.table.id, identity: try access.identity(ofKey: $0))
    }.filter { index[$0] == nil }
    let fingerprints = keys.map { access.fingerprint($0.identity) }
    try access.stamps.readAhead(fingerprints)
    for (key, fingerprint) in zip(keys, fingerprints) where index[key] == nil {
      let state = try access.stamps.state(of: fingerprint)
      if try session.isUncompared(key, state) { continue }
      try load(key, fingerprint: fingerprint, state: state)
    }
  }

  /// Loads a row whose state is known already. A row that was not shown and awaits a comparison
  /// counts as absent from its table.
  @discardableResult
  func load(_ key: RowKey, fingerprint: RowFingerprint, state: RowState?) throws -> WorkingRow {
    let access = try session.access(key.table)
    let table = access.table
    var shown: ShownRow?
    var localKey: Int64?
    let found = try session.countsAsAbsent(key, state) ? nil : access.shown(key.identity)
    // The table gives all values of a row that is shown, but only the identity tells a reference in
    // the key from a plain value.
    var values =
      try found == nil || table.hasKeysInIdentity
      ? keyValues(of: key, table) : [Value?](repeating: nil, count: table.columns.count)
    if let found {
      shown = ShownRow(key: found.key, values: found.values)
      localKey = found.localKey
      for (position, column) in table.columns.enumerated() {
        // A number in the key is a reference or a plain value, as the identity says.
        if column.isKeyed, column.isIdentity, values[position] != nil { continue }
        values[position] = try session.exported(found.values[position], column)
      }
    }
    let tableValues = values
    let kept = state?.isKept == true ? try session.keptRows.row(key) : nil
    if kept?.reason == .borrowed { values = try keyValues(of: key, table) }
    for cell in kept?.cells ?? [] where cell.column < values.count {
      values[cell.column] = cell.value
    }
    if let state, state.existence == .inserted || session.isRevived(state, table) {
      try fillAbsent(&values, table)
    } else if let state, state.existence == .deleted {
      try settleAbsent(&values, state, key, table)
    }
    let row = WorkingRow(
      key: key, fingerprint: fingerprint, state: state, values: values, shown: shown,
      localKey: localKey, movedTo: state?.existence == .deleted ? kept?.movedTo : nil,
      keptAs: kept?.reason)
    let keptClaims = kept == nil ? [] : try session.keptRows.claims(of: key)
    if row.isDead, shown == nil { row.wasElsewhere = try session.wasBorrower(key, keptClaims) }
    row.isUnseen = try shown == nil && session.wentUnseen(key, state)
    row.oldClaims = shown == nil ? keptClaims : try claims(in: table, tableValues)
    row.oldFormerClaims = shown == nil ? [] : keptClaims
    row.isRevived = row.state.existence == .deleted && session.isRevived(row.state, table)
    row.wasLiving = row.isLiving
    row.wasDead = row.isDead
    index[key] = row
    rows.append(row)
    return row
  }

  /// Returns the values that a row's identity contains, by column; all `nil` if no row of the table
  /// can have the identity: references to it lead nowhere.
  func keyValues(of key: RowKey, _ table: TableSchema) throws -> [Value?] {
    var values = [Value?](repeating: nil, count: table.columns.count)
    guard let key = table.values(of: key.identity) else { return values }
    for (position, value) in zip(table.identityPositions, key) { values[position] = value }
    return values
  }

  // MARK: - Merging

  /// One change to one row, with this store's columns and client numbers.
  struct Change {
    var action: RowAction
    var stamp: LocalStamp
    var cells: [(column: Int, value: Value, stamp: LocalStamp)]
    var keyHint: Int64?
    /// The identity under which a deleted row lives on.
    var movedTo: RowIdentity?
    /// The version that an update replaces, in tables of the merge type `keepBoth`.
    var replaces: LocalStamp?
    /// The stamp of the deletion that erased all older cells of the row.
    var erasureStamp: LocalStamp?
    /// The changes that its author had not seen.
    var concurrency = Concurrency.none
  }

  /// Records the conflicts of a change and merges the change.
  func merge(_ change: Change, into row: WorkingRow) throws {
    try conflicts.note(change, on: row)
    let table = session.schema[row.key.table]
    if table.mergeType == .keepBoth { noteVersions(change, of: row) }
    switch change.action {
    case .insert, .delete, .erase:
      let existence: RowState.Existence = change.action == .insert ? .inserted : .deleted
      if session.clients.precedes(row.state.existenceStamp, change.stamp) {
        row.state.existence = existence
        row.state.existenceStamp = change.stamp
        row.movedTo = change.movedTo
      } else if row.state.existenceStamp == change.stamp, change.stamp != .zero {
        RowState.Existence.settle(
          &row.state.existence, &row.movedTo, with: existence, change.movedTo)
      }
    case .update: break
    }
    if let stamp = change.erasureStamp { try erase(row, before: stamp) }
    for cell in change.cells {
      let isCounter = table.columns[cell.column].domain == .counter
      if isCounter, try add(cell, to: row) || settle(cell, of: row) { continue }
      if takesPlace(cell, of: row, table) {
        row.values[cell.column] = cell.value
        row.state.setStamp(cell.stamp, of: cell.column)
        if isCounter { try addEarly(to: cell.column, of: row) }
      }
    }
    if let hint = change.keyHint { row.keyHint = hint }
    row.state.normalize(of: table, precedes: session.clients.precedes)
    row.isRevived = session.isRevived(row.state, table)
    if row.isLiving {
      try fillAbsent(&row.values, table)
    } else if row.isDead {
      try settleAbsent(&row.values, row.state, row.key, table)
    }
  }

  /// Returns whether a cell of a change replaces the row's own.
  private func takesPlace(
    _ cell: (column: Int, value: Value, stamp: LocalStamp), of row: WorkingRow, _ table: TableSchema
  ) -> Bool {
    let known = row.state.stamp(of: cell.column)
    guard known == cell.stamp else { return session.clients.precedes(known, cell.stamp) }
    // Honest authors give both the same value.
    guard known != .zero, known != row.state.erasureStamp, let value = row.values[cell.column],
      value != cell.value
    else { return false }
    return value.yields(to: cell.value)
  }

  // MARK: - Unique values

  /// Returns the unique keys that a row claims with the values that it is to show, and the identity
  /// of another row if it is to be shown under that one.
  func claims(of row: WorkingRow) throws -> [ClaimKey] {
    let table = session.schema[row.key.table]
    let identity = row.shownIdentity.map {
      [ClaimKey(table: table.id, index: ClaimKey.identityIndex, key: $0)]
    }
    guard !table.uniqueIndexes.isEmpty else { return identity ?? [] }
    return try claims(in: table, table.columns.indices.map(row.shownValue)) + (identity ?? [])
  }

  /// Returns the key of the row that holds a value in its table.
  func keyOfHolder(_ claim: ClaimKey, _ access: TableAccess) throws -> [Value]? {
    let table = access.table
    let unique = table.uniqueIndexes[claim.index]
    let values = try IdentityEncoding.decode(claim.key, count: unique.terms.count)
    // The condition may guard the terms.
    let terms =
      (unique.condition.map { ["(\($0))"] } ?? [])
      + zip(unique.terms, unique.collations).map { "(\($0)) = ? COLLATE \($1)" }
    let shown = try access.statement(
      "SELECT \(table.keyColumns.map(quoted).joined(separator: ", ")) FROM \(table.quotedName) "
        + "WHERE \(terms.joined(separator: " AND "))")
    for (index, value) in values.enumerated() {
      let column = unique.columns[index].map { table.columns[$0] }
      shown.bind(try column.map { try local(value, $0) } ?? value, at: index + 1)
    }
    guard try shown.step() else { return nil }
    defer { shown.reset() }
    return table.keyColumns.indices.map { shown.value(at: $0) }
  }

  /// Returns the unique keys that a row claims with its values as its table will hold them.
  func localClaims(of row: WorkingRow) throws -> [ClaimKey] {
    let table = session.schema[row.key.table]
    return try claims(in: table, localValues(table.columns.indices.map(row.shownValue), table))
  }

  func claims(in table: TableSchema, _ row: [Value?]) throws -> [ClaimKey] {
    try table.uniqueIndexes.compactMap { unique in
      let values =
        unique.isPlain
        ? unique.columns.map { $0.map { Self.claimed(row[$0], table.columns[$0]) } ?? .null }
        : try expressionValues(of: row, unique, table)
      guard let values, !values.contains(.null) else { return nil }
      let collations = unique.collations.map(KeyCollation.init(sqlName:))
      return ClaimKey(
        table: table.id, index: unique.ordinal,
        key: IdentityEncoding.encode(values, collations: collations))
    }
  }

  /// Returns the value of a column that must be unique: for a counter, the number.
  private static func claimed(_ value: Value?, _ column: ColumnSchema) -> Value {
    guard let value, column.domain == .counter else { return value ?? .null }
    return column.number(value)
  }

  /// Returns the terms of an index over expressions, or with a condition, as SQLite evaluates them
  /// on the row's values; `nil` if the condition excludes the row.
  ///
  /// Columns that stand for keys keep their logical value: a plain value and a reference can be one
  /// number on this device, and are two values on others.
  private func expressionValues(
    of row: [Value?], _ unique: UniqueIndex, _ table: TableSchema
  ) throws -> [Value]? {
    let evaluation = try session.access(table.id).rowEvaluation()
    guard var terms = try evaluation.terms(of: unique, values: localValues(row, table)) else {
      return nil
    }
    for (position, column) in unique.columns.enumerated() {
      guard let column, case .key = table.columns[column].domain else { continue }
      terms[position] = row[column] ?? .null
    }
    return terms
  }

  private func localValues(_ row: [Value?], _ table: TableSchema) throws -> [Value] {
    try zip(row, table.columns).map { value, column in
      column.domain == .plain ? value ?? .null : try local(value ?? .null, column)
    }
  }

  /// Returns the condition of its own table that refuses a row as it is to be shown; `nil` if none
  /// does.
  func refusal(of row: WorkingRow) throws -> ParkedRow.Reason? {
    try refusal(of: row, with: row.overlays)
  }

  /// Returns the condition of its own table that refuses a row with some overlays; `nil` if none
  /// does.
  func refusal(of row: WorkingRow, with overlays: [Int: Value]) throws -> ParkedRow.Reason? {
    let table = session.schema[row.key.table]
    return try session.access(table.id).rowEvaluation().refusal(
      of: try localValues(
        table.columns.indices.map { overlays[$0] ?? row.values[$0] }, table))
  }

  /// Returns the local form of a logical value; a reference to a row without a key here becomes its
  /// identity's bytes, which equal no key.
  func local(_ value: Value, _ column: ColumnSchema) throws -> Value {
    guard case .key(let table) = column.domain, case .identity(let identity) = value else {
      return try session.imported(value, column) ?? .null
    }
    if let row = index[RowKey(table: table, identity: identity)], let key = row.localKey {
      return column.stored(key: key)
    }
    return try session.imported(value, column) ?? .blob(identity.bytes)
  }
}

extension KeyCollation {
  /// Creates the collation with a name in SQLite. Collations that are not built in count as binary.
  init(sqlName: String) {
    switch sqlName.uppercased() {
    case "NOCASE": self = .nocase
    case "RTRIM": self = .rtrim
    default: self = .binary
    }
  }
}
