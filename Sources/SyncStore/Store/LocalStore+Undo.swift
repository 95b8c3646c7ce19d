import SyncModel

extension LocalStore {
  /// Undoes a change set that the store has applied, by ordinary edits, in one transaction: the
  /// next synchronization sends them. Seals local edits first.
  ///
  /// What was changed since stays as it is, and so does what a constraint refuses.
  ///
  /// - Parameters:
  ///   - base: A store of the document that has applied everything but the change set and those that depend
  ///     on it.
  ///   - isRehearsal: Whether to change nothing, and to return what would be done.
  package func undo(
    _ changeSet: SyncChangeSet, without base: LocalStore, isRehearsal: Bool,
    checkCancellation: @escaping () throws -> Void = {}
  ) throws -> AppliedChangeSet.Undo {
    do {
      return try base.read { former in
        try store.passingOverTriggers {
          try write { session in
            try store.seal(session, comparesRemade: false, checkCancellation: checkCancellation)
            let undo = try ChangeSetUndo.run(
              changeSet, in: session, without: former, checkCancellation: checkCancellation)
            if isRehearsal { throw Rehearsal(undo: undo) }
            // Later, nothing would distinguish plain values that are keys of rows here from references, and
            // nothing names rows that have come back under other numbers.
            if session.hasWrittenPlainValues || session.hasAssignedKeys {
              try store.seal(session, comparesRemade: false, checkCancellation: checkCancellation)
            }
            return undo
          }
        }
      }
    } catch let rehearsal as Rehearsal {
      return rehearsal.undo
    }
  }

  /// The end of a transaction that changes nothing.
  private struct Rehearsal: Error {
    var undo: AppliedChangeSet.Undo
  }
}
