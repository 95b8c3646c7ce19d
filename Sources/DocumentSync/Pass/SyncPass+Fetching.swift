import SyncDirectory
import SyncModel
import SyncStore

/// The steps of the first half.
extension SyncPass {
  /// The results of the first half, for the second.
  struct Fetched: Sendable {
    var listing: MarkerSteps.Listing
    var turn: Turn
    var seen: [ClientIdentifier: StoreRecords.SeenMarker]
    var members: Members
    /// Whether to publish a marker that shows that this client is there.
    var mustShow: Bool
    /// Why the directory could not be written to before the changes of others were fetched.
    var refusal: DirectoryError?
    /// The waits of this client, for its marker.
    var waiting: [SyncReport.Wait] = []
    /// The files of others that this client has waited for in two
    /// synchronizations.
    var awaited: Set<StoreRecords.Awaited> = []
    /// The last change set of this client, once its edits are sealed.
    var head: VersionVector.Entry?
  }

  /// The markers in the directory, and what their names show.
  struct Found {
    var listing: MarkerSteps.Listing
    var seen: [ClientIdentifier: StoreRecords.SeenMarker]
    var lowest: LowestKept
  }

  /// How often the store may become another client within one pass.
  static let incarnations = 3

  /// Removes temporary files of an exchange of content whose process ended.
  func removeLeftovers() throws {
    try LocalSiblings(store: store.path, operation: context.verb).removeAll()
  }

  /// Removes the files that a killed process of this client has left below `Temporary`.
  func removeUnfinished() throws {
    guard try files.publications.isLeft() else { return }
    context.environment.logger.notice("an earlier publication was interrupted")
    try files.removeLeftovers(of: client)
    files.publications.noteRemoval()
    turns.notePublication()
  }

  /// Keeps what was exchanged until a synchronization has come to its end and
  /// reports it.
  func note(_ rebootstrap: SyncReport.Rebootstrap?) throws {
    if let rebootstrap { try records.keep(rebootstrap) }
  }

  /// Fetches, and starts again whenever a gap was mended or the store has
  /// become another client.
  ///
  /// - Parameter exchanged: The exchange of content in this pass, after which
  ///   no gap is mended.
  func fetchUntilSettled(
    _ exchanged: SyncReport.Rebootstrap?, _ fetch: (_ mendsGaps: Bool) throws -> Fetched
  ) throws -> Fetched {
    var rebootstrap = exchanged
    var attempt = 1
    while true {
      do {
        let fetched = try fetch(rebootstrap == nil)
        session.report.rebootstrap = try records.rebootstrap() ?? rebootstrap
        return fetched
      } catch let gap as Gap {
        context.environment.logger.notice(
          "\(gap.isCommand ? "command" : "change set") \(gap.number) of \(gap.client) is gone")
        do {
          rebootstrap = try GapSteps(session: session).close(gap)
          try note(rebootstrap)
        } catch let error as StoreError where error.code == .fork && attempt < Self.incarnations {
          // The new client finds the gap again.
          attempt += 1
          try fork(error)
        }
      } catch let fork as Fork where attempt < Self.incarnations {
        attempt += 1
        context.environment.logger.notice("\(fork.path): \(fork.detail)")
        let own = OwnChangeSets(session: session)
        try own.beginIncarnation(.forked, standing: own.standing())
      } catch let retired as Retired where attempt < Self.incarnations {
        attempt += 1
        context.environment.logger.notice("retired at change set \(retired.cut)")
        // No other device has the change sets beyond the cut, and none will
        // take them from this client. An older state of the store may have
        // sealed others under the numbers up to the cut.
        let own = OwnChangeSets(session: session)
        let standing = try own.standing()
        try own.beginIncarnation(.retired) {
          $0.number > retired.cut ? .known : standing($0)
        }
      } catch let fork as Fork {
        throw forked(fork)
      } catch let retired as Retired {
        throw stopped(retired.retirement)
      }
    }
  }

