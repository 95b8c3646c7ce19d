import Foundation
import SyncDirectory
import SyncModel
import SyncStore

/// Keeps documents the same by itself: synchronizes each of them when there is a reason.
///
/// Reasons are edits of the store by any program, changes in the shared directory, the return of a
/// directory that was away, an interval, and calls of ``synchronize(_:)``; see ``SyncReason``. Failures
/// that may pass are repeated after pauses that grow; see ``SyncError/Retry``. Nothing that is pending is
/// ever dropped: each synchronization sends and receives all that there is.
///
/// ```swift
/// let engine = SyncEngine(documents: [.init(storeAt: path)])
/// try await engine.run()  // until the task is cancelled
/// ```
public actor SyncEngine {
  /// A document of an engine.
  public struct Document: Sendable {
    /// The path of the store, which is under sync.
    public var path: String
    /// The shared directory, where it is now; `nil` takes its last known path.
    public var directory: (any SharedDirectory)?
    /// The options for opening the store.
    public var options: DocumentSyncManager.Options

    /// Creates a document from its parts.
    public init(
      storeAt path: String, directory: (any SharedDirectory)? = nil,
      options: DocumentSyncManager.Options = .init()
    ) {
      self.path = path
      self.directory = directory
      self.options = options
    }
  }

  /// The documents that a call is about.
  public enum Scope: Hashable, Sendable {
    /// All documents of the engine.
    case all
    /// The documents with stores at these paths. Others are ignored.
    case documents(Set<String>)

    func contains(_ path: String) -> Bool {
      switch self {
      case .all: true
      case .documents(let paths): paths.contains(path)
      }
    }
  }

  /// The result of a synchronization for each document, by the path of its store.
  public typealias Results = [String: Result<SyncReport, SyncError>]

  /// What the engine did and met, for any number of observers.
  public nonisolated let events: SyncEngineEvents
  private let timing: SyncTiming
  private let automaticallySync: Bool
  private let clock: EngineClock
  private let random: @Sendable () -> UInt64
  private var paths: [String] = []
  private var entries: [String: Entry] = [:]
  private var isRunning = false
  private var isClosed = false

  /// Whether the task runs in a delegate of a document of an engine.
  @TaskLocal static var isInDelegate = false

  private typealias Waiter = CheckedContinuation<Result<SyncReport, SyncError>, Never>

  /// What belongs to one document.
  private struct Entry {
    let document: Document
    var schedule: SyncSchedule
    var manager: DocumentSyncManager?
    var attempt: Task<Void, Never>?
    var timer: Task<Void, Never>?
    var probe: Task<Void, Never>?
    var watches: [Task<Void, Never>] = []
    /// Those who wait for a synchronization that has not begun.
    var waiters: [Waiter] = []
    /// Those who wait for the one that runs.
    var current: [Waiter] = []
    var lastReport: SyncReport?
    var lastError: SyncError?
  }

  /// Creates an engine. It does nothing before ``run()`` or ``synchronize(_:)``.
  ///
  /// - Parameters:
  ///   - documents: The documents; those of a path that is named twice count once.
  ///   - timing: How long the engine waits for what.
  ///   - automaticallySync: Whether the engine synchronizes by itself; otherwise only
  ///     ``synchronize(_:)`` does.
  public init(
    documents: [Document], timing: SyncTiming = SyncTiming(), automaticallySync: Bool = true
  ) {
    self.init(
      documents: documents, timing: timing, automaticallySync: automaticallySync, clock: .system)
  }

  package init(
    documents: [Document], timing: SyncTiming, automaticallySync: Bool, clock: EngineClock,
    random: @escaping @Sendable () -> UInt64 = {
      var generator = SystemRandomNumberGenerator()
      return generator.next()
    }
  ) {
    events = SyncEngineEvents()
    self.timing = timing
    self.automaticallySync = automaticallySync
    self.clock = clock
    self.random = random
    for document in documents where entries[document.path] == nil {
      paths.append(document.path)
      entries[document.path] = Entry(
        document: document, schedule: SyncSchedule(timing, isManual: !automaticallySync))
    }
  }

  // MARK: - What an application calls

  /// Synchronizes whenever there is a reason, until the task is cancelled; then ends what runs, and
  /// closes the stores. Throws if the engine runs already, or is closed.
  ///
  /// No error of a document ends it; see ``events``.
  public func run() async throws {
    try checkMayBegin("run the engine")
    guard !isRunning else {
      throw SyncError(
        .storeInUse, operation: "run the engine", message: "The engine runs already.",
        remedy: "Call “run” once.")
    }
    isRunning = true
    let now = clock.now()
    for path in paths {
      entries[path]?.schedule.note(.launch, at: now)
      pump(path)
    }
    do {
      while true { try await clock.sleep(.seconds(3600)) }
    } catch is CancellationError {
      // It was asked to end.
    }
    // In a task of its own: what runs in a cancelled one is cancelled at once.
    await Task { await close() }.value
  }

  /// Synchronizes documents now, also those whose automatic synchronization waits or was given up, and
  /// returns each one's report or error. Calls that come while a synchronization runs share the next one.
  ///
  /// Throws if it is called by a delegate of a document of the engine, which would wait for itself, or
  /// if the engine is closed. If the task is cancelled, the synchronizations go on.
  public func synchronize(_ scope: Scope = .all) async throws -> Results {
    try checkMayBegin("synchronize")
    var results: Results = [:]
    try await withThrowingTaskGroup(of: (String, Result<SyncReport, SyncError>).self) { group in
      for path in paths where scope.contains(path) {
        group.addTask { (path, await self.request(path)) }
      }
      for try await (path, result) in group { results[path] = result }
    }
    return results
  }

  /// Tells the engine that the store or the directory may have changed, such as after a notification by
  /// another system. Returns at once.
  public func noteExternalChange(in scope: Scope = .all) {
    for path in paths where scope.contains(path) { note(.directoryChange, path) }
  }

  /// Cancels the synchronizations that run, and waits until they have ended. Others follow at the next
  /// reason, at the latest after the interval.
  public func cancelOperations() async {
    let attempts = entries.values.compactMap(\.attempt)
    for attempt in attempts { attempt.cancel() }
    for attempt in attempts { await attempt.value }
  }

  /// Ends the engine: cancels what runs, closes the stores, and ends the events. The engine cannot be used
  /// afterwards.
  public func close() async {
    isClosed = true
    for path in paths {
      guard let entry = entries[path] else { continue }
      for task in entry.watches + [entry.timer, entry.probe].compactMap(\.self) { task.cancel() }
    }
    await cancelOperations()
    for path in paths {
      let closed = SyncError(
        .storeClosed, operation: "synchronize", path: path, message: "The engine was closed.",
        remedy: "Make another engine.")
      for waiter in entries[path]?.waiters ?? [] { waiter.resume(returning: .failure(closed)) }
      entries[path]?.waiters = []
      guard let manager = entries[path]?.manager else { continue }
      entries[path]?.manager = nil
      do { try await manager.close() } catch {
        let error = SyncError.wrapping(error, operation: "close the store", path: path)
        events.send(.failed(document: path, error, retry: .never))
      }
    }
    isRunning = false
    events.finish()
  }

  /// What the engine is doing.
  public var state: SyncEngineState {
    let now = clock.now()
    return SyncEngineState(
      documents: paths.compactMap { path in
        guard let entry = entries[path] else { return nil }
        return SyncEngineState.Document(
          path: path, phase: phase(entry), reasons: entry.schedule.reasons,
          nextAttempt: entry.schedule.due.map { max($0 - now, .zero) },
          lastError: entry.lastError, lastReport: entry.lastReport,
          failures: entry.schedule.failures,
          isDirectoryWatched: entry.schedule.isDirectoryWatched)
      })
  }

  private func phase(_ entry: Entry) -> SyncEngineState.Phase {
    if entry.attempt != nil { return .synchronizing }
    return switch entry.schedule.hold {
    case .directoryAway: .directoryAway
    case .decision: .paused
    case .failed: .failed
    case nil: entry.schedule.failures > 0 ? .waitingToRetry : .idle
    }
  }

  // MARK: - The work

  private func checkMayBegin(_ verb: String) throws {
    guard !Self.isInDelegate else {
      throw SyncError(
        .storeInUse, operation: verb,
        message: "A delegate cannot wait for the engine that waits for it.",
        remedy: "Call the engine after the delegate has answered, or from a task that it does not "
          + "wait for.")
    }
    guard !isClosed else {
      throw SyncError(
        .storeClosed, operation: verb, message: "The engine was closed.",
        remedy: "Make another engine.")
    }
  }

  private func request(_ path: String) async -> Result<SyncReport, SyncError> {
    await withCheckedContinuation { waiter in
      entries[path]?.waiters.append(waiter)
      note(.request, path)
    }
  }

  private func note(_ reason: SyncReason, _ path: String) {
    entries[path]?.schedule.note(reason, at: clock.now())
    pump(path)
  }

  /// Begins a synchronization if one is due, or waits until it is.
  private func pump(_ path: String) {
    guard let entry = entries[path], entry.attempt == nil, !isClosed else { return }
    entry.timer?.cancel()
    entries[path]?.timer = nil
    guard let due = entry.schedule.due else { return }
    let now = clock.now()
    guard due > now else { return begin(path, at: now) }
    entries[path]?.timer = Task { [clock] in
      do { try await clock.sleep(due - now) } catch {
        // Cancelled: another timer has taken its place.
        return
      }
      pump(path)
    }
  }

  private func begin(_ path: String, at now: Duration) {
    guard let reasons = entries[path]?.schedule.begin(at: now) else { return }
    let waiters = entries[path]?.waiters ?? []
    entries[path]?.current = waiters
    entries[path]?.waiters = []
    entries[path]?.probe?.cancel()
    events.send(.willSynchronize(document: path, reasons: reasons))
    entries[path]?.attempt = Task { finish(path, await attempt(path)) }
  }

  private func attempt(_ path: String) async -> Result<SyncReport, SyncError> {
    do {
      return .success(try await manager(path).synchronize())
    } catch {
      return .failure(SyncError.wrapping(error, operation: "synchronize", path: path))
    }
  }

  /// Returns the manager of a document; opens the store if it is not open.
  private func manager(_ path: String) async throws -> DocumentSyncManager {
    if let manager = entries[path]?.manager { return manager }
    guard let document = entries[path]?.document else {
      throw SyncError(
        .internalFault, operation: "synchronize", path: path,
        message: "The engine does not have the document.", remedy: "Make another engine.")
    }
    var options = document.options
    options.delegate = options.delegate.map(EngineDelegate.init)
    let manager = try await DocumentSyncManager.open(
      storeAt: path, directory: document.directory, options: options)
    entries[path]?.manager = manager
    return manager
  }

  private func finish(_ path: String, _ result: Result<SyncReport, SyncError>) {
    let now = clock.now()
    let wasAway = entries[path]?.schedule.hold == .directoryAway
    for waiter in entries[path]?.current ?? [] { waiter.resume(returning: result) }
    entries[path]?.current = []
    entries[path]?.attempt = nil
    switch result {
    case .success(let report):
      entries[path]?.schedule.succeed(at: now, random: random())
      entries[path]?.lastReport = report
      entries[path]?.lastError = nil
      events.send(.didSynchronize(document: path, report))
      watch(path)
    case .failure(let error) where error.code == .cancelled:
      entries[path]?.schedule.cancel(at: now, random: random())
    case .failure(let error):
      entries[path]?.schedule.fail(error.code.retry, at: now, random: random())
      entries[path]?.lastError = error
      events.send(.failed(document: path, error, retry: error.code.retry))
      switch error.code.retry {
      case .whenDirectoryReturns:
        if !wasAway { events.send(.directoryAway(document: path)) }
        probe(path)
      case .afterDecision: events.send(.paused(document: path, error))
      case .later, .never: break
      }
    }
    pump(path)
  }

  // MARK: - Noticing

  /// Begins to watch the store and the directory of a document, unless it does already.
  private func watch(_ path: String) {
    guard isRunning, automaticallySync, !isClosed, let entry = entries[path],
      entry.watches.isEmpty, let manager = entry.manager
    else { return }
    var watches: [Task<Void, Never>] = []
    if let changes = FolderWatch.changes(ofDatabaseAt: path) {
      watches.append(
        Task {
          for await _ in changes { await storeChanged(path, manager) }
        })
    }
    if let changes = manager.directory.changes() {
      entries[path]?.schedule.isDirectoryWatched = true
      watches.append(
        Task {
          for await _ in changes { note(.directoryChange, path) }
          directoryIsNoLongerWatched(path)
        })
    }
    entries[path]?.watches = watches
  }

  private func directoryIsNoLongerWatched(_ path: String) {
    guard !isClosed, entries[path]?.schedule.isDirectoryWatched == true else { return }
    entries[path]?.schedule.isDirectoryWatched = false
    for watch in entries[path]?.watches ?? [] { watch.cancel() }
    // The next synchronization that succeeds watches it again.
    entries[path]?.watches = []
    events.send(.polling(document: path))
    note(.directoryChange, path)
  }

  /// Synchronizes if the change of the store's file is an edit that was not sent: synchronizing changes
  /// the file, too.
  private func storeChanged(_ path: String, _ manager: DocumentSyncManager) async {
    do {
      guard try await manager.hasUnsentEdits() else { return }
    } catch {
      // The synchronization says what is wrong.
    }
    note(.localChange, path)
  }

  /// Looks now and then whether a directory that is away has returned.
  private func probe(_ path: String) {
    guard isRunning, let entry = entries[path] else { return }
    entry.probe?.cancel()
    let isGone = entry.lastError?.code == .directoryAway
    let pause = timing.jittered(
      isGone ? timing.probeInterval : timing.pause(afterFailures: entry.schedule.failures),
      random())
    entries[path]?.probe = Task { [clock] in
      do {
        repeat { try await clock.sleep(pause) } while try await !isDirectoryThere(path)
      } catch {
        // Cancelled, since a synchronization has begun.
        return
      }
      events.send(.directoryReturned(document: path))
      note(.directoryReturned, path)
    }
  }

  private func isDirectoryThere(_ path: String) async throws -> Bool {
    try Task.checkCancellation()
    // A store that could not be opened is opened by the synchronization.
    guard let manager = entries[path]?.manager else { return true }
    return await manager.isDirectoryThere()
  }
}

/// A delegate whose calls are marked, so that the engine refuses to wait for itself.
private struct EngineDelegate: SyncDelegate {
  let delegate: any SyncDelegate

  func decide(_ question: SyncQuestion) async -> SyncQuestion.Decision {
    await SyncEngine.$isInDelegate.withValue(true) { await delegate.decide(question) }
  }

  func answer(_ conflict: Conflict) async throws -> Conflict.Answer? {
    try await SyncEngine.$isInDelegate.withValue(true) { try await delegate.answer(conflict) }
  }

  func resolve(_ values: Conflict.Values, by name: String) throws -> Value? {
    try SyncEngine.$isInDelegate.withValue(true) { try delegate.resolve(values, by: name) }
  }
}
