import Dispatch
import SyncDirectory
import SyncModel
import SyncStore

/// Synchronizes one document of an engine.
///
/// It runs one synchronization at a time, when its ``SyncSchedule`` says so. Calls that may block, such as those
/// of the file system, run on threads of Dispatch.
actor DocumentKeeper {
  typealias Outcome = Result<SyncReport, SyncError>
  private typealias Waiter = CheckedContinuation<Outcome, Never>

  nonisolated let path: String
  let timing: SyncEngine.Timing
  let clock: EngineClock
  let document: SyncEngine.Document
  let options: DocumentSyncManager.Options
  private let delegate: EngineDelegate?
  let random: @Sendable () -> UInt64
  private let slots: AsyncTurn
  let events: SyncEngine.Events
  private let progress: EngineProgress

  var schedule: SyncSchedule
  var manager: DocumentSyncManager?
  var opening: Task<DocumentSyncManager, any Error>?
  var attempt: Task<Void, Never>?
  /// What ``exchange(_:)`` runs.
  private var exchanges: [UInt64: Task<Outcome, Never>] = [:]
  private var timer: (due: Duration, task: Task<Void, Never>)?
  var probe: Task<Void, Never>?
  var watches = DocumentWatches()
  /// Those who wait for a synchronization that has not begun, by their numbers.
  private var waiters: [UInt64: Waiter] = [:]
  /// Those who wait for the one that runs.
  private var served: [UInt64: Waiter] = [:]
  private var nextNumber: UInt64 = 0
  /// Whether the store has changed while a synchronization ran.
  var mustLook = false
  var isAutomatic = false
  private var isAway = false
  private var isPaused = false
  var isPolling = false
  var isClosed = false
  /// Whether synchronizations only fetch.
  var holdsChanges: Bool
  private var lastReport: SyncReport?
  var lastError: SyncError?
  /// The edits to send when the keeper last looked.
  var pending: StoreStatus.PendingCount?

  init(
    _ document: SyncEngine.Document, timing: SyncEngine.Timing, clock: EngineClock,
    random: @escaping @Sendable () -> UInt64, slots: AsyncTurn, engine: EngineDelegate.Engine,
    events: SyncEngine.Events
  ) {
    path = document.path
    self.document = document
    self.timing = timing
    self.clock = clock
    self.random = random
    self.slots = slots
    self.events = events
    holdsChanges = document.holdsChanges
    progress = EngineProgress(document.path, events, clock)
    schedule = SyncSchedule(timing, isManual: true)
    delegate = document.options.delegate.map { EngineDelegate($0, of: engine, slots: slots) }
    var options = document.options
    options.delegate = delegate
    // Another engine, or a command, may synchronize the store at the same moment.
    options.environment.storeInUseTimeLimit = max(
      options.environment.storeInUseTimeLimit, Self.storeInUseTimeLimit)
    self.options = options
  }

  deinit {
    timer?.task.cancel()
    probe?.cancel()
    watches.cancel()
  }

  /// How long a synchronization waits for another process that synchronizes the store.
  private static let storeInUseTimeLimit = Duration.seconds(10)

  // MARK: - Calls of the engine

  /// Begins to synchronize by itself, if `isAutomatic`.
  func start(isAutomatic: Bool) {
    guard !isClosed else { return }
    self.isAutomatic = isAutomatic
    schedule.isManual = !isAutomatic
    note(.launch)
  }

  /// Synchronizes as soon as possible.
  func synchronize() async -> Outcome {
    nextNumber += 1
    let number = nextNumber
    return await withTaskCancellationHandler {
      await withCheckedContinuation { waiter in
        if isClosed {
          waiter.resume(returning: .failure(.engineClosed("synchronize")))
        } else if Task.isCancelled {
          waiter.resume(returning: .failure(.cancelled("synchronize")))
        } else {
          waiters[number] = waiter
          note(.request)
        }
      }
    } onCancel: {
      Task { await leave(number) }
    }
  }

  /// Lets a caller that was cancelled go.
  private func leave(_ number: UInt64) {
    let waiter = waiters.removeValue(forKey: number) ?? served.removeValue(forKey: number)
    waiter?.resume(returning: .failure(.cancelled("synchronize")))
  }

  /// Fetches or sends, beside the schedule.
  func exchange(_ extent: SynchronizeOperation.Extent) async -> Outcome {
    let operation = extent == .fetching ? "fetch changes" : "send changes"
    guard !isClosed else { return .failure(.engineClosed(operation)) }
    nextNumber += 1
    let number = nextNumber
    let task = Task { await exchange(extent, operation) }
    exchanges[number] = task
    defer { exchanges[number] = nil }
    return await withTaskCancellationHandler {
      await task.value
    } onCancel: {
      task.cancel()
    }
  }

  private func exchange(
    _ extent: SynchronizeOperation.Extent, _ operation: String
  ) async -> Outcome {
    let isFetching = extent == .fetching
    events.send(isFetching ? .willFetchChanges(document: path) : .willSendChanges(document: path))
    do {
      let report = try await slots.take(priority: document.priority) {
        delegate?.askAgain()
        if attempt == nil { try await leaveReplacedFile() }
        let manager = try await openManager()
        return try await isFetching
          ? manager.fetchChanges(onProgress: progress.take)
          : manager.sendChanges(onProgress: progress.take)
      }
      await countPending()
      events.send(partsOf: report, of: path)
      events.send(
        isFetching
          ? .didFetchChanges(document: path, report) : .didSendChanges(document: path, report))
      return .success(report)
    } catch {
      let error = SyncError.wrapping(error, operation: operation, path: path)
      events.send(
        error.code == .cancelled
          ? .cancelled(document: path)
          : .failed(document: path, error, retry: error.code.retry))
      return .failure(error)
    }
  }

  /// Notes a reason to synchronize.
  func note(_ reason: SyncEngine.SyncReason) { note(reason, at: clock.now()) }

  func note(_ reason: SyncEngine.SyncReason, at time: Duration) {
    schedule.note(reason, at: time)
    pump()
  }

  /// Cancels what runs, and waits until it has ended.
  func cancel() async {
    let (attempt, exchanges) = (self.attempt, self.exchanges.values)
    attempt?.cancel()
    for exchange in exchanges { exchange.cancel() }
    await attempt?.value
    for exchange in exchanges { _ = await exchange.value }
  }

  /// Lets synchronizations only fetch from now on; returns when none runs that may send.
  func holdChanges() async {
    holdsChanges = true
    await attempt?.value
  }

  /// Lets synchronizations send again, what was held back first.
  func releaseChanges() {
    guard holdsChanges else { return }
    holdsChanges = false
    note(.localChange)
  }

  /// Ends everything, and closes the store.
  func close() async {
    isClosed = true
    stopTimer()
    stopProbe()
    watches.cancel()
    opening?.cancel()
    for waiter in waiters.values {
      waiter.resume(returning: .failure(.engineClosed("synchronize")))
    }
    waiters = [:]
    await cancel()
    // Its error went to those who wanted the store.
    if let opening, case .success(let opened) = await opening.result { manager = opened }
    await closeManager()
    document.options.events.finish()
  }

  /// What the keeper is doing.
  var state: SyncEngine.State.Document {
    let now = clock.now()
    return SyncEngine.State.Document(
      path: path, phase: phase, reasons: schedule.reasons,
      nextAttempt: schedule.due.map { max($0 - now, .zero) }, lastError: lastError,
      lastReport: lastReport, pending: pending, holdsChanges: holdsChanges,
      failures: schedule.failures,
      isStoreWatched: watches.store != nil,
      isDirectoryWatched: watches.directory != nil)
  }

  private var phase: SyncEngine.State.Phase {
    if attempt != nil { return .synchronizing }
    switch schedule.hold {
    case .directoryAway: return .directoryAway
    case .decision: return .paused
    case .failed: return .failed
    case nil: break
    }
    guard let lastError, schedule.failures > 0 else { return .idle }
    return lastError.code.letsReceive ? .cannotSend : .waitingToRetry
  }

  // MARK: - The work

  /// Begins a synchronization if one is due, or waits until it is.
  private func pump() {
    guard attempt == nil, !isClosed else { return }
    guard let due = schedule.due else {
      stopTimer()
      if schedule.hold == .directoryAway, probe == nil { lookForDirectory() }
      return
    }
    let now = clock.now()
    guard due > now else {
      stopTimer()
      return begin(at: now)
    }
    guard timer?.due != due else { return }
    stopTimer()
    timer = (
      due,
      Task { [weak self, clock] in
        do { try await clock.sleep(due - now) } catch {
          // Cancelled: another timer has taken its place.
          return
        }
        await self?.timerEnds(due)
      }
    )
  }

  private func stopTimer() {
    timer?.task.cancel()
    timer = nil
  }

  func stopProbe() {
    probe?.cancel()
    probe = nil
  }

  private func timerEnds(_ due: Duration) {
    if timer?.due == due { timer = nil }
    pump()
  }

  private func begin(at now: Duration) {
    let reasons = schedule.begin(at: now)
    served = waiters
    waiters = [:]
    stopProbe()
    attempt = Task { [path] in
      let file = await Self.onThread { StoreFileState(path) }
      let outcome = await perform(reasons)
      await emptyLog()
      await countPending()
      finish(outcome, began: file)
    }
  }

  private func perform(_ reasons: Set<SyncEngine.SyncReason>) async -> Outcome {
    do {
      return .success(
        try await slots.take(priority: document.priority) {
          events.send(.willSynchronize(document: path, reasons: reasons))
          if reasons.contains(.request) { delegate?.askAgain() }
          try await leaveReplacedFile()
          let manager = try await openManager()
          // What was mounted over the directory, or in its place, sends no notice.
          if reasons.contains(.timer) { watches.cancel() }
          // Before the synchronization looks: what comes afterwards is noticed.
          await beginWatching(manager)
          return try await holdsChanges
            ? manager.fetchChanges(onProgress: progress.take)
            : manager.synchronize(onProgress: progress.take)
        })
    } catch {
      return .failure(SyncError.wrapping(error, operation: "synchronize", path: path))
    }
  }

  /// - Parameter file: The store's file as it was before the synchronization.
  private func finish(_ outcome: Outcome, began file: StoreFileState) {
    let now = clock.now()
    attempt = nil
    switch outcome {
    case .success(let report):
      schedule.succeed(at: now, random: random())
      (lastReport, lastError) = (report, nil)
      delegate?.askAgain()
      leaveStates()
      notePolling()
      events.send(partsOf: report, of: path)
      events.send(.didSynchronize(document: path, report))
    case .failure(let error) where error.code == .cancelled:
      schedule.cancel(at: now, random: random())
      mustLook = false
      events.send(.cancelled(document: path))
    case .failure(let error):
      fail(error, at: now, file)
    }
    for waiter in served.values { waiter.resume(returning: outcome) }
    served = [:]
    if mustLook { Task { await storeChanged(at: now) } }
    pump()
  }

  private func fail(_ error: SyncError, at now: Duration, _ file: StoreFileState) {
    let retry = error.code.retry
    schedule.fail(
      retry, hasReceived: error.code.letsReceive, at: now, random: random())
    lastError = error
    events.send(.failed(document: path, error, retry: retry))
    switch retry {
    case .whenDirectoryReturns:
      // Another directory may take its place.
      watches.cancelDirectory()
      schedule.isWatched = false
      if !isAway {
        isAway = true
        events.send(.directoryAway(document: path))
      }
      lookForDirectory()
    case .afterDecision:
      if !isPaused {
        isPaused = true
        events.send(.paused(document: path, error))
      }
    case .never where error.code.mayPassWithFile:
      awaitOtherFile(than: file)
    case .later, .never:
      break
    }
  }

  /// Says that what the engine waited for has happened.
  private func leaveStates() {
    if isAway { events.send(.directoryReturned(document: path)) }
    if isPaused { events.send(.resumed(document: path)) }
    (isAway, isPaused) = (false, false)
  }

  /// Runs a function that may block, on a thread that may.
  static func onThread<Output: Sendable>(
    _ body: @escaping @Sendable () -> Output
  ) async -> Output {
    await withCheckedContinuation { continuation in
      DispatchQueue.global().async { continuation.resume(returning: body()) }
    }
  }
}
