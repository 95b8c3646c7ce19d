import SyncDirectory
import SyncModel
import SyncStore

/// Change sets in the directory that no device applies as they are: those that
/// clients have published in a replaced generation and that its successor does
/// not contain, and those that this store published as a former client, before
/// it learned that it was retired.
///
/// A device that was in the former generation writes them again in the present
/// one, each value with its original stamp: their authors may be gone. Files
/// may arrive at any time, so the folders are scanned in turn, like those of
/// the present generation.
struct LeftBehind: StoreSteps {
  /// The most change sets that are written at once.
  private static let windowCount = 64

  let session: SyncSession
  /// The brake of the synchronization, if it has one.
  var brake: DeletionBrake?

  // MARK: Moving to another generation

  /// Returns the former generations of a store that moves to another one.
  func formerGenerations(
    beside present: StoreRecords.FormerGeneration
  ) throws -> [StoreRecords.FormerGeneration] {
    try records.formerGenerations().filter { $0.generation != present.generation } + [present]
  }

  /// Returns the former generations of a store that moves to one that is no
  /// successor of its own, as far as the document of that one was in them, too.
  ///
  /// - Parameters:
  ///   - line: The generations that the other one has replaced.
  ///   - vector: The change sets that the other one contains. What the store has
  ///     of the former generations beyond that is only in its rows, without
  ///     deletions and without what was added to counters.
  func shared(
    with line: [IntegrityKey], containing vector: VersionVector
  ) throws -> [StoreRecords.FormerGeneration] {
    try records.formerGenerations().filter { line.contains($0.generation) }.map { former in
      var shared = former
      shared.contained = Self.byText(vector.entries.mapValues(\.number))
      shared.isLookedThrough = false
      shared.held = nil
      return shared
    }
  }

  /// Returns what this store knows of its generation, when a generation that
  /// contains the change sets of `vector` replaces it.
  ///
  /// The store sets its own change sets aside when it moves.
  func present(containing vector: VersionVector) throws -> StoreRecords.FormerGeneration {
    let listing = MarkerSteps.Listing(
      try files.listIfPresent(layout.recentSyncs, as: MarkerName.self), own: binding.client)
    let known = try KnownMarkers(session: session).update(listing)
    var contained = vector.entries.mapValues(\.number)
    contained[binding.client] = max(
      contained[binding.client] ?? 0, try store.head()?.number ?? 0)
    var lowest = known.mapValues(\.lowestKept)
    for retired in known.values.flatMap(\.retired) {
      lowest[retired.client] = max(lowest[retired.client] ?? 1, retired.lowestKept)
    }
    return StoreRecords.FormerGeneration(
      generation: binding.generation, contained: Self.byText(contained),
      lowestKept: Self.byText(lowest), cuts: Self.byText(try cuts(known)))
  }

  /// Returns the numbers of the last change sets to take from removed clients.
  /// The store takes its own change sets in any case.
  private func cuts(
    _ known: [ClientIdentifier: RecentSyncFile]
  ) throws -> [ClientIdentifier: UInt64] {
    let state = try CommandSteps(session: session).state()
    let seen = try records.seenMarkers()
    let members = try MemberSteps(session: session).members(seen, known, state, needs: [])
    let own = try Set(
      records.ancestors().clients + store.unannouncedIncarnations().map(\.ancestor)
        + [client])
    let applied = try store.appliedVector()
    var cuts: [ClientIdentifier: UInt64] = [:]
    for (client, retirement) in members.retirements
    where retirement.reason == .removed && !own.contains(client) {
      cuts[client] = members.cuts[client]?.number ?? applied.number(of: client)
    }
    return cuts
  }

  /// Records the former clients of the store in this generation.
  func note(_ incarnations: [Incarnation]) throws {
    // Another state of a copied store continues by itself.
    let clients = incarnations.filter {
      $0.reason != .begunAgain && ($0.reason != .copied || $0.isAncestorGone)
    }.map(\.ancestor)
    var ancestors = try records.ancestors()
    let before = ancestors
    for client in try clients.flatMap({ try [$0] + store.successors(of: $0) })
    where client != store.binding.client && !ancestors.clients.contains(client) {
      ancestors.clients.append(client)
    }
    if ancestors != before { try records.keep(ancestors) }
  }

  /// Scans the folders of all former generations at the next synchronization:
  /// the device of a client that has not been seen before may have come from
  /// one of them.
  func lookAgain() throws {
    var all = try records.formerGenerations()
    guard all.contains(where: \.isLookedThrough) else { return }
    for index in all.indices { all[index].isLookedThrough = false }
    try records.keep(all)
  }

  // MARK: Scanning

  /// Whether there are folders to scan from time to time.
  func isNeeded(_ members: Members) throws -> Bool {
    try !records.formerGenerations().isEmpty || !retired(records.ancestors(), members).isEmpty
  }

  /// Writes the change sets in them again. Unless `isTurn`, scans only folders
  /// that were never scanned, or that have change sets which are not to be taken
  /// for now.
  func bring(_ members: Members, isTurn: Bool) throws {
    try bringOfFormerGenerations(isTurn: isTurn)
    try bringOfAncestors(members, isTurn: isTurn)
  }

