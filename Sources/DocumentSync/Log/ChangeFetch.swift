import SyncDirectory
import SyncModel
import SyncStore

/// Finds, reads, checks and applies the change sets of other clients.
///
/// A file that does not check out is pending: its author's later files wait for
/// it, other clients' files do not, and the report gives the reason.
final class ChangeFetch: StoreSteps {
  /// The state of one author's change sets in this store and in the directory.
  struct Author {
    /// The last number that the store has applied or holds.
    var has: UInt64 = 0
    /// The hash of that change set; `nil` if unknown.
    var lastHash: ContentHash?
    /// The last applied change set.
    var applied: VersionVector.Entry?
    /// The last announced number.
    var announced: UInt64 = 0
    /// The last number to apply, if the author is retired.
    var limit = UInt64.max
    /// The content of its folder, after it was listed.
    var listed: [ChangeFileName]?
  }

  /// How many numbers were read, how many there are to read, and how many bytes
  /// the operation had read before.
  private struct Reading {
    var done = 0
    var total = 0
    var bytesBefore = 0
  }

  /// About the most bytes of decoded changes that the store gets at once: a
  /// short file can decode to many bytes.
  private static let windowMemory = 24 << 20
  /// The most numbers of a client that are planned ahead: names of segments can
  /// claim any number of them.
  static let plannedCount = 4_096
  /// How often a folder is listed again after files of it have disappeared.
  private static let relistings = 2

  let session: SyncSession
  let header: SyncChangeSet.Header
  let layout: DirectoryLayout.Generation
  var authors: [ClientIdentifier: Author] = [:]
  /// The first waiting number of each client, and why it waits.
  private var waits: [ClientIdentifier: SyncReport.Wait] = [:]
  /// The clients with a file that did not check out: their later files wait.
  private var blocked: Set<ClientIdentifier> = []
  /// The clients of which a file may count in place of an applied one, and could
  /// not be read.
  var unclear: Set<ClientIdentifier> = []
  /// Whether a change set in the store no longer has to wait: the application
  /// has changed its schema, or an earlier run was interrupted.
  private let canApplyKept: Bool
  /// The change sets that the store holds until others arrive.
  var waiting: [StoreStatus.WaitingChangeSet]
  /// The authors of the change sets that the waiting ones need.
  private let missing: [ClientIdentifier]
  /// The clients with a file that disappeared before it was read.
  private var vanished: Set<ClientIdentifier> = []
  /// The first number of a client that the store needs and that was vacuumed.
  var gap: (client: ClientIdentifier, number: UInt64)?
  let segments: SegmentReader
  let lowestKept: (ClientIdentifier) throws -> UInt64
  private let brake: DeletionBrake?
  /// The progress of reading.
  private var reading = Reading()

  /// - Parameters:
  ///   - heads: The last change set that each client has announced.
  ///   - cuts: How far the change sets of retired clients are applied.
  ///   - brake: The brake of the synchronization, if it has one.
  ///   - lowestKept: Returns the least number of a client that was not
  ///     vacuumed, as far as the markers show.
  init(
    _ session: SyncSession, heads: [ClientIdentifier: UInt64],
    cuts: [ClientIdentifier: Members.Cut], brake: DeletionBrake? = nil,
    lowestKept: @escaping (ClientIdentifier) throws -> UInt64
  ) throws {
    self.session = session
    self.lowestKept = lowestKept
    self.brake = brake
    (header, layout) = (session.header, session.layout)
    let (files, store) = (session.files, session.store)
    segments = SegmentReader(files, header: header, layout: layout)
    for (client, head) in heads { authors[client, default: Author()].announced = head }
    for (client, entry) in try store.appliedVector().entries {
      authors[client, default: Author()].applied = entry
      authors[client, default: Author()].has = entry.number
      authors[client, default: Author()].lastHash = entry.hash
    }
    waiting = try store.waiting()
    // A change set that waits for an earlier one of its author does not prove
    // that the store has the earlier one: the store's content may have been
    // exchanged since.
    for waiting in waiting.sorted(by: { $0.number < $1.number })
    where waiting.number == (authors[waiting.client]?.has ?? 0) + 1 {
      authors[waiting.client, default: Author()].has = waiting.number
      authors[waiting.client]?.lastHash = waiting.hash
    }
    canApplyKept = waiting.contains {
      $0.missing.isEmpty && (brake == nil || $0.deletions.isEmpty)
    }
    missing = Set(waiting.flatMap(\.missing.keys)).sorted()
    authors[header.client] = nil
    limit(cuts)
  }

