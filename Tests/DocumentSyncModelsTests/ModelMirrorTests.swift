import DocumentSync
import DocumentSyncModels
import DocumentSyncTesting
import Foundation
import Synchronization
import Testing

/// Models on two and three devices, with adapters of both kinds.
@Suite struct ModelMirrorTests {
  @Test func recordsOfAllKindsOfValuesArriveInTheOtherModel() async throws {
    let fleet = try ModelFleet([.memory, .json])
    let records = [
      list("l", ["name": .text("Läden")]),
      note(
        "n",
        [
          "title": .text("é – e\u{301}"), "count": .integer(.min), "price": .real(0.1),
          "image": .data(Data([0, 1, 255])), "list": .reference(id("List", "l")),
          "next": .reference(id("Note", "n")),
        ]),
      note("m", ["image": .data(Data()), "price": .real(.infinity), "title": .text("")]),
      note("e\u{301}"), note("é"), ModelRecord(type: "Tag", identity: "t"),
    ]
    for record in records { try await fleet[0].put(record) }
    let report = try await fleet[0].synchronize()
    #expect(report.takenRecords == 6)
    #expect(try await fleet[1].synchronize().savedRecords == 6)
    #expect(try await fleet.expectEqual() == records.sorted { $0.id < $1.id })
  }

