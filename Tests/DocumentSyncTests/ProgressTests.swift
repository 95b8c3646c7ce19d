import DocumentSync
import DocumentSyncTesting
import Foundation
import GRDB
import SyncDirectory
import SyncModel
import SyncStore
import Testing

/// How far operations say that they have come: totals are known where they can
/// be, nothing goes back, and everything ends at its total.
@Suite struct ProgressTests {
  /// Makes as many change sets, of one row each.
  private func edit(_ manager: DocumentSyncManager, times count: Int, prefix: String = "") throws {
    let program = try DatabaseQueue(path: manager.store.path)
    for number in 1...count {
      try program.write {
        try $0.execute(
          sql: "INSERT INTO notes VALUES(?, 'body')", arguments: ["\(prefix) row \(number)"])
      }
      _ = try manager.store.seal()
    }
    try program.close()
  }

  private func byteCount(_ fleet: TestFleet, _ paths: [RelativePath]) -> Int {
    paths.reduce(0) { sum, path in
      guard case .file(let bytes) = fleet.memory.items[path] else { return sum }
      return sum + bytes.count
    }
  }

  @Test func syncCountsEditsAndTheChangeSetsThatItSendsReadsAndApplies() async throws {
    // Several windows.
    let fleet = try await TestFleet(2) { $0.fetchWindowBytes = 1_000 }
    try edit(fleet[0], times: 30)
    for number in 0..<3 { try fleet[0].put("n\(number)", "unsealed") }
    let sending = HeardProgress()
    let sent = try await fleet[0].synchronize(onProgress: sending.handler).sent
    let bytes = sent.reduce(0) { $0 + ($1.byteCount ?? 0) }
    let sealing = try #require(sending.ends(of: .sealing).first)
    #expect(sealing.totalCount == 3)
    let uploading = try #require(sending.ends(of: .uploading).first)
    #expect(uploading.totalCount == 31 && uploading.totalBytes == bytes)

    let receiving = HeardProgress()
    try await fleet[1].synchronize(onProgress: receiving.handler)
    let parts = receiving.parts()
    let reading = try #require(parts.first { $0.phase == .downloading })
    #expect(reading.snapshots.allSatisfy { $0.totalCount == 31 })
    #expect(reading.last.totalBytes == bytes)
    #expect(Set(reading.snapshots.map(\.completedBytes)).count > 7)
    let applying = parts.filter { $0.phase == .applying }
    #expect(applying.count > 2)
    #expect(applying.reduce(0) { $0 + $1.last.totalCount } == 31)
    #expect(applying.reduce(0) { $0 + $1.last.totalBytes } == bytes)
    #expect(applying.allSatisfy { $0.snapshots[0].totalBytes == $0.last.totalBytes })
    try fleet.expectEqual()
  }

  @Test func commandsAreCountedAsTheyAreRead() async throws {
    let fleet = try await TestFleet(2)
    for number in 0..<5 {
      try await fleet[0].sendCommand(name: "greet", payload: Array(repeating: 1, count: number))
    }
    try await fleet[0].synchronize()
    let heard = HeardProgress()
    try await fleet[1].synchronize(onProgress: heard.handler)
    let files = fleet.paths { $0.components.contains("SyncCommands") }
    let reading = try #require(heard.ends(of: .downloading).first)
    #expect(reading.totalCount == 5 && reading.totalBytes == byteCount(fleet, files))
  }

  @Test func uploadCountsTheCopyItsCompressionAndItsWay() async throws {
    let fleet = try await TestFleet(1, rows: 3_000)
    let heard = HeardProgress()
    let uploaded = try await fleet[0].uploadWholeStore(onProgress: heard.handler)
    let parts = heard.parts()
    let phases = parts.map(\.phase)
    #expect(phases.contains(.snapshot) && phases.contains(.compressing))
    let copying = try #require(parts.first { $0.phase == .snapshot })
    // Known from the beginning, but for the very first word.
    #expect(copying.snapshots.dropFirst().allSatisfy { $0.totalBytes == copying.last.totalBytes })
    #expect(copying.last.totalBytes > uploaded.storeByteCount)
    #expect(Set(copying.snapshots.map(\.completedBytes)).count > 2)
    let compressing = try #require(parts.first { $0.phase == .compressing })
    #expect(compressing.snapshots.allSatisfy { $0.totalBytes == uploaded.storeByteCount })
    let uploading = try #require(parts.first { $0.phase == .uploading })
    #expect(uploading.last.totalBytes == uploaded.byteCount && uploading.last.totalCount == 1)
  }

