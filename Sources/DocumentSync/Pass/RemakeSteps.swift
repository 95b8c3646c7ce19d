import SyncDirectory
import SyncModel
import SyncStore

/// Finds the edits in tables that a program has recreated: such a table has
/// lost its triggers, so edits were not captured until the store noticed that.
///
/// The store does not know the former rows. The document does: a whole store
/// contains them, together with the change sets that this store has applied and
/// sealed. This costs a download whenever a program has recreated a table, and
/// nothing otherwise.
struct RemakeSteps: StoreSteps {
  let session: SyncSession

  /// Compares the tables, before anything is applied to them.
  ///
  /// - Parameter successor: The generation after a reset to which the store is about to move; `nil` for
  ///   none. Its whole store serves if those of the store's own generation are gone. Those of an
  ///   unrelated document do not: equal stamps mean nothing there.
  func run(before successor: GenerationFile? = nil) throws {
    let remade = try store.remadeTables()
    guard !remade.isEmpty else { return }
    context.environment.logger.notice(
      "recreated tables in \(store.path): \(remade.map(\.name).joined(separator: ", "))")
    let siblings = LocalSiblings(store: store.path, operation: context.verb)
    try siblings.removeAll()
    do {
      try compare(remade, siblings, successor)
      try siblings.removeAll()
    } catch {
      try siblings.removeAll()
      throw error
    }
  }

  private func compare(
    _ remade: [RemadeTable], _ siblings: LocalSiblings, _ successor: GenerationFile?
  ) throws {
    // The vectors differ only in the change sets that this store had sealed.
    let states = Dictionary(grouping: remade, by: \.vector).sorted { $1.key.contains($0.key) }
    guard let first = states.first, let base = try base(containedIn: first.key, siblings, successor)
    else {
      context.environment.logger.notice("there is no whole store to compare \(store.path) with")
      return try store.logRemadeTables()
    }
    do {
      for (vector, tables) in states {
        if base.binding.generation == binding.generation {
          try PastStore(session: session).catchUp(base, to: vector.entries.mapValues(\.number))
        }
        context.begin(.applying)
        try store.compare(tables, with: base, checkCancellation: context.checkCancellation)
      }
      try base.close()
    } catch {
      try base.close()
      throw error
    }
  }

  /// Makes a separate store from the best whole store that contains nothing
  /// beyond this store, else from the best one. Returns `nil` if the directory
  /// has none.
  private func base(
    containedIn vector: VersionVector, _ siblings: LocalSiblings, _ successor: GenerationFile?
  ) throws -> LocalStore? {
    let past = PastStore(session: session)
    let attempts: [() throws -> LocalStore] = [
      { try past.make(siblings) { $0.vector.map(vector.contains) ?? false } },
      { try past.make(siblings) },
    ]
    for attempt in attempts
      + (successor.map { next in [{ try past.make(siblings, of: next) }] } ?? [])
    {
      do {
        return try attempt()
      } catch let error as SyncError where error.code == .wholeStoreMissing {
        // Without one, the rows would be logged as of 1970.
        context.environment.logger.notice("\(error)")
      }
    }
    return nil
  }
}
