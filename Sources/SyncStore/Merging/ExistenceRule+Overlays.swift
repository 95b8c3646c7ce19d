import GRDB
import SyncModel

/// Overlays: the values that references show in place of their own.
extension ExistenceRule {
  /// Decides what the references of the existing rows show, after the stand-ins were chosen.
  /// Returns the rows that a stand-in may affect.
  ///
  /// Decides an identity after the identities that it contains. Rows whose identities contain one
  /// another in a circle, and rows whose identities contain one of these, keep their own.
  func layStandIns() throws -> [WorkingRow] {
    var pending: [WorkingRow] = []
    for row in set.rows {
      row.shownIdentity = nil
      let table = session.schema[row.key.table]
      if row.exists, row.failure == nil, row.links.contains(where: { isIdentifying($0, table) }) {
        pending.append(row)
      }
    }
    var waiting = Set(pending.map(ObjectIdentifier.init))
    while !pending.isEmpty {
      let ready = pending.filter { row in
        let table = session.schema[row.key.table]
        return !row.links.contains { link in
          isIdentifying(link, table)
            && lead(of: link, from: row).map { waiting.contains(ObjectIdentifier($0)) } ?? false
        }
      }
      if ready.isEmpty { break }
      for row in ready { try lay(over: row) }
      waiting.subtract(ready.map(ObjectIdentifier.init))
      pending.removeAll { !waiting.contains(ObjectIdentifier($0)) }
    }
    let leaning = set.rows.filter { row in
      row.exists && row.failure == nil
        && (row.overlays != row.ownOverlays || row.shownIdentity != nil
          || row.links.contains { $0.row?.standIn != nil || $0.row?.shownIdentity != nil })
    }
    // Again, since the identities of rows that they refer to may have been decided after them.
    for row in leaning {
      try lay(over: row, keepsIdentity: waiting.contains(ObjectIdentifier(row)))
    }
    return leaning
  }

  /// Returns whether a reference is part of a row's identity.
  private func isIdentifying(_ link: WorkingRow.Link, _ table: TableSchema) -> Bool {
    link.key.columns.contains { table.columns[$0].isIdentity }
  }

  /// Returns the row to which a reference is shown to lead; `nil` if that row is outside the set. A
  /// stand-in never makes a row refer to itself.
  private func lead(of link: WorkingRow.Link, from row: WorkingRow) -> WorkingRow? {
    link.row?.standIn.flatMap { $0 === row ? nil : $0 } ?? link.row
  }

  /// Decides what the references of an existing row show.
  ///
  /// - Parameter keepsIdentity: Whether references that are part of its identity stay as they are.
  func lay(over row: WorkingRow, keepsIdentity: Bool = false) throws {
    row.overlays = [:]
    guard !row.links.isEmpty else {
      row.shownIdentity = nil
      return
    }
    let table = session.schema[row.key.table]
    for link in row.links {
      let isIdentifying = isIdentifying(link, table)
      if isIdentifying, keepsIdentity { continue }
      if try exists(link) {
        // Without such values the row refers to the row that is not shown.
        guard let target = shownTarget(of: link, from: row),
          // Uses the identity, not the key as the row spells it: the spelling may change.
          let values = session.schema[target.table].referringValues(
            to: target.identity, by: link.key, in: table)
        else { continue }
        for (column, value) in zip(link.key.columns, values) { row.overlays[column] = value }
      } else if isIdentifying {
        continue
      } else if link.key.onDelete == .setNull {
        for column in link.key.columns {
          row.overlays[column] =
            link.key.isEnforced ? .null : try valueForNothing(in: column, link, table)
        }
      } else if link.key.onDelete == .setDefault {
        for column in link.key.columns {
          row.overlays[column] = try defaultValue(of: column, table)
        }
      }
    }
    row.shownIdentity = try identity(ofShown: row, table)
  }

  /// Returns the identity under which a row is shown, if that is not its own.
  private func identity(ofShown row: WorkingRow, _ table: TableSchema) throws -> RowIdentity? {
    let positions = table.identityPositions
    guard positions.contains(where: { row.overlays[$0] != nil }) else { return nil }
    let identity = try session.access(table.id).identity(
      of: positions.map { row.shownValue($0) ?? .null })
    return identity == row.key.identity ? nil : identity
  }

  /// Returns the row to which a reference is shown to lead; `nil` if that is the row that the
  /// reference names.
  private func shownTarget(of link: WorkingRow.Link, from row: WorkingRow) -> RowKey? {
    guard let lead = lead(of: link, from: row) else { return link.isMoved ? link.target : nil }
    if let identity = lead.shownIdentity {
      return RowKey(table: lead.key.table, identity: identity)
    }
    return lead !== link.row || link.isMoved ? lead.key : nil
  }

  /// Returns the value that a column shows if SQLite does not enforce its reference and the row to
  /// which it refers is gone: NULL if the column allows it, else the default, else an empty value.
  private func valueForNothing(
    in column: Int, _ link: WorkingRow.Link, _ table: TableSchema
  ) throws -> Value {
    if let target = link.target, try !isKnown(target),
      let key = session.schema[target.table].originalKey(of: target.identity)
    {
      // Written by an earlier build, which gave an identity to a key without a row.
      return .integer(key)
    }
    guard table.columns[column].isNotNull else { return .null }
    let value = try set.absentValues.values(of: table)[column]
    if value != .null {
      let known = try defaultValue(of: column, table)
      return try isKnown([known], by: link.key) ? known : value
    }
    switch table.columns[column].affinity {
    case .text: return .text("")
    case .integer, .real, .numeric, .blob:
      return table.columns[column].affinity == .real ? .real(0) : .integer(0)
    }
  }

  /// Returns the logical value that a column has by default. A default that is a key stands for the
  /// row that had this key before syncing began.
  private func defaultValue(of column: Int, _ table: TableSchema) throws -> Value {
    let value = try set.absentValues.values(of: table)[column]
    guard case .key(let parent) = table.columns[column].domain,
      let key = table.columns[column].key(value)
    else { return value }
    return .identity(
      RowIdentity(
        bytes: Bits128(high: session.schema[parent].origin, low: UInt64(bitPattern: key)).bytes))
  }
}
