import GRDB
import SyncModel

/// The effects of edits on rows that they do not name. They are written to the log, so that they
/// are exported like all other edits.
extension ChangeExport {
  /// Logs the insertion of rows that are shown although they are deleted, where an edit refers to
  /// them: the author of the edit relies on them.
  func logRebirths() throws {
    for row in try session.keptRows.undead() {
      let access = try session.access(row.table)
      guard let key = try access.key(of: row.identity), let found = try access.row(key) else {
        continue
      }
      let shown = ShownRow(key: key, values: found.values)
      var latest: Double?
      for reference in session.schema.inbound(to: access.table) {
        let time = try timeOfReference(reference, to: shown, localKey: found.localKey)
        latest = [latest, time].compactMap { $0 }.max()
      }
      guard let latest else { continue }
      let names = key.indices.map { "k\($0)" }
      let statement = try access.statement(
        "INSERT INTO \(access.table.logName) (op, at, \(names.joined(separator: ", "))) "
          + "VALUES (\(CaptureTriggers.Entry.rebirth.rawValue), ?, "
          + "\(names.map { _ in "?" }.joined(separator: ", ")))")
      statement.bind(.real(latest), at: 1)
      for (index, value) in key.enumerated() { statement.bind(value, at: index + 2) }
      try statement.run()
    }
  }

  /// Returns the time, as a Julian day, at which the edits in the log last wrote a reference to a
  /// row; `nil` if they wrote none.
  private func timeOfReference(
    _ reference: ForeignKey, to row: ShownRow, localKey: Int64?
  ) throws -> Double? {
    let child = session.schema[reference.child]
    let parent = session.schema[reference.parent]
    let keys = child.keyColumns.enumerated().map { "c.\(quoted($1)) = l.k\($0)" }
    let match = zip(reference.columns, reference.parentColumns).enumerated().map { index, pair in
      child.columns[pair.0].refers(
        to: index + 1...index + 1, of: parent.affinity(of: pair.1),
        collation: parent.collation(of: pair.1), row: "c")
    }
    let statement = try session.access(child.id).statement(
      "SELECT l.op, l.at, l.mask FROM \(child.logName) AS l JOIN \(child.quotedName) AS c "
        + "ON \(keys.joined(separator: " AND ")) WHERE \(match.joined(separator: " AND "))")
    for (index, name) in reference.parentColumns.enumerated() {
      statement.bind(parent.localValue(name, row, localKey: localKey), at: index + 1)
    }
    var latest: Double?
    while try statement.step() {
      let kind = try CaptureTriggers.Entry(
        reading: statement.integer(at: 0), from: child.logName)
      let isWritten =
        kind == .insert
        // The key of the row refers to another row now.
        || kind == .renamed && reference.columns.contains { child.columns[$0].isIdentity }
        || kind == .update
          && reference.columns.contains { ColumnSet(statement, at: 2).contains($0) }
      if isWritten { latest = max(latest ?? 0, statement.real(at: 1)) }
    }
    return latest
  }

  /// Logs the deletion of rows that are not shown and refer to a deleted row, directly or through
  /// other rows. Otherwise they would bring it back, or never be shown again. The same goes for
  /// rows that are shown as the deleted row, or would be. Rows that are shown with a stand-in in
  /// place of such a row refer to the stand-in from then on.
  ///
  /// Rows that refer to a row that lives on under another key stay, and follow it.
  func logHiddenDeletions() throws {
    var done: Set<RowKey> = []
    var (parents, moved) = try goneRows()
    hidden = try HiddenEdits(moved, limits: options.limits, session: session)
    for (row, move) in moved { parents[row] = move.time }
    while let (parent, time) = parents.popFirst() {
      let table = session.schema[parent.table]
      let shown = table.isKnownByReferences ? try session.keptRows.rows(shownAs: parent) : []
      for row in shown where done.insert(row).inserted {
        try logHiddenDeletion(of: row, at: time)
        parents[row] = time
      }
      if table.isKnownByReferences, let borrower = try session.borrower(of: parent),
        done.insert(borrower).inserted
      {
        // It is deleted already, and would be shown again for rows that are not shown.
        parents[borrower] = time
      }
      if moved[parent] != nil { continue }
      for reference in session.schema.inbound(to: table)
      where reference.holds && table.identifies(reference) {
        let key = ReferenceKey(
          parent: table.id, columns: reference.columnsName,
          key: table.referenceKey(
            table.referredValues(of: parent.identity, by: reference), reference))
        // Rows of other tables may refer by the same column of the parent.
        for child in try session.keptRows.rows(referringBy: key)
        where child.table == reference.child && !done.contains(child) {
          let kept = try session.keptRows.row(child)
          switch kept?.reason {
          case .parked:
            // A stand-in is no parent: without it the reference leads elsewhere.
            guard let kept, try leads(kept, child, by: reference, to: parent) else { continue }
            done.insert(child)
            try logHiddenDeletion(of: child, at: time)
            try logStandIn(for: child, at: time)
          // It is deleted, and another row holds it.
          case .tombstone:
            done.insert(child)
            try logStandIn(for: child, at: time)
          case .rescued, .overlaid, .elsewhere, .borrowed, nil: continue
          }
          parents[child] = time
        }
      }
    }
  }

