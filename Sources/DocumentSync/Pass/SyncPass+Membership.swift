import SyncDirectory
import SyncModel
import SyncStore

/// The members of the document, including this client.
extension SyncPass {
  /// This store's client is retired, and the others have applied its change
  /// sets only up to the cut.
  struct Retired: Error {
    var retirement: CommandState.Retirement
    var cut: UInt64
  }

  /// Tells the others that the store is a new client.
  ///
  /// - Parameter incarnations: The changes of client that were not announced.
  func announce(_ incarnations: [Incarnation]) throws {
    guard !incarnations.isEmpty else { return }
    let binding = store.binding
    let applications = ApplicationSteps(files)
    // The store may have been other clients in between. The others learn of
    // these only if they sealed change sets.
    let heard = Set(try store.ancestralChangeSets().map(\.client)).union([binding.client])
    for incarnation in incarnations where heard.contains(incarnation.client) {
      try applications.describe(
        incarnation.client, as: binding.clientDescription, ancestor: incarnation.ancestor,
        document: binding.document)
    }
    try LeftBehind(session: session).note(incarnations)
    // No other store of theirs removes what a killed process has left.
    for incarnation in incarnations
    where incarnation.isAncestorGone || ![.copied, .forked].contains(incarnation.reason) {
      try files.removeLeftovers(of: incarnation.ancestor)
    }
    let gone = incarnations.filter { $0.isAncestorGone && $0.reason != .retired }.map(\.ancestor)
    if !gone.isEmpty { try records.keep(replaced: try records.replaced() + gone) }
    try store.noteIncarnationsAnnounced()
    session.report.incarnations = incarnations
    for incarnation in incarnations {
      context.send(
        .newIncarnation(client: incarnation.client, ancestor: incarnation.ancestor))
    }
  }

  /// Records which members this store has not seen, and retires those that were
  /// absent for long enough.
  func observeAbsence(_ fetched: Fetched) throws {
    try MemberSteps(session: session).observeAbsence(
      fetched.members, fetched.seen, now: context.environment.now())
    guard let limit = context.environment.retireAfter else { return }
    // Once is enough: the members here do not reflect a waiting command yet.
    guard try store.queuedCommands().allSatisfy(\.isPublished) else { return }
    let retired = try Retirement(store: store, context: context).enqueue(
      .notSeen(for: limit), fetched.members, fetched.seen)
    for client in retired {
      context.environment.logger.notice("retiring \(client): not seen for long")
    }
  }

  /// Retires former clients of this store that no store uses any more, once
  /// everything that they have published is applied.
  ///
  /// If the client that sent the command was itself retired before, the command
  /// does not count, and this store sends it again.
  func retireAncestors(_ fetched: Fetched) throws {
    let ancestors = try records.replaced().filter(fetched.members.remaining.contains)
    guard !ancestors.isEmpty, try store.ancestralChangeSets().isEmpty else { return }
    // The members here do not reflect commands that are not published.
    guard try store.queuedCommands().allSatisfy(\.isPublished) else { return }
    let applied = try store.appliedVector()
    for ancestor in ancestors {
      let seen = fetched.seen[ancestor]
      guard seen?.changeHead ?? 0 <= applied.number(of: ancestor) else { continue }
      try CommandSteps.enqueue(
        SyncCommand(
          SyncCommand.Retire(
            client: ancestor, reason: .replaced, lastRevision: seen?.revision ?? 0,
            changeHead: applied.number(of: ancestor))),
        in: store)
    }
  }

  /// Throws if this client is retired. Returns whether it has to show the
  /// others that it is there.
  func checkMembership(
    _ members: Members, _ listing: MarkerSteps.Listing, _ incarnations: [Incarnation]
  ) throws -> Bool {
    let client = store.binding.client
    try checkRemoval(members.removals, incarnations)
    guard let retirement = members.retirements[client] else { return false }
    if let cut = members.cuts[client]?.number {
      throw Retired(retirement: retirement, cut: cut)
    }
    // The client is not absent at all.
    if retirement.reason == .absent { return true }
    // There is no need to wait for any member: if a member has change sets
    // beyond the cut, they are written again with the stamps that they have
    // there.
    let known = try KnownMarkers(session: session).update(listing)
    let applied = members.remaining.map { known[$0]?.applied.number(of: client) ?? 0 }
    throw Retired(retirement: retirement, cut: applied.max() ?? 0)
  }

  /// Throws if this client is removed, and was not allowed to continue as a new one.
  func checkRemoval(
    _ removals: [ClientIdentifier: CommandState.Retirement], _ incarnations: [Incarnation]
  ) throws {
    guard try !records.rejoins() else { return }
    // A copy or an older state of a removed client counts as that client until
    // the others have learned of it. A retired client was allowed to continue
    // as a new one.
    let formerly = incarnations.filter { $0.reason != .retired }
    for client in [store.binding.client] + formerly.map(\.ancestor) {
      if let removal = removals[client] { throw stopped(removal) }
    }
  }

  func stopped(_ retirement: CommandState.Retirement) -> SyncError {
    retirement.reason == .removed
      ? context.error(
        .clientRemoved, path: store.path, "This device was removed from the document.",
        remedy:
          "The database on this device is unchanged, with all its edits. To go on as a new device: "
          + "\(.synchronizeRejoining). To stop: \(.leaveAbandoning).",
        detail: "by \(retirement.author)")
      : context.error(
        .clientRetired, path: store.path,
        "This device was retired, and not all other devices have published how many of its edits they have.",
        remedy: "Sync again later: it then goes on as a new device, with all its edits.",
        detail: "by \(retirement.author): \(retirement.reason.rawValue)")
  }
}
