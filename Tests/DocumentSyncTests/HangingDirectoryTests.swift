import DocumentSyncTesting
import Foundation
import GRDB
import SyncDirectory
import SyncModel
import Synchronization
import Testing

@testable import DocumentSync

/// A shared directory whose calls do not come back.
@Suite struct HangingDirectoryTests {
  /// The clock of the limit. It stands, so that a call is not given up because its thread got no
  /// processor; once it runs, an hour passes at each look.
  private final class LimitClock: Sendable {
    private let state = Mutex((time: ContinuousClock.now, isRunning: false))

    var isRunning: Bool {
      get { state.withLock { $0.isRunning } }
      set { state.withLock { $0.isRunning = newValue } }
    }

    func now() -> ContinuousClock.Instant {
      state.withLock { state in
        if state.isRunning { state.time += .seconds(3600) }
        return state.time
      }
    }
  }

  /// A device with something to send and to receive, whose directory hangs.
  private struct Hung {
    let fleet: TestFleet
    let directory: BlockingDirectory
    let manager: DocumentSyncManager
    let clock = LimitClock()

    init(fromCall call: Int) async throws {
      fleet = try await TestFleet(2, seed: UInt64(call))
      try await fleet.settle()
      try fleet[0].put("of 0", "1")
      try await fleet[0].synchronize()
      try await fleet[1].close()
      directory = BlockingDirectory(fleet.memory)
      var environment = fleet.environment
      environment.directoryTimeLimit = .seconds(60)
      environment.directoryNow = { [clock] in clock.now() }
      environment.parallelReads = 2
      manager = try await DocumentSyncManager.open(
        storeAt: fleet.scratch.store("1"), directory: directory,
        options: .init(environment: environment))
      try manager.put("of 1", "1")
      directory.block(fromCall: call)
    }

    /// The number of calls that were abandoned and have not returned.
    var stuckCallCount: Int {
      TimeLimitedDirectory(directory, limit: .zero).stuckCallCount
    }

    /// Waits until the call hangs; false if the task ends without.
    func hangs(_ isOver: () -> Bool) async throws -> Bool {
      while directory.blockedCount == 0 {
        if isOver() { return false }
        try await Task.sleep(for: .milliseconds(2))
      }
      return true
    }

    /// Waits for what the threads of abandoned calls are about to do.
    func wait(_ what: String, until isDone: () -> Bool) async throws {
      for _ in 0..<120_000 {
        if isDone() { return }
        try await Task.sleep(for: .milliseconds(2))
      }
      Issue.record("not in four minutes: \(what)")
    }

    /// Writes as an app, without waiting: no operation holds the store's lock.
    func write(_ id: String) throws {
      var configuration = Configuration()
      configuration.busyMode = .immediateError
      let queue = try DatabaseQueue(path: manager.store.path, configuration: configuration)
      try queue.write {
        try $0.execute(sql: "INSERT INTO notes VALUES (?, 'meanwhile')", arguments: [id])
      }
      try queue.close()
    }

    func recover() async throws {
      clock.isRunning = false
      directory.release()
      try await wait("abandoned calls return") { stuckCallCount == 0 }
      #expect(directory.blockedCount == 0)
      try await manager.synchronize()
      try await fleet[0].synchronize()
      try await manager.synchronize()
      #expect(try manager.notes() == fleet[0].notes())
      #expect(try manager.notes().contains("app=meanwhile"))
    }
  }

  private final class Mark: @unchecked Sendable {
    private let lock = NSLock()
    private var value = false
    var isSet: Bool { lock.withLock { value } }
    func set() { lock.withLock { value = true } }
  }

  @Test func aSyncGivesUpAtAnyCallAndLetsAppsWrite() async throws {
    var call = 0
    while true {
      call += 1
      let hung = try await Hung(fromCall: call)
      let ended = Mark()
      let task = Task {
        defer { ended.set() }
        try await hung.manager.synchronize()
      }
      guard try await hung.hangs({ ended.isSet }) else {
        _ = try await task.value
        break
      }
      try hung.write("app")
      #expect(!ended.isSet, "call \(call) was given up before its time")
      hung.clock.isRunning = true
      let error = await syncError { _ = try await task.value }
      #expect(error?.code == .directoryAway, "call \(call): \(String(describing: error))")
      #expect(error?.classification == .directoryAway)
      // The thread of a read beside it may be about to enter the directory.
      try await hung.wait("abandoned calls hang") {
        hung.stuckCallCount == hung.directory.blockedCount
      }
      // The next one says so at once, and asks nothing of the directory.
      let count = hung.directory.callCount
      let again = await syncError { try await hung.manager.synchronize() }
      #expect(again?.code == .directoryAway && again?.detail?.contains("has not returned") == true)
      #expect(hung.directory.callCount == count)
      #expect((1...2).contains(hung.directory.blockedCount))
      try StoreLock(store: hung.manager.store.path, operation: "test").unlock()
      try await hung.recover()
    }
    #expect(call > 10)
  }

  @Test(arguments: [1, 4, 7])
  func cancellingEndsItAtOnce(call: Int) async throws {
    let hung = try await Hung(fromCall: call)
    let ended = Mark()
    let task = Task {
      defer { ended.set() }
      try await hung.manager.synchronize()
    }
    #expect(try await hung.hangs { ended.isSet })
    task.cancel()
    try await hung.wait("the cancelled synchronization ends") { ended.isSet }
    // If it waits for its limit, it may go on, and ends with another error.
    hung.clock.isRunning = true
    let error = await syncError { _ = try await task.value }
    #expect(error?.code == .cancelled)
    try hung.write("app")
    try await hung.recover()
  }
}