  @Test func editsOfDifferentFieldsAreMergedAndCountersAddUp() async throws {
    let fleet = try ModelFleet([.memory, .json, .memory])
    try await fleet[0].put(
      note("n", ["title": .text("a"), "count": .integer(10), "body": .text("one\ntwo\nthree\n")]))
    try await fleet.settle()
    try await fleet[0].edit(
      id("Note", "n"), ["title": .text("b"), "body": .text("1\ntwo\nthree\n")])
    try await fleet[1].edit(
      id("Note", "n"), ["price": .real(2.5), "body": .text("one\ntwo\n3\n")])
    for device in fleet.devices { try await device.count(id("Note", "n")) }
    let records = try await fleet.expectEqual()
    #expect(
      records == [
        note(
          "n",
          [
            "title": .text("b"), "price": .real(2.5), "count": .integer(13),
            "body": .text("1\ntwo\n3\n"),
          ])
      ])
  }

  @Test func aPolicyOfTheSchemaDecidesAConflict() async throws {
    func schema(_ policy: ConflictPolicy) -> ModelSchema {
      ModelSchema([.init("Note", fields: [.init("title", .text, policy: policy)])])
    }
    for (policy, winner) in [(ConflictPolicy.remoteWins, "first"), (.localWins, "second")] {
      let fleet = try ModelFleet([.memory, .json], schema: schema(policy))
      try await fleet[0].put(note("n"))
      try await fleet.settle()
      try await fleet[0].edit(id("Note", "n"), ["title": .text("first")])
      try await fleet[1].edit(id("Note", "n"), ["title": .text("second")])
      try await fleet[0].synchronize()
      try await fleet[1].synchronize()
      let conflicts = try await fleet[1].open().manager.conflicts()
      #expect(conflicts.count == 1)
      #expect(try await fleet.expectEqual() == [note("n", ["title": .text(winner)])])
    }
  }

  @Test func deletionsArriveAndTakeAlongWhatRefersToThem() async throws {
    let fleet = try ModelFleet([.json, .memory])
    try await fleet[0].put(list("l"))
    try await fleet[0].put(note("a", ["list": .reference(id("List", "l"))]))
    try await fleet[0].put(note("b", ["next": .reference(id("Note", "a"))]))
    try await fleet.settle()
    try await fleet[1].remove(id("List", "l"))
    #expect(try await fleet.expectEqual() == [note("b")])
  }

  @Test func anEditOfARecordThatWasDeletedElsewhereIsReported() async throws {
    let fleet = try ModelFleet([.json, .memory])
    try await fleet[0].put(note("n"))
    try await fleet.settle()
    try await fleet[0].remove(id("Note", "n"))
    try await fleet[0].synchronize()
    // The deletion has arrived in the mirror and not in the model, in which the record is edited.
    let edits = Mutex(1)
    await fleet[1].set { [device = fleet[1]] moment, _ in
      guard moment == Moment(call: "prepareToImport", isBefore: true),
        edits.withLock({ count in
          count -= 1; return count == 0
        })
      else { return }
      try await device.edit(id("Note", "n"), ["title": .text("new")])
    }
    let report = try await fleet[1].synchronize()
    #expect(report.problems.map(\.kind) == [.editOfDeletedRecord])
    #expect(report.problems.first?.record == id("Note", "n"))
    #expect(try await fleet.expectEqual() == [])
  }

  @Test func anEditWinsOverADeletionWhereTheSchemaSaysSo() async throws {
    let schema = ModelSchema([
      .init("Note", fields: [.init("title", .text)], merging: .editWins)
    ])
    let fleet = try ModelFleet([.json, .memory], schema: schema)
    try await fleet[0].put(note("n"))
    try await fleet.settle()
    try await fleet[0].remove(id("Note", "n"))
    try await fleet[0].synchronize()
    await fleet[1].set { [device = fleet[1]] moment, _ in
      guard moment == Moment(call: "persist", isBefore: true) else { return }
      try await device.edit(id("Note", "n"), ["title": .text("new")])
    }
    try await fleet[1].synchronize()
    #expect(try await fleet.expectEqual() == [note("n", ["title": .text("new")])])
  }

  @Test func parentsAreSavedBeforeAndDeletedAfterWhatRefersToThem() async throws {
    let fleet = try ModelFleet([.memory, .json], batchSize: 1)
    let calls = Mutex<[String]>([])
    await fleet[1].set { moment, ids in
      guard moment.isBefore, let id = ids.first else { return }
      calls.withLock { $0.append("\(moment.call) \(id.identity)") }
    }
    try await fleet[0].put(list("z"))
    try await fleet[0].put(
      note("a", ["next": .reference(id("Note", "b")), "list": .reference(id("List", "z"))]))
    try await fleet[0].put(note("b", ["next": .reference(id("Note", "c"))]))
    try await fleet[0].put(note("c"))
    try await fleet.settle()
    for name in ["c", "b", "a"] { try await fleet[0].remove(id("Note", name)) }
    try await fleet[0].remove(id("List", "z"))
    try await fleet[0].put(note("d"))
    #expect(try await fleet.expectEqual() == [note("d")])
    let names = calls.withLock { $0 }
    #expect(Set(names.prefix(4)) == ["save z", "save c", "save b", "save a"])
    #expect(names.firstIndex(of: "save c") ?? 9 < names.firstIndex(of: "save b") ?? 0)
    #expect(names.prefix(4).last == "save a")
    #expect(names.dropFirst(4).prefix(2) == ["save d", "delete a"])
    #expect(names.firstIndex(of: "delete b") ?? 9 < names.firstIndex(of: "delete c") ?? 0)
  }

  /// The note is made while the import that deletes its list is persisted.
  @Test func aRecordThatRefersToOneThatAnImportDeletesGoesWithIt() async throws {
    let fleet = try ModelFleet([.memory, .json])
    try await fleet[0].put(list("l"))
    try await fleet.settle()
    try await fleet[0].remove(id("List", "l"))
    try await fleet[0].synchronize()
    await fleet[1].set { [device = fleet[1]] moment, _ in
      guard moment == Moment(call: "persist", isBefore: true) else { return }
      if try await device.record(id("List", "l")) != nil {
        try await device.put(note("n", ["list": .reference(id("List", "l"))]))
      }
    }
    try await fleet[1].synchronize()
    await fleet[1].set { _, _ in }
    let report = try await fleet[1].synchronize()
    #expect(report.problems.map(\.kind) == [.editOfDeletedRecord])
    #expect(try await fleet.expectEqual() == [])
  }

  @Test func childrenMayBeReportedBeforeTheirParents() async throws {
    let fleet = try ModelFleet([.memory, .json], batchSize: 1)
    // In the order of their names, one a batch: each refers to a later one, and the last one to the first.
    for number in 0..<5 {
      try await fleet[0].put(
        note(
          "\(number)",
          [
            "next": .reference(id("Note", "\((number + 1) % 5)")),
            "list": .reference(id("List", "z")),
          ]))
    }
    try await fleet[0].put(list("z"))
    #expect(try await fleet.expectEqual().count == 6)
  }

  @Test func aRecordWithoutItsParentWaitsAndIsReported() async throws {
    let fleet = try ModelFleet([.memory, .json])
    let child = note("n", ["list": .reference(id("List", "l"))])
    try await fleet[0].put(child)
    for _ in 0..<2 {
      let report = try await fleet[0].synchronize()
      #expect(report.problems.map(\.kind) == [.parentMissing])
      #expect(report.problems.first?.message.contains("List “l”") == true)
    }
    try await fleet[1].synchronize()
    #expect(try await fleet[1].records == [])
    // An edit and the end of the process do not change that.
    try await fleet[0].edit(child.id, ["title": .text("t")])
    try await fleet[0].synchronize()
    try await fleet[0].kill()
    try await fleet[1].put(list("l"))
    #expect(try await fleet.expectEqual().count == 2)
  }

  @Test func whatWaitsAndIsDeletedIsGone() async throws {
    let fleet = try ModelFleet([.memory, .json])
    try await fleet[0].put(note("n", ["list": .reference(id("List", "l"))]))
    try await fleet[0].synchronize()
    try await fleet[0].remove(id("Note", "n"))
    #expect(try await fleet[0].synchronize().problems == [])
    try await fleet[0].put(list("l"))
    #expect(try await fleet.expectEqual() == [list("l")])
  }

  @Test func uniqueValuesMayBeExchangedAndGivenUp() async throws {
    let fleet = try ModelFleet([.json, .memory])
    for name in ["a", "b", "c"] { try await fleet[0].put(list(name, ["slug": .text(name)])) }
    try await fleet.settle()
    try await fleet[0].edit(id("List", "a"), ["slug": .text("b")])
    try await fleet[0].edit(id("List", "b"), ["slug": .text("a")])
    try await fleet[0].remove(id("List", "c"))
    try await fleet[0].put(list("d", ["slug": .text("c")]))
    let records = try await fleet.expectEqual()
    #expect(
      records == [
        list("a", ["slug": .text("b")]), list("b", ["slug": .text("a")]),
        list("d", ["slug": .text("c")]),
      ])
  }

  @Test func aRecordWithATakenUniqueValueWaitsAndIsNotOverwritten() async throws {
    let fleet = try ModelFleet([.json, .memory])
    try await fleet[0].put(list("a", ["slug": .text("x")]))
    try await fleet[0].put(list("b", ["slug": .text("y")]))
    try await fleet.settle()
    try await fleet[0].edit(id("List", "b"), ["slug": .text("x")])
    let report = try await fleet[0].synchronize()
    #expect(report.problems.map(\.kind) == [.uniqueValueTaken])
    // What another device changes in the record must not overwrite the edit.
    try await fleet[1].edit(id("List", "b"), ["name": .text("name")])
    try await fleet[1].synchronize()
    try await fleet[0].synchronize()
    #expect(try await fleet[0].record(id("List", "b"))?["slug"] == .text("x"))
    try await fleet[0].remove(id("List", "a"))
    #expect(
      try await fleet.expectEqual() == [list("b", ["slug": .text("x"), "name": .text("name")])])
  }

  @Test func aRecordToWhichOthersReferComesBackWhereTheSchemaSaysSo() async throws {
    let fleet = try ModelFleet([.json, .memory])
    let tag = ModelRecord(
      type: "Tag", identity: "t", fields: ["note": .reference(id("Note", "n"))])
    try await fleet[0].put(note("n", ["title": .text("t")]))
    try await fleet.settle()
    // The deletion comes into the mirror while the model makes a reference.
    try await fleet[0].remove(id("Note", "n"))
    try await fleet[0].synchronize()
    await fleet[1].set { [device = fleet[1]] moment, _ in
      guard moment == Moment(call: "prepareToImport", isBefore: true) else { return }
      try await device.put(tag)
    }
    _ = try await fleet[1].synchronize()
    await fleet[1].set { _, _ in }
    try await fleet.settle()
    #expect(try await fleet[1].record(tag.id) == tag)
    #expect(try await fleet.expectEqual() == [note("n", ["title": .text("t")]), tag])
  }

  @Test func anEditDuringADeliveryIsMergedFieldByField() async throws {
    let fleet = try ModelFleet([.memory, .json])
    for kind in 0..<2 {
      let (here, there) = (fleet[kind], fleet[1 - kind])
      let name = id("Note", "n\(kind)")
      try await here.put(ModelRecord(id: name, fields: ["title": .text("a"), "body": .text("a")]))
      try await fleet.settle()
      try await there.edit(name, ["title": .text("b")])
      try await there.synchronize()
      await here.set { moment, _ in
        guard moment == Moment(call: "persist", isBefore: true) else { return }
        try await here.edit(name, ["body": .text("c")])
      }
      let report = try await here.synchronize()
      #expect(report.undelivered == [])
      await here.set { _, _ in }
      #expect(
        try await here.record(name)?.fields == ["title": .text("b"), "body": .text("c")])
    }
    #expect(try await fleet.expectEqual().count == 2)
  }

  @Test func modelsThatMeetTheDocumentAreComparedRecordByRecord() async throws {
    for preference in [MergedRows.Preference.document, .local] {
      let fleet = try ModelFleet([.memory, .json])
      try await fleet[0].put(note("both", ["title": .text("document")]))
      try await fleet[0].put(note("a"))
      try await fleet[0].synchronize()
      try await fleet[1].put(note("both", ["title": .text("local"), "price": .real(1)]))
      try await fleet[1].put(note("b"))
      _ = try await fleet[1].open(preference: preference)
      let records = try await fleet.expectEqual()
      let both =
        preference == .document
        ? note("both", ["title": .text("document")])
        : note("both", ["title": .text("local"), "price": .real(1)])
      #expect(records == [note("a"), note("b"), both])
    }
  }

  @Test func aModelThatWasPutBackGetsEverythingAgain() async throws {
    let fleet = try ModelFleet([.memory, .json])
    for name in ["a", "b"] { try await fleet[1].put(note(name, ["title": .text("old")])) }
    try await fleet.settle()
    let earlier = await fleet[0].contents
    try await fleet[1].edit(id("Note", "a"), ["title": .text("new")])
    try await fleet[1].put(note("c"))
    try await fleet.settle()
    try await fleet[0].kill()
    await fleet[0].restore(earlier)
    let report = try await fleet[0].synchronize()
    #expect(report.problems.map(\.kind) == [.modelPutBack, .recordReplaced])
    #expect(
      try await fleet.expectEqual()
        == [note("a", ["title": .text("new")]), note("b", ["title": .text("old")]), note("c")])
  }

  @Test func aSchemaWithMoreTypesAndFieldsGetsWhatOthersHaveSent() async throws {
    let early = ModelSchema([.init("Note", fields: [.init("title", .text)])])
    let late = ModelSchema([
      .init("Note", fields: [.init("title", .text), .init("price", .real, policy: .localWins)]),
      .init("List", fields: [.init("name", .text)]),
    ])
    let fleet = try ModelFleet([.memory, .json], schema: early)
    try await fleet[0].put(note("n", ["title": .text("a")]))
    try await fleet.settle()
    try await fleet[1].kill()
    let newer = Device(
      path: fleet[1].path, directory: fleet[1].directory, kind: .json,
      environment: SyncEnvironment(), schema: late, batchSize: 10)
    try await newer.edit(id("Note", "n"), ["price": .real(1)])
    try await newer.put(list("l"))
    #expect(try await newer.synchronize().problems == [])
    try await fleet[0].edit(id("Note", "n"), ["title": .text("b")])
    try await fleet[0].synchronize()
    #expect(try await fleet[0].records == [note("n", ["title": .text("b")])])
    try await newer.synchronize()
    #expect(
      try await newer.records == [list("l"), note("n", ["title": .text("b"), "price": .real(1)])])
    try await newer.kill()
    try await fleet[0].kill()
  }

  @Test func anEngineSynchronizesAMirror() async throws {
    let fleet = try ModelFleet([.memory, .json])
    try await fleet[1].put(note("n"))
    try await fleet[1].synchronize()
    _ = try await fleet[0].open()
    try await fleet[0].kill()
    let engine = SyncEngine(
      documents: [.init(storeAt: fleet[0].path, directory: fleet[0].directory)],
      automaticallySync: false)
    _ = try await engine.synchronize()
    let adapter = MemoryAdapter()
    await adapter.put(note("m"))
    let mirror = try await ModelMirror(
      schema: notesSchema, adapter: adapter, manager: engine.manager(storeAt: fleet[0].path))
    #expect(try await mirror.takeChanges().takenRecords == 1)
    _ = try await engine.synchronize()
    #expect(try await mirror.deliverChanges().savedRecords == 1)
    #expect(await adapter.records == [note("m"), note("n")])
    try await fleet[1].synchronize()
    #expect(try await fleet[1].records == [note("m"), note("n")])
    try await fleet[1].kill()
    // The manager is the engine's, and goes on.
    try await mirror.close()
    let error = await #expect(throws: SyncError.self) { try await mirror.takeChanges() }
    #expect(error?.code == .storeClosed)
    try await mirror.close()
    _ = try await engine.synchronize()
    #expect(await engine.state.documents.first?.lastError == nil)
    try await engine.close()
  }

  /// A file that was put back, for example from a backup, has another state than the mirror's connections show.
  @Test(arguments: [true, false])
  func aMirrorWhoseFileIsReplacedIsOpenedAgain(isCopied: Bool) async throws {
    let fleet = try ModelFleet([.memory, .memory])
    try await fleet[0].put(note("a"))
    try await fleet.settle()
    let path = fleet[0].path
    try FileManager.default.copyItem(atPath: path, toPath: path + ".backup")
    let mirror = try await fleet[0].open()
    try await fleet[0].put(note("b"))
    try FileManager.default.removeItem(atPath: path)
    if isCopied { try FileManager.default.moveItem(atPath: path + ".backup", toPath: path) }
    for call in [{ try await mirror.synchronize() }, { try await mirror.takeChanges() }] {
      let error = await #expect(throws: SyncError.self) { _ = try await call() }
      #expect(error?.code == .localFile)
      #expect(error?.message.contains("another one has taken its place") == true)
    }
    // Two calls may close it at once.
    async let first: Void = mirror.close()
    async let second: Void = mirror.close()
    _ = try await (first, second)
    try await fleet[0].kill()
    #expect(try await fleet.expectEqual() == [note("a"), note("b")])
  }

  @Test func allContentOfAnotherGenerationIsDelivered() async throws {
    let fleet = try ModelFleet([.memory, .json])
    for name in ["a", "b"] { try await fleet[0].put(note(name)) }
    try await fleet.settle()
    try await fleet[0].edit(id("Note", "a"), ["title": .text("t")])
    try await fleet[0].synchronize()
    _ = try await fleet[0].open().manager.reset()
    try await fleet[1].put(note("c"))
    #expect(
      try await fleet.expectEqual() == [note("a", ["title": .text("t")]), note("b"), note("c")])
  }
}