  @Test func joiningCountsTheWholeStoreAndTheRowsThatAreMerged() async throws {
    let fleet = try await TestFleet(1, rows: 2_500)
    try fleet[0].put("later", "1")
    try await fleet[0].synchronize()
    let stored = fleet.paths { $0.name.hasSuffix(".store") }
    _ = try fleet.scratch.makeNotes("j", rows: 2_700)
    let heard = HeardProgress()
    let joined = try await DocumentSyncManager.join(
      storeAt: fleet.scratch.store("j"), directory: fleet.memory,
      existing: .merge(prefer: .document), options: .init(environment: fleet.environment),
      onProgress: heard.handler)
    #expect(joined.merged?.insertedRows == 200)
    let reading = heard.ends(of: .downloading)
    #expect(reading.first?.totalBytes == byteCount(fleet, stored))
    // Then the change set that came after it.
    #expect(reading.map(\.totalCount) == [1, 1])
    #expect(heard.ends(of: .verifying).prefix(2).allSatisfy { $0.totalBytes > 0 })
    // The rows are compared with the document once that is applied.
    let applying = heard.parts().filter { $0.phase == .applying }
    #expect(applying.count == 2)
    let merging = try #require(applying.last)
    #expect(merging.last.totalCount == 2_700 && merging.snapshots.count > 3)
    #expect(merging.snapshots.dropFirst().allSatisfy { $0.totalCount == 2_700 })
  }

  @Test func segmentsAreCountedAsTheyAreMadeAndAsTheyAreChecked() async throws {
    let fleet = try await TestFleet(2)
    try edit(fleet[0], times: 60)
    let heard = HeardProgress()
    let report = try await fleet[0].synchronize(onProgress: heard.handler)
    #expect(report.housekeeping?.madeSegments == 1)
    let part = try #require(heard.parts().first { $0.phase == .compacting })
    #expect(part.last.totalCount == 1 && part.snapshots[0].totalBytes == part.last.totalBytes)
    let inside = report.sent.prefix(52).reduce(0) { $0 + ($1.byteCount ?? 0) }
    #expect(part.last.totalBytes == inside && part.snapshots.count > 50)

    let checking = HeardProgress()
    let checked = try await fleet[1].vacuum(onProgress: checking.handler)
    #expect(checked.verifiedSegments == 1)
    let segments = fleet.changeSets(of: 0).filter { $0.name.hasSuffix(".segment") }
    let verifying = try #require(checking.ends(of: .verifying).last)
    #expect(verifying.totalCount == 1 && verifying.totalBytes == byteCount(fleet, segments))
  }

  @Test func vacuumCountsWhatItRemoves() async throws {
    let fleet = try await TestFleet(2)
    try edit(fleet[0], times: 5)
    try await fleet.settle()
    _ = try await fleet[1].uploadWholeStore()
    try await fleet.settle()
    for index in [0, 1] { _ = try await fleet[index].vacuum() }
    let bytes = byteCount(fleet, fleet.changeSets(of: 0))
    let heard = HeardProgress()
    let report = try await fleet[0].vacuum(onProgress: heard.handler)
    #expect(report.removed.map(\.kind) == [.changeSets])
    let removing = try #require(heard.parts().first { $0.phase == .removing })
    #expect(removing.snapshots.allSatisfy { $0.totalCount == 5 && $0.totalBytes == bytes })
    #expect(removing.snapshots.map(\.completedCount) == Array(0...5))
  }

