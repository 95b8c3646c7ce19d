import SyncDirectory
import SyncModel
import SyncStore

/// One synchronization, step by step, in the order that keeps it safe.
///
/// Nothing is written anywhere before the binding was found right and the
/// markers were read, so that a copy of a store notices itself first. After
/// that, every step leaves a state from which the next run continues.
struct SyncPass {
  let store: LocalStore
  let files: SharedFiles
  let turns: SyncTurns
  /// Whether to read every own file in the directory.
  var checksOwnFiles = false

  private var context: OperationContext { files.context }

  /// Runs the pass.
  func run() throws -> SyncReport {
    var report = SyncReport()
    context.begin(.listing)
    let binding = store.binding
    try DocumentSteps(files).check(binding)

    let markers = MarkerSteps(files, store: store)
    let listing = try markers.list()
    let heads = try markers.heads(listing)
    let own = OwnChangeSets(files, store: store)
    let fetch = try ChangeFetch(files, store: store, heads: heads)
    let turn = try takeTurn(own: own, fetch: fetch)

    // Commands come here, before change sets.

    try fetch.run(&report)
    let kept = try own.seal(&report)
    try own.publish(kept, turns: turns, &report)
    var lost: [SealedChangeSet] = []
    if case .own(let names) = turn {
      let limit = checksOwnFiles ? .max : report.isIdle ? 0 : OwnChangeSets.sample
      lost = try own.putBack(kept, listed: names, readingAtMost: limit, &report)
    } else if checksOwnFiles {
      lost = try own.putBack(kept, listed: own.list(), readingAtMost: .max, &report)
    }
    let acknowledged = AcknowledgedChangeSets(files, store: store)
    try acknowledged.replace(lost, &report)
    try acknowledged.forget(kept, listing)

    let head = try store.head()
    report.publishedMarker = try markers.publishIfNeeded(
      listing, applied: store.appliedVector(), head: head,
      lowestKept: kept.first?.number ?? (head?.number ?? 0) + 1, waiting: report.waiting)
    let hint = files.directory.hint
    if binding.directory != hint { try store.setDirectory(hint) }
    let counts = files.counts
    report.listings = counts.listings
    report.bytesReceived = counts.bytesRead
    report.bytesSent = counts.bytesPublished
    return report
  }

  private enum Turn {
    /// The own folder, and what it holds.
    case own([ChangeSetName])
    /// Someone else's, or the folder of all.
    case other
  }

  /// Lists one folder that no marker asked for: that of one client, itself
  /// included, or the folder of all clients, where one may be found whose
  /// only marker was lost.
  private func takeTurn(own: OwnChangeSets, fetch: ChangeFetch) throws -> Turn {
    let others = fetch.knownClients.sorted()
    let index = turns.take(of: others.count + 2)
    if index < others.count {
      try fetch.look(at: others[index])
      return .other
    }
    if index == others.count { return .own(try own.list()) }
    try fetch.lookForClients()
    return .other
  }
}
