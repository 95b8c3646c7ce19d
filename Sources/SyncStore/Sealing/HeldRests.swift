import SyncModel

/// Edits that no change set could carry, and of which other devices have replaced large values
/// since: what is left may fit.
struct HeldRests {
  let session: StoreSession

  /// Returns whether there are such edits.
  func exist() throws -> Bool { try session.heldEdits().edits.contains(where: isSmaller) }

  private func isSmaller(_ edit: HeldEdits.Edit) throws -> Bool {
    guard edit.kind != .deletion, let (access, state) = try session.state(of: edit),
      try !session.isGone(RowKey(table: access.table.id, identity: edit.row), state)
    else { return false }
    return remaining(edit, access.table, state) != edit.large
  }

  /// Returns the columns with large values that no other device has replaced.
  private func remaining(
    _ edit: HeldEdits.Edit, _ table: TableSchema, _ state: RowState
  ) -> [SQLName] {
    edit.large.filter { name in
      table.cellPositions.contains { position in
        table.columns[position].wireName == name
          && edit.has(state.stamp(of: position), session)
      }
    }
  }

  /// Seals what fits by now, with the stamps that it has here.
  func export(to builder: ChangeSetBuilder, _ binding: StoreBinding) throws {
    for edit in try session.heldEdits().edits
    where try isSmaller(edit) && !session.newHeldEdits.contains(where: edit.isOfSamePart) {
      let sets = try HeldEdits(edits: [edit]).changeSets(session, binding)
      guard let changes = sets.first?.tables.first,
        let (access, state) = try session.state(of: edit)
      else { continue }
      if try builder.sealAlone(changes) {
        session.sentHeldEdits.append(edit)
      } else {
        var smaller = edit
        smaller.large = remaining(edit, access.table, state)
        session.newHeldEdits.append(smaller)
      }
    }
  }
}

/// The edits that no change set could carry and that are to be sealed by now, and those whose rows
/// are to be deleted once more.
struct DueHeldEdits {
  private let tombstones: HeldTombstones
  private let rests: HeldRests

  init(_ session: StoreSession) {
    tombstones = HeldTombstones(session: session)
    rests = HeldRests(session: session)
  }

  /// Returns whether there are any.
  func exist() throws -> Bool { try tombstones.exist() || rests.exist() }

  /// Seals them. Must be called after the edits were exported.
  func export(
    to builder: ChangeSetBuilder, _ binding: StoreBinding, into set: WorkingSet
  ) throws {
    try tombstones.export(to: builder, into: set)
    try rests.export(to: builder, binding)
  }
}
