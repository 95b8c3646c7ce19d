import SyncModel

extension HeldEdits {
  /// Returns the held edits as change sets, with the stamps that they have, to be merged after the
  /// store's content was exchanged. They are not encoded, so that no cap applies.
  func changeSets(_ session: StoreSession, _ binding: StoreBinding) throws -> [SyncChangeSet] {
    try edits.compactMap { edit in
      guard let (access, state) = try session.state(of: edit) else { return nil }
      let row = RowKey(table: access.table.id, identity: edit.row)
      guard try edit.kind == .deletion || !session.isGone(row, state),
        let changes = try changes(of: edit, row, access, state, session)
      else { return nil }
      return SyncChangeSet(
        header: SyncChangeSet.Header(
          root: binding.root, document: binding.document, generation: binding.generation,
          client: binding.client, number: 1, previous: nil),
        dependencies: VersionVector(), schema: session.schema.fingerprint, tables: [changes])
    }
  }

  private func action(of edit: Edit, in table: TableSchema) -> RowAction {
    switch edit.kind {
    case .insertion: .insert
    case .update: .update
    case .deletion: table.keepsDeleted ? .delete : .erase
    }
  }

  private func changes(
    of edit: Edit, _ row: RowKey, _ access: TableAccess, _ state: RowState, _ session: StoreSession
  ) throws -> TableChanges? {
    let table = access.table
    let kept = try session.keptRows.row(row)?.cells ?? []
    let shown = try access.key(of: row.identity).flatMap(access.row)
    var changes = TableChanges(
      table: table.wireName, identity: table.identity.kind, keyColumns: table.wireKeyColumns,
      columns: table.cellPositions.map { table.columns[$0].wireName })
    if let replaced = edit.replaced {
      changes.exceptions.append(StampException(row: 0, column: nil, stamp: replaced))
    }
    if edit.kind != .update {
      // The store may have been another client then.
      changes.exceptions.append(
        StampException(
          row: 0, column: nil, stamp: session.clients.stamp(state.existenceStamp)))
    }
    var shape: [Int] = []
    let positions = edit.positions(in: table)
    for (index, position) in table.cellPositions.enumerated() where positions.contains(position) {
      let stamp = state.stamp(of: position)
      guard edit.kind == .insertion || edit.has(stamp, session) else { continue }
      let beneath = kept.first { $0.column == position }?.value
      let present = try shown.map {
        try session.exported($0.values[position], table.columns[position])
      }
      guard let value = beneath ?? present else { continue }
      changes.cells[index].append(value)
      changes.exceptions.append(
        StampException(row: 0, column: index, stamp: session.clients.stamp(stamp)))
      shape.append(index)
    }
    guard edit.kind != .update || !shape.isEmpty else { return nil }
    let key = try access.changeSetKey(of: row.identity, localKey: shown?.localKey)
    for (index, value) in key.enumerated() { changes.keys[index].append(value) }
    changes.actions = [action(of: edit, in: table).rawValue]
    changes.times = [HybridTime(rawValue: state.existenceStamp.time)]
    changes.shapes = [shape]
    changes.rowShapes = [0]
    return changes
  }
}

extension TableAccess {
  /// Returns the key of a row in change sets.
  ///
  /// - Parameter localKey: The number that the row has here, in tables with surrogates.
  func changeSetKey(of row: RowIdentity, localKey: Int64? = nil) throws -> [Value] {
    try table.identity == .surrogate
      ? [.blob(row.bytes), localKey.map(Value.integer) ?? .null]
      : IdentityEncoding.decode(row, count: table.identityPositions.count)
  }
}