  /// The known other clients whose change sets the store may still apply.
  var knownClients: [ClientIdentifier] {
    authors.filter { $0.value.has < $0.value.limit }.map(\.key)
  }

  /// Lists a client's folder, even if it has announced nothing.
  func look(at client: ClientIdentifier) throws {
    guard authors[client]?.listed == nil else { return }
    let folder = layout.syncChanges(of: client)
    do {
      authors[client, default: Author()].listed = try files.listIfPresent(
        folder, as: ChangeFileName.self)
    } catch let error as DirectoryError
      where error.code == .notADirectory || error.code == .notReadable
    {
      // The error concerns that folder alone; the others are read.
      authors[client, default: Author()].listed = []
      wait(
        client, (authors[client]?.has ?? 0) + 1, .unreadable,
        "its folder could not be listed: \(error.code)", path: folder)
    }
  }

  /// Lists the folder of all clients, and the folders of unknown clients in it.
  func lookForClients() throws {
    let clients = try files.listIfPresent(layout.syncChanges, as: ClientIdentifier.self)
    for client in clients where client != header.client && authors[client] == nil {
      try look(at: client)
    }
  }

  /// Reads and applies the new change sets.
  func run() throws {
    var wanted = authors.filter { min($0.value.announced, $0.value.limit) > $0.value.has }.map(
      \.key)
    wanted += missing.filter { $0 != header.client }
    wanted.removeAll { authors[$0]?.listed != nil }
    let folders = try files.folders(in: layout.syncChanges, ofSoMany: wanted.count)
    for client in wanted {
      guard folders?.contains(client) ?? true else {
        authors[client, default: Author()].listed = []
        continue
      }
      try look(at: client)
    }
    for client in authors.keys.sorted() { try takeBackFork(of: client) }
    try applyKept()
    try fetch(authors.keys.sorted())
    // If a file was vacuumed before it was read, either a segment contains its
    // change set by now, or there is a gap.
    for _ in 0..<Self.relistings where !vanished.isEmpty {
      let clients = vanished.sorted()
      vanished = []
      for client in clients {
        authors[client]?.listed = nil
        waits[client] = nil
        blocked.remove(client)
        try look(at: client)
      }
      try fetch(clients)
    }
    try reportWaiting()
  }

  private func fetch(_ clients: [ClientIdentifier]) throws {
    var rest = clients
    var isBegun = false
    while !rest.isEmpty {
      let plans = try rest.map { (client: $0, files: try plan($0)) }
      var queue = ChangeFetchQueue(plans)
      guard !queue.isEmpty else { break }
      if !isBegun { reading = Reading(bytesBefore: files.counts.bytesRead) }
      isBegun = true
      let before = reading.done
      reading.total += queue.count
      showReading()
      while !queue.isEmpty {
        try context.checkCancellation()
        try apply(try readWindow(&queue, after: before))
      }
      rest = plans.filter {
        $0.files.count == Self.plannedCount && !blocked.contains($0.client)
      }.map { $0.client }
    }
    if isBegun { context.endPhase() }
  }

  /// Reports the downloading phase with its present counts.
  private func showReading() {
    let (reading, bytes) = (reading, files.counts.bytesRead - reading.bytesBefore)
    context.report {
      $0 = SyncProgress()
      $0.phase = .downloading
      $0.completedCount = reading.done
      $0.totalCount = reading.total
      $0.completedBytes = bytes
    }
  }

  // MARK: Reading

