import DocumentSync
import DocumentSyncModels
import DocumentSyncTesting
import Foundation
import Synchronization
import Testing

/// Adapters that fail, that refuse, that are slow, and processes that end.
@Suite struct AdapterFaultTests {
  struct Failure: Error {}

  /// Two devices, each with edits that the other one does not have, deletions among them.
  private func fleet(_ kinds: [Device.Kind]) async throws -> ModelFleet {
    let fleet = try ModelFleet(kinds, batchSize: 2)
    try await fleet[0].put(list("l"))
    for name in ["a", "b", "c", "d", "e"] {
      try await fleet[0].put(
        note(
          name,
          [
            "title": .text("old"), "count": .integer(0), "list": .reference(id("List", "l")),
          ]))
    }
    try await fleet.settle()
    try await fleet[0].edit(id("Note", "a"), ["title": .text("0")])
    try await fleet[0].put(
      note("new0", ["list": .reference(id("List", "l")), "count": .integer(0)]))
    try await fleet[0].remove(id("Note", "c"))
    try await fleet[1].edit(id("Note", "a"), ["price": .real(1)])
    try await fleet[1].edit(id("Note", "b"), ["title": .text("1")])
    try await fleet[1].put(
      note("new1", ["list": .reference(id("List", "l")), "count": .integer(0)]))
    try await fleet[1].remove(id("Note", "d"))
    for name in ["a", "b", "e"] {
      try await fleet[0].count(id("Note", name))
      try await fleet[1].count(id("Note", name))
    }
    try await fleet[0].synchronize()
    return fleet
  }

