import GRDB
import SyncModel

/// The loading of the rows on which the existence of others depends.
extension ExistenceRule {
  /// Loads the rows on which the existence of the set's rows depends, and the rows whose existence
  /// depends on the set's rows.
  func expand() throws {
    var count: Int
    repeat {
      count = set.count
      try loadUndead()
      try loadParents()
      let rows = try concerned().filter { !$0.hasExpandedReferrers }
      for row in rows { row.hasExpandedReferrers = true }
      try loadChildren(of: rows)
      for row in rows { try loadWaiters(for: row) }
      try loadStrangers(of: rows.filter { $0.isDead && !$0.wasLiving && !$0.wasDead })
    } while set.count > count
  }

  /// Loads the rows that are shown although they are deleted, if a row that may have held them is
  /// gone or refers to other rows. It may have held them through living rows for which bookkeeping
  /// has no entry, so following references does not find them.
  private func loadUndead() throws {
    let undead = try session.keptRows.undead()
    guard !undead.isEmpty else { return }
    let letGo = set.rows.filter { row in
      row.wasLiving
        && (!row.isLiving
          || session.schema[row.key.table].foreignKeys.contains { key in
            key.columns.contains { row.values[$0] != row.loadedValues[$0] }
          })
    }
    let tables = session.schema.ancestors(of: Set(letGo.map(\.key.table)))
      .subtracting(tablesOfUndead)
    guard !tables.isEmpty else { return }
    tablesOfUndead.formUnion(tables)
    for row in undead.sorted(by: { ($0.table, $0.identity) < ($1.table, $1.identity) })
    where tables.contains(row.table) {
      try set.row(row)
    }
  }

  /// Loads the parents of which bookkeeping knows more than their tables show. All other parents
  /// exist if their tables show them.
  private func loadParents() throws {
    var position = 0
    while position < set.rows.count {
      let row = set.rows[position]
      position += 1
      guard !row.hasExpandedParents else { continue }
      row.hasExpandedParents = true
      for key in session.schema[row.key.table].foreignKeys {
        try follow(key, row.values)
        if row.values != row.loadedValues { try follow(key, row.loadedValues) }
      }
    }
  }

  private func follow(_ key: ForeignKey, _ values: [Value?]) throws {
    var next = [target(key, values)].compactMap { $0 }
    var seen: Set<RowKey> = []
    while let target = next.popLast() {
      guard seen.insert(target).inserted else { continue }
      if set[target] == nil, try affects(target, key) { try set.row(target) }
      guard let row = set[target] else { continue }
      // Also follows the former moves of a row that came back: rows held there may go.
      let destinations = [
        row.isLiving ? nil : row.movedTo, row.wasLiving ? nil : row.loadedMovedTo,
      ]
      next += destinations.compactMap { $0 }.map { RowKey(table: target.table, identity: $0) }
    }
  }

  /// Returns whether a row that is not in the set decides about the rows that refer to it. An erased
  /// row may have no entry; those to which its deletion cascades do not exist all the same.
  private func affects(_ row: RowKey, _ key: ForeignKey) throws -> Bool {
    switch try look(at: row) {
    case .shown: return false
    case .kept: return true
    case .absent:
      guard key.onDelete == .cascade else { return false }
      let access = try session.access(row.table)
      return try access.stamps.state(of: access.fingerprint(row.identity))?.existence == .deleted
    }
  }

  /// Returns the rows that are deleted or would go with a deleted row, the rows for which other
  /// rows may have waited, and the rows that may get another number.
  private func concerned() throws -> [WorkingRow] {
    var result = set.rows.filter {
      $0.isDead || $0.isLiving != $0.wasLiving || $0.shown == nil || $0.isEdited
        || isReferredOtherwise($0) || mayBeRenumbered($0)
    }
    guard set.rows.contains(where: \.isDead) else { return result }
    var children: [RowKey: [WorkingRow]] = [:]
    for row in set.rows {
      for key in session.schema[row.key.table].foreignKeys where key.onDelete == .cascade {
        if let link = try link(of: row, key), let target = link.target {
          children[target, default: []].append(row)
        }
      }
    }
    var queue = set.rows.filter(\.isDead)
    var seen = Set(queue.map(\.key))
    while let row = queue.popLast() {
      for child in children[row.key] ?? [] where seen.insert(child.key).inserted {
        result.append(child)
        queue.append(child)
      }
    }
    return result
  }

