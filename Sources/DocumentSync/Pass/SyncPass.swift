import SyncDirectory
import SyncModel
import SyncStore

/// One synchronization as a list of steps, in the order that keeps it safe.
///
/// The pass writes nothing anywhere before it has checked the binding and read
/// the markers, so that a copy of a store notices itself first. After that,
/// every step leaves a state from which the next run continues.
struct SyncPass: StoreSteps, Sendable {
  let session: SyncSession
  let turns: SyncTurns
  /// Which half to do. What keeps the other half safe is done in any case.
  var half = SyncHalf.both
  /// Whether to read every own file in the directory.
  var checksOwnFiles = false
  /// Whether to remove the files that no device needs, even if that is not due.
  var clearsAway = false
  /// Whether to scan former generations for change sets that clients left
  /// behind, even if that is not due. Set when leaving: no other device may
  /// know of them.
  var scansFormerGenerations = false
  /// Whether to apply change sets that delete more rows than ``SyncEnvironment/deletionLimit`` allows.
  var allowsDeletions = false
  /// Whether to stop if rows may appear beside the wrong other rows. A reset of
  /// the document corrects that.
  var checksIdentities = true

  /// Runs both halves, without asking questions in between.
  func run() throws -> SyncReport { try send(fetch()) }

  /// Runs the first half: fetches and applies change sets.
  func fetch() throws -> Fetched {
    context.begin(.listing)
    try removeLeftovers()
    // Before anything is sealed or published.
    try store.checkPlace()
    try store.checkTables()
    let restored = checksOwnFiles ? try restoreBeginning() : []
    let exchanged = try goOver()
    try note(exchanged)
    try bringAlong()
    if checksIdentities { try store.checkIdentities() }
    // Before anything is applied to them.
    try RemakeSteps(session: session).run()
    let fetched = try fetchUntilSettled(exchanged) { try fetchOnce(mendsGaps: $0) }
    session.report.restoredFiles = restored.map(\.description)
    return fetched
  }

  private func restoreBeginning() throws -> [RelativePath] {
    try ThoroughCheck(session: session).restoreBeginning()
      + RolledBackDirectory(session: session).beginAgain()
  }

  /// Applies the change sets since the whole store that this store was made
  /// from, without mending gaps and without announcing anything.
  func catchUp() throws {
    files.publications.keep(in: nil)
    do {
      _ = try fetchOnce(mendsGaps: false)
    } catch let fork as Fork {
      throw forked(fork)
    } catch let retired as Retired {
      throw stopped(retired.retirement)
    }
  }

  private func fetchOnce(mendsGaps: Bool) throws -> Fetched {
    // What was in conflict before a gap was closed is in conflict still.
    let (conflicts, warnings) = (session.report.conflicts, session.report.warnings)
    session.report = SyncReport()
    (session.report.conflicts, session.report.warnings) = (conflicts, warnings)
    let found = try listMarkers()
    let state = try CommandFetch(session: session).fetch(found.seen, found.lowest)
    // Before anything else, since a command may change the members.
    if mendsGaps { try mendGapOfCommands(found) }
    let members = try MemberSteps(session: session).find(found.seen, found.listing, state)
    let incarnations = try store.unannouncedIncarnations()
    let mustShow = try checkMembership(members, found.listing, incarnations)
    try MemberSteps(session: session).forgetUnwanted(members, state)
    var refusal = try self.refusal { try removeUnfinished() }
    let brake = brake()
    let fetch = try planFetch(found, members, brake)
    let turn = try takeTurn(fetch, members, state, found.listing)
    if half != .fetching, let error = try self.refusal({ try announce(incarnations) }) {
      refusal = error
    }
    if half != .sending {
      try fetch.run()
      if mendsGaps { try mendGap(of: fetch, found) }
      // By now, the change sets of others have brought what those have found.
      try LeftBehind(session: session, brake: brake).bring(
        members, isTurn: scansFormerGenerations || turn.scansFormerGenerations)
    }
    return Fetched(
      listing: found.listing, turn: turn, seen: found.seen, members: members, mustShow: mustShow,
      refusal: refusal)
  }

  /// Runs a step that writes to the directory. Returns the error of a directory that is full or may not be
  /// written to: it can still be read.
  private func refusal(_ step: () throws -> Void) throws -> DirectoryError? {
    do {
      try step()
      return nil
    } catch let error as DirectoryError where [.notWritable, .noSpace].contains(error.code) {
      return error
    }
  }

  /// Runs the second half: publishes local edits, including answers to
  /// questions, and tells the others.
  func send(_ fetched: Fetched) throws -> SyncReport {
    if half == .fetching {
      var fetched = fetched
      try noteWaits(&fetched)
      try completeReport()
      return session.report
    }
    do {
      try files.publishing(for: store) { try sendOnce(fetched) }
      return session.report
    } catch let fork as Fork {
      throw forked(fork)
    }
  }

  private func sendOnce(_ fetched: Fetched) throws {
    if let refusal = fetched.refusal { throw refusal }
    var fetched = fetched
    try observeAbsence(fetched)
    try retireAncestors(fetched)
    let sealed = try OwnChangeSets(session: session).seal()
    fetched.head = sealed.outbox.head
    try OwnChangeSets(session: session).publish(sealed, turns: turns)
    let commands = try CommandSteps(session: session).publish()
    let asked = try AwaitedFiles(session: session).asked(fetched.listing)
    let repairs =
      checksOwnFiles
      ? try repairAll(sealed.outbox.own, commands, fetched)
      : try repairNoticed(sealed.outbox.own, commands, asked, fetched)
    try AcknowledgedChangeSets(session: session).replace(repairs.lost)
    try AwaitedFiles(session: session).note(answered: asked)
    try AcknowledgedChangeSets(session: session).forget(sealed.outbox.own, fetched.listing)
    try GapSteps(session: session).uploadIfAsked(fetched.listing)
    try noteWaits(&fetched)
    session.report.publishedMarker = try tell(
      fetched, isForced: fetched.mustShow || repairs.needsMarker)
    try finish(repairs)
    try keepHouse(fetched)
    try completeReport()
  }

  /// Publishes the commands of this client, and tells the others, without
  /// fetching anything: for a client that leaves.
  func tellWithoutFetching() throws {
    try DocumentSteps(files).check(store.binding)
    let found = try listMarkers()
    let commands = CommandSteps(session: session)
    let members = try MemberSteps(session: session).find(
      found.seen, found.listing, commands.state())
    _ = try commands.publish()
    _ = try tell(
      Fetched(
        listing: found.listing, turn: .other, seen: found.seen, members: members, mustShow: false,
        awaited: try records.waits().said, head: try store.head()))
  }
}
