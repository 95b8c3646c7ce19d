import Foundation
import SyncDirectory
import SyncModel
import Synchronization
import Testing

@testable import DocumentSync

/// What a synchronization reads of the store's own rows, and what it hashes, counted.
struct StoreCostTests {
  /// Counts what one store is asked for.
  private final class Counter: Sendable {
    private let reads = Mutex<[String: Int]>([:])
    private let hashes = Mutex<Int>(0)

    func watch(_ environment: inout SyncEnvironment) {
      environment.store.onStatement = { self.count($0) }
      environment.store.hash = { bytes in
        self.hashes.withLock { $0 += 1 }
        return ContentHash(of: bytes)
      }
    }

    /// Counts a SELECT for each table of this module that it reads, and for each key of a table
    /// of keys and values.
    private func count(_ sql: String) {
      guard sql.hasPrefix("SELECT") else { return }
      reads.withLock { reads in
        for table in ["docsync_outbox", "docsync_inbox", "docsync_command", "docsync_event"]
        where sql.contains(table) {
          reads[table, default: 0] += 1
        }
        if sql.hasPrefix("SELECT bytes FROM docsync_inbox") { reads[Self.waiting, default: 0] += 1 }
        for table in ["docsync_meta", "docsync_record"] where sql.contains(table) {
          let key = sql.split(separator: "'").dropFirst().first ?? "…"
          reads["\(table)/\(key)", default: 0] += 1
        }
      }
    }

    private static let waiting = "the file of a waiting change set"

    func reset() {
      reads.withLock { $0 = [:] }
      hashes.withLock { $0 = 0 }
    }

    func counted() -> (reads: [String: Int], hashes: Int, waitingFiles: Int) {
      let reads = reads.withLock { $0 }
      return (reads, hashes.withLock { $0 }, reads[Self.waiting] ?? 0)
    }
  }

  @Test func oneSyncWithOneEditReadsAndHashesLittle() async throws {
    let counter = Counter()
    let fleet = try await TestFleet(1, change: counter.watch)
    try fleet[0].put("x", "1")
    try await fleet.settle()
    try fleet[0].put("x", "2")
    counter.reset()
    let report = try await fleet[0].synchronize()
    #expect(report.sent.count == 1)
    let counted = counter.counted()
    // Every transaction reads the key of fingerprints.
    let repeated = counted.reads.filter { $0.value > 1 && $0.key != "docsync_meta/fingerprintKey" }
    #expect(
      repeated == [
        "docsync_outbox": 2, "docsync_inbox": 2, "docsync_command": 2,
        "docsync_meta/plainValues": 3, "docsync_meta/remade": 5, "docsync_meta/heldEdits": 3,
      ])
    #expect(counted.reads["docsync_meta/commandState"] == 1)
    #expect(counted.hashes == 1)
  }

  /// Each pass asks several times which change sets wait.
  @Test func aWaitingChangeSetIsDecodedOnce() async throws {
    let counter = Counter()
    let fleet = try await TestFleet(3, change: counter.watch)
    try await fleet.settle()
    try fleet[1].put("x", "1")
    try await fleet[1].synchronize()
    try await fleet[2].synchronize()
    try fleet[2].put("x", "2")
    try await fleet[2].synchronize()
    // The change set of the third device comes without the one that it needs.
    for path in fleet.changeSets(of: 1) { fleet.memory.take(path) }
    counter.reset()
    for _ in 0..<3 {
      #expect(try await fleet[0].synchronize().waiting.contains { $0.reason == .dependencies })
    }
    #expect(counter.counted().waitingFiles == 1)
  }
}
