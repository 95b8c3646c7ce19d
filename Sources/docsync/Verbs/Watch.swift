import ArgumentParser
import DocumentSync
import Foundation
import SyncModel
import SyncStore

/// `docsync watch`
struct Watch: Verb {
  static let configuration = CommandConfiguration(
    abstract: "Synchronize databases whenever something changes, until you stop it.",
    discussion: """
      Synchronizes at once, and then whenever a program edits a database, another device sends \
      something, or the shared directory returns. Where the system does not report changes, as on \
      network mounts, it looks every 15 seconds. \
      Stop it with Ctrl-C or SIGTERM; the next call continues.
      """
        + examples(
          "docsync watch notes.db", "docsync watch notes.db shop.db --json",
          "docsync watch notes.db --once-idle"))

  static let writesLines = true

  @Argument(help: "The database files.", completion: .file())
  var stores: [String]

  @OptionGroup var place: MovedDirectory

  @OptionGroup var patience: Patience

  @Option(
    help: ArgumentHelp(
      "How long to wait for a change before synchronizing anyway (default: 300 s; 15 s where the system does not report changes).",
      valueName: "SECONDS"))
  var interval: Int?

  @Flag(help: "Do not rely on the system's reports of changes in the shared directory.")
  var poll = false

  @Flag(help: "Apply change sets of others however many rows they delete; see “docsync help sync”.")
  var allowDeletions = false

  @Flag(help: "End as soon as each database is synchronized, or its synchronization has failed.")
  var onceIdle = false

  @OptionGroup var output: OutputOptions

  /// One line of the output with `--json`.
  struct Line: Encodable, Sendable {
    /// What has happened.
    var event: String
    var store: String
    /// When it happened, in milliseconds since 1970.
    var atMilliseconds = Date().milliseconds
    /// Why the database is synchronized, sorted.
    var reasons: [String]?
    var report: SyncReportJSON?
    var error: Failure?
  }

  /// The last line of the output with `--json`.
  struct Result: Encodable, Sendable {
    /// What has become of one database.
    struct Store: Encodable, Sendable {
      var store: String
      /// The error of the last synchronization.
      var error: Failure?
    }

    var event = "ended"
    var atMilliseconds = Date().milliseconds
    var stores: [Store]
  }

  func validate() throws {
    guard !stores.isEmpty else { throw ValidationError("Name at least one database file.") }
    if let interval, !(1...1_000_000).contains(interval) {
      throw ValidationError("--interval needs a number of seconds, from 1 to 1000000.")
    }
  }

  func perform(_ console: Console) async throws -> Outcome {
    // A wrong argument ends the command at once.
    for store in stores {
      do {
        try await withManager(
          store, directory: place.directory, environment: patience.environment
        ) { _ in }
      } catch {
        throw Failure(error).at(place.commandPlace(of: store))
      }
    }
    let engine = engine()
    var events = engine.events.makeAsyncIterator()
    var view = WatchView(console: console, place: place, width: stores.map(\.columns).max() ?? 0)
    var end: [(store: Result.Store, status: ExitStatus)]?
    try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask { try await engine.run() }
      while let event = await events.next() {
        await view.show(event, of: engine)
        let documents = await engine.state.documents
        let isOver = documents.allSatisfy {
          view.outcomes.contains($0.path) && (onceIdle ? $0.isAtRest : $0.phase == .failed)
        }
        guard isOver, end == nil else { continue }
        end = []
        for document in documents { end?.append(try await outcome(of: document, engine)) }
        group.cancelAll()
      }
      try await group.waitForAll()
    }
    let stores = await engine.state.documents.map { document in
      Result.Store(
        store: document.path,
        error: document.lastError.map { Failure($0).at(place.commandPlace(of: document.path)) })
    }
    // A signal is no failure.
    return Outcome(
      json: Result(stores: end?.map(\.store) ?? stores), lines: [],
      status: end.map { .worst($0.map(\.status)) } ?? .done)
  }

  private func engine() -> SyncEngine {
    var timing = SyncEngine.Timing()
    if let interval {
      timing.interval = .seconds(interval)
      timing.pollingInterval = .seconds(interval)
    }
    var environment = patience.environment
    if allowDeletions { environment.deletionLimit = nil }
    return SyncEngine(
      documents: stores.map {
        SyncEngine.Document(
          storeAt: $0, directory: place.directory,
          options: .init(environment: environment),
          pollsDirectory: poll)
      }, timing: timing)
  }

  private func isEmpty(_ path: String) -> Bool {
    var information = stat()
    return stat(path, &information) != 0 || information.st_size == 0
  }

  private func outcome(
    of document: SyncEngine.State.Document, _ engine: SyncEngine
  ) async throws -> (store: Result.Store, status: ExitStatus) {
    var store = Result.Store(store: document.path)
    if let error = document.lastError {
      let failure = Failure(error).at(place.commandPlace(of: document.path))
      store.error = failure
      // “docsync leave” has ended it, and nothing is wrong. A file that is being restored is empty for a
      // moment.
      let hasLeft = error.code == .notUnderSync && !isEmpty(document.path)
      return (store, hasLeft ? .done : failure.status)
    }
    guard let report = document.lastReport else { return (store, .done) }
    let parked = try await engine.manager(storeAt: document.path).parkedRows()
    return (store, Unsettled(report, parked).status)
  }
}

