import DocumentSync
import DocumentSyncTesting
import Foundation
import SyncDirectory
import SyncModel
import SyncStore
import Testing

struct SynchronizeTests {
  @Test func editOnOneDeviceArrivesOnTheOther() async throws {
    let fleet = try await TestFleet(2)
    try fleet[0].put("x", "hello")
    let sent = try await fleet[0].synchronize()
    #expect(sent.sent.count == 1)
    #expect(sent.sent.first?.rowCount == 1)
    #expect(sent.publishedMarker)
    #expect(sent.bytesSent > 0)
    let received = try await fleet[1].synchronize()
    #expect(received.received.map(\.number) == [1])
    #expect(received.applied.map(\.hash) == sent.sent.map(\.hash))
    #expect(received.bytesReceived == sent.sent.first?.byteCount)
    #expect(received.waiting.isEmpty)
    #expect(try fleet[1].notes().contains("x=hello"))
    try fleet.expectEqual()
  }

  @Test func editsOnAllDevicesConvergeAndComeToRest() async throws {
    let fleet = try await TestFleet(4)
    for (index, manager) in fleet.managers.enumerated() {
      try manager.put("own-\(index)", "\(index)")
      try manager.put("shared", "by \(index)")
    }
    let rounds = try await fleet.settle()
    #expect(rounds <= 4)
    try fleet.expectEqual()
    #expect(try fleet[0].notes().count == 7)
  }

  @Test func acknowledgementIsNotAcknowledgedInTurn() async throws {
    let fleet = try await TestFleet(2)
    try await fleet.settle()
    try fleet[0].put("x", "1")
    #expect(try await fleet[0].synchronize().publishedMarker)
    #expect(try await fleet[1].synchronize().publishedMarker)
    #expect(try await !fleet[0].synchronize().publishedMarker)
    #expect(try await !fleet[1].synchronize().publishedMarker)
  }

  @Test func onlyTheLastTwoMarkersAreKept() async throws {
    let fleet = try await TestFleet(2)
    for value in 0..<5 {
      try fleet[0].put("x", "\(value)")
      try await fleet[0].synchronize()
    }
    #expect(fleet.markers(of: 0).count == 2)
  }

  @Test func fileThatHasNotArrivedIsWaitedForWithItsReason() async throws {
    let fleet = try await TestFleet(3)
    try fleet[2].put("y", "1")
    try await fleet[2].synchronize()
    try fleet[0].put("x", "1")
    try await fleet[0].synchronize()
    try fleet[0].put("x", "2")
    try await fleet[0].synchronize()
    let file = try #require(fleet.changeSets(of: 0).first)
    let item = try #require(fleet.memory.items[file])
    fleet.memory.take(file)

    let report = try await fleet[1].synchronize()
    #expect(report.waiting.map(\.reason) == [.notArrived])
    #expect(report.waiting.map(\.number) == [1])
    #expect(report.waiting.map(\.client) == [fleet[0].binding.client])
    // The others go on.
    #expect(try fleet[1].notes().contains("y=1"))
    #expect(try !fleet[1].notes().contains { $0.hasPrefix("x=") })

    fleet.memory.put(item, at: file)
    #expect(try await fleet[1].synchronize().waiting.isEmpty)
    #expect(try fleet[1].notes().contains("x=2"))
  }

  @Test func whatCameBeforeAGapIsApplied() async throws {
    let fleet = try await TestFleet(2)
    for value in 1...4 {
      try fleet[0].put("x", "\(value)")
      try await fleet[0].synchronize()
    }
    fleet.memory.take(fleet.changeSets(of: 0)[2])
    let report = try await fleet[1].synchronize()
    #expect(report.applied.map(\.number) == [1, 2])
    #expect(report.waiting.map(\.number) == [3])
    #expect(try fleet[1].notes().contains("x=2"))
  }

  @Test(arguments: [0, 10, 200])
  func shortFileIsPendingAndTheAuthorPutsItBack(length: Int) async throws {
    let fleet = try await TestFleet(2)
    try fleet[0].put("x", "1")
    try await fleet[0].synchronize()
    let file = try #require(fleet.changeSets(of: 0).first)
    let bytes = try fleet.memory.bytes(at: file)
    fleet.memory.put(.file(Array(bytes.prefix(length))), at: file)
    let report = try await fleet[1].synchronize()
    #expect(report.waiting.map(\.reason) == [.damaged])
    #expect(report.waiting.first?.path == file.description)
    #expect(try !fleet[1].notes().contains("x=1"))

    let repair = try await fleet[0].synchronizeThoroughly()
    #expect(repair.restored.map(\.number) == [1])
    #expect(fleet.memory.items[file] == .file(bytes))
    #expect(try await fleet[1].synchronize().waiting.isEmpty)
    try fleet.expectEqual()
  }

