import SyncModel

/// Rows whose key is unchanged and stands for another identity, since a row that the key refers to
/// is identified in another way now (``MovedKeys``).
extension TableExport {
  /// Returns whether this can happen to rows of a table.
  static func canMove(_ table: TableSchema, in schema: StoreSchema) -> Bool {
    table.identityPositions.contains { position in
      guard case .key(let parent) = table.columns[position].domain,
        case .columns = schema[parent].identity
      else { return false }
      return true
    }
  }

  /// Returns a batch in which each such row is inserted with all its cells, and its former identity
  /// is added as a row that is gone.
  func addingFormerRows(to batch: EditLog.Batch) throws -> EditLog.Batch {
    var result = batch
    for row in batch.rows.indices where batch.rows[row].isPresent {
      let key = batch.keys.map { $0[row] }
      let earlier = try access.earlierIdentity(ofKey: key)
      guard try access.identity(ofKey: key) != earlier, let (values, _) = try access.row(key)
      else { continue }
      let log = batch.rows[row]
      if try log.first != .insert || wasShown(earlier) {
        var former = EditLog.Row(former: log)
        let recorded = table.recordedColumns
        if table.keepsDeleted, !recorded.isEmpty {
          let index = recorded.map { result.olds[$0].count }.max() ?? 0
          for position in recorded {
            while result.olds[position].count < index { result.olds[position].append(.null) }
            result.olds[position].append(values[position])
          }
          former.old = index
          for position in table.cellPositions { former.changed.formUnion(ColumnSet(position)) }
        }
        result.rows.append(former)
        for index in key.indices { result.keys[index].append(key[index]) }
      }
      result.rows[row].insertTime = log.lastTime
      result.rows[row].updates.removeAll()
      result.rows[row].cells = table.cellPositions.map { position in
        result.cells[position].append(values[position])
        return EditLog.Cell(column: position, index: result.cells[position].count - 1)
      }
    }
    return result
  }

  /// Returns the identity under which a row with a former identity lives on; `nil` if no rows refer
  /// to the table.
  func formerDestination(of key: [Value]) throws -> RowIdentity? {
    table.isReferred ? try access.identity(ofKey: key) : nil
  }

  /// Returns whether the table showed a row before the edits in the log, according to bookkeeping.
  /// If REPLACE put another row in its place, the log may contain only the insertion of that one.
  private func wasShown(_ identity: RowIdentity) throws -> Bool {
    guard let state = try access.stamps.state(of: access.fingerprint(identity)) else {
      return false
    }
    guard state.isKept else {
      return state.existence != .deleted || session.isRevived(state, table)
    }
    let kept = try session.keptRows.row(RowKey(table: table.id, identity: identity))
    return kept?.reason.isShown == true
  }

  /// Returns whether a row is in its table, under any key.
  func isShown(_ identity: RowIdentity) throws -> Bool {
    guard let key = try access.key(of: identity) else { return false }
    return try access.row(key) != nil
  }
}

extension EditLog.Row {
  /// Creates the entry of a row as it was known before the edits in the log.
  init(former row: EditLog.Row) {
    self.init(oldest: .delete, isPresent: false)
    lastTime = row.lastTime
    mayBeGone = true
    isFormer = true
  }
}
