import GRDB
import SyncModel

/// The rows that the exported edits of a table may affect: rows that refer to its rows, rows to
/// which these refer, and rows that are hidden because of them.
struct ExportedDependents {
  private let session: StoreSession
  private let table: TableSchema
  private let access: TableAccess
  private let parentChecks: [(key: ForeignKey, statement: SQLStatement)]
  private let hasKeptDependents: Bool
  private let isReferredTo: Bool
  private let referredColumns: Set<Int>

  init(access: TableAccess, session: StoreSession) throws {
    self.access = access
    self.session = session
    let table = access.table
    self.table = table
    parentChecks = try table.foreignKeys.map { key in
      let parent = session.schema[key.parent]
      return (
        key,
        try SQLStatement(
          "SELECT 1 FROM \(parent.quotedName) WHERE \(TableAccess.match(key.parentColumns))"
            // Other devices do not have a row without a key.
            + (parent.canLoseKeys ? " AND NOT (\(parent.isWithoutKey(parent.quotedName)))" : ""),
          on: session.database)
      )
    }
    let inbound = session.schema.inbound(to: table)
    isReferredTo = !inbound.isEmpty
    referredColumns = Set(
      inbound.flatMap(\.parentColumns).compactMap { name in
        table.columns.firstIndex { $0.name.folded == name.folded }
      })
    hasKeptDependents = try session.keptRows.hasDependents(of: table.id)
  }

  /// Notes the affected rows after an edit of a row was exported.
  ///
  /// - Parameter old: The state of the row before the edit. If REPLACE put the row in its own
  ///   place, the log may contain only an insertion.
  func note(
    _ action: RowAction, _ row: Int, after old: RowState?, _ batch: EditLog.Batch,
    _ identities: TableExport.Identities, _ suspects: inout ChangeExport.Suspects
  ) throws {
    if action == .delete {
      // A row with a plain number in its key may have given way to the row that is gone.
      if try isReferredTo || hasKeptDependents || access.canHavePlainNumbers() {
        suspects.diminished.insert(table.id)
      }
      if hasKeptDependents { suspects.changed.append((table.id, identities.identity(row))) }
      if table.identity == .surrogate, let key = Value.key(batch.keys[0][row]) {
        suspects.freedKeys.append(
          KeysOfGoneRows.Freed(table: table.id, key: key, identity: identities.identity(row)))
      }
      return
    }
    if isReferredTo, !referredColumns.isEmpty {
      // A row that was replaced may have other values as well.
      let mayHaveBeenShown = old.map { $0.existence != .deleted || $0.isKept } ?? false
      if action == .insert, mayHaveBeenShown || batch.rows[row].first != .insert {
        suspects.diminished.insert(table.id)
      }
      let updates = batch.rows[row].updates
      if updates.contains(where: { update in
        referredColumns.contains { update.columns.contains($0) }
      }
      ) {
        suspects.diminished.insert(table.id)
      }
    }
    if hasKeptDependents { suspects.changed.append((table.id, identities.identity(row))) }
    for check in parentChecks where try isDangling(check, row, batch) {
      suspects.dangling.append((table.id, identities.identity(row)))
      break
    }
  }

  /// Notes the deleted rows to which the stored cells of an exported row refer: the row may have held
  /// them without showing it, since other rows stand in for them.
  func noteHeld(by kept: KeptRow, _ suspects: inout ChangeExport.Suspects) throws {
    for key in table.foreignKeys where key.holds {
      let parent = session.schema[key.parent]
      let values = key.columns.compactMap { column in
        kept.cells.first { $0.column == column }?.value
      }
      guard values.count == key.columns.count, !values.contains(.null),
        let identity = parent.identity(for: values, of: key),
        try session.keptRows.row(RowKey(table: parent.id, identity: identity))?.reason == .tombstone
      else { continue }
      suspects.changed.append((parent.id, identity))
    }
  }

  private func isDangling(
    _ check: (key: ForeignKey, statement: SQLStatement), _ row: Int, _ batch: EditLog.Batch
  ) throws -> Bool {
    let found = try access.select { statement in
      for (index, key) in batch.keys.enumerated() { statement.bind(key[row], at: index + 1) }
    }
    guard let found else { return false }
    let values: [Value]
    do {
      defer { found.reset() }
      values = check.key.columns.map { found.value(at: $0) }
    }
    guard !values.contains(.null) else { return try namesGoneRow(values, check.key) }
    for (index, value) in values.enumerated() { check.statement.bind(value, at: index + 1) }
    defer { check.statement.reset() }
    if try check.statement.step() { return false }
    return try check.key.isEnforced || session.isKnown(values, by: check.key)
  }

  /// Returns whether a reference that leads to no row, since one of its columns is NULL, has the
  /// key of a row that is gone in another column.
  private func namesGoneRow(_ values: [Value], _ key: ForeignKey) throws -> Bool {
    try zip(values, key.columns).contains { value, column in
      guard case .key(let parent) = table.columns[column].domain,
        let number = table.columns[column].key(value)
      else { return false }
      return try !session.access(parent).hasRow(localKey: number)
    }
  }
}
