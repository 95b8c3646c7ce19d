import ArgumentParser
import DocumentSync
import DocumentSyncTesting
import Foundation

/// Measures how long an edit takes to the store of another device while engines run, and what an idle engine
/// costs.
struct EngineProbe: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "engine",
    abstract: "Measures the time of arrival between two engines, and the cost of an idle one.",
    discussion: """
      Two engines synchronize one document through a folder. A program inserts a row into one store, \
      and looks for it in the other. Then one engine with ten documents has nothing to do. \
      Documentation/Performance.md has the figures.
      """)

  @Option(help: "The edits whose arrival is measured.")
  var edits = 100
  @Option(help: "How many seconds the idle engine runs.")
  var seconds = 60
  @Option(help: "Where the files go. Default: a memory file system if there is one.")
  var directory: String?

  /// The greatest median time of arrival.
  private static let greatestMedian = 0.050
  /// The greatest part of one core that an idle engine takes.
  private static let greatestIdleShare = 0.001

  func validate() throws {
    guard edits >= 1, seconds >= 1 else {
      throw ValidationError("There must be at least 1 edit and 1 second.")
    }
  }

  func run() async throws {
    let folder = Benchmarks.base(directory).appending(
      path: "documentsync-engine-\(UUID().uuidString)", directoryHint: .isDirectory)
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    do {
      try await measureArrival(in: folder)
      try await measureIdling(in: folder)
    } catch {
      try FileManager.default.removeItem(at: folder)
      throw error
    }
    try FileManager.default.removeItem(at: folder)
  }

  // MARK: - Arrival

  private func measureArrival(in folder: URL) async throws {
    let shared = try shared("arrival", in: folder)
    let paths = Device.allCases.map { folder.appending(path: "arrival-\($0.rawValue).sqlite").path }
    try await setUp(paths[0], in: FolderDirectory(root: shared))
    let joined = try await DocumentSyncManager.join(
      storeAt: paths[1], directory: FolderDirectory(root: shared))
    try await joined.close()
    let times = try await withEngines(paths.map { [SyncEngine.Document(storeAt: $0)] }) { _ in
      try await arrivals(from: paths[0], to: paths[1])
    }.sorted()
    let median = times[times.count / 2]
    print(
      "arrival of \(times.count) edits: median \(milliseconds(median)), "
        + "95 % within \(milliseconds(times[min(times.count - 1, times.count * 95 / 100)])), "
        + "greatest \(milliseconds(times[times.count - 1])); target of the median "
        + "\(milliseconds(Self.greatestMedian)): "
        + (median <= Self.greatestMedian ? "reached" : "NOT REACHED"))
  }

  /// Returns the seconds from the commit of each edit in one store to its row in the other.
  private func arrivals(from author: String, to receiver: String) async throws -> [Double] {
    let program = try Database(path: author)
    let reader = try Database(path: receiver)
    var times: [Double] = []
    for number in 1...edits {
      // The engines have come to rest, as between the edits of a person.
      try await Task.sleep(for: .milliseconds(300))
      try program.execute("INSERT INTO notes (title) VALUES ('\(number)')")
      let start = ContinuousClock.now
      while try reader.integer("SELECT count(*) FROM notes") < number {
        guard ContinuousClock.now - start < .seconds(60) else {
          throw VerificationFailure(description: "edit \(number) has not arrived within a minute")
        }
        try await Task.sleep(for: .milliseconds(0.2))
      }
      times.append((ContinuousClock.now - start) / .seconds(1))
    }
    return times
  }

  // MARK: - Idling

  private func measureIdling(in folder: URL) async throws {
    let directory = CountingDirectory(
      FolderDirectory(root: try shared("idle", in: folder)))
    let paths = (1...10).map { folder.appending(path: "idle-\($0).sqlite").path }
    for path in paths { try await setUp(path, in: directory) }
    let documents = paths.map { SyncEngine.Document(storeAt: $0, directory: directory) }
    try await withEngines([documents]) { engines in
      try await settle(engines[0], paths)
      directory.reset()
      var start = processSeconds()
      try await Task.sleep(for: .seconds(seconds))
      let waiting = (processSeconds() - start) / Double(seconds)
      let counts = directory.reset()
      print(
        "idle engine, 10 documents, \(seconds) s: \(percent(waiting)) of one core, "
          + "\(counts.listings) listings, \(counts.reads) reads, \(counts.writes) writes")
      // What the interval costs, of which a short run has none or too many.
      start = processSeconds()
      let rounds = 20
      for _ in 0..<rounds { try await Self.check(engines[0].synchronize()) }
      let round = (processSeconds() - start) / Double(rounds)
      let calls = directory.reset()
      let interval = SyncEngine.Timing().interval / .seconds(1)
      let share = waiting + round / interval
      print(
        "synchronizing all with nothing to do: \(milliseconds(round)) of CPU, "
          + "\(calls.listings / rounds / paths.count) listings, "
          + "\(calls.reads) reads, \(calls.writes) writes; once in \(Int(interval)) s, "
          + "with the above: \(percent(share)) of one core; target "
          + "\(percent(Self.greatestIdleShare)), no reads: "
          + (share <= Self.greatestIdleShare && counts.reads + calls.reads == 0
            ? "reached" : "NOT REACHED"))
    }
  }

  /// Waits until nothing is to be synchronized.
  private func settle(_ engine: SyncEngine, _ paths: [String]) async throws {
    for _ in 0..<3 {
      try await Self.check(engine.synchronize())
      try await Task.sleep(for: .seconds(1))
    }
  }

  // MARK: - Parts

  private func setUp(_ path: String, in directory: any SharedDirectory) async throws {
    try Database(path: path).execute("CREATE TABLE notes (id INTEGER PRIMARY KEY, title TEXT)")
    let name = URL(filePath: path).deletingPathExtension().lastPathComponent
    let manager = try await DocumentSyncManager.create(
      storeAt: path, directory: directory, document: name)
    try await manager.close()
  }

  private func withEngines<Result>(
    _ documents: [[SyncEngine.Document]], _ body: ([SyncEngine]) async throws -> Result
  ) async throws -> Result {
    let engines = documents.map { SyncEngine(documents: $0) }
    return try await withThrowingTaskGroup(of: Void.self) { group in
      for engine in engines { group.addTask { try await engine.run() } }
      let result: Result
      do {
        for engine in engines { try await Self.check(engine.synchronize()) }
        result = try await body(engines)
      } catch {
        for engine in engines { try await engine.close() }
        throw error
      }
      for engine in engines { try await engine.close() }
      try await group.waitForAll()
      return result
    }
  }

  private static func check(_ results: SyncEngine.Results) throws {
    for result in results.values { _ = try result.get() }
  }

  private func shared(_ name: String, in folder: URL) throws -> String {
    let path = folder.appending(path: "shared-\(name)").path
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
    return path
  }

  /// The seconds of CPU that this process has used.
  private func processSeconds() -> Double {
    var now = timespec()
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now)
    return Double(now.tv_sec) + Double(now.tv_nsec) / 1e9
  }

  private func milliseconds(_ seconds: Double) -> String {
    String(format: "%.1f ms", seconds * 1000)
  }

  private func percent(_ share: Double) -> String { String(format: "%.3f %%", share * 100) }
}
