import GRDB
import SyncModel

/// How the references of rows that exist are shown.
extension ExistenceRule {
  /// Decides how the references of the rows that exist are shown now that it is
  /// known which row stands in for which. Returns the rows for which it may
  /// matter.
  ///
  /// An identity that contains other identities is decided after them. In a
  /// circle of identities, and after one, rows keep their identities.
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
    // Once more, with the rows that came after them.
    for row in leaning {
      try lay(over: row, keepsIdentity: waiting.contains(ObjectIdentifier(row)))
    }
    return leaning
  }

  /// Whether a reference is part of a row's identity.
  private func isIdentifying(_ link: WorkingRow.Link, _ table: TableSchema) -> Bool {
    link.key.columns.contains { table.columns[$0].isIdentity }
  }

  /// The row to which a reference is to be shown to lead; `nil` for a row
  /// outside the set. No row refers to itself because of a stand-in.
  private func lead(of link: WorkingRow.Link, from row: WorkingRow) -> WorkingRow? {
    link.row?.standIn.flatMap { $0 === row ? nil : $0 } ?? link.row
  }

  /// Decides how the references of a row that exists are shown.
  ///
  /// - Parameter keepsIdentity: Whether references that are part of its
  ///   identity stay as they are.
  func lay(over row: WorkingRow, keepsIdentity: Bool = false) throws {
    row.overlays = [:]
    let table = session.schema[row.key.table]
    for link in row.links {
      let isIdentifying = isIdentifying(link, table)
      if isIdentifying, keepsIdentity { continue }
      if try exists(link) {
        guard let target = shownTarget(of: link, from: row) else { continue }
        // Takes the identity and not the row's spelling of the key, which may change.
        let values = try session.schema[target.table].referredValues(
          of: target.identity, by: link.key)
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

  /// The identity of a row as it is shown, if that differs from its own.
  private func identity(ofShown row: WorkingRow, _ table: TableSchema) throws -> RowIdentity? {
    let positions = table.identityPositions
    guard positions.contains(where: { row.overlays[$0] != nil }) else { return nil }
    let identity = try session.access(table.id).identity(
      of: positions.map { row.shownValue($0) ?? .null })
    return identity == row.key.identity ? nil : identity
  }

  /// The row to which a reference is shown to lead; `nil` if it is the row that
  /// the reference names.
  private func shownTarget(of link: WorkingRow.Link, from row: WorkingRow) -> RowKey? {
    guard let lead = lead(of: link, from: row) else { return link.isMoved ? link.target : nil }
    if let identity = lead.shownIdentity {
      return RowKey(table: lead.key.table, identity: identity)
    }
    return lead !== link.row || link.isMoved ? lead.key : nil
  }

  /// The value that a column shows in place of a reference that SQLite does not
  /// enforce and whose row is gone: NULL if allowed, or the default, or an
  /// empty value.
  private func valueForNothing(
    in column: Int, _ link: WorkingRow.Link, _ table: TableSchema
  ) throws -> Value {
    if let target = link.target, try !isKnown(target),
      let key = session.schema[target.table].originalKey(of: target.identity)
    {
      // An earlier version wrote it, which had an identity for a key without a row.
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

  /// The logical value that a column has by default. A default that is a key is
  /// that of a row from before syncing.
  private func defaultValue(of column: Int, _ table: TableSchema) throws -> Value {
    let value = try set.absentValues.values(of: table)[column]
    guard case .key(let parent) = table.columns[column].domain,
      let key = Value.key(value)
    else { return value }
    return .identity(
      RowIdentity(
        bytes: Bits128(high: session.schema[parent].origin, low: UInt64(bitPattern: key)).bytes))
  }
}
