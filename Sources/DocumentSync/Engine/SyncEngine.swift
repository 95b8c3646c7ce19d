import Foundation
import SyncDirectory
import SyncModel
import SyncStore

/// Synchronizes documents by itself, each of them whenever there is a reason.
///
/// Reasons are edits of the store by any program, changes in the shared directory, the return of a
/// directory that was away, an interval, and calls of ``synchronize(_:)``; see ``SyncReason``. After a
/// failure that may pass, the engine tries again, with growing pauses; see ``SyncError/Retry``. No edit is
/// missed: each synchronization sends and receives all edits that wait.
///
/// ```swift
/// let engine = SyncEngine(documents: [.init(storeAt: path)])
/// try await engine.run()  // until the task is cancelled
/// ```
///
/// The engine waits for the delegate of a document, so the delegate must not wait for the engine: in
/// ``SyncDelegate/decide(_:)-(SyncQuestion)`` and ``SyncDelegate/answer(_:)``, calls that wait for the engine
/// throw `storeInUse`, also in a `Task` that the function begins. Use `Task.detached` there.
public actor SyncEngine {
  /// A document of an engine.
  public struct Document: Sendable {
    /// The path of the store, which is under sync.
    public var path: String
    /// The shared directory, where it is now; `nil` takes its last known path.
    public var directory: (any SharedDirectory)?
    /// The options for opening the store. Its events come as ``Event/documentEvent(document:_:)`` as well.
    public var options: DocumentSyncManager.Options
    /// Which documents are synchronized first if many are due: those with the greatest priority.
    public var priority: Int
    /// Whether the engine looks for changes in the directory now and then even if the system can report
    /// them, for a system whose reports cannot be trusted.
    public var pollsDirectory: Bool
    /// Whether the engine begins with the edits of this device held back: see
    /// ``SyncEngine/holdChanges(_:)``.
    public var holdsChanges: Bool

    /// Creates a document from its parts.
    public init(
      storeAt path: String, directory: (any SharedDirectory)? = nil,
      options: DocumentSyncManager.Options = .init(), priority: Int = 0,
      pollsDirectory: Bool = false, holdsChanges: Bool = false
    ) {
      self.path = path
      self.directory = directory
      self.options = options
      self.priority = priority
      self.pollsDirectory = pollsDirectory
      self.holdsChanges = holdsChanges
    }
  }

  /// The documents that a call is about.
  public enum Scope: Hashable, Sendable {
    /// All documents of the engine.
    case all
    /// The documents with stores at these paths, in any spelling.
    case documents(Set<String>)
  }

  /// The result of a synchronization for each document, by the path of its store.
  public typealias Results = [String: Result<SyncReport, SyncError>]

  /// What the engine did and met, for any number of observers.
  public nonisolated let events: Events
  private let timing: Timing
  private let automaticallySync: Bool
  private let clock: EngineClock
  private let random: @Sendable () -> UInt64
  private let slots = AsyncTurn(count: 4)
  /// Stands for the engine in ``EngineDelegate``.
  private let token = EngineDelegate.Engine()
  /// The documents, in the order in which they were added.
  private var keepers: [(store: String, keeper: DocumentKeeper)] = []
  private var isRunning = false
  private var closing: Task<Void, Never>?
  /// Ends ``run()``.
  private let ending: (stream: AsyncStream<Void>, continuation: AsyncStream<Void>.Continuation)

  /// Creates an engine. It does nothing before a call.
  ///
  /// - Parameters:
  ///   - documents: The documents. If several have the same store, the engine takes the first.
  ///   - timing: How long the engine waits for what.
  ///   - automaticallySync: Whether ``run()`` synchronizes by itself; otherwise only
  ///     ``synchronize(_:)``, ``fetchChanges(_:)`` and ``sendChanges(_:)`` do.
  public init(
    documents: [Document], timing: Timing = Timing(), automaticallySync: Bool = true
  ) {
    self.init(
      documents: documents, timing: timing, automaticallySync: automaticallySync, clock: .system)
  }

  package init(
    documents: [Document], timing: Timing, automaticallySync: Bool, clock: EngineClock,
    random: @escaping @Sendable () -> UInt64 = {
      var generator = SystemRandomNumberGenerator()
      return generator.next()
    }
  ) {
    events = Events()
    ending = AsyncStream.makeStream()
    self.timing = timing.bounded
    self.automaticallySync = automaticallySync
    self.clock = clock
    self.random = random
    for document in documents {
      let store = Self.place(of: document.path)
      if keepers.contains(where: { $0.store == store }) { continue }
      keepers.append(
        (
          store,
          DocumentKeeper(
            document, timing: self.timing, clock: clock, random: random, slots: slots,
            engine: token, events: events)
        ))
    }
  }

  deinit {
    ending.continuation.finish()
    events.finish()
  }

  /// The path by which two spellings of one store are the same.
  private static func place(of path: String) -> String {
    URL(fileURLWithPath: path).resolvingSymlinksInPath().path
  }

  // MARK: - Running

  /// Synchronizes whenever there is a reason, until the task is cancelled or ``close()`` is called; then
  /// ends what runs, and closes the stores. Throws if the engine runs already, or is closed.
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
    for (_, keeper) in keepers { await keeper.start(isAutomatic: automaticallySync) }
    for await _ in ending.stream {}
    await end().value
  }

  /// Ends the engine: cancels what runs, closes the stores, and ends the events and ``run()``. The engine
  /// cannot be used afterwards. Further calls wait for the same end.
  public func close() async throws {
    try checkIsOutsideDelegate("close the engine")
    await end().value
  }

  private func end() -> Task<Void, Never> {
    if let closing { return closing }
    // In a task of its own: what runs in a cancelled one is cancelled at once.
    let task = Task { [keepers, events, ending] in
      await withTaskGroup(of: Void.self) { group in
        for (_, keeper) in keepers { group.addTask { await keeper.close() } }
      }
      events.finish()
      ending.continuation.finish()
    }
    closing = task
    return task
  }

  /// Adds a document, unless the engine has it already.
  public func add(_ document: Document) async throws {
    try checkMayBegin("add a document")
    let store = Self.place(of: document.path)
    guard !keepers.contains(where: { $0.store == store }) else { return }
    let keeper = DocumentKeeper(
      document, timing: timing, clock: clock, random: random, slots: slots, engine: token,
      events: events)
    keepers.append((store, keeper))
    if isRunning { await keeper.start(isAutomatic: automaticallySync) }
  }

  /// Removes a document from the engine: cancels what runs and closes its store, which stays under sync.
  public func remove(storeAt path: String) async throws {
    try checkIsOutsideDelegate("remove a document")
    let store = Self.place(of: path)
    guard let index = keepers.firstIndex(where: { $0.store == store }) else { return }
    let keeper = keepers.remove(at: index).keeper
    await keeper.close()
  }

  // MARK: - Calls

  /// Synchronizes documents now, also those whose automatic synchronization waits or was given up, and
  /// returns each one's report or error. Calls that come while a synchronization runs share the next one.
  ///
  /// All events of these synchronizations were sent when it returns. If the task is cancelled, the results
  /// are `cancelled`, and the synchronizations go on. Throws if a document is not the engine's, if a delegate
  /// of the engine calls it, or if the engine is closed.
  public func synchronize(_ scope: Scope = .all) async throws -> Results {
    try checkMayBegin("synchronize")
    return await Self.results(try chosen(scope, "synchronize")) { await $0.synchronize() }
  }

  /// Applies the edits of other devices, and sends none; see
  /// ``DocumentSyncManager/fetchChanges(onProgress:)``. Returns each document's report or error. It waits for
  /// a synchronization that runs, and is cancelled with the task. Throws like ``synchronize(_:)``.
  public func fetchChanges(_ scope: Scope = .all) async throws -> Results {
    try checkMayBegin("fetch changes")
    return await Self.results(try chosen(scope, "fetch changes")) { await $0.exchange(.fetching) }
  }

  /// Sends the edits of this device, and applies none; see
  /// ``DocumentSyncManager/sendChanges(onProgress:)``. Returns each document's report or error. It waits for
  /// a synchronization that runs, and is cancelled with the task. Throws like ``synchronize(_:)``.
  public func sendChanges(_ scope: Scope = .all) async throws -> Results {
    try checkMayBegin("send changes")
    return await Self.results(try chosen(scope, "send changes")) { await $0.exchange(.sending) }
  }

  /// Holds back the edits of this device, until ``releaseChanges(_:)``: the engine goes on to apply the edits
  /// of others, and sends none. It waits for a synchronization that runs. ``sendChanges(_:)`` sends the edits
  /// all the same, so that an app can decide when, and how often.
  ///
  /// No edit is lost meanwhile, and the pending ones can be listed. Other devices do not hear how far this
  /// one has come, and keep the files that it may need. The engine does not remember it when it ends:
  /// see ``Document/holdsChanges``. Throws if a document is not the engine's, if a delegate of the engine calls
  /// it, or if the engine is closed.
  public func holdChanges(_ scope: Scope = .all) async throws {
    try checkMayBegin("hold changes")
    let keepers = try chosen(scope, "hold changes")
    await withTaskGroup(of: Void.self) { group in
      for keeper in keepers { group.addTask { await keeper.holdChanges() } }
    }
  }

  /// Ends what ``holdChanges(_:)`` or ``Document/holdsChanges`` has begun: the edits that were held back are sent
  /// with the next synchronization, which begins at once if the engine synchronizes by itself. Throws like
  /// ``holdChanges(_:)``.
  public func releaseChanges(_ scope: Scope = .all) async throws {
    try checkMayBegin("release changes")
    for keeper in try chosen(scope, "release changes") { await keeper.releaseChanges() }
  }

  /// Tells the engine that the store or the directory may have changed, such as after a notification by
  /// another system. Paths that are not the engine's are ignored.
  public func noteExternalChange(in scope: Scope = .all) async {
    for keeper in known(scope) { await keeper.note(.externalChange) }
  }

  /// Cancels the synchronizations that run, and waits until they have ended. Others follow at the next
  /// reason, at the latest after the interval. Throws if a delegate of the engine calls it.
  public func cancelOperations() async throws {
    try checkIsOutsideDelegate("cancel operations")
    await withTaskGroup(of: Void.self) { group in
      for (_, keeper) in keepers { group.addTask { await keeper.cancel() } }
    }
  }

  /// Returns the manager of a document, to ask for its status, its conflicts and so on; opens the store if it
  /// is not open. Do not close it: the engine does. If another file takes the place of the store, the engine
  /// opens that one, and the manager cannot be used any more.
  public func manager(storeAt path: String) async throws -> DocumentSyncManager {
    try checkMayBegin("open the store")
    guard let keeper = try chosen(.documents([path]), "open the store").first else {
      throw unknown(path, "open the store")
    }
    return try await keeper.openManager()
  }

  /// What the engine is doing.
  public var state: State {
    get async {
      var documents: [State.Document] = []
      for (_, keeper) in keepers { documents.append(await keeper.state) }
      return State(documents: documents)
    }
  }

  // MARK: - Parts

  private func known(_ scope: Scope) -> [DocumentKeeper] {
    switch scope {
    case .all: return keepers.map(\.keeper)
    case .documents(let paths):
      let stores = Set(paths.map(Self.place))
      return keepers.filter { stores.contains($0.store) }.map(\.keeper)
    }
  }

  private func chosen(_ scope: Scope, _ operation: String) throws -> [DocumentKeeper] {
    if case .documents(let paths) = scope {
      let stores = Set(keepers.map(\.store))
      if let path = paths.first(where: { !stores.contains(Self.place(of: $0)) }) {
        throw unknown(path, operation)
      }
    }
    return known(scope)
  }

  private func unknown(_ path: String, _ operation: String) -> SyncError {
    SyncError(
      .storeMissing, operation: operation, path: path,
      message: "The engine has no document with this store.",
      remedy: "Add the document to the engine, or correct the path.")
  }

  private static func results(
    _ keepers: [DocumentKeeper],
    _ body: @escaping @Sendable (DocumentKeeper) async -> DocumentKeeper.Outcome
  ) async -> Results {
    await withTaskGroup(of: (String, DocumentKeeper.Outcome).self) { group in
      for keeper in keepers { group.addTask { (keeper.path, await body(keeper)) } }
      var results: Results = [:]
      for await (path, outcome) in group { results[path] = outcome }
      return results
    }
  }

  private func checkIsOutsideDelegate(_ operation: String) throws {
    guard !EngineDelegate.isCalled(by: token) else {
      throw SyncError(
        .storeInUse, operation: operation,
        message: "A delegate cannot wait for the engine that waits for it.",
        remedy: "Call the engine after the delegate has answered, or from a detached task.")
    }
  }

  private func checkMayBegin(_ operation: String) throws {
    try checkIsOutsideDelegate(operation)
    guard closing == nil else { throw SyncError.engineClosed(operation) }
  }
}

extension SyncError {
  /// The error of a call of an engine that has ended.
  static func engineClosed(_ operation: String) -> SyncError {
    SyncError(
      .storeClosed, operation: operation, message: "The engine was closed.",
      remedy: "Make another engine.")
  }
}
