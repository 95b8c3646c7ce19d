import SyncModel

/// The effects of edits on rows that are not in their table, where the log cannot record them.
///
/// If the key of such a row refers to a row that has another key now, the row moves with that row.
/// Shown rows follow such an edit, because of the schema or because their local values stand for
/// another identity. Hidden rows would hold the row under its old key, and bring it back. Hidden
/// rows that go with another row, and that no local key names, are deleted by their identities.
struct HiddenEdits {
  private let session: StoreSession
  private let limits: CodecLimits
  /// The new identities of the rows that have moved.
  private let destinations: [RowKey: RowIdentity]
  private var rows: [HiddenRow] = []
  private var indexes: [RowKey: Int] = [:]
  private var deletions: [(row: RowKey, time: HybridTime)] = []

  /// A row that moves, as it was before the edits were exported.
  private struct HiddenRow {
    var key: RowKey
    /// The logical values, by column; those of the key in the form of their columns.
    var values: [Value]
    var state: RowState
    /// The time of the edit that it follows.
    var time: HybridTime
    /// Whether it is deleted. Rows that refer to a deleted row by their own keys hold it and the
    /// rows to which it refers, so that they move; the deleted row itself is not exported.
    var isDeleted: Bool
  }

  /// Finds the rows that move. Must be called before the edits are exported.
  init(
    _ moves: [RowKey: (destination: RowIdentity, time: Double)], limits: CodecLimits,
    session: StoreSession
  ) throws {
    self.session = session
    self.limits = limits
    destinations = moves.mapValues(\.destination)
    let parents = moves.map { ($0.key, HybridTime(julianDay: $0.value.time)) }
      .sorted { ($0.0.table, $0.0.identity) < ($1.0.table, $1.0.identity) }
    try addChildren(of: parents)
  }

  /// Adds the hidden rows that move with rows, directly or through other hidden rows.
  private mutating func addChildren(of parents: [(row: RowKey, time: HybridTime)]) throws {
    var parents = parents
    while let (parent, time) = parents.popLast() {
      for child in try children(of: parent) where indexes[child.key] == nil {
        add(child, at: time)
        parents.append((child.key, time))
      }
    }
  }

  private mutating func add(_ row: WorkingRow, at time: HybridTime) {
    indexes[row.key] = rows.count
    rows.append(
      HiddenRow(
        key: row.key, values: row.values.map { $0 ?? .null }, state: row.state, time: time,
        isDeleted: row.isDead))
  }

  /// Notes that a row that is shown under another identity moves to it, since the hidden row to
  /// which a reference in its key leads is deleted with another row.
  ///
  /// - Parameters:
  ///   - parent: The hidden row.
  ///   - standIn: The row to which the reference is shown to lead.
  ///   - time: When the other row was deleted, as a Julian day.
  mutating func addMove(
    of key: RowKey, by reference: ForeignKey, from parent: RowKey, to standIn: RowIdentity,
    at time: Double
  ) throws {
    if indexes[key] == nil {
      let row = try WorkingSet(session: session).row(key)
      guard row.shown == nil, row.isLiving,
        self.parent(of: row.values, by: reference) == parent
      else { return }
      let time = HybridTime(julianDay: time)
      add(row, at: time)
      try addChildren(of: [(key, time)])
    }
    guard let index = indexes[key], self.parent(of: rows[index].values, by: reference) == parent
    else { return }
    let table = session.schema[reference.parent]
    let referring = table.referringValues(
      to: standIn, by: reference, in: session.schema[key.table])
    for (column, value) in zip(reference.columns, referring ?? []) {
      rows[index].values[column] = value
    }
  }

  /// Returns the hidden rows that exist, or did, and refer to a row by their own key.
  private func children(of parent: RowKey) throws -> [WorkingRow] {
    let table = session.schema[parent.table]
    let set = WorkingSet(session: session)
    return try session.schema.inbound(to: table).flatMap { reference -> [WorkingRow] in
      let child = session.schema[reference.child]
      guard table.identifies(reference), child.hasInKey(reference) else { return [] }
      let key = ReferenceKey(
        parent: table.id, columns: reference.columnsName,
        key: table.referenceKey(
          table.referredValues(of: parent.identity, by: reference), reference))
      let rows = try session.keptRows.rows(referringBy: key).filter { $0.table == child.id }
      return try rows.map(set.row).filter { row in
        // A stand-in is no parent.
        row.shown == nil && (row.isLiving || row.isDead)
          && self.parent(of: row.values, by: reference) == parent
      }
    }
  }

  private func parent(of values: [Value?], by reference: ForeignKey) -> RowKey? {
    let table = session.schema[reference.parent]
    let referring = reference.columns.map { values[$0] ?? .null }
    guard !referring.contains(.null) else { return nil }
    return table.identity(for: referring, of: reference).map {
      RowKey(table: table.id, identity: $0)
    }
  }

  /// Notes that a row is deleted together with another row.
  ///
  /// - Parameter time: When the other row was deleted, as a Julian day.
  mutating func addDeletion(of row: RowKey, at time: Double) {
    deletions.append((row, HybridTime(julianDay: time)))
  }

  // MARK: - Destinations

  /// Returns a row's values, with the new identities of the rows that its key refers to.
  private func movedValues(_ row: HiddenRow, _ seen: Set<RowKey> = []) throws -> [Value] {
    var values = row.values
    let child = session.schema[row.key.table]
    for reference in child.foreignKeys where child.hasInKey(reference) {
      let table = session.schema[reference.parent]
      guard let parent = parent(of: row.values, by: reference), table.identifies(reference),
        let destination = try destination(of: parent, seen.union([row.key])),
        let referring = table.referringValues(to: destination, by: reference, in: child)
      else { continue }
      for (column, value) in zip(reference.columns, referring) { values[column] = value }
    }
    return values
  }

