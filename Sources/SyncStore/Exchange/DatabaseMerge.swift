import Foundation
import GRDB
import SyncModel

/// The merge of a database's rows into a document, as edits made now. The database did not know the
/// document, or was a store of another one: see Documentation/Lifecycle.md, “Join”.
///
/// It merges tables in the order of their references, so that it knows where a reference leads
/// before it merges the row. Within circles of references, it follows rows one by one.
final class DatabaseMerge {
  let session: StoreSession
  private let former: FormerDatabase
  private let prefer: MergedRows.Preference
  private let random: () -> UInt64
  private let work: WorkCount
  private let checkCancellation: () throws -> Void

  /// The stamps of the former rows, if they can be compared with the document's.
  private let stamps: FormerStamps?
  let keys: MergedKeys
  var readers: [Int: FormerDatabase.Reader] = [:]
  /// The tables that take part in circles of references.
  let circular: Set<Int>
  /// References of rows that refer to one another, to be corrected once all rows are merged.
  var unfinished: [(table: Int, key: [Value], reference: ForeignKey, values: [Value])] = []
  private var uniqueLookups: [Int: [(index: UniqueIndex, statement: SQLStatement)]] = [:]
  /// The greatest key that was assigned or existed, by table.
  private var greatestKeys: [Int: Int64] = [:]
  var report = MergedRows()
  /// The rows with NULL in their key that the document had, by table.
  var rowsWithoutKey: [Int: RowidsByValues] = [:]
  private var seen = 0
  /// The number of rows between two checks for cancellation.
  private static let interval = 1_000

  init(
    session: StoreSession, former: FormerDatabase, prefer: MergedRows.Preference,
    random: @escaping () -> UInt64, work: WorkCount,
    checkCancellation: @escaping () throws -> Void
  ) throws {
    self.work = work
    self.session = session
    self.former = former
    self.prefer = prefer
    self.random = random
    self.checkCancellation = checkCancellation
    stamps = try former.session.flatMap { try FormerStamps($0, other: session.database) }
    keys = MergedKeys(session.database)
    circular = session.schema.tablesInCircles
  }

  private var tables: [TableSchema] {
    session.schema.inDependencyOrder(session.schema.tables).filter {
      former.table(named: $0.name) != nil
    }
  }

  func run() throws {
    for table in tables {
      try keys.begin(table)
      readers[table.id] = try FormerDatabase.Reader(
        table, former, key: MergedKeys.keyColumns(table))
    }
    for table in tables {
      guard let reader = readers[table.id] else { continue }
      while let row = try reader.next() {
        seen += 1
        if seen % Self.interval == 0 {
          try checkCancellation()
          work.advance(by: Self.interval)
        }
        if circular.contains(table.id) {
          try mergeWithParents(row, table)
        } else {
          try merge(row, table)
        }
      }
    }
    try finishCircles()
  }

  /// Removes the temporary data.
  func end() throws {
    readers = [:]
    uniqueLookups = [:]
    try keys.end()
  }

  // MARK: - A row

  func merge(_ row: FormerDatabase.Record, _ table: TableSchema) throws {
    var values = zip(row.values, table.columns).map { $0.applying($1.affinity) }
    var open: [ForeignKey] = []
    var moved: Set<Int> = []
    for reference in table.foreignKeys {
      switch try translation(row.values, reference) {
      case .moved(let new):
        for (column, value) in zip(reference.columns, new) {
          values[column] = value
          moved.insert(column)
        }
      case .nowhere:
        return try refuse(
          values, row, table, .reference, "the row that it refers to is not there", plain: [])
      case .same: break
      case nil:
        if circular.contains(reference.parent) { open.append(reference) }
      }
    }
    if table.identity != .surrogate,
      table.identityPositions.contains(where: { values[$0] == .null })
    {
      for reference in open {
        let isThere = try parent(of: row, by: reference, table) != nil
        // A declared reference may lead nowhere. Nothing would find the row again to correct one that
        // leads to a row that is merged later.
        guard isThere || reference.isEnforced else { continue }
        return try refuse(
          values, row, table, .reference,
          isThere
            ? "it and the row that it refers to refer to one another"
            : "the row that it refers to is not there", plain: [])
      }
      return try mergeWithoutKey(values, row, table)
    }
    let plain = try plainPositions(values, table, except: moved)
    let isDangling = table.foreignKeys.contains { reference in
      reference.isEnforced && !plain.isDisjoint(with: reference.columns)
        && !reference.columns.contains { values[$0] == .null }
    }
    if isDangling {
      return try refuse(
        values, row, table, .reference, "the row that it refers to is not there", plain: plain)
    }
    if let present = try presentRow(values, row, table) {
      let isPlain = table.identity != .surrogate && !plain.isDisjoint(with: table.identityPositions)
      if try isPlain
        && session.access(table.id).identity(ofKey: present)
          != identity(of: row, values, table, plain: plain)
      {
        return try refuse(
          values, row, table, .uniqueValue, "another row has its key on this device", plain: plain)
      }
      try compare(values, with: present, table, plain: plain)
      try keep(row, at: present, table)
      return
    }
    if try isDeleted(row, values, table, plain: plain) {
      return try refuse(
        values, row, table, .existence, "it was deleted in the document", plain: plain)
    }
    do {
      let key = try insert(values, row, table, plain: plain)
      for reference in open { unfinished.append((table.id, key, reference, row.values)) }
      report.insertedRows += 1
      try keep(row, at: key, table)
    } catch let refusal as LocalEdits.Refusal {
      try refuse(values, row, table, refusal, plain: plain)
    }
  }

