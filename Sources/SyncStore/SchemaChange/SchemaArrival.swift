import Foundation
import GRDB
import SyncModel

/// The work that is left once bookkeeping is in line with a changed schema: it logs rows that could
/// be edited without triggers, merges the values that were stored for new tables and columns, and
/// decides again on rows that are not shown, since the conditions may have changed.
struct SchemaArrival {
  let session: StoreSession
  private let absent: AbsentValues
  /// The number of rows that are settled at once.
  private static let rowsPerBatch = 50_000

  init(session: StoreSession) {
    self.session = session
    absent = AbsentValues(session.database)
  }

  /// Finds the edits before the change that triggers have not seen. The log is to be sealed next.
  func begin(_ concerned: SchemaRenewal.Concerned) throws {
    try KeyFormChange(session, former: concerned.formerKeyForms).run()
    try forgetClaims()
    try session.noteRemade(concerned.remade)
    try NewRowNames(session).run(new: concerned.new, remade: concerned.remade)
    for table in try session.tablesToCompare() { try session.findUnseenRows(of: table) }
  }

  // MARK: - Tables that were without triggers

  /// Logs all rows of a table that a program remade and whose former rows are not recorded: its
  /// content may have changed, and no trigger saw the change.
  ///
  /// A row that the table no longer has is not deleted on other devices. If the number of rows
  /// shows such a loss, the table counts as incomplete. The entries precede those that triggers
  /// have written since the remake.
  ///
  /// - Parameter noticed: The time at which the remake was noticed, in milliseconds since 1970. A
  ///   row whose deletion is known counts as inserted at that time.
  func logRows(of id: Int, noticed: Int64) throws {
    let access = try session.access(id)
    let table = access.table
    var logging = try Logging(table, session, noticed: noticed)
    let reading = try SQLStatement(
      "SELECT \(table.keyColumns.map(quoted).joined(separator: ", ")) FROM \(table.quotedName)",
      on: session.database)
    var keys: [[Value]] = []
    var seen = 0
    func flush() throws {
      let identities = try keys.map { try access.identity(ofKey: $0) }
      let fingerprints = identities.map(access.fingerprint)
      let order = keys.indices.sorted { fingerprints[$0] < fingerprints[$1] }
      let states = try access.stamps.states(of: order.map { fingerprints[$0] })
      for (row, state) in zip(order, states) {
        let identity = identities[row]
        guard let state else {
          try logging.addInsertion(keys[row], identity)
          continue
        }
        if state.existence == .inserted, !state.isKept { seen += 1 }
        if try !session.wasShown(RowKey(table: id, identity: identity), state) {
          try logging.addInsertion(keys[row], nil)
        } else if state.existence == .unsaid {
          try logging.addInsertion(keys[row], identity)
        } else if !state.isKept {
          try logging.addUpdate(keys[row])
        } else if let kept = try session.keptRows.row(RowKey(table: id, identity: identity)),
          kept.reason != .borrowed
        {
          try logging.addUpdate(keys[row], except: kept.cells.map(\.column))
        }
      }
      keys = []
    }
    while try reading.step() {
      let key = table.keyColumns.indices.map { reading.value(at: $0) }
      if key.contains(.null) { continue }
      keys.append(key)
      if keys.count == Self.rowsPerBatch { try flush() }
    }
    try flush()
    var expected = 0
    try access.stamps.forEach { if $1.existence == .inserted, !$1.isKept { expected += 1 } }
    if seen < expected {
      try LostNames.note(nil, of: table.wireName, session.database)
    }
  }

  /// A writer of entries to a table's log.
  private struct Logging {
    let table: TableSchema
    let access: TableAccess
    let names: NewRowNames
    let noticed: Int64
    /// One millisecond since 1970: every captured edit is later.
    private static let unknownTime: Int64 = 1
    let update: SQLStatement
    let insert: SQLStatement
    /// The least number of an entry.
    var first: Int64