  private func expectAll(
    _ fleet: ModelFleet, counts: [String: Int64] = [:],
    sourceLocation: SourceLocation = #_sourceLocation
  ) async throws {
    let records = try await fleet.expectEqual(sourceLocation: sourceLocation)
    func fields(
      _ title: String?, _ count: Int64, _ price: Double? = nil, _ name: String
    ) -> ModelRecord {
      note(
        name,
        [
          "title": title.map(ModelValue.text) ?? .null,
          "count": .integer(count + (counts[name] ?? 0)),
          "price": price.map(ModelValue.real) ?? .null, "list": .reference(id("List", "l")),
        ])
    }
    #expect(
      records == [
        list("l"), fields("0", 2, 1, "a"), fields("1", 2, nil, "b"), fields("old", 2, nil, "e"),
        fields(nil, 0, nil, "new0"), fields(nil, 0, nil, "new1"),
      ], sourceLocation: sourceLocation)
  }

  /// The calls of one synchronization, each before and after.
  private func moments(_ kind: Device.Kind) async throws -> Int {
    let fleet = try await fleet([.memory, kind])
    let count = Mutex(0)
    await fleet[1].set { _, _ in count.withLock { $0 += 1 } }
    try await fleet[1].synchronize()
    let moments = count.withLock { $0 }
    try await expectAll(fleet)
    return moments
  }

  @Test(arguments: [Device.Kind.memory, .json])
  func aProcessMayEndAtEachMoment(kind: Device.Kind) async throws {
    let moments = try await moments(kind)
    #expect(moments > 20)
    // Each takes some of the moments, and others than the other one.
    let isLong = RandomModelTests.isLong
    for end in stride(from: kind == .memory || isLong ? 0 : 15, to: moments, by: isLong ? 1 : 30) {
      let fleet = try await fleet([.memory, kind])
      let count = Mutex(0)
      await fleet[1].set { _, _ in
        let number = count.withLock { count in
          count += 1
          return count
        }
        // Not an error of the adapter, which a mirror goes on after.
        if number == end + 1 { throw CancellationError() }
      }
      await #expect(throws: SyncError.self) { try await fleet[1].synchronize() }
      try await fleet[1].kill()
      await fleet[1].set { _, _ in }
      // The application works before the next synchronization.
      try await fleet[1].count(id("Note", "e"))
      try await fleet[1].count(id("Note", "new0"))
      let isThere = try await fleet[1].record(id("Note", "new0")) != nil
      try await expectAll(fleet, counts: ["e": 1, "new0": isThere ? 1 : 0])
    }
  }

  /// When another device creates the document.
  enum OtherDocument: CaseIterable { case none, before, afterwards }

  /// The process ends at a call of the directory, while the mirror makes the document or joins it.
  @Test(arguments: OtherDocument.allCases)
  func aProcessMayEndWhileItMakesTheMirror(other: OtherDocument) async throws {
    var call = 1
    var hasEnded = true
    while hasEnded {
      let fleet = try ModelFleet([.memory, .json])
      if other == .before { try await fleet[1].synchronize() }
      let directory = FaultyDirectory(fleet[0].directory)
      directory.script(.init(.stopAfterwards, occurrence: call))
      do {
        hasEnded = false
        try await ModelMirror.open(
          storeAt: fleet[0].path, directory: directory, document: "notes", schema: notesSchema,
          adapter: MemoryAdapter(), options: fleet[0].options
        ).close()
      } catch is SyncError {
        hasEnded = true
      }
      if other == .afterwards {
        do {
          try await fleet[1].synchronize()
        } catch let error as SyncError {
          // The first device has the rest of the document.
          #expect(error.code == .wholeStoreMissing, "call \(call)")
        }
      }
      try await fleet[0].put(note("n"))
      try await fleet[1].put(note("m"))
      #expect(try await fleet.expectEqual() == [note("m"), note("n")], "call \(call)")
      call += RandomModelTests.isLong ? 1 : 9
    }
    #expect(call > 10)
  }

  /// The mark of a deletion counts although the mirror could not note that the model had the record.
  @Test(arguments: [Device.Kind.memory, .json])
  func aDeletionAfterAnImportWhoseEndWasNotNotedCounts(kind: Device.Kind) async throws {
    let fleet = try ModelFleet([.memory, kind])
    try await fleet[1].synchronize()
    try await fleet[0].put(note("n", ["title": .text("a")]))
    try await fleet[0].put(note("m", ["title": .text("a")]))
    try await fleet.settle()
    try await fleet[0].put(note("new"))
    try await fleet[0].edit(id("Note", "n"), ["title": .text("b")])
    try await fleet[0].synchronize()
    await fleet[1].set { moment, _ in
      if moment == Moment(call: "persist", isBefore: false) { throw CancellationError() }
    }
    await #expect(throws: SyncError.self) { try await fleet[1].synchronize() }
    try await fleet[1].kill()
    await fleet[1].set { _, _ in }
    // One is deleted, the other one gets its former value.
    try await fleet[1].remove(id("Note", "new"))
    try await fleet[1].edit(id("Note", "n"), ["title": .text("a")])
    #expect(
      try await fleet.expectEqual()
        == [note("m", ["title": .text("a")]), note("n", ["title": .text("a")])])
  }

  /// An edit between the import and its note, in a record that the import has left alone.
  @Test func aRecordThatAnImportLeftAloneIsKnownAfterTheEndOfTheProcess() async throws {
    for kind in [Device.Kind.memory, .json] {
      let fleet = try ModelFleet([.memory, kind])
      try await fleet[0].put(note("n", ["title": .text("a"), "body": .text("a")]))
      try await fleet.settle()
      try await fleet[0].edit(id("Note", "n"), ["title": .text("b")])
      try await fleet[0].synchronize()
      await fleet[1].set { [device = fleet[1]] moment, _ in
        guard moment.call == "persist" else { return }
        guard moment.isBefore else { throw CancellationError() }
        try await device.edit(id("Note", "n"), ["body": .text("c")])
      }
      await #expect(throws: SyncError.self) { try await fleet[1].synchronize() }
      try await fleet[1].kill()
      await fleet[1].set { _, _ in }
      #expect(
        try await fleet.expectEqual()
          == [note("n", ["title": .text("b"), "body": .text("c")])])
    }
  }

  /// An adapter that compares cannot tell that the mirror has a record that was not acknowledged.
  @Test(arguments: [Device.Kind.memory, .json])
  func aRecordThatIsDeletedBeforeItsAcknowledgementIsDeletedEverywhere(
    kind: Device.Kind
  ) async throws {
    let fleet = try ModelFleet([kind, .memory])
    try await fleet[0].synchronize()
    try await fleet[0].put(note("n"))
    await fleet[0].set { moment, _ in
      if moment == Moment(call: "didUpload", isBefore: true) { throw CancellationError() }
    }
    await #expect(throws: SyncError.self) { try await fleet[0].synchronize() }
    try await fleet[0].kill()
    await fleet[0].set { _, _ in }
    try await fleet[0].remove(id("Note", "n"))
    #expect(try await fleet.expectEqual() == [])
  }

  @Test func anAdapterThatFailsHalfWayLosesNothing() async throws {
    let calls = [
      "hasChanges", "recordsToUpload", "didUpload", "didDelete", "prepareToImport", "persist",
    ]
    for (number, call) in calls.enumerated() {
      for isBefore in [true, false]
      where RandomModelTests.isLong
        || (number.isMultiple(of: 2) && isBefore == number.isMultiple(of: 4))
      {
        let fleet = try await fleet([.json, .memory])
        let rest = Mutex(1)
        await fleet[1].set { moment, _ in
          guard moment == Moment(call: call, isBefore: isBefore),
            rest.withLock({ rest in
              rest -= 1; return rest == 0
            })
          else { return }
          throw Failure()
        }
        let error = await #expect(throws: SyncError.self) { try await fleet[1].synchronize() }
        #expect(error?.code == .adapterFailed)
        #expect(error?.underlying is Failure)
        try await expectAll(fleet)
      }
    }
  }

  @Test func aRefusedRecordIsFoundAndTheOthersGoOn() async throws {
    let fleet = try ModelFleet([.memory, .json], batchSize: 8)
    for number in 0..<20 { try await fleet[0].put(note("\(number)")) }
    try await fleet[0].synchronize()
    let refused = [id("Note", "3"), id("Note", "17")]
    let calls = Mutex(0)
    await fleet[1].set { moment, ids in
      guard moment == Moment(call: "save", isBefore: true) else { return }
      calls.withLock { $0 += 1 }
      if ids.contains(where: refused.contains) { throw Failure() }
    }
    let report = try await fleet[1].synchronize()
    #expect(report.savedRecords == 18)
    #expect(report.undelivered == Set(refused))
    #expect(report.problems.map(\.kind) == [.recordRefused, .recordRefused])
    #expect(report.problems.compactMap(\.record).sorted() == refused.sorted())
    #expect(calls.withLock { $0 } < 25)
    // They come again, and the edits of others are not held up.
    try await fleet[0].edit(id("Note", "5"), ["title": .text("t")])
    try await fleet[0].synchronize()
    #expect(try await fleet[1].synchronize().savedRecords == 1)
    await fleet[1].set { _, _ in }
    #expect(try await fleet.expectEqual().count == 20)
  }

  @Test func aRefusedDeletionIsReportedAndComesAgain() async throws {
    let fleet = try ModelFleet([.memory, .json])
    for number in 0..<5 { try await fleet[0].put(note("\(number)")) }
    try await fleet.settle()
    for number in 0..<5 { try await fleet[0].remove(id("Note", "\(number)")) }
    try await fleet[0].synchronize()
    await fleet[1].set { moment, ids in
      guard moment == Moment(call: "delete", isBefore: true), ids.contains(id("Note", "2"))
      else { return }
      throw Failure()
    }
    let report = try await fleet[1].synchronize()
    #expect(report.deletedRecords == 4)
    #expect(report.problems.map(\.kind) == [.deletionNotDone])
    await fleet[1].set { _, _ in }
    #expect(try await fleet.expectEqual() == [])
  }

  @Test func anAdapterThatRefusesEverythingIsReportedAndAskedLess() async throws {
    let fleet = try ModelFleet([.memory, .json])
    for number in 0..<150 { try await fleet[0].put(note("\(number)")) }
    try await fleet[0].synchronize()
    let calls = Mutex(0)
    await fleet[1].set { moment, _ in
      guard moment.call == "save" else { return }
      calls.withLock { $0 += 1 }
      throw Failure()
    }
    // Each time: the refused records are no reason to fail.
    for _ in 0..<2 {
      calls.withLock { $0 = 0 }
      let report = try await fleet[1].synchronize()
      #expect(report.undelivered.count == 150)
      #expect(report.problems.count == 150)
      #expect(report.problems.allSatisfy { $0.kind == .recordRefused })
      #expect(calls.withLock { $0 } < 250)
    }
    await fleet[1].set { _, _ in }
    #expect(try await fleet.expectEqual().count == 150)
  }

  /// While a slow adapter saves, another call waits, and the application goes on.
  @Test func aSlowAdapterIsWaitedFor() async throws {
    let fleet = try ModelFleet([.memory, .json])
    try await fleet[0].put(note("n", ["title": .text("a")]))
    try await fleet[0].synchronize()
    let (saving, isSaving) = AsyncStream.makeStream(of: Void.self)
    let (going, mayGo) = AsyncStream.makeStream(of: Void.self)
    let calls = Mutex<[String]>([])
    await fleet[1].set { moment, _ in
      calls.withLock { $0.append("\(moment)") }
      guard moment == Moment(call: "save", isBefore: true) else { return }
      isSaving.finish()
      for await _ in going {}
    }
    let mirror = try await fleet[1].open()
    let first = Task { try await mirror.synchronize() }
    for await _ in saving {}
    let second = Task { try await mirror.synchronize() }
    try await fleet[1].put(note("m"))
    mayGo.finish()
    #expect(try await first.value.savedRecords == 1)
    #expect(try await second.value.savedRecords == 0)
    let names = calls.withLock { $0 }
    let begin = try #require(names.firstIndex(of: "before save"))
    #expect(names[begin...].prefix(3) == ["before save", "after save", "before persist"])
    #expect(try await fleet.expectEqual().count == 2)
  }

  @Test func anAdapterThatCallsItsMirrorGetsAnError() async throws {
    let fleet = try ModelFleet([.memory, .json])
    let mirror = try await fleet[0].open()
    let error = Mutex<SyncError?>(nil)
    await fleet[0].set { moment, _ in
      guard moment == Moment(call: "lastImport", isBefore: true) else { return }
      do {
        try await mirror.synchronize()
      } catch let thrown as SyncError {
        error.withLock { $0 = thrown }
      }
    }
    try await fleet[0].synchronize()
    #expect(error.withLock { $0 }?.code == .calledWithin)
    try await fleet[0].kill()
  }
  /// The task was started within a call, and calls the mirror afterwards.
  @Test func aTaskThatACallHasStartedMayCallTheMirrorLater() async throws {
    let fleet = try ModelFleet([.memory])
    let mirror = try await fleet[0].open()
    let (ends, hasEnded) = AsyncStream.makeStream(of: Void.self)
    let later = Mutex<Task<ModelReport, any Error>?>(nil)
    await fleet[0].once("hasChanges") {
      let task = Task {
        for await _ in ends {}
        return try await mirror.synchronize()
      }
      later.withLock { $0 = task }
    }
    try await fleet[0].synchronize()
    hasEnded.finish()
    let task = try #require(later.withLock { $0 })
    #expect(try await task.value.problems == [])
    try await fleet[0].kill()
  }
}
