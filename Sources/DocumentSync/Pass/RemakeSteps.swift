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
  func run() throws {
    let remade = try store.remadeTables()
    guard !remade.isEmpty else { return }
    context.environment.logger.notice(
      "recreated tables in \(store.path): \(remade.map(\.name).joined(separator: ", "))")
    let siblings = LocalSiblings(store: store.path, operation: context.verb)
    try siblings.removeAll()
    do {
      try compare(remade, siblings)
      try siblings.removeAll()
    } catch {
      try siblings.removeAll()
      throw error
    }
  }

  private func compare(_ remade: [RemadeTable], _ siblings: LocalSiblings) throws {
    // The vectors differ only in the change sets that this store had sealed.
    let states = Dictionary(grouping: remade, by: \.vector).sorted { $1.key.contains($0.key) }
    guard let first = states.first, let base = try base(containedIn: first.key, siblings) else {
      context.environment.logger.notice("there is no whole store to compare \(store.path) with")
      return try store.logRemadeTables()
    }
    do {
      for (vector, tables) in states {
        try catchUp(base, to: vector)
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
    containedIn vector: VersionVector, _ siblings: LocalSiblings
  ) throws -> LocalStore? {
    let database = siblings.temporary("database")
    let generation = GenerationFile(of: binding)
    let steps = WholeStoreSteps(files)
    do {
      // Tries all whole stores: without one, the rows would be logged as of
      // 1970.
      do {
        _ = try steps.download(
          generation, beside: siblings, atMost: .max,
          where: { candidate in candidate.vector.map(vector.contains) ?? false })
      } catch let error as SyncError where error.code == .wholeStoreMissing {
        _ = try steps.download(generation, beside: siblings, atMost: .max)
      }
    } catch let error as SyncError where error.code == .wholeStoreMissing {
      context.environment.logger.notice("\(error)")
      return nil
    }
    var binding = binding
    var generator = context.environment.generator
    // No other device learns of this client.
    binding.client = .random(using: &generator)
    var options = context.environment.storeOptions
    options.places = nil
    return try LocalStore.adopt(
      snapshotAt: database, binding: binding, options: options,
      checkCancellation: context.checkCancellation)
  }

  /// Applies the change sets that a vector contains, and no others.
  private func catchUp(_ base: LocalStore, to vector: VersionVector) throws {
    let unheard = SharedFiles(files.directory, context: context.unheard)
    let fetch = try ChangeFetch(
      SyncSession(files: unheard, store: base), heads: vector.entries.mapValues(\.number),
      cuts: vector.entries.mapValues { .settled($0.number) }, lowestKept: { _ in 1 })
    try fetch.run()
    let has = try base.vector()
    let sealed = try store.ancestralChangeSets() + store.sealedChangeSets()
    let unpublished = try sealed.filter {
      $0.isKept && $0.number > has.number(of: $0.client)
        && $0.number <= vector.number(of: $0.client)
    }.map { sealed in
      let bytes = try store.sealedBytes(sealed.number, of: sealed.client)
      return ReceivedChangeSet(
        changeSet: try ChangeSetCodec.decode(bytes), hash: ContentHash(of: bytes), bytes: bytes)
    }
    _ = try base.apply(unpublished, checkCancellation: context.checkCancellation)
  }
}