  /// Returns whether other rows refer to a row by a column that has changed and is not part of its
  /// identity.
  private func isReferredOtherwise(_ row: WorkingRow) -> Bool {
    guard row.values != row.loadedValues else { return false }
    let inbound = session.schema.inbound(to: row.key.table)
    guard !inbound.isEmpty else { return false }
    let table = session.schema[row.key.table]
    return inbound.contains { key in
      !table.identifies(key)
        && key.parentColumns.contains { name in
          table.columns.firstIndex { $0.name.folded == name.folded }
            .map { row.values[$0] != row.loadedValues[$0] } ?? false
        }
    }
  }

  /// Returns whether a row's key contains the number of a row that is not in its table. If that row
  /// comes back, it may get another number, and all rows that refer to this row have to follow.
  private func mayBeRenumbered(_ row: WorkingRow) -> Bool {
    guard row.shown != nil, session.schema[row.key.table].hasKeysInIdentity else { return false }
    let table = session.schema[row.key.table]
    return table.identityPositions.contains { position in
      guard case .key(let parent) = table.columns[position].domain,
        case .identity(let identity)? = row.values[position]
      else { return false }
      return set[RowKey(table: parent, identity: identity)].map { $0.shown == nil } ?? false
    }
  }

  /// Loads, from their tables, the rows that refer to rows, also by the number of a row that is gone
  /// (``KeysOfGoneRows``).
  func loadChildren(of rows: [WorkingRow]) throws {
    let rows = rows.filter { !$0.hasExpandedChildren }
    for row in rows { row.hasExpandedChildren = true }
    for (table, rows) in byTable(rows) {
      let gone = try rows.filter { $0.shown == nil }
        .compactMap { try session.goneKeys.key(of: $0.key).map(Value.integer) }
      for key in session.schema.inbound(to: table) {
        var values = rows.compactMap { row in
          row.shown.map { shown in
            key.parentColumns.map { table.localValue($0, shown, localKey: row.localKey) }
          }
        }
        if key.parentColumns == [table.localKey] { values += gone.map { [$0] } }
        try loadRows(referringBy: key, with: values)
      }
    }
  }

  /// Loads, from their tables, the rows with values that are keys of rows that were unknown so far.
  /// The values refer to these rows from now on.
  func loadStrangers(of rows: [WorkingRow]) throws {
    let rows = rows.filter { !$0.hasExpandedStrangers }
    for row in rows { row.hasExpandedStrangers = true }
    for (table, rows) in byTable(rows) {
      for key in session.schema.inbound(to: table) where !key.isEnforced && table.identifies(key) {
        let values = rows.map { table.referredValues(of: $0.key.identity, by: key) }
          .filter { values in !values.contains { $0.kind == .identity } }
        try loadRows(referringBy: key, with: values)
      }
    }
  }

  /// Loads the rows that refer to visible rows by columns that are no key, if these show other values
  /// than their tables have: those that refer to the former values, and those that wait for the new
  /// ones.
  func loadReferrers(byColumnsOf rows: [WorkingRow]) throws {
    let rows = rows.filter { tablesNamedByColumns.contains($0.key.table) }
    for (table, rows) in byTable(rows) {
      for key in session.schema.inbound(to: table) where !table.identifies(key) {
        var former: [[Value]] = []
        for row in rows {
          let here = row.shown.map { shown in
            key.parentColumns.map { table.localValue($0, shown, localKey: row.localKey) }
          }
          guard try here != localValues(of: row, key, table) else { continue }
          if let here, !row.hasExpandedReferrersByColumns { former.append(here) }
          try loadWaiters(for: row, by: key, row.referredValues(key, table))
        }
        try loadRows(referringBy: key, with: former)
      }
      for row in rows { row.hasExpandedReferrersByColumns = true }
    }
  }

  /// Returns the local values that a row is to show in the columns that a reference names.
  private func localValues(
    of row: WorkingRow, _ key: ForeignKey, _ table: TableSchema
  ) throws -> [Value] {
    try key.parentColumns.map { name in
      guard let position = table.columns.firstIndex(where: { $0.name.folded == name.folded }) else {
        return row.localKey.map(Value.integer) ?? .null
      }
      return try set.local(row.shownValue(position) ?? .null, table.columns[position])
    }
  }

