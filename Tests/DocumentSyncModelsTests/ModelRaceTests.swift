import DocumentSync
import DocumentSyncModels
import Foundation
import Synchronization
import Testing

/// What others do in the middle of a call: copies of a model are made and put back, a record changes all the time,
/// another mirror of the store begins to work.
@Suite struct ModelRaceTests {
  private func file(of device: Device) -> URL { URL(fileURLWithPath: device.path + ".json") }

  @Test func aFileThatIsPutBackBetweenTwoBatchesIsFound() async throws {
    let fleet = try ModelFleet([.json, .memory], batchSize: 1)
    for name in ["a", "b"] { try await fleet[0].put(note(name, ["title": .text("1")])) }
    try await fleet.settle()
    try await fleet[0].edit(id("Note", "b"), ["title": .text("2")])
    let earlier = try Data(contentsOf: file(of: fleet[0]))
    try await fleet[0].synchronize()
    try await fleet[0].edit(id("Note", "b"), ["title": .text("3")])
    try await fleet[0].synchronize()
    for name in ["a", "c"] { try await fleet[0].put(note(name, ["title": .text("4")])) }
    await fleet[0].once("didUpload", isBefore: false) { [url = file(of: fleet[0])] in
      try earlier.write(to: url, options: .atomic)
    }
    let error = await #expect(throws: SyncError.self) { try await fleet[0].synchronize() }
    #expect(error?.code == .adapterFailed)
    // The second edit of “b” is not undone by the first one, which that file has as its own.
    let report = try await fleet[0].synchronize()
    #expect(report.problems.first?.kind == .modelPutBack)
    #expect(
      try await fleet.expectEqual() == [
        note("a", ["title": .text("4")]), note("b", ["title": .text("3")]),
      ])
  }

  /// The removed file has no records, which looks as if the application had deleted this one.
  @Test func aRecordThatWasNotAcknowledgedStaysIfTheFileIsRemoved() async throws {
    let fleet = try ModelFleet([.json, .memory])
    try await fleet[0].synchronize()
    try await fleet[0].put(note("n"))
    await fleet[0].once("didUpload") { throw CancellationError() }
    await #expect(throws: SyncError.self) { try await fleet[0].synchronize() }
    try await fleet[0].kill()
    await fleet[0].once("lastImport", isBefore: false) { [url = file(of: fleet[0])] in
      try FileManager.default.removeItem(at: url)
    }
    let error = await #expect(throws: SyncError.self) { try await fleet[0].synchronize() }
    #expect(error?.code == .adapterFailed)
    #expect(try await fleet[0].synchronize().problems.map(\.kind) == [.modelPutBack])
    #expect(try await fleet.expectEqual() == [note("n")])
  }

  /// The copy has the first of two edits that are taken together.
  @Test func aCopyThatIsMadeWhileEditsAreTakenAndIsPutBackIsFound() async throws {
    let fleet = try ModelFleet([.memory, .json])
    try await fleet[0].put(note("a", ["title": .text("1")]))
    try await fleet.settle()
    try await fleet[0].edit(id("Note", "a"), ["title": .text("2")])
    let copy = Mutex(MemoryAdapter.Contents())
    await fleet[0].once("didUpload", isBefore: false) { [device = fleet[0]] in
      let contents = await device.contents
      copy.withLock { $0 = contents }
      try await device.put(note("b"))
      try await device.edit(id("Note", "a"), ["title": .text("3")])
    }
    #expect(try await fleet[0].synchronize().takenRecords == 3)
    try await fleet[0].kill()
    await fleet[0].restore(copy.withLock { $0 })
    #expect(
      try await fleet[0].synchronize().problems.map(\.kind) == [.modelPutBack, .recordReplaced])
    #expect(try await fleet.expectEqual() == [note("a", ["title": .text("3")]), note("b")])
  }

  @Test func aRecordThatChangesAllTheTimeDoesNotHoldUpOthers() async throws {
    let fleet = try ModelFleet([.memory, .json], batchSize: 1)
    try await fleet[0].put(note("a", ["count": .integer(0)]))
    try await fleet.settle()
    for name in ["b", "c"] { try await fleet[0].put(note(name)) }
    try await fleet[0].count(id("Note", "a"))
    await fleet[0].set { [device = fleet[0]] moment, ids in
      guard moment == Moment(call: "didUpload", isBefore: true), ids == [id("Note", "a")] else {
        return
      }
      try await device.count(id("Note", "a"))
    }
    try await fleet[0].synchronize()
    try await fleet[1].synchronize()
    #expect(try await fleet[1].records.map(\.id.identity) == ["a", "b", "c"])
    await fleet[0].set { _, _ in }
    #expect(try await fleet.expectEqual().count == 3)
  }

  /// As an engine does.
  @Test func anEditOfARecordThatIsParkedWhileItIsTakenWaits() async throws {
    let fleet = try ModelFleet([.memory, .json])
    for (name, slug) in [("a", "x"), ("b", "y")] {
      try await fleet[0].put(list(name, ["slug": .text(slug)]))
    }
    try await fleet.settle()
    try await fleet[0].edit(id("List", "a"), ["slug": .text("q")])
    try await fleet[0].synchronize()
    try await fleet[1].edit(id("List", "b"), ["slug": .text("q")])
    try await fleet[1].synchronize()
    try await fleet[0].edit(id("List", "a"), ["name": .text("t")])
    let mirror = try await fleet[0].open()
    await fleet[0].once("recordsToUpload", isBefore: false) {
      try await mirror.manager.synchronize()
    }
    #expect(try await mirror.takeChanges().problems.map(\.kind) == [.uniqueValueTaken])
    try await fleet[0].edit(id("List", "a"), ["slug": .text("r")])
    #expect(
      try await fleet.expectEqual() == [
        list("a", ["name": .text("t"), "slug": .text("r")]), list("b", ["slug": .text("q")]),
      ])
  }

  // MARK: Two mirrors of one store

  private func otherMirror(
    of device: Device, timeLimit: Duration? = nil
  ) async throws -> ModelMirror {
    var options = ModelMirror.Options()
    options.manager.environment.store.places = nil
    if let timeLimit { options.storeInUseTimeLimit = timeLimit }
    return try await ModelMirror.open(
      storeAt: device.path, directory: device.directory, document: "notes",
      schema: notesSchema, adapter: MemoryAdapter(), options: options)
  }

  @Test func twoMirrorsOfOneStoreDoNotWorkAtOnce() async throws {
    let fleet = try ModelFleet([.memory])
    _ = try await fleet[0].open()
    let other = try await otherMirror(of: fleet[0], timeLimit: .zero)
    let code = Mutex<SyncError.Code?>(nil)
    await fleet[0].once("hasChanges") {
      do {
        try await other.takeChanges()
      } catch let error as SyncError {
        code.withLock { $0 = error.code }
      }
    }
    try await fleet[0].synchronize()
    #expect(code.withLock { $0 } == .storeInUse)
    try await other.takeChanges()
    try await other.close()
    try await fleet[0].kill()
  }

  @Test func aMirrorWaitsForAnotherOneOfTheStore() async throws {
    let fleet = try ModelFleet([.memory])
    _ = try await fleet[0].open()
    let other = try await otherMirror(of: fleet[0], timeLimit: .seconds(120))
    let call = Mutex<Task<ModelReport, any Error>?>(nil)
    await fleet[0].once("hasChanges") {
      let task = Task { try await other.takeChanges() }
      call.withLock { $0 = task }
      // Time for it to find the store in use.
      try await Task.sleep(for: .milliseconds(200))
    }
    try await fleet[0].synchronize()
    let task = try #require(call.withLock { $0 })
    _ = try await task.value
    try await other.close()
    try await fleet[0].kill()
  }

  /// Neither removes the file that the other one has just made.
  @Test func callsThatMakeOneMirrorAtOnceGetTheSameDocument() async throws {
    for _ in 0..<3 {
      let fleet = try ModelFleet([.memory])
      let device = fleet[0]
      let mirrors = try await withThrowingTaskGroup(of: ModelMirror.self) { group in
        for _ in 0..<4 {
          group.addTask { try await otherMirror(of: device, timeLimit: .seconds(120)) }
        }
        return try await group.reduce(into: []) { $0.append($1) }
      }
      #expect(Set(mirrors.map(\.manager.binding.client)).count == 1)
      for mirror in mirrors { try await mirror.synchronize() }
      for mirror in mirrors { try await mirror.close() }
    }
  }
}
