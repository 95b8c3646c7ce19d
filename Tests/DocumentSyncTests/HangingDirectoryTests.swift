import DocumentSyncTesting
import Foundation
import GRDB
import SyncDirectory
import SyncModel
import Testing

@testable import DocumentSync

/// A shared directory whose calls do not come back.
@Suite struct HangingDirectoryTests {
  /// A device with something to send and to receive, whose directory hangs.
  private struct Hung {
    let fleet: TestFleet
    let directory: BlockingDirectory
    let manager: DocumentSyncManager

    init(fromCall call: Int, limit: Duration) async throws {
      fleet = try await TestFleet(2, seed: UInt64(call))
      try await fleet.settle()
      try fleet[0].put("of 0", "1")
      try await fleet[0].synchronize()
      try await fleet[1].close()
      directory = BlockingDirectory(fleet.memory)
      var environment = fleet.environment
      environment.directoryTimeLimit = limit
      environment.parallelReads = 2
      manager = try await DocumentSyncManager.open(
        storeAt: fleet.scratch.store("1"), directory: directory,
        options: .init(environment: environment))
      try manager.put("of 1", "1")
      directory.block(fromCall: call)
    }

    /// Waits until the call hangs; false if the task ends without.
    func hangs(_ isOver: () -> Bool) async throws -> Bool {
      while directory.blockedCount == 0 {
        if isOver() { return false }
        try await Task.sleep(for: .milliseconds(2))
      }
      return true
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
      directory.release()
      while directory.blockedCount > 0 { try await Task.sleep(for: .milliseconds(2)) }
      var error: SyncError?
      for _ in 0..<100 {
        error = nil
        do {
          try await manager.synchronize()
          break
        } catch let caught as SyncError where caught.code == .directoryAway {
          // The threads that were left are about to end.
          error = caught
          try await Task.sleep(for: .milliseconds(5))
        }
      }
      #expect(error == nil)
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
      let hung = try await Hung(fromCall: call, limit: .milliseconds(250))
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
      let error = await syncError { _ = try await task.value }
      #expect(error?.code == .directoryAway, "call \(call): \(String(describing: error))")
      #expect(error?.classification == .directoryAway)
      // The next one says so at once, and asks nothing of the directory.
      let count = hung.directory.callCount
      let again = await syncError { try await hung.manager.synchronize() }
      #expect(again?.code == .directoryAway && again?.detail?.contains("not come back") == true)
      #expect(hung.directory.callCount == count && hung.directory.blockedCount <= 2)
      try StoreLock(store: hung.manager.store.path, operation: "test").unlock()
      try await hung.recover()
    }
    #expect(call > 10)
  }

  @Test(arguments: [1, 4, 7])
  func cancellingEndsItAtOnce(call: Int) async throws {
    let hung = try await Hung(fromCall: call, limit: .seconds(3600))
    let task = Task { try await hung.manager.synchronize() }
    #expect(try await hung.hangs { false })
    task.cancel()
    let error = await syncError { _ = try await task.value }
    #expect(error?.code == .cancelled)
    try hung.write("app")
    try await hung.recover()
  }
}