  @Test func whatAllMembersHaveIsGivenUpAndReplacedByAWholeStore() async throws {
    let fleet = try await TestFleet(2, keptChangeSetBytes: 0)
    try fleet[0].put("x", "1")
    try await fleet[0].synchronize()
    #expect(try fleet[0].store.sealedChangeSets().map(\.isKept) == [true], "no other device has it")
    try await fleet[1].synchronize()
    #expect(try await fleet[0].synchronize().uploadedWholeStore == false)
    #expect(try fleet[0].store.sealedChangeSets().map(\.isKept) == [false])
    try fleet[0].put("x", "2")
    try await fleet[0].synchronize()
    #expect(try fleet[0].store.sealedChangeSets().map(\.isKept) == [false, true])

    // A file that is lost can only be needed by someone who joins.
    let file = try #require(fleet.changeSets(of: 0).first)
    fleet.memory.take(file)
    let report = try await fleet[0].synchronizeThoroughly()
    #expect(report.uploadedWholeStore && report.restored == [])
    #expect(try await !fleet[0].synchronizeThoroughly().uploadedWholeStore)
    let third = try await DocumentSyncManager.join(
      storeAt: fleet.scratch.store("third"), directory: fleet.memory.view(seed: 9),
      options: .init(client: "third", environment: fleet.environment))
    #expect(try await third.synchronize().waiting == [])
    #expect(try third.notes().contains("x=2"))
    try await fleet.settle()
    try fleet.expectEqual()
  }

  @Test func missingOwnFileIsPutBackInItsTurn() async throws {
    let fleet = try await TestFleet(2)
    try fleet[0].put("x", "1")
    try await fleet[0].synchronize()
    let file = try #require(fleet.changeSets(of: 0).first)
    let item = try #require(fleet.memory.items[file])
    fleet.memory.take(file)
    var restored: [UInt64] = []
    // The other, itself, and the folder of all.
    for _ in 0..<3 { restored += try await fleet[0].synchronize().restored.map(\.number) }
    #expect(restored == [1])
    #expect(fleet.memory.items[file] == item)
  }

  @Test func changeSetWhoseMarkerWasLostIsFoundInTurn() async throws {
    let fleet = try await TestFleet(4)
    try await fleet.settle()
    let before = fleet.markers(of: 0).compactMap { path in
      fleet.memory.items[path].map { (path, $0) }
    }
    try fleet[0].put("x", "1")
    try await fleet[0].synchronize()
    for path in fleet.markers(of: 0) { fleet.memory.take(path) }
    for (path, item) in before { fleet.memory.put(item, at: path) }
    var syncs = 0
    while try !fleet[1].notes().contains("x=1"), syncs < 20 {
      try await fleet[1].synchronize()
      syncs += 1
    }
    // Three others, itself, and the folder of all.
    #expect(syncs <= 5)
  }

  @Test func clientWhoseOnlyMarkersWereLostIsFoundInTurn() async throws {
    let fleet = try await TestFleet(3)
    try fleet[2].put("x", "1")
    try await fleet[2].synchronize()
    for path in fleet.markers(of: 2) { fleet.memory.take(path) }
    var syncs = 0
    while try !fleet[1].notes().contains("x=1"), syncs < 20 {
      try await fleet[1].synchronize()
      syncs += 1
    }
    #expect(syncs <= 4)
  }

  @Test func lostMarkerIsPublishedAgainByteForByte() async throws {
    let fleet = try await TestFleet(2)
    try fleet[0].put("x", "1")
    try await fleet[0].synchronize()
    let last = try #require(fleet.markers(of: 0).last { $0.name.contains(".1.0.") })
    let item = try #require(fleet.memory.items[last])
    fleet.memory.take(last)
    let report = try await fleet[0].synchronize()
    #expect(!report.publishedMarker)
    #expect(fleet.memory.items[last] == item)
  }