  /// Returns whether a reference of a row that is not shown leads to `parent`, or to a row that
  /// lives on as `parent`.
  func leads(
    _ kept: KeptRow, _ child: RowKey, by reference: ForeignKey, to parent: RowKey
  ) throws -> Bool {
    let table = session.schema[child.table]
    var values = [Value?](repeating: nil, count: table.columns.count)
    for (position, value) in zip(
      table.identityPositions, table.values(of: child.identity) ?? [])
    {
      values[position] = value
    }
    for cell in kept.cells where cell.column < values.count { values[cell.column] = cell.value }
    var next = session.schema[parent.table].identity(
      for: reference.columns.map { values[$0] ?? .null }, of: reference)
    var seen: Set<RowIdentity> = []
    while let row = next, seen.insert(row).inserted {
      if row == parent.identity { return true }
      next = try session.keptRows.row(RowKey(table: parent.table, identity: row))?.movedTo
    }
    return false
  }

  /// Returns the rows that were deleted, with the times, and the rows that live on under another
  /// key, in tables to which rows with a bookkeeping entry refer.
  private func goneRows() throws -> (
    deleted: [RowKey: Double], moved: [RowKey: (destination: RowIdentity, time: Double)]
  ) {
    var deleted: [RowKey: Double] = [:]
    var moved: [RowKey: (destination: RowIdentity, time: Double)] = [:]
    let referred = try session.keptRows.referredTables()
    for table in session.schema.tables where referred.contains(table.id) {
      let access = try session.access(table.id)
      let canMove = TableExport.canMove(table, in: session.schema)
      let moves = try KeyMoves(access: access)
      let names = table.keyColumns.indices.map { "k\($0)" }
      let kinds = [CaptureTriggers.Entry.delete, .replaced, .renamed].map { "\($0.rawValue)" }
      let statement = try SQLStatement(
        "SELECT at, \(names.joined(separator: ", ")) FROM \(table.logName) "
          + "WHERE op IN (\(kinds.joined(separator: ", "))) "
          + "AND NOT (op = \(CaptureTriggers.Entry.renamed.rawValue) AND identity IS NOT NULL)",
        on: session.database)
      while try statement.step() {
        let key = names.indices.map { statement.value(at: $0 + 1) }
        let identity = try access.earlierIdentity(ofKey: key)
        let row = RowKey(table: table.id, identity: identity)
        let time = statement.real(at: 0)
        let isPresent = try canMove && !moves.hasMoved(from: key) && access.row(key) != nil
        let destination = try isPresent ? access.identity(ofKey: key) : moves.destination(of: key)
        if let destination, destination != identity {
          moved[row] = (destination, time)
          continue
        }
        if canMove {
          // Another row may have the key by now, and the row another key.
          if let local = try access.key(of: identity), try access.row(local) != nil { continue }
        } else if try access.row(key) != nil {
          continue
        }
        deleted[row] = time
      }
    }
    return (deleted, moved)
  }

  /// Returns the key by which the log can name a row that is not in its table; `nil` if there is
  /// none. If the row's identity contains other rows, the key consists of such keys.
  private func logKey(of row: RowKey) throws -> [Value]? {
    let access = try session.access(row.table)
    guard access.table.identity != .surrogate else {
      return [.integer(try access.assignLogKey(to: row.identity))]
    }
    let positions = access.table.identityPositions
    let values = try IdentityEncoding.decode(row.identity, count: positions.count)
    var key: [Value] = []
    for (position, value) in zip(positions, values) {
      let column = access.table.columns[position]
      // The number of a row that is not shown may be a plain value.
      if let local = try session.importedKey(value, column),
        try session.exported(local, column) == value
      {
        key.append(local)
      } else if case .key(let table) = column.domain, case .identity(let identity) = value,
        session.schema[table].identity == .surrogate
      {
        key.append(.integer(try lendLogKey(to: RowKey(table: table, identity: identity))))
      } else {
        return nil
      }
    }
    return key
  }

  /// Assigns a key to a row that is not in its table, until sealing ends, and returns it.
  private func lendLogKey(to row: RowKey) throws -> Int64 {
    let access = try session.access(row.table)
    let key = try access.assignLogKey(to: row.identity)
    access.rememberUnseen(key, of: row.identity)
    freeAfterwards(key, of: row)
    return key
  }

  /// Returns the key that names a row here; `nil` if there is none, or if its number is a plain value:
  /// as long as the log has the number, cells that contain it would count as references to the row.
  private func unambiguousKey(
    of identity: RowIdentity, _ access: TableAccess
  ) throws -> [Value]? {
    guard let key = try access.namingKey(of: identity) else { return nil }
    guard access.table.identity == .surrogate, let number = Value.key(key[0]) else { return key }
    return try session.plainKeys.keys(of: access.table.id).contains(number) ? nil : key
  }

  private func logHiddenDeletion(of row: RowKey, at time: Double) throws {
    let access = try session.access(row.table)
    let state = try access.stamps.state(of: access.fingerprint(row.identity))
    guard let state, state.existence == .inserted || session.isRevived(state, access.table) else {
      return
    }
    let key = try unambiguousKey(of: row.identity, access) ?? logKey(of: row)
    // If the key was another row's before, the log names that row by it.
    guard let key, try access.earlierIdentity(ofKey: key) == row.identity else {
      hidden?.addDeletion(of: row, at: time)
      return
    }
    // A row that the application has inserted meanwhile is not hidden.
    guard try access.row(key) == nil else { return }
    let names = key.indices.map { "k\($0)" }
    let statement = try access.statement(
      "INSERT INTO \(access.table.logName) (op, at, \(names.joined(separator: ", "))) "
        + "VALUES (\(CaptureTriggers.Entry.hiddenDelete.rawValue), ?, "
        + "\(names.map { _ in "?" }.joined(separator: ", ")))")
    statement.bind(.real(time), at: 1)
    for (index, value) in key.enumerated() { statement.bind(value, at: index + 2) }
    try statement.run()
  }
}
