import SyncDirectory
import SyncModel
import SyncStore

/// One synchronization, step by step, in the order that keeps it safe.
///
/// Nothing is written anywhere before the binding was found right and the
/// markers were read, so that a copy of a store notices itself first. After
/// that, every step leaves a state from which the next run continues.
struct SyncPass: StoreSteps {
  let store: LocalStore
  let files: SharedFiles
  let turns: SyncTurns
  /// Whether to read every own file in the directory.
  var checksOwnFiles = false
  /// Whether to remove what no device needs, due or not.
  var clearsAway = false
  /// Whether to look, due or not, through all folders in which others may have
  /// left something behind. Set when leaving: no other device may know of them.
  var looksBehind = false
  /// Whether to stop if rows may be shown beside others than they belong to. A
  /// reset of the document mends that.
  var checksIdentities = true

  /// What the first half hands to the second.
  struct Fetched: Sendable {
    var report: SyncReport
    fileprivate var listing: MarkerSteps.Listing
    fileprivate var turn: Turn
    var seen: [ClientIdentifier: StoreRecords.SeenMarker]
    var members: Members
    /// Whether a marker is to show that this client is there.
    fileprivate var mustShow: Bool
    /// The files of others that this client has waited for twice.
    fileprivate var awaited: Set<StoreRecords.Awaited> = []
  }

  /// Runs both halves without asking questions in between.
  func run() throws -> SyncReport { try send(fetch()) }

  /// How often the store may become another client within one pass.
  static let incarnations = 3

  /// The first half: fetches and applies what is new.
  func fetch() throws -> Fetched {
    context.begin(.listing)
    // Leftovers of an exchange of content whose process ended.
    try LocalSiblings(store: store.path, operation: context.verb).removeAll()
    // Before anything is sealed or published.
    try store.checkPlace()
    let restored =
      checksOwnFiles ? try ThoroughCheck(files: files, store: store).restoreBeginning() : []
    var rebootstrap = try goOver()
    try note(rebootstrap)
    try bringAlong()
    if checksIdentities { try store.checkIdentities() }
    // Before anything is applied to them.
    try RemakeSteps(files: files, store: store).run()
    var attempt = 1
    while true {
      do {
        var fetched = try fetchAsIs(mendsGaps: rebootstrap == nil)
        fetched.report.rebootstrap = try records.rebootstrap() ?? rebootstrap
        fetched.report.restoredFiles = restored.map(\.description)
        return fetched
      } catch let gap as Gap {
        context.environment.logger.notice(
          "\(gap.isCommand ? "command" : "change set") \(gap.number) of \(gap.client) is gone")
        rebootstrap = try GapSteps(files: files, store: store).close(gap)
        try note(rebootstrap)
      } catch let fork as Fork where attempt < Self.incarnations {
        attempt += 1
        context.environment.logger.notice("\(fork.path): \(fork.detail)")
        let standing = try OwnChangeSets(files: files, store: store).standing()
        try store.beginIncarnation(.forked, standing: standing)
      } catch let retired as Retired where attempt < Self.incarnations {
        attempt += 1
        context.environment.logger.notice("retired at change set \(retired.cut)")
        // No other device has what is beyond the cut, and none will take it
        // from this client.
        try store.beginIncarnation(.retired) { $0.number > retired.cut ? .known : .common }
      } catch let fork as Fork {
        throw forked(fork)
      } catch let retired as Retired {
        throw stopped(retired.retirement)
      }
    }
  }

  /// Applies what others have published since the whole store that the store
  /// was made from, without mending gaps, and without announcing anything.
  func catchUp() throws {
    do {
      _ = try fetchAsIs(mendsGaps: false)
    } catch let fork as Fork {
      throw forked(fork)
    } catch let retired as Retired {
      throw stopped(retired.retirement)
    }
  }

  /// Keeps what was exchanged until a synchronization has come to its end and
  /// reports it.
  func note(_ rebootstrap: SyncReport.Rebootstrap?) throws {
    if let rebootstrap { try records.keep(rebootstrap) }
  }

  private func forked(_ fork: Fork) -> SyncError {
    context.error(
      .forkedClient, path: files.userPath(fork.path),
      "Another state of this store is in use.",
      remedy: "Sync again; if that does not help, make sure that no other process uses a copy of "
        + "the store.",
      detail: fork.detail)
  }