  /// Returns the columns that contain a number of no row of the other database that is the key of a
  /// row of the document here. Such a number is a plain value.
  private func plainPositions(
    _ values: [Value], _ table: TableSchema, except moved: Set<Int>
  ) throws -> Set<Int> {
    var found: Set<Int> = []
    for (position, column) in table.columns.enumerated() where !moved.contains(position) {
      guard case .key(let parent) = column.domain, let number = column.key(values[position]),
        try session.access(parent).hasRow(localKey: number),
        try readers[parent]?.record([.integer(number)]) == nil
      else { continue }
      try session.plainKeys.note(values[position], in: column)
      found.insert(position)
    }
    return found
  }

  /// Returns the logical value of a row's value.
  private func logical(
    _ values: [Value], _ position: Int, _ table: TableSchema, plain: Set<Int>
  ) throws -> Value {
    plain.contains(position)
      ? values[position] : try session.exported(values[position], table.columns[position])
  }

  /// Records the key that a row has in the document, and writes its values of excluded columns.
  private func keep(
    _ row: FormerDatabase.Record, at present: [Value], _ table: TableSchema
  ) throws {
    let access = try session.access(table.id)
    var key = present
    if table.localKey != nil, table.identity != .surrogate {
      // Other rows refer to it by the key beside its identity.
      key = try access.row(present)?.localKey.map { [.integer($0)] } ?? present
    }
    try notePlace(key, of: row, table)
    guard !row.localValues.isEmpty else { return }
    let names = table.excludedColumns.sorted()
    let current = try access.localValues(present)
    guard current.count == names.count else { return }
    let wanted = zip(names, current).map { row.localValues[$0.folded] ?? $1 }
    guard wanted != current else { return }
    do {
      try access.setLocalValues(wanted, of: present)
    } catch let error as DatabaseError where error.resultCode == .SQLITE_CONSTRAINT {
      session.warnOfRefusedValues(names, of: table, error)
    }
  }

  /// Records the key that a row has in the document.
  func notePlace(
    _ key: [Value], of row: FormerDatabase.Record, _ table: TableSchema
  ) throws {
    let formerKey = self.key(of: row, table)
    if key != formerKey {
      if table.localKey != nil { report.movedRows += 1 }
      try keys.note(.moved(to: key), of: formerKey, in: table)
    } else if circular.contains(table.id) {
      try keys.note(.same, of: formerKey, in: table)
    }
  }

  // MARK: - The row that the document has

  /// Returns the key of the document's row that is the same as a former row, or `nil` if there is
  /// none.
  private func presentRow(
    _ values: [Value], _ row: FormerDatabase.Record, _ table: TableSchema
  ) throws -> [Value]? {
    let access = try session.access(table.id)
    if table.identity == .surrogate {
      // Another device that had the same row may have merged it already.
      if let key = try row.identity.flatMap(access.key), try access.row(key) != nil { return key }
      if let key = row.localKey, try access.row([key])?.values == values { return [key] }
    } else {
      let key = table.identityPositions.map { values[$0] }
      if try access.row(key) != nil { return key }
    }
    // Two rows cannot have the same unique values: they are the same row.
    for lookup in try lookups(table) {
      let unique =
        lookup.index.isPlain
        ? lookup.index.columns.compactMap { $0.map { values[$0] } }
        : try access.rowEvaluation().terms(of: lookup.index, values: values)
      guard let unique, !unique.contains(.null) else { continue }
      for (index, value) in unique.enumerated() { lookup.statement.bind(value, at: index + 1) }
      guard try lookup.statement.step() else { continue }
      defer { lookup.statement.reset() }
      return table.keyColumns.indices.map { lookup.statement.value(at: $0) }
    }
    return nil
  }