  private func destination(of row: RowKey, _ seen: Set<RowKey>) throws -> RowIdentity? {
    if let known = destinations[row] { return known }
    guard !seen.contains(row), let index = indexes[row] else { return nil }
    let values = try movedValues(rows[index], seen)
    let positions = session.schema[row.table].identityPositions
    let destination = try session.access(row.table).identity(of: positions.map { values[$0] })
    // What no change set can carry stays under its old key, on all devices.
    let keys = row.identity.bytes.count + destination.bytes.count
    return max(Self.contentCount(values), keys) <= limits.safeContent ? destination : nil
  }

  private static func contentCount(_ values: [Value]) -> Int {
    values.reduce(0) { $0 + $1.contentCount }
  }

  // MARK: - Exporting

  /// Adds the changes to the change sets and merges them. Must be called after the edits were
  /// exported.
  func export(to builder: ChangeSetBuilder, into set: WorkingSet) throws {
    // Another row may have taken the key of one by now.
    let moving = try Dictionary(
      uniqueKeysWithValues: rows.compactMap { row -> (RowKey, RowIdentity)? in
        guard let destination = try destination(of: row.key, []), destination != row.key.identity,
          try set.row(row.key).state.existenceStamp == row.state.existenceStamp
        else { return nil }
        return (row.key, destination)
      })
    var arriving: [RowKey: HiddenRow] = [:]
    for row in rows where !row.isDeleted {
      guard let destination = moving[row.key] else { continue }
      let key = RowKey(table: row.key.table, identity: destination)
      // Two rows may have become one: the other is as the program has left it.
      if arriving[key] == nil, try moving[key] != nil || !set.row(key).isLiving {
        arriving[key] = row
      }
    }
    for table in session.schema.inDependencyOrder(session.schema.tables) {
      var exported = ExportedRows(of: table, session: session)
      let living = rows.filter { $0.key.table == table.id && !$0.isDeleted }
      for row in living {
        guard let destination = moving[row.key] else { continue }
        if row.key.identity.bytes.count + destination.bytes.count > builder.largeByteCount {
          try exported.finish(builder)
          try builder.seal()
        }
        if arriving[row.key] == nil {
          try delete(row.key, row.time, movedTo: destination, &exported, set)
        }
        let key = RowKey(table: table.id, identity: destination)
        if arriving[key]?.key == row.key {
          if try Self.contentCount(movedValues(row)) > builder.largeByteCount {
            try exported.finish(builder)
            try builder.seal()
          }
          try insert(row, as: key, table, &exported, set)
        }
        try exported.finishIfFull(builder)
      }
      for deletion in deletions where deletion.row.table == table.id {
        let row = try set.row(deletion.row)
        guard row.isLiving, row.shown == nil, moving[row.key] == nil, arriving[row.key] == nil
        else { continue }
        try delete(row.key, deletion.time, movedTo: nil, &exported, set)
        try exported.finishIfFull(builder)
      }
      try exported.finish(builder)
    }
    try builder.seal()
  }

  private func delete(
    _ key: RowKey, _ time: HybridTime, movedTo destination: RowIdentity?,
    _ exported: inout ExportedRows, _ set: WorkingSet
  ) throws {
    let table = session.schema[key.table]
    let old = try set.row(key)
    let time = (table.mergeType == .editWins ? .zero : time).raised(aboveAllOf: old.state)
    let stamp = LocalStamp(time: time.rawValue, client: session.own)
    let action = table.keepsDeleted ? RowAction.delete : .erase
    let movedTo = table.isReferred ? destination : nil
    if let movedTo { exported.appendMove(to: movedTo) }
    let values = try set.keyValues(of: key, table)
    exported.appendRow(
      table.identityPositions.map { values[$0] ?? .null }, action, time, cells: [])
    try set.merge(
      WorkingSet.Change(
        action: action, stamp: stamp, cells: [], movedTo: movedTo,
        erasureStamp: action == .erase ? stamp : nil), into: old)
  }

  private func insert(
    _ row: HiddenRow, as key: RowKey, _ table: TableSchema, _ exported: inout ExportedRows,
    _ set: WorkingSet
  ) throws {
    let new = try set.row(key)
    // The row keeps its age, so that a row that was shown in its place is still shown.
    let time = HybridTime(rawValue: row.state.greatestTime).raised(aboveAllOf: new.state)
    let stamp = LocalStamp(time: time.rawValue, client: session.own)
    let values = try movedValues(row)
    typealias Cell = (column: Int, value: Value, stamp: LocalStamp)
    let cells = table.cellPositions.map { position -> Cell in
      let counter = CounterValue(values[position]).flatMap {
        table.columns[position].domain == .counter ? $0.counter : nil
      }
      return (position, counter?.total ?? values[position], stamp)
    }
    for (index, cell) in cells.enumerated() { exported.appendCell(cell.value, to: index) }
    exported.appendRow(
      table.identityPositions.map { values[$0] }, .insert, time, cells: Array(cells.indices))
    try set.merge(WorkingSet.Change(action: .insert, stamp: stamp, cells: cells), into: new)
  }
}

extension TableSchema {
  /// Returns whether a column of a reference is part of the rows' own key.
  func hasInKey(_ reference: ForeignKey) -> Bool {
    reference.columns.contains { columns[$0].isIdentity }
  }
}
