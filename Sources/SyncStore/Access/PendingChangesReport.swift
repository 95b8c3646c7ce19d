import Foundation
import GRDB
import SyncModel

/// The making of a list of the edits that no other device can have. Only reads.
struct PendingChangesReport {
  private typealias Change = StoreStatus.PendingChanges.Change

  private let session: StoreSession
  private let limit: Int
  private var found = StoreStatus.PendingChanges()
  private var incomplete: Set<SQLName>

  private init(_ session: StoreSession, _ limit: Int) throws {
    self.session = session
    self.limit = min(max(limit, 0), Self.greatestLimit)
    incomplete = session.schema.suspendedNames
    incomplete.formUnion(try session.remadeTables().map(\.table.name))
  }

  /// The most changes in a list.
  private static let greatestLimit = 1_000_000

  /// Returns the changes, at most `limit`.
  static func make(_ session: StoreSession, limit: Int) throws -> StoreStatus.PendingChanges {
    var report = try PendingChangesReport(session, limit)
    try report.addUnpublished()
    try report.addTooLarge()
    try report.addUnsealed()
    report.found.incompleteTables = report.incomplete.sorted()
    return report.found
  }

  /// Returns the numbers, without looking at the edits.
  static func count(_ session: StoreSession) throws -> StoreStatus.PendingCount {
    StoreStatus.PendingCount(
      unsealed: try session.entryCount(), unpublished: try session.outbox.unpublishedRowCount(),
      tooLarge: try session.heldEdits().present(session).count)
  }

  /// Returns whether no further change is wanted, and then notes that there is one.
  private mutating func isFull() -> Bool {
    guard found.changes.count >= limit else { return false }
    found.hasMore = true
    return true
  }

  // MARK: - Change sets

  private mutating func addUnpublished() throws {
    let sealed = try session.outbox.all(of: session.own, andUnpublished: true)
    for set in sealed where !set.isPublished && set.rowCount > 0 {
      if isFull() { return }
      let client = session.clients.knownNumber(of: set.client)
      let bytes = try client.flatMap { try session.outbox.file(set.number, of: $0)?.bytes } ?? []
      do {
        for changes in try ChangeSetCodec.decode(bytes).tables {
          guard try add(changes) else { return }
        }
      } catch let error as CodecError {
        throw Outbox.definition.damaged("change set \(set.number): \(error)")
      }
    }
  }

  /// Adds the rows of a table; returns false if there are too many.
  private mutating func add(_ changes: TableChanges) throws -> Bool {
    let known = session.schema.table(wireName: changes.table).flatMap {
      $0.knowsRows(as: changes) ? $0 : nil
    }
    let access = try known.map { try session.access($0.id) }
    var names: [SQLName: SQLName] = [:]
    for column in known?.columns ?? [] { names[column.wireName] = column.name }
    let times = Dictionary(grouping: changes.exceptions.filter { $0.column != nil }, by: \.row)
    for row in 0..<changes.count {
      if isFull() { return false }
      found.changes.append(
        Change(
          table: known?.name ?? changes.table, keyColumns: known?.keyColumns ?? changes.keyColumns,
          key: try access.flatMap { try key(row, of: changes, $0) },
          identity: identity(row, of: changes), kind: kind(row, of: changes),
          columns: changes.actions[row] != RowAction.update.rawValue
            ? []
            : changes.shapes[Int(changes.rowShapes[row])].map {
              names[changes.columns[$0]] ?? changes.columns[$0]
            },
          since: since(row, of: changes, times[row, default: []]), stage: .unpublished))
    }
    return true
  }

  private func identity(_ row: Int, of changes: TableChanges) -> RowIdentity? {
    guard changes.identity == .surrogate, case .blob(let bytes) = changes.keys[0][row] else {
      return nil
    }
    return RowIdentity(bytes: bytes)
  }

  private func kind(_ row: Int, of changes: TableChanges) -> StoreStatus.PendingChanges.Kind {
    switch RowAction(rawValue: changes.actions[row]) {
    case .insert: .inserted
    case .update, nil: .updated
    case .delete, .erase: .deleted
    }
  }

  /// Returns the local values of a row's key, as this device wrote them.
  private func key(
    _ row: Int, of changes: TableChanges, _ access: TableAccess
  ) throws -> [Value]? {
    if changes.identity == .surrogate {
      if let key = try access.localKey(of: access.identity(of: row, in: changes)) {
        return [.integer(key)]
      }
      // The number that the row had.
      return changes.keys[1][row] == .null ? nil : [changes.keys[1][row]]
    }
    var key: [Value] = []
    for (position, values) in zip(access.table.identityPositions, changes.keys) {
      guard let value = try session.imported(values[row], access.table.columns[position]) else {
        return nil
      }
      key.append(value)
    }
    return key
  }

  /// Returns the time of the first edit of a row.
  ///
  /// - Parameter cells: The stamps of the cells that do not have the time of the row.
  private func since(_ row: Int, of changes: TableChanges, _ cells: [StampException]) -> Date {
    var times = cells.map(\.stamp.time)
    let cellCount = changes.shapes[Int(changes.rowShapes[row])].count
    if changes.actions[row] != RowAction.update.rawValue || times.count < cellCount {
      times.append(changes.times[row])
    }
    return Date(milliseconds: (times.min() ?? changes.times[row]).milliseconds)
  }

  // MARK: - Edits on this device

  private mutating func addTooLarge() throws {
    for (edit, access, state) in try session.heldEdits().present(session) {
      let table = access.table
      let positions = edit.kind == .update ? edit.positions(in: table) : []
      if isFull() { return }
      found.changes.append(
        Change(
          table: table.name, keyColumns: table.keyColumns, key: try key(of: edit.row, access),
          identity: table.identity == .surrogate ? edit.row : nil, kind: kind(edit.kind),
          columns: positions.filter { edit.has(state.stamp(of: $0), session) }.map {
            table.columns[$0].name
          },
          since: Date(
            milliseconds: HybridTime(
              rawValue: edit.times.min() ?? state.existenceStamp.time
            ).milliseconds), stage: .tooLarge))
    }
  }

  private func kind(_ kind: HeldEdits.Edit.Kind) -> StoreStatus.PendingChanges.Kind {
    switch kind {
    case .insertion: .inserted
    case .update: .updated
    case .deletion: .deleted
    }
  }

  /// Returns the local values of a row's key, as its table has them.
  private func key(of row: RowIdentity, _ access: TableAccess) throws -> [Value]? {
    guard let shown = try access.shown(row) else { return HeldEdits.key(of: row, access.table) }
    guard access.table.identity != .surrogate else { return shown.key }
    return access.table.identityPositions.map { shown.values[$0] }
  }

  private mutating func addUnsealed() throws {
    for table in try session.tablesWithEdits() {
      let rows = try UnsealedRows(of: table, session)
      if rows.hasLostKeys { incomplete.insert(table.name) }
      guard !found.hasMore else { continue }
      let (changes, hasMore) = try rows.changes(limit: limit - found.changes.count)
      found.changes += changes.map { change in
        Change(
          table: table.name, keyColumns: table.keyColumns, key: change.key,
          identity: table.identity == .surrogate ? change.identity : nil, kind: change.kind,
          columns: change.columns.map { table.columns[$0].name },
          since: Date(milliseconds: change.since.milliseconds), stage: .unsealed)
      }
      found.hasMore = hasMore
    }
  }
}