    init(_ table: TableSchema, _ session: StoreSession, noticed: Int64) throws {
      self.table = table
      self.noticed = noticed
      access = try session.access(table.id)
      names = NewRowNames(session)
      let least = try Int64.fetchOne(
        session.database, sql: "SELECT min(seq) FROM \(table.logName)")
      first = min(least ?? 1, 1)
      let keys = table.keyColumns.indices.map { "k\($0)" }
      let marks = keys.map { _ in "?" }.joined(separator: ", ")
      update = try SQLStatement(
        "INSERT INTO \(table.logName) (op, \(keys.joined(separator: ", ")), seq, at, mask) "
          + "VALUES (\(CaptureTriggers.Entry.update.rawValue), \(marks), ?, ?, ?)",
        on: session.database)
      insert = try SQLStatement(
        "INSERT INTO \(table.logName) (op, \(keys.joined(separator: ", ")), seq, at, identity) "
          + "VALUES (\(CaptureTriggers.Entry.insert.rawValue), \(marks), ?, ?, ?)",
        on: session.database)
    }

    /// - Parameter overlaid: The columns in which the row shows other values than its own.
    mutating func addUpdate(_ key: [Value], except overlaid: [Int] = []) throws {
      var columns = ColumnSet()
      for position in table.cellPositions where !overlaid.contains(position) {
        columns.formUnion(ColumnSet(position))
      }
      guard !columns.isEmpty else { return }
      let next = begin(update, key, at: Self.unknownTime)
      update.bind(columns.mask, at: next)
      try update.run()
    }

    /// - Parameter identity: The identity of the row if the row is as old as the table; `nil` if
    ///   the row is newer, since the row known by that identity is not shown.
    mutating func addInsertion(_ key: [Value], _ identity: RowIdentity?) throws {
      let next = begin(insert, key, at: identity == nil ? noticed : Self.unknownTime)
      if table.identity == .surrogate {
        let named =
          try identity == nil ? nil : Value.key(key[0]).flatMap(access.explicitIdentity)
        let given = table.hasUnstampedRows ? identity : nil
        insert.bind(blob: try (named ?? given ?? newIdentity(key)).bytes, at: next)
      } else {
        insert.bind(null: next)
      }
      try insert.run()
    }

    /// Binds the key, the number of the entry and its time. Returns the next position.
    private mutating func begin(
      _ statement: SQLStatement, _ key: [Value], at milliseconds: Int64
    ) -> Int {
      for (index, value) in key.enumerated() { statement.bind(value, at: index + 1) }
      first -= 1
      statement.bind(first, at: key.count + 1)
      statement.bind(
        .real(HybridTime.julianDay(milliseconds: milliseconds)), at: key.count + 2)
      return key.count + 3
    }

    /// Returns an identity that is the same on all devices on which the same migration makes the
    /// row.
    private func newIdentity(_ key: [Value]) throws -> RowIdentity {
      try names.identity(of: key, access.row(key)?.values ?? [], in: table)
    }
  }

  // MARK: - Stored values

  /// Merges the values that were stored for tables and columns that exist by now, as if they
  /// arrived now.
  func bringIn() throws {
    let set = WorkingSet(session: session)
    for foreign in try session.foreign.all() {
      guard let table = foreign.table(in: session.schema) else { continue }
      let places = foreign.columns.map { name in
        table.columns.firstIndex { $0.wireName == name }
      }
      var last: RowIdentity?
      while true {
        let rows = try session.foreign.rows(of: foreign, after: last, limit: Self.rowsPerBatch)
        guard let final = rows.last else { break }
        last = final.identity
        for (identity, row) in rows {
          try bringIn(row, identity, foreign, table, places, set)
          if set.count >= Self.rowsPerBatch { _ = try Materializer(set: set).run() }
        }
      }
    }
    _ = try Materializer(set: set).run()
  }

  private func bringIn(
    _ row: ForeignRow, _ identity: RowIdentity, _ foreign: ForeignRows.Table,
    _ table: TableSchema, _ places: [Int?], _ set: WorkingSet
  ) throws {
    func place(_ cell: ForeignRow.Cell) -> Int? { self.place(of: cell, in: table, places) }
    guard row.existence != .unsaid || row.cells.contains(where: { place($0) != nil }) else {
      return
    }
    let access = try session.access(table.id)
    // Only now does the schema tell which spellings of a key are equal.
    guard let known = try access.canonical(identity) else { return }
    let action: RowAction =
      switch row.existence {
      case .unsaid: .update
      case .inserted: .insert
      case .deleted: .delete
      }
    let change = WorkingSet.Change(
      action: action, stamp: row.existenceStamp,
      cells: try row.cells.compactMap { cell in
        try place(cell).map {
          (column: $0, value: try value(cell.value, table.columns[$0]), stamp: cell.stamp)
        }
      }, keyHint: row.keyHint, movedTo: try row.destination.flatMap(access.canonical),
      erasureStamp: row.erasureStamp == .zero ? nil : row.erasureStamp)
    let merged = try set.row(RowKey(table: table.id, identity: known))
    try set.conflicts.noteArrival(change, on: merged, defaults: absent.values(of: table))
    _ = try set.merge(change, into: merged)
    let rest = ForeignRow(cells: row.cells.filter { place($0) == nil })
    if known != identity { try session.foreign.store(ForeignRow(), identity, of: foreign.id) }
    try session.foreign.store(rest, known, of: foreign.id)
  }