  /// Of commands the lengths are not known, so that bytes are not counted.
  @Test func vacuumCountsNoBytesOfWhichThereIsNoTotal() async throws {
    let fleet = try await TestFleet(2)
    try edit(fleet[0], times: 5)
    for number in 0..<2 { try await fleet[0].sendCommand(name: "command \(number)") }
    try await fleet.settle()
    _ = try await fleet[1].uploadWholeStore()
    try await fleet.settle()
    for index in [0, 1] { _ = try await fleet[index].vacuum() }
    let heard = HeardProgress()
    let report = try await fleet[0].vacuum(onProgress: heard.handler)
    #expect(Set(report.removed.map(\.kind)) == [.changeSets, .commands])
    let removing = try #require(heard.parts().first { $0.phase == .removing })
    #expect(removing.last.completedCount == 7 && removing.last.completedBytes == 0)
  }

  @Test func thoroughSyncCountsWhatItLooksAt() async throws {
    let fleet = try await TestFleet(2)
    try fleet[0].put("x", "1")
    try await fleet.settle()
    for path in fleet.paths(where: { $0.name.hasPrefix("application.") }) {
      fleet.memory.take(path)
    }
    let heard = HeardProgress()
    let report = try await fleet[0].synchronizeThoroughly(onProgress: heard.handler)
    #expect(report.restoredFiles.count == 1)
    let first = try #require(heard.ends(of: .verifying).first)
    #expect(first.totalCount == 2)
  }

  @Test func goingOverCountsWhatIsExchangedAndWhatIsBroughtAlong() async throws {
    let fleet = try await TestFleet(3)
    try await fleet.settle()
    // Published, and not seen by the device that resets; and not published.
    let before = fleet.memory.items
    try fleet[1].put("unseen", "1")
    try await fleet[1].synchronize()
    let after = fleet.memory.items
    for path in after.keys where before[path] == nil { fleet.memory.take(path) }
    fleet.memory.takeOver(before)
    try await fleet[0].reset()
    fleet.memory.takeOver(after)
    try fleet[1].put("unsent", "2")
    let own = HeardProgress()
    let report = try await fleet[1].synchronize(onProgress: own.handler)
    #expect(report.rebootstrap?.reason == .reset)
    let applying = own.ends(of: .applying)
    // The one table in its three steps and the own change sets; then these.
    #expect(applying.map(\.totalCount) == [5, 2])
    #expect((applying.last?.totalBytes ?? 0) > 0)
    // Another finds what was left behind.
    let other = HeardProgress()
    try await fleet[2].synchronize(onProgress: other.handler)
    let left = other.ends(of: .downloading).filter { $0.totalCount == 1 && $0.totalBytes > 0 }
    #expect(left.count >= 2)
  }

  @Test func everyMethodTellsAHandlerAtLeastOfItsEnd() async throws {
    let fleet = try await TestFleet(3)
    let application = ApplicationSyncManager(
      directory: fleet.memory, environment: fleet.environment)
    let client = fleet[1].binding.client
    let path = fleet.scratch.store("2")
    typealias Call = (@escaping SyncProgress.Handler) async throws -> Void
    let calls: [Call] = [
      { try await fleet[0].retire(.client(client, .absent), onProgress: $0) },
      { try await fleet[0].describeClient("attic", onProgress: $0) },
      { _ = try await fleet[0].findStanding(onProgress: $0) },
      { _ = try await fleet[0].listClients(onProgress: $0) },
      { _ = try await fleet[0].verify(onProgress: $0) },
      { progress in
        try await fleet[2].close()
        let opened = try await DocumentSyncManager.open(
          storeAt: path, directory: fleet.memory, options: .init(environment: fleet.environment),
          onProgress: progress)
        try await opened.close()
      },
      {
        try await application.register(
          client, description: "x", createIfMissing: false, onProgress: $0)
      },
      { _ = try await application.findApplication(onProgress: $0) },
      { _ = try await application.findDocument(onProgress: $0) },
      { _ = try await application.listClients(onProgress: $0) },
      { _ = try await application.listDocuments(measuring: true, onProgress: $0) },
      { _ = try await application.verify(onProgress: $0) },
    ]
    for (index, call) in calls.enumerated() {
      let heard = HeardProgress()
      try await call(heard.handler)
      #expect(heard.all.last?.phase == .finished, "call \(index)")
      _ = heard.parts()
    }
  }
}
