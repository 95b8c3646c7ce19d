import ArgumentParser
import DocumentSync
import Foundation
import SyncModel
import SyncStore

/// `docsync watch`
struct Watch: Verb {
  static let configuration = CommandConfiguration(
    abstract: "Keep databases the same by itself, until it is stopped.",
    discussion: """
      Synchronizes at once, and then whenever a program edits a database, another device sends \
      something, or the shared directory returns. On network mounts it looks every 15 seconds. \
      Stop it with Ctrl-C or SIGTERM; it continues where it was.
      """
        + examples(
          "docsync watch notes.db", "docsync watch notes.db shop.db --json",
          "docsync watch notes.db --once-idle"))

  @Argument(help: "The database files.", completion: .file())
  var stores: [String]

  @OptionGroup var place: MovedDirectory

  @OptionGroup var patience: Patience

  @Option(
    help: ArgumentHelp(
      "The time between two looks without any other reason (default: 300 s, on network mounts 15 s).",
      valueName: "SECONDS"))
  var interval: Int?

  @Flag(help: "End as soon as nothing is to be done.")
  var onceIdle = false

  @OptionGroup var output: OutputOptions

  /// One line of the output with `--json`.
  struct Line: Encodable, Sendable {
    /// What has happened.
    var event: String
    var store: String
    /// When it happened, in milliseconds since 1970.
    var milliseconds = Date().milliseconds
    /// Why the database is synchronized, sorted.
    var reasons: [String]?
    var report: SyncReportJSON?
    var error: Failure?
  }

  /// The last line of the output with `--json`.
  struct Result: Encodable, Sendable {
    var event = "ended"
    var stores: [String]
  }

  func validate() throws {
    guard !stores.isEmpty else { throw ValidationError("Name at least one database file.") }
    if let interval, !(1...1_000_000).contains(interval) {
      throw ValidationError("--interval needs a number of seconds, from 1 to 1000000.")
    }
  }

  func perform(_ console: Console) async throws -> Outcome {
    var timing = SyncTiming()
    if let interval {
      timing.interval = .seconds(interval)
      timing.pollingInterval = .seconds(interval)
    }
    let engine = SyncEngine(
      documents: stores.map {
        SyncEngine.Document(
          storeAt: $0, directory: place.directory, options: .init(environment: patience.environment)
        )
      }, timing: timing)
    var events = engine.events.makeAsyncIterator()
    try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask { try await engine.run() }
      var view = WatchView(console: console, width: stores.map(\.columns).max() ?? 0)
      while let event = await events.next() {
        view.show(event)
        if onceIdle, await engine.state.documents.allSatisfy(\.isAtRest) { group.cancelAll() }
      }
      try await group.waitForAll()
    }
    let state = await engine.state
    let statuses = state.documents.map { document in
      if let error = document.lastError { return Failure(error).status }
      return document.lastReport?.waiting.isEmpty == false ? ExitStatus.waiting : .done
    }
    return Outcome(
      json: Result(stores: stores), lines: [], status: onceIdle ? .worst(statuses) : .done)
  }
}

extension SyncEngineState.Document {
  /// Whether nothing is to be done, or nothing can be done.
  fileprivate var isAtRest: Bool {
    switch phase {
    case .synchronizing: false
    case .idle: reasons.isEmpty
    case .directoryAway, .paused, .waitingToRetry, .failed: true
    }
  }
}

/// The output of an engine's events.
private struct WatchView {
  let console: Console
  let width: Int
  /// The last error of each store, which is not told again until another thing happens.
  private var told: [String: String] = [:]
  /// The stores that were synchronized once.
  private var begun: Set<String> = []

  init(console: Console, width: Int) {
    self.console = console
    self.width = width
  }

  mutating func show(_ event: SyncEngineEvent) {
    switch event {
    case .willSynchronize(let store, let reasons):
      console.line(
        Watch.Line(event: "begins", store: store, reasons: reasons.map(\.rawValue).sorted()))
    case .didSynchronize(let store, let report):
      told[store] = nil
      console.line(
        Watch.Line(event: "synchronized", store: store, report: SyncReportJSON(report)))
      let isFirst = begun.insert(store).inserted
      if !report.isIdle || isFirst { say(store, Sync.lines(report, store: store)) }
    case .failed(let store, let error, let retry):
      console.line(Watch.Line(event: "failed", store: store, error: Failure(error)))
      // What follows has an event of its own.
      guard retry == .later || retry == .never, told[store] != error.code.rawValue else { return }
      told[store] = error.code.rawValue
      say(store, Failure(error).lines + [retry == .later ? "trying again" : "given up"])
    case .directoryAway(let store):
      console.line(Watch.Line(event: "directoryAway", store: store))
      say(store, ["the shared directory is away; waiting until it is there"])
    case .directoryReturned(let store):
      console.line(Watch.Line(event: "directoryReturned", store: store))
      say(store, ["the shared directory is there again"])
    case .paused(let store, let error):
      guard told[store] != error.code.rawValue else { return }
      told[store] = error.code.rawValue
      console.line(Watch.Line(event: "paused", store: store, error: Failure(error)))
      say(store, Failure(error).lines)
    case .polling(let store):
      console.line(Watch.Line(event: "polling", store: store))
    case .missed:
      // The next events tell what is so then.
      break
    }
  }

  private func say(_ store: String, _ lines: [String]) {
    let time = timeText(Date().milliseconds)
    let name = store + String(repeating: " ", count: max(width - store.columns, 0))
    console.say(
      lines.enumerated().map { index, line in
        index == 0 ? "\(time)  \(name)  \(line)" : "    \(line)"
      })
  }
}
