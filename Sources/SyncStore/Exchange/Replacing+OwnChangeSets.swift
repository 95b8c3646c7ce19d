import GRDB
import SyncModel

extension Replacing {
  /// Merges the edits that no change set has carried, with their stamps.
  func mergeHeld(_ held: [SyncChangeSet], _ session: StoreSession) throws {
    let apply = ChangeApply(session: session, clockTolerance: store.options.clockTolerance)
    // What they had overwritten is not known: whatever they meet goes into the journal.
    let concurrency = try Concurrency(
      author: session.own, dependencies: VersionVector(), session: session, countsOwn: false)
    for changeSet in held {
      try checkCancellation()
      try apply.merge(changeSet, author: session.own, concurrency)
    }
    try apply.finish()
  }

  /// Applies again the own change sets that the whole store does not contain.
  func applyAgain(
    _ session: StoreSession, _ former: Former, _ result: inout ContentReplacement
  ) throws {
    for (client, entry) in try session.clients.vector().entries {
      try session.inbox.remove(of: client, through: entry.number)
    }
    let apply = ChangeApply(session: session, clockTolerance: store.options.clockTolerance)
    try session.setCache(.applying)
    var vector = try session.clients.vector()
    try session.sealedChangeSets(beyond: vector, bytes: ownBytes) { set in
      try checkCancellation()
      work.advance()
      let header = set.changeSet.header
      if vector.number(of: header.client) + 1 == header.number,
        vector.contains(set.changeSet.dependencies)
      {
        result.reapplied.append(
          try apply.apply(set.changeSet, hash: set.hash, byteCount: set.bytes.count))
        vector[header.client] = VersionVector.Entry(number: header.number, hash: set.hash)
      } else {
        try session.inbox.add(set)
      }
    }
    try apply.finish()
    try session.conflicts.journal.finish()
    try ConflictTable.removeRepeated(after: former.lastConflict, session.database)
    try store.decide(session, checkCancellation: checkCancellation)
    try session.history.removeRepeated(after: former.lastHistory)
    result.waiting = try store.waiting(session).waiting
    result.conflicts = session.conflicts.count
  }
}