  private func readWindow(
    _ queue: inout ChangeFetchQueue, after before: Int
  ) throws -> [ReceivedChangeSet] {
    var window: [ReceivedChangeSet] = []
    var bytes = 0
    var memory = 0
    while bytes < context.environment.fetchWindowBytes, memory < Self.windowMemory,
      window.count < context.environment.thresholds.windowCount
    {
      let items = queue.take(context.environment.parallelReads) { !blocked.contains($0) }
      if items.isEmpty { break }
      let reader = ChangeFileReader(
        files, header: header, layout: layout, segments: segments)
      let outcomes = try reader.read(items, isAlone: window.isEmpty)
      queue.giveBack(items[outcomes.count...])
      // The rest comes in the next window.
      let isFull = outcomes.count < items.count
      for (item, outcome) in zip(items, outcomes) {
        // Another file of the client may have failed just before.
        guard !blocked.contains(item.client) else { continue }
        guard let received = accept(try completed(outcome, of: item, reader), of: item) else {
          continue
        }
        window.append(received)
        bytes += received.bytes.count
        memory += received.changeSet.byteCount
        session.report.received.append(
          SyncReport.ChangeSet(
            client: item.client, number: item.number, hash: received.hash,
            rowCount: received.changeSet.rowCount, byteCount: received.bytes.count))
      }
      reading.done = before + queue.takenCount
      showReading()
      if isFull, !window.isEmpty { break }
    }
    return window
  }

  /// Adds what segments have of a number if none of its own files continues the
  /// chain: those may be of a branch that does not count.
  private func completed(
    _ outcome: ChangeFileReader.Outcome, of item: ChangeFetchQueue.Item,
    _ reader: ChangeFileReader
  ) throws -> ChangeFileReader.Outcome {
    guard !item.names.isEmpty, !outcome.intact.isEmpty, continuing(outcome, of: item).isEmpty,
      item.containing.contains(where: { _ in true })
    else { return outcome }
    var rest = item
    rest.names = []
    guard let found = try reader.read([rest]).first else { return outcome }
    var completed = outcome
    completed.intact += found.intact
    completed.failure = outcome.failure ?? found.failure
    return completed
  }

  /// Returns the files that continue the chain.
  private func continuing(
    _ outcome: ChangeFileReader.Outcome, of item: ChangeFetchQueue.Item
  ) -> [ReceivedChangeSet] {
    let previous = authors[item.client]?.lastHash
    return outcome.intact.filter { received in
      previous == nil || received.changeSet.header.previous == previous
    }
  }

  /// Returns the file to apply; notes the reason if there is none.
  private func accept(
    _ outcome: ChangeFileReader.Outcome, of item: ChangeFetchQueue.Item
  ) -> ReceivedChangeSet? {
    let intact = continuing(outcome, of: item)
    // If several files continue the chain, the one with the lowest hash counts.
    guard let received = intact.min(by: { $0.fragment < $1.fragment }) else {
      blocked.insert(item.client)
      if outcome.intact.isEmpty, outcome.hasVanished { vanished.insert(item.client) }
      if let reason = reason(outcome, of: item) { note(reason) }
      return nil
    }
    authors[item.client]?.has = item.number
    authors[item.client]?.lastHash = received.hash
    return received
  }

  /// Whether the files that claim a number continue another file than the one
  /// that counts: their author publishes them again as a new client, or the
  /// store whose file counts does.
  private func isBranch(
    _ outcome: ChangeFileReader.Outcome, of item: ChangeFetchQueue.Item
  ) -> Bool {
    guard !outcome.intact.isEmpty, !unclear.contains(item.client) else { return false }
    var others: Set<HashFragment> = []
    for case .changeSet(let name) in authors[item.client]?.listed ?? []
    where name.number + 1 == item.number {
      others.insert(name.hash)
    }
    return outcome.intact.allSatisfy { received in
      received.changeSet.header.previous.map { others.contains(HashFragment($0)) } ?? false
    }
  }

  /// Returns why none of the files that claim a number may be applied; `nil` if
  /// no device waits for them.
  private func reason(
    _ outcome: ChangeFileReader.Outcome, of item: ChangeFetchQueue.Item
  ) -> SyncReport.Wait? {
    let isBranch = isBranch(outcome, of: item)
    // The file that cannot be read may be the one that counts.
    if isBranch || outcome.intact.isEmpty, let failure = outcome.failure { return failure }
    if isBranch { return nil }
    return SyncReport.Wait(
      client: item.client, number: item.number, reason: .brokenChain,
      message: "its file does not continue the change set before it",
      path: outcome.intact.last.map {
        layout.path(
          of: ChangeSetName(number: item.number, hash: HashFragment($0.hash)), by: item.client
        ).description
      })
  }