  private func lookups(
    _ table: TableSchema
  ) throws -> [(index: UniqueIndex, statement: SQLStatement)] {
    if let known = uniqueLookups[table.id] { return known }
    let made = try table.uniqueIndexes.map { index in
      let terms = zip(index.terms, index.collations).map {
        "(\($0)) = ? COLLATE \(quoted(SQLName($1)))"
      }
      let conditions = terms + (index.condition.map { ["(\($0))"] } ?? [])
      return (
        index: index,
        statement: try SQLStatement(
          "SELECT \(table.keyColumns.map(quoted).joined(separator: ", ")) "
            + "FROM \(table.quotedName) WHERE \(conditions.joined(separator: " AND "))",
          on: session.database)
      )
    }
    uniqueLookups[table.id] = made
    return made
  }

  private func compare(
    _ values: [Value], with present: [Value], _ table: TableSchema, plain: Set<Int>
  ) throws {
    let access = try session.access(table.id)
    guard let shown = try access.row(present) else { return }
    let differing = table.cellPositions.filter { position in
      values[position] != shown.values[position]
        && !(table.columns[position].isIdentity && table.identity != .surrogate)
    }
    guard !differing.isEmpty else {
      report.equalRows += 1
      return
    }
    report.differingRows += 1
    report.differingCells += differing.count
    let row = RowKey(table: table.id, identity: try access.identity(ofKey: present))
    let cells = try differing.map { position in
      (
        column: position,
        local: try logical(values, position, table, plain: plain),
        remote: try session.exported(shown.values[position], table.columns[position])
      )
    }
    let state = try access.stamps.state(of: access.fingerprint(row.identity))
    let local = try cells.filter { cell in
      guard let stamps else { return prefer == .local }
      let column = table.columns[cell.column]
      let stamp = try stamps.stamp(of: row.identity, table, column: column.name)
      // Additions to a counter have no order.
      return column.domain != .counter
        && session.clients.stamp(state?.stamp(of: cell.column) ?? .zero) < stamp
    }
    var refusal: LocalEdits.Refusal?
    if !local.isEmpty {
      do {
        try LocalEdits(session: session).set(local.map { ($0.column, $0.local) }, of: row)
      } catch let refused as LocalEdits.Refusal {
        refusal = refused
      }
    }
    for cell in cells {
      let isLocal = refusal == nil && local.contains { $0.column == cell.column }
      try session.conflicts.journal.addSettled(
        ConflictJournal.Entry(
          kind: .cell, row: row, column: cell.column, rule: .join,
          outcome: isLocal ? .local : .remote,
          remoteStamp: state?.stamp(of: cell.column), message: refusal?.message,
          key: journalKey(shown.values, shown.localKey.map(Value.integer), table),
          local: [(cell.column, cell.local)], remote: [(cell.column, cell.remote)]))
    }
  }

  /// Returns whether the document knows that a row was deleted after its last change in the former
  /// database.
  private func isDeleted(
    _ row: FormerDatabase.Record, _ values: [Value], _ table: TableSchema, plain: Set<Int>
  ) throws -> Bool {
    guard let stamps else { return false }
    let access = try session.access(table.id)
    let identity = try identity(of: row, values, table, plain: plain)
    guard let state = try access.stamps.state(of: access.fingerprint(identity)),
      state.existence == .deleted
    else { return false }
    let deletion = session.clients.stamp(state.existenceStamp)
    return try stamps.latest(of: identity, table) < deletion
  }

  // MARK: - Rows that are new

  private func newIdentity() -> RowIdentity {
    RowIdentity(bytes: Bits128(high: random(), low: random()).bytes)
  }

  private func identity(
    of row: FormerDatabase.Record, _ values: [Value], _ table: TableSchema, plain: Set<Int>
  ) throws -> RowIdentity {
    guard table.identity != .surrogate else { return row.identity ?? newIdentity() }
    let access = try session.access(table.id)
    guard plain.isDisjoint(with: table.identityPositions) else {
      return access.identity(
        of: try table.identityPositions.map { try logical(values, $0, table, plain: plain) })
    }
    return try access.identity(ofKey: table.identityPositions.map { values[$0] })
  }