extension SyncEngine.State.Document {
  /// Whether nothing is to be done, or nothing can be done.
  fileprivate var isAtRest: Bool {
    switch phase {
    case .synchronizing: false
    case .idle: reasons.isEmpty
    case .directoryAway, .paused, .waitingToRetry, .cannotSend, .failed: true
    }
  }
}

/// The output of an engine's events.
private struct WatchView {
  let console: Console
  let place: MovedDirectory
  let width: Int
  /// The last error of each store, which is not told again until another thing happens.
  private var told: [String: String] = [:]
  /// What waits in each store, which is told when it changes.
  private var waiting: [String: [String]] = [:]
  /// The stores of which the end of the last synchronization is shown. The engine's state is ahead of
  /// its events.
  private(set) var outcomes: Set<String> = []

  init(console: Console, place: MovedDirectory, width: Int) {
    self.console = console
    self.place = place
    self.width = width
  }

  mutating func show(_ event: SyncEngine.Event, of engine: SyncEngine) async {
    await noteOutcome(event, of: engine)
    switch event {
    case .willSynchronize(let store, let reasons):
      line("begins", store, reasons: reasons)
    case .didSynchronize(let store, let report):
      told[store] = nil
      console.line(
        Watch.Line(event: "synchronized", store: store, report: SyncReportJSON(report)))
      do {
        try await show(report, of: store, engine)
      } catch {
        // A command that is being stopped is not asked.
        if !Task.isCancelled { console.note(labelled(store, failure(error, of: store).lines)) }
      }
    case .failed(let store, let error, let retry):
      let failure = failure(error, of: store)
      console.line(Watch.Line(event: "failed", store: store, error: failure))
      // The other kinds have an event of their own.
      if error.code == .notUnderSync {
        warn(store, failure, "no longer watched")
      } else if retry == .later || retry == .never {
        warn(store, failure, retry == .later ? "trying again" : "given up")
      }
    case .cancelled(let store):
      line("cancelled", store)
    case .directoryAway(let store):
      line("directoryAway", store)
      say(store, ["the shared directory is away; waiting until it is there"])
    case .directoryReturned(let store):
      line("directoryReturned", store)
      say(store, ["the shared directory is there again"])
    case .paused(let store, let error):
      line("paused", store)
      warn(store, failure(error, of: store), "waiting for a decision")
    case .resumed(let store):
      line("resumed", store)
    case .polling(let store):
      line("polling", store)
    case .missed(let count):
      console.note(["docsync: \(counted(count, "event")) could not be shown in time"])
    case .documentEvent, .willFetchChanges, .didFetchChanges, .willSendChanges, .didSendChanges,
      .progress, .warning, .conflicts, .pendingCountChanged:
      // The reports say the same; this command does not fetch or send alone.
      break
    }
  }

  private mutating func noteOutcome(_ event: SyncEngine.Event, of engine: SyncEngine) async {
    switch event {
    case .willSynchronize(let store, _): outcomes.remove(store)
    case .didSynchronize(let store, _), .failed(let store, _, _), .cancelled(let store),
      .directoryAway(let store), .paused(let store, _):
      outcomes.insert(store)
    // The end of a synchronization may be among them.
    case .missed: outcomes = await Set(engine.state.documents.map(\.path))
    default: break
    }
  }

  private func line(
    _ event: String, _ store: String, reasons: Set<SyncEngine.SyncReason>? = nil
  ) {
    console.line(
      Watch.Line(event: event, store: store, reasons: reasons.map { $0.map(\.rawValue).sorted() }))
  }

  private mutating func show(
    _ report: SyncReport, of store: String, _ engine: SyncEngine
  ) async throws {
    guard !console.isJSON else { return }
    let isFirst = waiting[store] == nil
    guard !report.isIdle || isFirst || !report.waiting.isEmpty else { return }
    let manager = try await engine.manager(storeAt: store)
    let names = report.namesDevices ? await ClientNames(manager) : ClientNames()
    var lines = report.isIdle && !isFirst ? [] : Sync.lines(report, store: store, names)
    let unsettled = Unsettled(report, try await manager.parkedRows()).lines(store: store, names)
    if unsettled != waiting[store] ?? [] { lines += unsettled }
    waiting[store] = unsettled
    if !lines.isEmpty { say(store, lines) }
  }

  private func failure(_ error: any Error, of store: String) -> Failure {
    Failure(error).at(place.commandPlace(of: store))
  }

  /// Tells an error once.
  private mutating func warn(_ store: String, _ failure: Failure, _ next: String) {
    guard told[store] != failure.code else { return }
    told[store] = failure.code
    console.note(labelled(store, failure.lines + [next]))
  }

  private func say(_ store: String, _ lines: [String]) { console.say(labelled(store, lines)) }

  private func labelled(_ store: String, _ lines: [String]) -> [String] {
    let time = timeText(Date().milliseconds)
    let name = store + String(repeating: " ", count: max(width - store.columns, 0))
    return lines.enumerated().map { index, line in
      index == 0 ? "\(time)  \(name)  \(line)" : "    \(line)"
    }
  }
}