  // MARK: Applying

  private func apply(_ received: [ReceivedChangeSet]) throws {
    guard !received.isEmpty else { return }
    try context.checkCancellation()
    beginApplying(received)
    add(try applyToStore(received))
    // Change sets that the store holds for now are done with as well.
    context.endPhase()
    showReading()
  }

  private func beginApplying(_ received: [ReceivedChangeSet]) {
    context.begin(
      .applying, count: received.count, bytes: received.reduce(0) { $0 + $1.bytes.count })
  }

  private func applyKept() throws {
    guard canApplyKept else { return }
    context.begin(.applying, count: waiting.count)
    add(try applyToStore([]))
    context.endPhase()
  }

  private func applyToStore(_ received: [ReceivedChangeSet]) throws -> ApplyReport {
    // The store may also apply change sets that it has held, together with the
    // received ones.
    let byteCounts = Dictionary(
      received.map { ($0.hash, $0.bytes.count) }, uniquingKeysWith: { first, _ in first })
    let applied = try store.apply(
      received, brake: brake, checkCancellation: context.checkCancellation
    ) { [context] changeSet in
      context.report {
        $0.completedCount += 1
        $0.totalCount = max($0.totalCount, $0.completedCount)
        let bytes = $0.completedBytes + (byteCounts[changeSet.hash] ?? 0)
        $0.completedBytes = min(bytes, $0.totalBytes)
      }
    }
    waiting = applied.waiting
    return applied
  }

  private func refuse(_ refused: RefusedChangeSet) {
    blocked.insert(refused.client)
    let name = ChangeSetName(number: refused.number, hash: HashFragment(refused.hash))
    note(SyncReport.Wait(refused, path: layout.path(of: name, by: refused.client)))
    context.environment.logger.error(
      "change set \(refused.number) of \(refused.client): \(refused.message)")
  }

  private func add(_ applied: ApplyReport) {
    applied.refused.forEach(refuse)
    session.report.applied += applied.applied.map {
      SyncReport.ChangeSet(
        client: $0.client, number: $0.number, hash: $0.hash, rowCount: $0.rowCount)
    }
    session.report.insertedRows += applied.insertedRows
    session.report.updatedRows += applied.updatedRows
    session.report.deletedRows += applied.deletedRows
    session.report.conflicts += applied.conflicts
    session.report.questions += applied.questions.filter { !session.report.questions.contains($0) }
    session.report.warnings = SyncWarning.joining(session.report.warnings + applied.warnings)
    session.report.unknownNames.formUnion(applied.unknownNames)
  }

  // MARK: Waiting

  func wait(
    _ client: ClientIdentifier, _ number: UInt64, _ reason: SyncReport.Wait.Reason,
    _ message: String,
    path: RelativePath?
  ) {
    note(
      SyncReport.Wait(
        client: client, number: number, reason: reason, message: message,
        path: path?.description))
  }

  private func note(_ wait: SyncReport.Wait) {
    if let noted = waits[wait.client], noted.number <= wait.number { return }
    waits[wait.client] = wait
  }

  private func reportWaiting() throws {
    var told: Set<ClientIdentifier> = []
    for waiting in waiting.sorted(by: { ($0.client, $0.number) < ($1.client, $1.number) })
    where told.insert(waiting.client).inserted {
      session.report.waiting.append(SyncReport.Wait(waiting))
    }
    session.report.waiting += waits.values.sorted { $0.client < $1.client }
    let refused = session.report.waiting.filter { $0.reason == .refused && !$0.isCommand }
    if try records.refused() != refused { try records.keep(refused: refused) }
  }
}

extension ReceivedChangeSet {
  /// The part of its hash in its file's name.
  fileprivate var fragment: String { HashFragment(hash).description }
}
