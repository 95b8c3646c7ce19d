import SyncModel
import SyncStore

/// The check of which rows may stay as they are while change sets are undone, the last one first, and nothing was
/// edited since.
///
/// A constraint may refuse a row, and a hidden row cannot be edited. Such a row stays as a later change set made it,
/// so for the earlier ones it was changed since. Sealing may divide edits among several change sets, so this happens
/// with unique values, too: a row gets the value of another one, which is deleted by the next change set. Undoing
/// that change set alone would give the value to two rows.
struct UndoCheck {
  private struct Row: Hashable {
    var table: SQLName
    var key: [Value]?
  }

  /// The columns that stay as later change sets made them; `nil` for whole rows.
  private var left: [Row: Set<SQLName>?] = [:]

  /// Returns a row that should not have stayed as it is. To be called for each change set that is undone, in turn.
  mutating func firstUnexpected(
    in undo: AppliedChangeSet.Undo
  ) -> AppliedChangeSet.Undo.LeftRow? {
    if let row = undo.leftRows.first(where: { !isExpected($0) }) { return row }
    for row in undo.leftRows {
      let id = Row(table: row.table, key: row.key)
      if row.columns.isEmpty {
        left[id] = .some(nil)
      } else if let columns = left[id, default: []] {
        left[id] = columns.union(row.columns)
      }
    }
    return nil
  }

  private func isExpected(_ row: AppliedChangeSet.Undo.LeftRow) -> Bool {
    switch row.reason {
    case .refused, .hidden: return true
    case .unknown: return false
    case .changedSince:
      guard let columns = left[Row(table: row.table, key: row.key)] else { return false }
      return columns.map { $0.isSuperset(of: row.columns) } ?? true
    }
  }
}
