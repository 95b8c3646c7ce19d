import DocumentSync
import DocumentSyncTesting
import Foundation
import GRDB
import SyncDirectory
import SyncModel
import SyncStore
import Testing

/// The number of files of a document stays bounded however often it is
/// synchronized.
///
/// With `DOCSYNC_SYNCS=100000` in the environment as many synchronizations
/// are made, and it is printed how many files there were at most.
struct BoundedFilesTests {
  @Test func numberOfFilesStaysBounded() async throws {
    let wanted = ProcessInfo.processInfo.environment["DOCSYNC_SYNCS"].flatMap(Int.init)
    let count = wanted ?? 600
    let fleet = try await TestFleet(5, keptChangeSetBytes: 1 << 16)
    var random = SeededRandom(seed: 4)
    let programs = try fleet.managers.map { try DatabaseQueue(path: $0.store.path) }
    var most = (files: 0, changeSets: 0, at: 0)
    for sync in 1...count {
      let index = Int(random.next() % 5)
      fleet.world.advance(Int64(random.next() % 1_200_000))
      // Few rows, so that the document itself stays small.
      let row = "row \(random.next() % 50)"
      try await programs[index].write { database in
        try database.execute(
          sql: "INSERT INTO notes VALUES(?, ?) ON CONFLICT(id) DO UPDATE SET body = excluded.body",
          arguments: [row, "text \(sync) of \(index)"])
      }
      let report = try await fleet[index].synchronize()
      try #require(report.waiting.isEmpty, "sync \(sync)")
      let files = fleet.memory.items.values.count { item in
        if case .file = item { true } else { false }
      }
      if files > most.files {
        let changeSets = fleet.paths { $0.components.contains("SyncChanges") }.count
        most = (files, changeSets, sync)
      }
    }
    for program in programs { try program.close() }
    try await fleet.settle()
    try fleet.expectEqual()
    if wanted != nil {
      print(
        "\(count) synchronizations of 5 clients: at most \(most.files) files "
          + "(\(most.changeSets) of change sets), at synchronization \(most.at)")
    }
    #expect(most.files <= 500, "\(most)")
    // What joins finds everything in what is left.
    let late = try await DocumentSyncManager.join(
      storeAt: fleet.scratch.store("late"), directory: fleet.memory,
      options: .init(client: "late", environment: fleet.environment))
    #expect(try late.notes() == fleet[0].notes())
  }
}