  private func bringOfFormerGenerations(isTurn: Bool) throws {
    let count = try records.formerGenerations().count
    for index in 0..<count {
      var all = try records.formerGenerations()
      let former = all[index]
      // Earlier builds recorded the present one before the store left it.
      guard former.generation != binding.generation, isTurn || former.needsLook else { continue }
      let layout = DirectoryLayout.Document(store.binding.document).generation(former.generation)
      let clients = try files.listIfPresent(layout.syncChanges, as: ClientIdentifier.self)
      let reader = LeftBehindReader(
        files, binding: store.binding, generation: former.generation,
        contained: Self.byClient(former.contained), lowestKept: Self.byClient(former.lowestKept),
        limits: Self.byClient(former.cuts))
      // Without permission, they do not go by and by with later
      // synchronizations. One with permission may have been interrupted.
      var held = (former.held ?? []).filter {
        brake != nil && !$0.deletions.isEmpty
          && $0.number > former.contained[$0.client.description] ?? 0
      }
      for held in held {
        reader.hold(
          SyncReport.Wait(client: held.client, number: held.number, deletions: held.deletions))
      }
      try reader.look(at: clients)
      func write() throws {
        held += try self.write(reader, brake: brake) { contained in
          all[index].contained = Self.byText(contained)
          return try StoreRecords.record(of: all)
        }
      }
      try write()
      if reader.waiting.contains(where: { $0.reason == .dependencies }) {
        // Change sets that an author has brought along itself come from that
        // author.
        reader.departed = try FormerLives(session: session).departed(
          from: former.generation)
        if !reader.departed.isEmpty { try write() }
      }
      let waiting = reader.waiting
      session.report.waiting += waiting
      held.removeAll { held in
        !waiting.contains { $0.client == held.client && $0.number == held.number }
      }
      all = try records.formerGenerations()
      let before = all[index]
      all[index].isLookedThrough = true
      all[index].held = held.isEmpty ? nil : held
      if all[index] != before { try records.keep(all) }
    }
  }

  private func retired(
    _ ancestors: StoreRecords.Ancestors, _ members: Members
  ) -> [ClientIdentifier] {
    ancestors.clients.filter { members.cuts[$0]?.number != nil }
  }

  private func bringOfAncestors(
    _ members: Members, isTurn: Bool
  ) throws {
    var ancestors = try records.ancestors()
    let wanted = retired(ancestors, members).filter {
      isTurn || !ancestors.lookedThrough.contains($0)
    }
    guard !wanted.isEmpty else { return }
    var contained = try store.vector().entries.mapValues(\.number)
    contained[store.binding.client] = try store.head()?.number
    for client in wanted {
      contained[client] = max(
        contained[client] ?? 0, members.cuts[client]?.number ?? 0,
        Self.byClient(ancestors.contained)[client] ?? 0)
    }
    let reader = LeftBehindReader(
      files, binding: store.binding, generation: store.binding.generation, contained: contained,
      lowestKept: [:], limits: [:])
    try reader.look(at: wanted)
    try write(reader) { contained in
      for client in wanted { ancestors.contained[client.description] = contained[client] }
      return try StoreRecords.record(of: ancestors)
    }
    session.report.waiting += reader.waiting
    let new = wanted.filter { !ancestors.lookedThrough.contains($0) }
    guard !new.isEmpty else { return }
    // What was not taken is not contained.
    ancestors = try records.ancestors()
    ancestors.lookedThrough += new
    try records.keep(ancestors)
  }

  /// Writes what can be read, and returns the change sets that are not to be
  /// taken for now.
  @discardableResult
  private func write(
    _ reader: LeftBehindReader, brake: DeletionBrake? = nil,
    _ record: ([ClientIdentifier: UInt64]) throws -> [String: [UInt8]?]
  ) throws -> [StoreRecords.HeldChangeSet] {
    var held: [StoreRecords.HeldChangeSet] = []
    let count = reader.remainingCount
    guard count > 0 else { return held }
    let before = files.counts.bytesRead
    context.begin(.downloading, count: count)
    var windowCount = Self.windowCount
    while true {
      try context.checkCancellation()
      let position = reader.position
      func hold(_ wait: SyncReport.Wait, _ deletions: [StoreStatus.WaitingChangeSet.Deletions]) {
        reader.goBack(to: position)
        reader.hold(wait)
        held.append(
          StoreRecords.HeldChangeSet(
            client: wait.client, number: wait.number, deletions: deletions))
      }
      let window = try reader.next(windowCount, bytes: context.environment.fetchWindowBytes)
      guard let first = window.first else { break }
      let outcome = try store.rewrite(
        window, brake: brake, records: try record(reader.contained),
        checkCancellation: context.checkCancellation)
      session.held.forget()
      switch outcome {
      case .taken(let count):
        context.environment.logger.notice(
          "\(window.count) change sets were left behind, \(count) of them rewritten")
      case .divided:
        windowCount = 1
        reader.goBack(to: position)
        continue
      case .refused(let refused):
        let wait = SyncReport.Wait(refused, path: reader.path(of: first))
        context.environment.logger.error("\(wait)")
        hold(wait, [])
        continue
      case .stopped(let deletions):
        let header = first.changeSet.header
        hold(
          SyncReport.Wait(client: header.client, number: header.number, deletions: deletions),
          deletions)
        continue
      }
      let bytes = files.counts.bytesRead - before
      context.report {
        $0.completedCount = min($0.totalCount, $0.completedCount + window.count)
        $0.completedBytes = bytes
      }
    }
    // The other change sets wait.
    context.endPhase()
    return held
  }

  private static func byText(_ numbers: [ClientIdentifier: UInt64]) -> [String: UInt64] {
    Dictionary(uniqueKeysWithValues: numbers.map { ($0.key.description, $0.value) })
  }

  private static func byClient(_ numbers: [String: UInt64]) -> [ClientIdentifier: UInt64] {
    Dictionary(
      numbers.compactMap { text, number in ClientIdentifier(text).map { ($0, number) } },
      uniquingKeysWith: max)
  }
}