  private func fetchAsIs(mendsGaps: Bool) throws -> Fetched {
    var report = SyncReport()
    let markers = MarkerSteps(files: files, store: store)
    let listing = try markers.list()
    let seen = try markers.seen(listing)
    let own = OwnChangeSets(files: files, store: store)
    if try records.readMarkers().isEmpty, !listing.newest.isEmpty {
      // A store that never saw a marker of a client that is gone by now finds
      // the client's files through the markers of others: its commands first.
      try KnownMarkers(files: files, store: store).update(listing)
    }
    let lowest = LowestKept(files, store: store, listing)
    let state = try CommandSteps(files: files, store: store).fetch(seen, lowest, &report)
    if mendsGaps,
      let wait = report.waiting.first(where: { $0.isCommand && $0.reason == .clearedAway })
    {
      // Before anything else: it may change the members.
      let gap = Gap(client: wait.client, number: wait.number, isCommand: true)
      let steps = GapSteps(files: files, store: store)
      if try steps.canClose(gap) { throw try steps.noting(lowest, of: seen, gap) }
    }
    let steps = MemberSteps(files: files, store: store)
    let members = try steps.find(seen, listing, state)
    let mustShow = try checkMembership(members, listing)
    try steps.forgetUnwanted(members, state)

    let fetch = try ChangeFetch(
      files, store: store, heads: try heads(seen), cuts: members.cuts,
      lowestKept: { try lowest.kept(of: $0).changeSets })
    let leftBehind = LeftBehind(files: files, store: store)
    let turn = try takeTurn(
      own: own, fetch: fetch, looksBehind: try leftBehind.isNeeded(members),
      retirements: state.retirements, listing, &report)
    try announce(&report)
    try fetch.run(&report)
    if mendsGaps, let (client, number) = fetch.gap {
      let gap = Gap(client: client, number: number)
      let steps = GapSteps(files: files, store: store)
      if try steps.canClose(gap) { throw try steps.noting(lowest, of: seen, gap) }
      try steps.ask(for: gap)
    }
    // What others have found has come with their change sets by now.
    try leftBehind.bring(members, isTurn: looksBehind || turn.looksBehind, &report)
    return Fetched(
      report: report, listing: listing, turn: turn, seen: seen, members: members,
      mustShow: mustShow)
  }

  /// The last known change set of each client, from its own marker or from that
  /// of a client that has applied it. So a store that never saw a marker of a
  /// client that is gone by now finds its change sets.
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

  /// The second half: publishes what was edited here, the answers to
  /// questions among it, and tells the others.
  func send(_ fetched: Fetched) throws -> SyncReport {
    do {
      return try sendAsIs(fetched)
    } catch let fork as Fork {
      throw forked(fork)
    }
  }

  private func sendAsIs(_ fetched: Fetched) throws -> SyncReport {
    var report = fetched.report
    let own = OwnChangeSets(files: files, store: store)
    try observeAbsence(fetched)
    try retireAncestors(fetched)
    try own.publishAncestral(&report)
    if try store.hasUnsealedEdits() { try files.confirmRoot() }
    let kept = try own.seal(&report)
    try own.publish(kept, turns: turns, &report)
    let thorough = ThoroughCheck(files: files, store: store)
    let awaited = AwaitedFiles(files: files, store: store)
    let asked = try awaited.asked(fetched.listing)
    let commands = CommandSteps(files: files, store: store)
    var listed: [CommandName]?
    if checksOwnFiles || asked.hasCommand {
      listed = try thorough.intactCommands()
    } else if case .commands(let names) = fetched.turn {
      listed = try commands.leavingOutShort(names)
    }
    try commands.publish(listed: listed, &report)
    let lost = try putBack(kept, asked, fetched.turn, own, &report)
    let acknowledged = AcknowledgedChangeSets(files: files, store: store)
    try acknowledged.replace(lost, &report)
    try awaited.note(answered: asked)
    try acknowledged.forget(kept, fetched.listing)

    try GapSteps(files: files, store: store).uploadIfAsked(fetched.listing, &report)
    var damage = ThoroughCheck.Damage()
    let isOwnTurn = if case .own = fetched.turn { true } else { false }
    if checksOwnFiles {
      damage.restored = try thorough.checkDescription()
      try thorough.checkMarkers(fetched.listing, &damage)
    } else if isOwnTurn {
      try MarkerSteps(files: files, store: store).mendOwn()
    }
    if try checksOwnFiles || (isOwnTurn && thorough.hasShortWholeStore()) {
      try thorough.checkWholeStores(fetched.listing, &damage, &report.warnings)
      if damage.hasUploaded { report.uploadedWholeStore = true }
    }
    var fetched = fetched
    let waiting = try awaited.worthSaying(report.waiting, fetched.listing)
    fetched.awaited = try awaited.note(waiting)
    report.publishedMarker = try tell(
      fetched, waiting: waiting, isForced: fetched.mustShow || damage.needsMarker)
    if damage.needsMarker, let path = try MarkerSteps(files: files, store: store).ownPath() {
      damage.restored.append(path)
    }
    try thorough.finish(damage)
    report.restoredFiles += damage.restored.map(\.description)
    report.removedFiles = damage.removals.map(\.description)
    report.damagedFiles = damage.remaining.map(\.description)
    let housekeeping = try housekeeping(fetched, waiting: waiting)
    // New markers are read for it, so only from time to time.
    let thresholds = context.environment.thresholds
    if try clearsAway || Housekeeping.isDue(store, thresholds)
      || (isOwnTurn && housekeeping.isJoinImpossible())
    {
      report.housekeeping = try housekeeping.run(isThorough: clearsAway, &report.warnings)
    }
    report.openConflicts = try store.openConflictCount()
    report.pendingCommands = try store.pendingEvents().count
    if report.rebootstrap != nil {
      try records.keep(nil as SyncReport.Rebootstrap?)
    }
    let hint = files.directory.hint
    if binding.directory != hint { try store.setDirectory(hint) }
    let counts = files.counts
    report.listings = counts.listings
    report.bytesReceived = counts.bytesRead
    report.bytesSent = counts.bytesPublished
    return report
  }

