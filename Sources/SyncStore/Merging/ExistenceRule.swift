import GRDB
import SyncModel

/// The first step of materialization: it decides which rows of a working set exist, and which
/// references show another value than their own.
///
/// A deleted row comes back if a row that exists refers to it and the schema would have refused to
/// delete it. A row goes with a deleted row if the schema would have cascaded the deletion to it.
/// The set grows by all rows that affect these decisions.
final class ExistenceRule {
  let set: WorkingSet
  let session: StoreSession
  /// The status of rows outside the set; each row is looked up once.
  private var outside: [RowKey: OutsideRow] = [:]

  /// The tables of which ``expand()`` has loaded the rows that are shown although they are deleted.
  var tablesOfUndead: Set<Int> = []
  /// The tables to which others refer by columns that are no key.
  lazy var tablesNamedByColumns = Set(
    session.schema.tables.filter { table in
      session.schema.inbound(to: table).contains { !table.identifies($0) }
    }.map(\.id))

  init(set: WorkingSet) {
    self.set = set
    session = set.session
  }

  // MARK: - Where references lead

  /// Returns the row that a reference names by its identity; `nil` if it names none.
  func target(_ key: ForeignKey, _ values: [Value?]) -> RowKey? {
    let parent = session.schema[key.parent]
    let referring = key.columns.map { values[$0] ?? .null }
    guard !referring.contains(.null) else { return nil }
    return parent.identity(for: referring, of: key).map { RowKey(table: parent.id, identity: $0) }
  }

  /// Returns a reference that names its row by identity, and where it leads; `nil` if it is NULL or
  /// a plain value, or if it names its row by other columns.
  func link(of row: WorkingRow, _ key: ForeignKey) throws -> WorkingRow.Link? {
    let table = session.schema[row.key.table]
    guard session.schema[key.parent].identifies(key),
      !key.columns.contains(where: { (row.values[$0] ?? .null) == .null })
    else { return nil }
    guard let named = target(key, row.values) else {
      guard key.isEnforced else { return nil }
      return WorkingRow.Link(key: key, target: nil, row: nil, path: [], isMoved: false)
    }
    if !key.isEnforced, try !isKnown(named), session.schema[key.parent].localKey == nil {
      return nil
    }
    let canFollow = !key.columns.contains { table.columns[$0].isIdentity }
    let (target, path) = canFollow ? destination(of: named) : (named, [])
    return WorkingRow.Link(
      key: key, target: target, row: set[target], path: path, isMoved: target != named)
  }

  /// Returns the row as which a row lives on after all changes of its key, and the rows on the way.
  /// If the moves form a circle, returns the row itself.
  private func destination(of named: RowKey) -> (target: RowKey, path: [RowKey]) {
    var target = named
    var path: [RowKey] = []
    var seen: Set<RowKey> = [named]
    while let row = set[target], !row.isLiving, let destination = row.movedTo {
      target = RowKey(table: target.table, identity: destination)
      guard seen.insert(target).inserted else { return (named, path) }
      path.append(target)
    }
    return (target, path)
  }

  func look(at key: RowKey) throws -> OutsideRow {
    if let known = outside[key] { return known }
    let status =
      try session.keptRows.undead().contains(key) ? .kept : session.outsideRow(key)
    outside[key] = status
    return status
  }

  // MARK: - Deciding

  /// Decides which rows exist and what their references show.
  func decide() throws {
    for row in set.rows {
      row.standIn = nil
      row.shownIdentity = nil
      row.borrower = nil
      row.isElsewhere = false
      row.overlays = [:]
      row.isRescued = try awaitsComparison(row)
      row.isKilled = false
      row.exists = row.isLiving || row.isRescued
      row.links = try session.schema[row.key.table].foreignKeys.compactMap {
        try link(of: row, $0)
      }
    }
    if set.rows.contains(where: \.isDead) { rescue() }
    for row in set.rows {
      if row.exists { try lay(over: row, keepsIdentity: true) }
      row.ownOverlays = row.overlays
    }
  }

  /// Returns whether a row is shown although it is deleted, and a program has remade its table.
  /// Until the table is compared, the row stays, since the program may have edited it.
  private func awaitsComparison(_ row: WorkingRow) throws -> Bool {
    guard row.isDead, row.wasDead, row.shown != nil, !row.wasBorrowed else { return false }
    return try session.tablesToCompare().contains(row.key.table)
  }

  /// Decides which rows go with deleted ones, which rows exist, and which rows these hold, and
  /// repeats this while rows come back.
  private func rescue() {
    var children: [ObjectIdentifier: [WorkingRow]] = [:]
    for row in set.rows {
      for link in row.links where link.key.onDelete == .cascade {
        if let parent = link.row { children[ObjectIdentifier(parent), default: []].append(row) }
      }
    }
    var grows = true
    while grows {
      grows = false
      kill(children)
      var queue = set.rows.filter(\.exists)
      while let row = queue.popLast() {
        for link in row.links where link.key.holds {
          guard let held = link.row, !held.exists, isKnown(held) else { continue }
          held.isRescued = true
          held.isKilled = false
          held.exists = true
          grows = true
          queue.append(held)
        }
      }
    }
  }

  private func kill(_ children: [ObjectIdentifier: [WorkingRow]]) {
    var queue: [WorkingRow] = []
    for row in set.rows {
      row.isKilled = row.isDead && !row.isRescued
      if row.isKilled { queue.append(row) }
    }
    while let row = queue.popLast() {
      for child in children[ObjectIdentifier(row)] ?? []
      where child.isLiving && !child.isRescued && !child.isKilled {
        child.isKilled = true
        queue.append(child)
      }
    }
    for row in set.rows { row.exists = (row.isLiving || row.isRescued) && !row.isKilled }
  }

  /// Returns whether a row's cells are known, so that it can be shown.
  private func isKnown(_ row: WorkingRow) -> Bool {
    if row.isLiving { return true }
    guard row.isDead, !row.state.isErased else { return false }
    let cells = session.schema[row.key.table].cellPositions
    return cells.isEmpty || cells.contains { row.values[$0] != nil }
  }

  func exists(_ link: WorkingRow.Link) throws -> Bool {
    if let row = link.row { return row.exists }
    guard let target = link.target else { return false }
    return try look(at: target) == .shown
  }
}