  /// Makes the store a new client after a whole store was found to contain more
  /// of its client than it does: it is an older state, and its edits since then
  /// are its own.
  func fork(_ error: StoreError) throws {
    context.environment.logger.notice("\(error)")
    let own = OwnChangeSets(session: session)
    try own.beginIncarnation(.forked, standing: own.standingBesideWholeStore())
  }

  /// The error if another state of the store is in use.
  func forked(_ fork: Fork) -> SyncError {
    context.error(
      .forkedClient, path: files.userPath(fork.path),
      "Another state of this store is in use.",
      remedy: "Sync again; if that does not help, make sure that no other process uses a copy of "
        + "the store.",
      detail: fork.detail)
  }

  /// Lists the markers, whose names show how far each client has come.
  func listMarkers() throws -> Found {
    let markers = MarkerSteps(session: session)
    let listing = try markers.list()
    let seen = try markers.seen(
      listing, onNewClient: LeftBehind(session: session).lookAgain)
    if try records.readMarkers().isEmpty, !listing.newest.isEmpty {
      // A store may never have seen a marker of a client that is gone by now.
      // It finds the client's files through the markers of others: its commands
      // first.
      try KnownMarkers(session: session).update(listing)
    }
    return Found(listing: listing, seen: seen, lowest: LowestKept(session, listing))
  }

  /// Throws ``Gap`` if a command was vacuumed and a whole store closes the gap.
  func mendGapOfCommands(_ found: Found) throws {
    guard
      let wait = session.report.waiting.first(where: {
        $0.isCommand && $0.reason == .clearedAway
      })
    else { return }
    try throwIfClosable(Gap(client: wait.client, number: wait.number, isCommand: true), found)
  }

  /// Throws ``Gap`` if a change set was vacuumed and a whole store closes the gap; otherwise asks
  /// the others for one.
  func mendGap(of fetch: ChangeFetch, _ found: Found) throws {
    guard let (client, number) = fetch.gap else { return }
    let gap = Gap(client: client, number: number)
    try throwIfClosable(gap, found)
    try GapSteps(session: session).ask(for: gap)
  }

  private func throwIfClosable(_ gap: Gap, _ found: Found) throws {
    let steps = GapSteps(session: session)
    if try steps.canClose(gap) { throw try steps.noting(found.lowest, of: found.seen, gap) }
  }

  /// Plans which change sets of others to fetch.
  func planFetch(
    _ found: Found, _ members: Members, _ brake: DeletionBrake?
  ) throws -> ChangeFetch {
    try ChangeFetch(
      session, heads: try heads(found.seen), cuts: members.cuts,
      brake: brakesFetch() ? brake : nil,
      lowestKept: { try found.lowest.kept(of: $0).changeSets })
  }

  /// Returns the brake of this pass; `nil` if it may delete whatever was deleted.
  func brake() -> DeletionBrake? {
    guard !allowsDeletions, let share = context.environment.deletionLimit else { return nil }
    var limit = DeletionLimit(share: share)
    limit.leastRows = context.environment.thresholds.deletionLimitRows
    return DeletionBrake(limit)
  }

  /// Whether the brake is for the change sets of the generation, too. It is not before a device that has
  /// joined publishes its first marker: it has none of the rows. A store that goes on as another client
  /// has had them.
  private func brakesFetch() throws -> Bool {
    try records.ownMarker() != nil || store.binding.ancestor != nil
  }

  /// The last known change set of each client, from its own marker or from that
  /// of a client that has applied it. This way, a store that never saw a marker
  /// of a client that is gone by now finds its change sets.
  private func heads(
    _ seen: [ClientIdentifier: StoreRecords.SeenMarker]
  ) throws -> [ClientIdentifier: UInt64] {
    var heads = seen.mapValues(\.changeHead)
    for marker in try records.readMarkers().values {
      for (client, entry) in marker.applied.entries where client != store.binding.client {
        heads[client] = max(heads[client] ?? 0, entry.number)
      }
    }
    return heads
  }
}