  /// Returns the position of a cell's column by now; `nil` if there is none that can have the value.
  ///
  /// - Parameter places: The positions of the columns of the stored rows, by their positions there.
  func place(of cell: ForeignRow.Cell, in table: TableSchema, _ places: [Int?]) -> Int? {
    guard cell.column < places.count, let place = places[cell.column] else { return nil }
    let column = table.columns[place]
    // A later version may be able to read the value, and another device may know what the column
    // refers to.
    let isReadable =
      switch (column.domain, cell.value) {
      case (.counter, _): CounterValue(cell.value) != nil
      case (.plain, .identity): column.isIdentity
      case (.plain, _), (.key, _): true
      }
    return isReadable ? place : nil
  }

  /// Returns a stored value in the form that it has in a column.
  func value(_ value: Value, _ column: ColumnSchema) throws -> Value {
    guard case .identity(let row) = value, let parent = column.referredTable else {
      return value.kept(in: column)
    }
    return .identity(try session.access(parent).presentIdentity(row))
  }

  /// Forgets the claims of rows that are not shown, since indexes may have other numbers by now.
  /// ``settle()`` notes the claims again.
  func forgetClaims() throws {
    try session.keptRows.forgetClaims()
  }

  /// Forgets the claims and references of rows that are not shown, and the identities under which
  /// they would be shown, since columns may have other names by now. ``settle()`` notes all of it
  /// again.
  ///
  /// Call it after the earlier edits are sealed: until then, the references tell which of these
  /// rows go with deleted rows.
  func forgetClaimsAndReferences() throws {
    try session.keptRows.forgetClaimsAndReferences()
  }

  /// Decides again on all rows for which bookkeeping has an entry (``KeptRow``).
  ///
  /// Counters of remade tables stay as they are shown until they are compared: otherwise increments
  /// made without triggers would be overwritten.
  func settle() throws {
    let remade = Set(try session.remadeTables().map(\.table.id))
    let rows = try session.keptRows.all()
    let set = WorkingSet(session: session)
    let unsettled = WorkingSet(session: session)
    for key in rows {
      if remade.contains(key.table), try keepsOnlyCounters(key) {
        let references = try RowWriter(set: unsettled).references(
          of: try unsettled.row(key), session.schema[key.table])
        try session.keptRows.noteReferences(references, of: key)
        unsettled.removeAll()
        continue
      }
      try set.row(key)
      if set.count >= Self.rowsPerBatch { _ = try Materializer(set: set).run() }
    }
    _ = try Materializer(set: set).run()
  }

  /// Removes notes that numbers are plain, if they were made only because the numbers still stood for
  /// deleted rows (``StoreSession/areKeysHeld()``).
  func forgetNeedlessNotes() throws {
    let set = WorkingSet(session: session)
    for table in session.schema.tables {
      let columns = table.columns.indices.filter { column in
        if case .key = table.columns[column].domain { true } else { false }
      }
      for identity in try session.keptRows.plainValues(of: table, in: columns).keys.sorted() {
        try set.row(RowKey(table: table.id, identity: identity))
        if set.count >= Self.rowsPerBatch { _ = try Materializer(set: set).run() }
      }
    }
    _ = try Materializer(set: set).run()
  }

  /// Returns whether a row shows its own values, and bookkeeping stores only the sums of its
  /// counters.
  private func keepsOnlyCounters(_ key: RowKey) throws -> Bool {
    guard let kept = try session.keptRows.row(key), kept.reason == .overlaid else { return false }
    let columns = session.schema[key.table].columns
    return kept.cells.allSatisfy { columns[$0.column].domain == .counter }
  }
}