  private func byTable(_ rows: [WorkingRow]) -> [(table: TableSchema, rows: [WorkingRow])] {
    Dictionary(grouping: rows, by: \.key.table).sorted { $0.key < $1.key }
      .map { (session.schema[$0.key], $0.value) }
  }

  /// Loads the rows that have, in the columns of a reference, the values of one of several rows.
  /// If the column has no index, a query reads the whole table, so one query is for many values.
  /// For several columns SQLite would not use an index then, so there is a query for each row.
  private func loadRows(referringBy key: ForeignKey, with values: [[Value]]) throws {
    let child = try session.access(key.child)
    var rest = values.filter { !$0.contains(.null) }[...]
    var found: [[Value]] = []
    while !rest.isEmpty {
      let count = key.columns.count > 1 || rest.count == 1 ? 1 : rest.count <= 16 ? 16 : 512
      let part = rest.prefix(count)
      rest = rest.dropFirst(count)
      let statement = try child.statement(rows(referringBy: key, withOneOf: count))
      var position = 1
      for value in part.joined() {
        statement.bind(value, at: position)
        position += 1
      }
      while position <= count {
        statement.bind(null: position)
        position += 1
      }
      while try statement.step() {
        let row = child.table.keyColumns.indices.map { statement.value(at: $0) }
        // It is on this device alone, and follows what is decided.
        if row.contains(.null) { set.referrersWithoutKey.insert(child.table.id) }
        found.append(row)
      }
    }
    try set.add(found, child)
  }

  /// Returns the query for the keys of such rows, with parameters for a number of values.
  private func rows(referringBy key: ForeignKey, withOneOf count: Int) -> String {
    let child = session.schema[key.child]
    let parent = session.schema[key.parent]
    let terms = zip(key.columns, key.parentColumns).enumerated().map { index, pair in
      child.columns[pair.0].refers(
        to: count == 1 ? index + 1...index + 1 : 1...count, of: parent.affinity(of: pair.1),
        collation: parent.collation(of: pair.1))
    }
    return "SELECT \(child.keyColumns.map(quoted).joined(separator: ", ")) "
      + "FROM \(child.quotedName) WHERE \(terms.joined(separator: " AND "))"
  }

  /// Returns whether logical values in the columns of a reference are plain values: SQLite does not
  /// enforce the reference, and they name no row or an unknown row.
  func isPlain(_ values: [Value], _ key: ForeignKey) throws -> Bool {
    guard !key.isEnforced else { return false }
    let parent = session.schema[key.parent]
    guard let identity = parent.identity(for: values, of: key) else { return true }
    guard parent.localKey == nil else { return false }
    return try !isKnown(RowKey(table: parent.id, identity: identity))
  }

  /// Returns whether the row that the logical values of a reference name is known, from a change of
  /// its existence or because it was there before.
  func isKnown(_ values: [Value], by key: ForeignKey) throws -> Bool {
    let parent = session.schema[key.parent]
    guard let identity = parent.identity(for: values, of: key) else { return false }
    return try isKnown(RowKey(table: parent.id, identity: identity))
  }

  func isKnown(_ target: RowKey) throws -> Bool {
    if let row = set[target] { return row.state.existence != .unsaid }
    if try look(at: target) != .absent { return true }
    return try session.isKnown(target)
  }

  /// Loads the rows with a bookkeeping entry (``KeptRow``) that refer to a row, by its own values
  /// or by those that it shows.
  func loadWaiters(for row: WorkingRow) throws {
    guard !row.hasExpandedWaiters else { return }
    row.hasExpandedWaiters = true
    let table = session.schema[row.key.table]
    for key in session.schema.inbound(to: table) {
      let shown = row.referredValues(key, table)
      let own = row.referredValues(key, table, isShown: false)
      for values in shown == own ? [own] : [own, shown] {
        try loadWaiters(for: row, by: key, values)
      }
    }
  }

  private func loadWaiters(
    for row: WorkingRow, by key: ForeignKey, _ values: [Value]
  ) throws {
    guard !values.contains(.null) else { return }
    let table = session.schema[row.key.table]
    let reference = ReferenceKey(
      parent: table.id, columns: key.columnsName, key: table.referenceKey(values, key))
    for waiter in try session.keptRows.rows(referringBy: reference) { try set.row(waiter) }
  }
}
