import SyncDirectory
import SyncModel
import SyncStore

/// Undoes a change set. What there was before comes from a whole store that does not contain it, and from the
/// other change sets since.
struct UndoSteps: StoreSteps {
  let session: SyncSession
  /// The author of the change set, and its number.
  let author: ClientIdentifier
  let number: UInt64

  /// Undoes the change set in the store, or finds out what that would do. Throws `changeSetUnavailable`.
  func run(isRehearsal: Bool) throws -> AppliedChangeSet.Undo {
    context.begin(.listing)
    try DocumentSteps(files).check(binding)
    let changeSet = try find()
    guard try store.remadeTables().isEmpty else {
      throw unavailable(
        "A program has made a table of the store again. What has changed in it is not known yet.",
        remedy: "Run \(.synchronize), then try again.")
    }
    let siblings = LocalSiblings(store: store.path, operation: context.verb)
    try siblings.removeAll()
    do {
      let undo = try undo(changeSet, siblings, isRehearsal: isRehearsal)
      try siblings.removeAll()
      return undo
    } catch {
      try siblings.removeAll()
      throw error
    }
  }

  private func undo(
    _ changeSet: SyncChangeSet, _ siblings: LocalSiblings, isRehearsal: Bool
  ) throws -> AppliedChangeSet.Undo {
    var vector = try store.vector()
    vector[author] = changeSet.header.previous.map {
      VersionVector.Entry(number: number - 1, hash: $0)
    }
    var numbers = vector.entries.mapValues(\.number)
    numbers[author] = number - 1
    let past = PastStore(session: session)
    let base: LocalStore
    do {
      base = try past.make(siblings) { $0.vector.map(vector.contains) ?? false }
    } catch let error as SyncError where error.code == .wholeStoreMissing {
      throw forgotten(detail: error.message, error)
    }
    do {
      try past.catchUp(base, to: numbers)
      if let missing = try missing(in: base, numbers, for: changeSet) {
        throw forgotten(detail: missing)
      }
      context.begin(.applying)
      let undo = try store.undo(
        changeSet, without: base, isRehearsal: isRehearsal,
        checkCancellation: context.checkCancellation)
      try base.close()
      return undo
    } catch {
      try base.close()
      throw error
    }
  }

  /// Returns what a store lacks that is to have everything but the change set and those that depend on it; `nil`
  /// if it lacks nothing. Those that depend on it wait in the store.
  private func missing(
    in base: LocalStore, _ numbers: [ClientIdentifier: UInt64], for changeSet: SyncChangeSet
  ) throws -> String? {
    let reached = try base.vector()
    guard reached.number(of: author) == number - 1, reached.contains(changeSet.dependencies) else {
      return "reached \(reached.sorted.map { "\($0.client): \($0.entry.number)" })"
    }
    let waiting = Dictionary(grouping: try base.waiting(), by: \.client)
    return numbers.keys.sorted().first { client in
      let next = reached.number(of: client) + 1
      let waits = waiting[client]?.contains { $0.number == next } ?? false
      return next <= numbers[client] ?? 0 && !waits
    }.map { "change set \(reached.number(of: $0) + 1) of \($0) is missing" }
  }

  // MARK: - The change set

  private func find() throws -> SyncChangeSet {
    guard try number > 0 && number <= store.vector().number(of: author) else {
      throw unavailable("This device has not applied such a change set.", remedy: listing)
    }
    let sealed = try store.ancestralChangeSets() + store.sealedChangeSets()
    if sealed.contains(where: { $0.client == author && $0.number == number && $0.isKept }) {
      return try ChangeSetCodec.decode(store.sealedBytes(number, of: author))
    }
    let listed = try files.listIfPresent(layout.syncChanges(of: author), as: ChangeFileName.self)
    var item = ChangeFetchQueue.Item(client: author, number: number, names: [])
    for name in listed where name.numbers.contains(number) {
      switch name {
      case .changeSet(let name): item.names.append(name)
      case .segment(let name): item.segments.append(name)
      }
    }
    let reader = ChangeFileReader(
      files, header: header, layout: layout,
      segments: SegmentReader(files, header: header, layout: layout))
    let hash = try store.hashes(of: author, from: number)[number]
    let intact = try reader.read([item]).flatMap(\.intact)
    guard let found = intact.first(where: { hash == nil || $0.hash == hash }) else {
      throw forgotten(detail: "no intact file")
    }
    return found.changeSet
  }

  // MARK: - Errors

  private var listing: Remedy { "See which there are with \(.listChangeSets)." }

  private func forgotten(detail: String, _ underlying: (any Error)? = nil) -> SyncError {
    unavailable(
      "The shared directory does not have any more what there was before this change set.",
      remedy:
        "Only later change sets can be undone. Look for the former values in a backup of the database.",
      detail: detail, underlying)
  }

  private func unavailable(
    _ message: String, remedy: Remedy, detail: String? = nil, _ underlying: (any Error)? = nil
  ) -> SyncError {
    SyncError(
      .changeSetUnavailable, operation: context.verb, path: store.path, message: message,
      remedy: remedy, detail: detail, underlying: underlying)
  }
}