  /// Puts back own change sets: those that others ask for, or, in the own turn,
  /// those that are seen to be missing. Returns those that cannot be put back.
  private func putBack(
    _ kept: [SealedChangeSet], _ asked: AwaitedFiles.Asked, _ turn: Turn, _ own: OwnChangeSets,
    _ report: inout SyncReport
  ) throws -> [SealedChangeSet] {
    func names() throws -> OwnChangeSets.Listed {
      if case .own(let names) = turn { names } else { try own.list(&report) }
    }
    if checksOwnFiles {
      return try own.putBack(kept, try names(), readingAtMost: .max, &report)
    }
    if let first = asked.changeSet {
      // A device that waits for it has none of the later ones.
      let wanted = kept.filter { $0.number >= first }
      return try own.putBack(wanted, try names(), readingAtMost: .max, &report)
    }
    guard case .own(let names) = turn else { return [] }
    return try own.putBack(
      kept, names, readingAtMost: report.isIdle ? 0 : OwnChangeSets.sample, measuring: turns,
      &report)
  }

  private func housekeeping(_ fetched: Fetched, waiting: [SyncReport.Wait]) throws -> Housekeeping {
    Housekeeping(
      files: files, store: store, listing: fetched.listing, members: fetched.members,
      commands: try CommandSteps(files: files, store: store).state(),
      tell: { try tell(fetched, waiting: waiting) })
  }

  /// Tells the others what is new here.
  private func tell(
    _ fetched: Fetched, waiting: [SyncReport.Wait], isForced: Bool = false
  ) throws -> Bool {
    let state = try CommandSteps(files: files, store: store).state()
    return try MarkerSteps(files: files, store: store).publishIfNeeded(
      fetched.listing,
      MarkerSteps.Statement(
        changeHead: try store.head(), applied: try store.appliedVector(),
        commands: state.commands,
        retired: try MemberSteps(files: files, store: store).retired(fetched.members),
        waiting: waiting, awaited: fetched.awaited),
      isForced: isForced)
  }

  /// Publishes the commands of this client, and tells the others, without
  /// looking for anything: for a client that leaves.
  func tellWithoutFetching() throws {
    try DocumentSteps(files).check(store.binding)
    var report = SyncReport()
    let markers = MarkerSteps(files: files, store: store)
    let listing = try markers.list()
    let seen = try markers.seen(listing)
    let commands = CommandSteps(files: files, store: store)
    let members = try MemberSteps(files: files, store: store).find(seen, listing, commands.state())
    try commands.publish(&report)
    _ = try tell(
      Fetched(
        report: report, listing: listing, turn: .other, seen: seen, members: members,
        mustShow: false, awaited: try records.waits().said),
      waiting: [])
  }

  fileprivate enum Turn: Sendable {
    /// The own folder, and what it holds.
    case own(OwnChangeSets.Listed)
    /// The folder of the own commands, and what it holds.
    case commands([CommandName])
    /// Another client's, or the folder of all.
    case other
    /// The folders in which something may have been left behind.
    case behind

    var looksBehind: Bool { if case .behind = self { true } else { false } }
  }

  /// Lists one folder that no marker asked for: that of one client, itself
  /// included, that of its commands, or the folder of all clients, in which a
  /// client may be found whose only marker was lost.
  private func takeTurn(
    own: OwnChangeSets, fetch: ChangeFetch, looksBehind: Bool,
    retirements: [CommandState.Retirement], _ listing: MarkerSteps.Listing,
    _ report: inout SyncReport
  ) throws -> Turn {
    let others = fetch.knownClients.sorted()
    // Other members may have vacuumed the commands of a client that was retired
    // and came back.
    let hasCommands = try store.queuedCommands().contains(where: \.isPublished)
    let index = turns.take(of: others.count + 2 + (hasCommands ? 1 : 0) + (looksBehind ? 1 : 0))
    if index < others.count {
      try fetch.look(at: others[index])
      return .other
    }
    switch index - others.count {
    case 0: return .own(try own.list(&report))
    case 1:
      try fetch.lookForClients()
      // Others may have processed commands of a retired client, or applied more of it, and have
      // removed its markers by now: only theirs tell of that.
      if !retirements.isEmpty { try KnownMarkers(files: files, store: store).update(listing) }
      return .other
    case 2 where hasCommands:
      return .commands(try CommandSteps(files: files, store: store).listOwn())
    default: return .behind
    }
  }
}