  @Test func fileOfAnotherPlaceIsNotApplied() async throws {
    let fleet = try await TestFleet(3)
    try fleet[0].put("x", "1")
    try await fleet[0].synchronize()
    let file = try #require(fleet.changeSets(of: 0).first)
    let item = try #require(fleet.memory.items[file])
    // Copied, as it is, into the folder of another client.
    let client = fleet[2].binding.client.description
    let other = try #require(
      RelativePath(
        components: file.components.map { $0 == fleet[0].binding.client.description ? client : $0 }
      ))
    fleet.memory.put(item, at: other)
    var reasons: Set<SyncReport.Wait.Reason> = []
    for _ in 0..<5 {
      let report = try await fleet[1].synchronize()
      reasons.formUnion(report.waiting.filter { $0.client.description == client }.map(\.reason))
    }
    #expect(reasons == [.misplaced])
  }

  @Test func fileThatClaimsAnOwnNumberToComeIsReportedInItsTurn() async throws {
    let fleet = try await TestFleet(1)
    try fleet[0].put("x", "1")
    try await fleet[0].synchronize()
    let folder = try #require(fleet.changeSets(of: 0).first?.parent)
    fleet.memory.put(.file([1]), at: try #require(folder.appending("2.aaaaaaaaaa.syncchg")))
    var reasons: [SyncReport.Wait.Reason] = []
    // Itself, and the folder of all.
    for _ in 0..<2 { reasons += try await fleet[0].synchronize().waiting.map(\.reason) }
    #expect(reasons == [.damaged])
  }

  @Test func absentRootGenerationAndDirectoryStopBeforeAnythingIsWritten() async throws {
    let fleet = try await TestFleet(2)
    try fleet[0].put("x", "1")
    let binding = fleet[0].binding
    let everything = fleet.memory.items

    let document = DirectoryLayout.Document(binding.document)
    fleet.memory.take(
      document.path(
        of: GenerationName(
          ordinal: UInt64(binding.generationOrdinal), key: binding.generation)))
    #expect(await syncError { try await fleet[0].synchronize() }?.code == .generationMissing)

    for path in fleet.memory.items.keys where path.components.count == 1 {
      fleet.memory.take(path)
    }
    let empty = await syncError { try await fleet[0].synchronize() }
    #expect(empty?.code == .rootMissing)
    #expect(empty?.classification == .directoryAway)
    #expect(fleet.memory.items.isEmpty)

    fleet.memory.isAway = true
    #expect(await syncError { try await fleet[0].synchronize() }?.code == .directoryAway)
    fleet.memory.isAway = false
    #expect(try fleet[0].store.sealedChangeSets().isEmpty)

    fleet.memory.takeOver(everything)
    #expect(try await fleet[0].synchronize().sent.count == 1)
  }

  @Test func secondSyncOfOneStoreAtOnceIsRefused() async throws {
    let fleet = try await TestFleet(1)
    let other = try await DocumentSyncManager.open(
      storeAt: fleet.scratch.store("0"), directory: fleet.memory,
      options: .init(environment: fleet.world.environment))
    try fleet[0].put("x", "1")
    let inner = InnerResult()
    // While the first is listing, the second tries.
    let hooked = HookedDirectory(fleet.memory) {
      let operation = SynchronizeOperation(
        store: other.store, directory: fleet.memory,
        turns: SyncTurns(environment: fleet.world.environment),
        environment: fleet.world.environment)
      let done = DispatchSemaphore(value: 0)
      operation.whenFinished { _ in done.signal() }
      operation.start()
      done.wait()
      inner.set(operation.error)
    }
    let first = try await DocumentSyncManager.open(
      storeAt: fleet.scratch.store("0"), directory: hooked,
      options: .init(environment: fleet.world.environment))
    #expect(try await first.synchronize().sent.count == 1)
    #expect(inner.error?.code == .storeInUse)
    #expect(inner.error?.classification == .busy)
  }

  @Test func cancelledTaskCancelsTheSynchronization() async throws {
    let fleet = try await TestFleet(1)
    try fleet[0].put("x", "1")
    let box = CancelBox()
    let hooked = HookedDirectory(fleet.memory) { box.cancel() }
    let manager = try await DocumentSyncManager.open(
      storeAt: fleet.scratch.store("0"), directory: hooked,
      options: .init(environment: fleet.world.environment))
    let task = Task { try await manager.synchronize() }
    box.set(task)
    let error = await syncError { _ = try await task.value }
    #expect(error?.code == .cancelled)
    try await hooked.waitForAbandonedCalls()
    #expect(try await fleet[0].synchronize().sent.count == 1)
  }

  @Test func cancelledBetweenTwoChangeSetsAppliesNoneAndTheNextContinues() async throws {
    let fleet = try await TestFleet(2)
    for number in 1...4 {
      try fleet[0].put("x\(number)", "1")
      try await fleet[0].synchronize()
    }
    let before = try fleet[1].notes()
    let operation = SynchronizeOperation(
      store: fleet[1].store, directory: fleet.memory,
      turns: SyncTurns(environment: fleet.environment), environment: fleet.environment)
    let seen = Seen()
    operation.observe { [unowned operation] progress in
      guard progress.phase == .applying else { return }
      seen.note(progress)
      if progress.completedCount == 2 { operation.cancel() }
    }
    await withCheckedContinuation { continuation in
      operation.whenFinished { _ in continuation.resume() }
      operation.start()
    }
    #expect(operation.error?.code == .cancelled)
    #expect(seen.values.map(\.completedCount) == [0, 1, 2])
    #expect(seen.values.allSatisfy { $0.totalCount == 4 })
    #expect(try fleet[1].notes() == before)
    #expect(try await fleet[1].synchronize().applied.count == 4)
    try fleet.expectEqual()
  }

  @Test func folderThatCannotBeListedHoldsUpItsClientAlone() async throws {
    let fleet = try await TestFleet(3)
    try fleet[2].put("y", "1")
    try await fleet[2].synchronize()
    try fleet[0].put("x", "1")
    try await fleet[0].synchronize()
    let folder = try #require(fleet.changeSets(of: 0).first?.parent)
    fleet.memory.put(.other, at: folder)
    let report = try await fleet[1].synchronize()
    #expect(report.waiting.map(\.reason) == [.unreadable])
    #expect(report.waiting.map(\.client) == [fleet[0].binding.client])
    #expect(try fleet[1].notes().contains("y=1"))
  }

  @Test func schemaThatIsBehindIsReportedAndCaughtUpWith() async throws {
    let fleet = try await TestFleet(2)
    try fleet[0].edit("ALTER TABLE notes ADD COLUMN stars INTEGER")
    try fleet[0].edit("INSERT INTO notes(id, body, stars) VALUES('x', 'new', 5)")
    try await fleet[0].synchronize()
    let report = try await fleet[1].synchronize()
    #expect(report.waiting.isEmpty && report.unknownNames == ["notes.stars"])
    #expect(try fleet[1].notes().contains("x=new"))
    try fleet[1].edit("ALTER TABLE notes ADD COLUMN stars INTEGER")
    #expect(try await fleet[1].synchronize().waiting.isEmpty)
    try fleet.expectEqual()
  }

  @Test func ownDamagedFileIsFoundWhereThereIsOtherWork() async throws {
    let fleet = try await TestFleet(1)
    try fleet[0].put("x", "1")
    try await fleet[0].synchronize()
    let file = try #require(fleet.changeSets(of: 0).first)
    let bytes = try fleet.memory.bytes(at: file)
    var damaged = bytes
    damaged[damaged.count / 2] ^= 1
    fleet.memory.put(.file(damaged), at: file)
    var restored: [UInt64] = []
    // Itself, and the folder of all.
    for value in 0..<2 {
      try fleet[0].put("y", "\(value)")
      restored += try await fleet[0].synchronize().restored.map(\.number)
    }
    #expect(restored == [1])
    #expect(fleet.memory.items[file] == .file(bytes))
  }

  @Test func renamedAndForeignNamesAreIgnored() async throws {
    let fleet = try await TestFleet(2)
    try fleet[0].put("x", "1")
    try await fleet[0].synchronize()
    let file = try #require(fleet.changeSets(of: 0).first)
    let folder = try #require(file.parent)
    for name in [
      "1 (1).syncchg", file.name + ".partial", "." + file.name,
      file.name.replacingOccurrences(of: ".syncchg", with: ".sync-conflict-1.syncchg"),
    ] {
      fleet.memory.put(.file([1]), at: try #require(folder.appending(name)))
    }
    let report = try await fleet[1].synchronize()
    #expect(report.waiting.isEmpty)
    #expect(report.applied.count == 1)
  }
}

private final class InnerResult: @unchecked Sendable {
  private let lock = NSLock()
  private var value: SyncError?

  func set(_ error: SyncError?) { lock.withLock { value = error } }
  var error: SyncError? { lock.withLock { value } }
}

/// Cancels a task that may not be there yet.
private final class CancelBox: @unchecked Sendable {
  private let ready = DispatchSemaphore(value: 0)
  private let lock = NSLock()
  private var task: Task<SyncReport, any Error>?

  func set(_ task: Task<SyncReport, any Error>) {
    lock.withLock { self.task = task }
    ready.signal()
  }

  func cancel() {
    ready.wait()
    lock.withLock { task }?.cancel()
  }
}

/// The progress that was reported.
private final class Seen: @unchecked Sendable {
  private let lock = NSLock()
  private var noted: [SyncProgress] = []

  var values: [SyncProgress] { lock.withLock { noted } }
  func note(_ progress: SyncProgress) { lock.withLock { noted.append(progress) } }
}