  /// A row's own key if it is free, or else a key that no row of the two
  /// databases has.
  func freeKey(_ own: Int64?, _ table: TableSchema) throws -> Int64? {
    guard let name = table.localKey.map(quoted) else { return nil }
    let database = session.database
    if let own {
      let isTaken = try Bool.fetchOne(
        database, sql: "SELECT EXISTS (SELECT 1 FROM main.\(table.quotedName) WHERE \(name) = ?)",
        arguments: [own])
      if isTaken == false { return own }
    }
    var greatest = greatestKeys[table.id] ?? 0
    if greatest == 0 {
      let maximum = "SELECT max(\(name)) FROM main."
      let here = try Int64.fetchOne(database, sql: maximum + table.quotedName) ?? 0
      let former = former.table(named: table.name)?.name ?? table.name
      let there = try Int64.fetchOne(self.former.database, sql: maximum + quoted(former)) ?? 0
      greatest = max(here, there, 0)
    }
    guard greatest < .max else { return nil }
    greatestKeys[table.id] = greatest + 1
    return greatest + 1
  }

  /// Inserts a row. Returns the key that names it in statements.
  ///
  /// - Parameter plain: The columns that contain a plain value that is the key of a row here.
  func insert(
    _ values: [Value], _ row: FormerDatabase.Record, _ table: TableSchema, plain: Set<Int>
  ) throws -> [Value] {
    let access = try session.access(table.id)
    let identity = try identity(of: row, values, table, plain: plain)
    let hint = try freeKey(row.localKey.flatMap(Value.key), table)
    if table.identity != .surrogate, let hint { access.formerKeys[identity] = hint }
    defer { access.formerKeys[identity] = nil }
    let new = RowKey(table: table.id, identity: identity)
    let key = try LocalEdits(session: session).insert(
      localValues: values, as: new, preferring: hint)
    for position in plain.sorted() {
      if table.identity != .surrogate && table.columns[position].isIdentity {
        session.writtenPlainRows.insert(new)
      } else {
        session.writtenPlainCells[new, default: []].append(
          StoreSession.PlainCell(
            table: table.id, key: key, column: position, value: values[position]))
      }
    }
    return key
  }

  /// Enters a row that a constraint of the document refuses into the conflict journal.
  func refuse(
    _ values: [Value], _ row: FormerDatabase.Record, _ table: TableSchema,
    _ refusal: LocalEdits.Refusal, plain: Set<Int>
  ) throws {
    let isUnique = refusal.detail?.contains("UNIQUE") ?? false
    try refuse(
      values, row, table, isUnique ? .uniqueValue : .condition, refusal.message, plain: plain)
  }

  /// Enters a row that the document cannot take as it is into the conflict journal, and records that
  /// references to it lead nowhere.
  private func refuse(
    _ values: [Value], _ row: FormerDatabase.Record, _ table: TableSchema, _ kind: Conflict.Kind,
    _ message: String, plain: Set<Int>
  ) throws {
    try keys.note(.nowhere, of: key(of: row, table), in: table)
    report.refusedRows += 1
    let rule: Conflict.Rule =
      switch kind {
      case .reference: .reference
      case .uniqueValue: .uniqueValue
      case .existence: .deleteWins
      case .condition, .cell: .condition
      }
    try session.conflicts.journal.addSettled(
      ConflictJournal.Entry(
        kind: kind,
        row: RowKey(table: table.id, identity: try identity(of: row, values, table, plain: plain)),
        rule: rule, outcome: .remote, message: message,
        key: journalKey(values, row.localKey, table),
        local: try values.indices.map { ($0, try logical(values, $0, table, plain: plain)) }))
  }

  private func journalKey(
    _ values: [Value], _ localKey: Value?, _ table: TableSchema
  ) -> [ConflictJournal.Entry.Cell] {
    guard table.identity == .surrogate else {
      return table.identityPositions.map { ($0, values[$0]) }
    }
    return localKey.map { [(ConflictTable.localKeyPosition, $0)] } ?? []
  }
}

extension StoreSchema {
  /// The tables that refer to themselves, directly or through others.
  var tablesInCircles: Set<Int> {
    var reachable: [Int: Set<Int>] = [:]
    for table in tables { reachable[table.id] = Set(table.foreignKeys.map(\.parent)) }
    var isGrowing = true
    while isGrowing {
      isGrowing = false
      for table in tables {
        let before = reachable[table.id] ?? []
        let after = before.union(before.flatMap { reachable[$0] ?? [] })
        if after.count > before.count {
          reachable[table.id] = after
          isGrowing = true
        }
      }
    }
    return Set(tables.map(\.id).filter { reachable[$0]?.contains($0) ?? false })
  }
}
