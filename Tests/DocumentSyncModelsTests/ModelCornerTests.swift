import DocumentSync
import DocumentSyncModels
import DocumentSyncTesting
import Foundation
import Synchronization
import Testing

/// Children that are reported before their parents, models that are put back, and adapters that refuse much.
@Suite struct ModelCornerTests {
  struct Failure: Error {}

  /// An entry comes before its list by its name.
  static func lists(
    _ rule: ModelSchema.Field.DeletionRule, _ merging: TableMergeType = .latestWins
  ) -> ModelSchema {
    ModelSchema([
      .init(
        "Entry",
        fields: [.init("title", .text), .init("list", .reference(to: "List", onDelete: rule))]),
      .init(
        "List",
        fields: [
          .init("title", .text), .init("slug", .text, isUnique: true),
          .init("sum", .real, merging: .counter),
        ], merging: merging),
    ])
  }

  private func entry(_ name: String, _ list: String) -> ModelRecord {
    ModelRecord(type: "Entry", identity: name, fields: ["list": .reference(id("List", list))])
  }

  // MARK: Children before their parents

  @Test(arguments: [ModelSchema.Field.DeletionRule.cascade, .setNull])
  func aParentThatWasDeletedMayBeCreatedAgainInALaterBatch(
    rule: ModelSchema.Field.DeletionRule
  ) async throws {
    let fleet = try ModelFleet([.memory, .json], schema: Self.lists(rule), batchSize: 1)
    try await fleet[0].put(list("inbox"))
    try await fleet.settle()
    try await fleet[1].remove(id("List", "inbox"))
    try await fleet[1].synchronize()
    #expect(try await fleet[0].synchronize().deletedRecords == 1)
    let records = [entry("a", "inbox"), entry("b", "inbox"), list("inbox")]
    for record in records { try await fleet[0].put(record) }
    #expect(try await fleet[0].synchronize().problems == [])
    #expect(try await fleet.expectEqual() == records)
  }

  @Test func aParentWhoseEditWinsMayComeInALaterBatch() async throws {
    let fleet = try ModelFleet(
      [.memory, .json], schema: Self.lists(.cascade, .editWins), batchSize: 1)
    try await fleet[0].put(list("l"))
    try await fleet.settle()
    try await fleet[0].remove(id("List", "l"))
    try await fleet[0].synchronize()
    await fleet[1].once("prepareToImport") { [device = fleet[1]] in
      try await device.put(entry("e", "l"))
      try await device.edit(id("List", "l"), ["title": .text("t")])
    }
    #expect(try await fleet[1].synchronize().problems == [])
    #expect(try await fleet.expectEqual() == [entry("e", "l"), list("l", ["title": .text("t")])])
  }

  @Test func childrenOfAParentWithATakenUniqueValueWaitWithIt() async throws {
    let fleet = try ModelFleet([.memory, .json], schema: Self.lists(.cascade, .editWins))
    try await fleet[0].put(list("l", ["slug": .text("x")]))
    try await fleet.settle()
    try await fleet[0].remove(id("List", "l"))
    try await fleet[0].put(list("m", ["slug": .text("x")]))
    try await fleet[0].synchronize()
    await fleet[1].once("prepareToImport") { [device = fleet[1]] in
      try await device.put(entry("e", "l"))
      try await device.edit(id("List", "l"), ["title": .text("t")])
    }
    let report = try await fleet[1].synchronize()
    #expect(Set(report.problems.map(\.kind)) == [.uniqueValueTaken, .parentMissing])
    #expect(try await fleet[1].record(id("Entry", "e")) == entry("e", "l"))
    try await fleet[1].edit(id("List", "l"), ["slug": .text("y")])
    #expect(
      try await fleet.expectEqual() == [
        entry("e", "l"), list("l", ["title": .text("t"), "slug": .text("y")]),
        list("m", ["slug": .text("x")]),
      ])
  }

  @Test func anEditOfAParkedRecordWaits() async throws {
    let fleet = try ModelFleet([.memory, .json])
    try await fleet[0].put(list("a", ["slug": .text("x")]))
    try await fleet[0].put(list("b", ["slug": .text("y")]))
    try await fleet.settle()
    try await fleet[0].edit(id("List", "a"), ["slug": .text("q")])
    try await fleet[0].synchronize()
    // The later one has the value.
    try await fleet[1].edit(id("List", "b"), ["slug": .text("q")])
    try await fleet[1].synchronize()
    let child = note("n", ["list": .reference(id("List", "a"))])
    await fleet[0].once("prepareToImport") { [device = fleet[0]] in
      try await device.edit(id("List", "a"), ["name": .text("t")])
      try await device.put(child)
    }
    let report = try await fleet[0].synchronize()
    #expect(Set(report.problems.map(\.kind)) == [.uniqueValueTaken, .parentMissing])
    #expect(try await fleet[0].record(child.id) == child)
    try await fleet[0].edit(id("List", "a"), ["slug": .text("r")])
    #expect(
      try await fleet.expectEqual() == [
        list("a", ["name": .text("t"), "slug": .text("r")]), list("b", ["slug": .text("q")]), child,
      ])
  }

  @Test func aRecordThatAReferenceBringsBackHasTheEditThatCameWithIt() async throws {
    for batchSize in [1, 200] {
      let fleet = try ModelFleet(
        [.memory, .json], schema: Self.lists(.restrict), batchSize: batchSize)
      try await fleet[0].put(list("l", ["title": .text("old")]))
      try await fleet.settle()
      try await fleet[0].remove(id("List", "l"))
      try await fleet[0].synchronize()
      await fleet[1].once("prepareToImport") { [device = fleet[1]] in
        try await device.put(entry("e", "l"))
        try await device.edit(id("List", "l"), ["title": .text("new")])
      }
      #expect(try await fleet[1].synchronize().problems.map(\.kind) == [.deletionRefused])
      #expect(
        try await fleet.expectEqual() == [entry("e", "l"), list("l", ["title": .text("new")])])
    }
  }

  // MARK: Models that are put back

  @Test func aModelThatWasPutBackAfterDeletionsHasItsRecords() async throws {
    let fleet = try ModelFleet([.memory, .json], schema: Self.lists(.cascade), batchSize: 1)
    let records = [entry("a", "l"), entry("b", "l"), list("l")]
    for record in records { try await fleet[0].put(record) }
    try await fleet.settle()
    let earlier = await fleet[0].contents
    try await fleet[1].remove(id("List", "l"))
    try await fleet[1].synchronize()
    #expect(try await fleet[0].synchronize().deletedRecords == 3)
    try await fleet[0].kill()
    await fleet[0].restore(earlier)
    #expect(try await fleet[0].synchronize().problems.map(\.kind) == [.modelPutBack])
    #expect(try await fleet.expectEqual() == records)
  }

  /// What was deleted from the model before it was put back says nothing about the records that it has now.
  @Test func aRecordWithoutItsParentInAModelThatWasPutBackWaits() async throws {
    let fleet = try ModelFleet([.memory, .json], schema: Self.lists(.cascade))
    for record in [entry("a", "l"), list("l")] { try await fleet[0].put(record) }
    try await fleet.settle()
    let earlier = await fleet[0].contents
    try await fleet[1].remove(id("List", "l"))
    try await fleet[1].synchronize()
    #expect(try await fleet[0].synchronize().deletedRecords == 2)
    try await fleet[0].kill()
    await fleet[0].restore(earlier)
    try await fleet[0].remove(id("List", "l"))
    let report = try await fleet[0].synchronize()
    #expect(report.problems.map(\.kind) == [.modelPutBack, .parentMissing])
    #expect(try await fleet[0].records == [entry("a", "l")])
    try await fleet[0].put(list("l"))
    #expect(try await fleet.expectEqual() == [entry("a", "l"), list("l")])
  }

  @Test func aModelThatOnlyWritesAndWasPutBackIsFound() async throws {
    let fleet = try ModelFleet([.memory, .memory])
    try await fleet[0].put(note("n", ["count": .integer(5), "title": .text("old")]))
    try await fleet[0].synchronize()
    let earlier = await fleet[0].contents
    try await fleet[0].count(id("Note", "n"), 2)
    try await fleet[0].edit(id("Note", "n"), ["title": .text("new")])
    try await fleet[0].put(note("m"))
    try await fleet[0].synchronize()
    try await fleet[0].kill()
    await fleet[0].restore(earlier)
    // The edit is lost, which is reported.
    try await fleet[0].count(id("Note", "n"), 1)
    let report = try await fleet[0].synchronize()
    #expect(report.problems.map(\.kind) == [.modelPutBack, .recordReplaced])
    #expect(report.problems.last?.record == id("Note", "n"))
    #expect(
      try await fleet.expectEqual()
        == [note("m"), note("n", ["count": .integer(7), "title": .text("new")])])
  }

  @Test func aDeletionAfterWhichTheModelWasPutBackIsFound() async throws {
    let fleet = try ModelFleet([.memory, .memory])
    for name in ["a", "b"] { try await fleet[0].put(note(name)) }
    try await fleet.settle()
    let earlier = await fleet[0].contents
    try await fleet[0].remove(id("Note", "a"))
    try await fleet[0].synchronize()
    try await fleet[0].kill()
    await fleet[0].restore(earlier)
    #expect(try await fleet[0].synchronize().problems.map(\.kind) == [.modelPutBack])
    #expect(try await fleet.expectEqual() == [note("a"), note("b")])
  }

  private func removeFile(of device: Device) throws {
    try FileManager.default.removeItem(atPath: device.path + ".json")
  }

  @Test func aFileThatWasRemovedGetsEverythingAgain() async throws {
    let fleet = try ModelFleet([.json, .memory])
    try await fleet[0].synchronize()
    try await fleet[0].put(note("n"))
    try await fleet[0].synchronize()
    try await fleet[0].kill()
    try removeFile(of: fleet[0])
    #expect(try await fleet[0].synchronize().problems.map(\.kind) == [.modelPutBack])
    #expect(try await fleet.expectEqual() == [note("n")])
  }

  /// The file is removed while the document is synchronized, and while an import is under way.
  @Test(arguments: [
    Moment(call: "hasChanges", isBefore: false), Moment(call: "prepareToImport", isBefore: true),
    Moment(call: "prepareToImport", isBefore: false), Moment(call: "save", isBefore: false),
    Moment(call: "persist", isBefore: true),
  ])
  func aFileThatIsRemovedMeanwhileGetsEverythingAgain(moment: Moment) async throws {
    let fleet = try ModelFleet([.memory, .json])
    try await fleet[0].put(note("a"))
    try await fleet.settle()
    try await fleet[0].put(note("b"))
    try await fleet[0].synchronize()
    await fleet[1].once(moment.call, isBefore: moment.isBefore) { [self, device = fleet[1]] in
      try removeFile(of: device)
    }
    if moment.call != "hasChanges" {
      let error = await #expect(throws: SyncError.self) { try await fleet[1].synchronize() }
      #expect(error?.code == .adapterFailed)
    }
    #expect(try await fleet[1].synchronize().problems.map(\.kind) == [.modelPutBack])
    #expect(try await fleet.expectEqual() == [note("a"), note("b")])
  }

  /// A new mirror cannot tell what the application has edited since.
  @Test func editsThatGiveWayAfterAMirrorWasRemovedAreReported() async throws {
    let fleet = try ModelFleet([.json, .memory])
    for name in ["a", "b"] { try await fleet[0].put(note(name, ["title": .text("1")])) }
    try await fleet.settle()
    try await fleet[0].edit(id("Note", "a"), ["title": .text("2")])
    try await fleet[0].kill()
    for ending in ["", "-wal", "-shm"]
    where FileManager.default.fileExists(atPath: fleet[0].path + ending) {
      try FileManager.default.removeItem(atPath: fleet[0].path + ending)
    }
    let problems = try await fleet[0].synchronize().problems
    #expect(problems.map(\.kind) == [.modelPutBack, .recordReplaced])
    #expect(problems.last?.record == id("Note", "a"))
    #expect(try await fleet.expectEqual().map { $0["title"] } == [.text("1"), .text("1")])
  }

  // MARK: Refusals

  @Test func manyRefusalsDoNotHoldUpTheOthers() async throws {
    let fleet = try ModelFleet([.memory, .json], batchSize: 10)
    // First only bad ones, then every other one.
    for number in 100..<220 { try await fleet[0].put(note("a\(number)-bad")) }
    for number in 10..<40 {
      try await fleet[0].put(note("b\(number)" + (number.isMultiple(of: 2) ? "" : "-bad")))
    }
    try await fleet[0].synchronize()
    let calls = Mutex(0)
    await fleet[1].set { moment, ids in
      guard moment == Moment(call: "save", isBefore: true) else { return }
      calls.withLock { $0 += 1 }
      if ids.contains(where: { $0.identity.hasSuffix("bad") }) { throw Failure() }
    }
    let report = try await fleet[1].synchronize()
    #expect(report.savedRecords == 15)
    #expect(report.undelivered.count == 135)
    #expect(report.problems.count == 135)
    #expect(try await fleet[1].records.count == 15)
    // Two deliveries.
    #expect(calls.withLock { $0 } < 600)
    await fleet[1].set { _, _ in }
    #expect(try await fleet.expectEqual().count == 150)
  }

  // MARK: Values and names

  @Test func aCounterThatCannotBeAddedUpHasTheNewValue() async throws {
    let fleet = try ModelFleet([.memory, .json], schema: Self.lists(.cascade))
    try await fleet[0].put(list("l", ["sum": .real(.infinity)]))
    try await fleet.settle()
    try await fleet[0].edit(id("List", "l"), ["sum": .real(1)])
    #expect(try await fleet.expectEqual() == [list("l", ["sum": .real(1)])])
  }

  @Test func namesThatAreOnlyAlikeAreDifferent() async throws {
    let schema = ModelSchema([
      .init("A", fields: [.init("b_c", .text, isUnique: true)]),
      .init("A_b", fields: [.init("c", .text, isUnique: true)]), .init("K", fields: []),
    ])
    let fleet = try ModelFleet([.memory], schema: schema)
    for name in ["x", "y"] {
      for (type, field) in [("A", "b_c"), ("A_b", "c")] {
        try await fleet[0].put(
          ModelRecord(type: type, identity: name, fields: [field: .text("same")]))
      }
    }
    // The sign of the unit Kelvin.
    try await fleet[0].put(ModelRecord(type: "\u{212A}", identity: "k"))
    let problems = try await fleet[0].synchronize().problems
    #expect(
      problems.map(\.kind).sorted { $0.rawValue < $1.rawValue }
        == [.uniqueValueTaken, .uniqueValueTaken, .unknownType])
    try await fleet[0].kill()
  }

  @Test func aDeletionWithAnUnsuitableIdentityIsAcknowledged() async throws {
    let fleet = try ModelFleet([.memory, .json])
    for device in fleet.devices {
      try await device.synchronize()
      for name in ["", "a\u{0}", "a"] { try await device.put(note(name)) }
      try await device.remove(id("Note", ""))
      try await device.remove(id("Note", "a\u{0}"))
    }
    #expect(try await fleet.expectEqual() == [note("a")])
  }

  @Test func sizesAreKeptWithinTheirLimits() {
    var options = ModelMirror.Options()
    options.batchSize = 0
    options.importSize = .max
    #expect(options.batchSize == 1)
    #expect(options.importSize == 1_000_000)
  }

  // MARK: Mirrors that are opened again

  @Test func aFieldThatIsDeclaredOtherwiseThanBeforeIsRefused() async throws {
    func schema(_ field: ModelSchema.Field) -> ModelSchema {
      ModelSchema([.init("List", fields: []), .init("Note", fields: [field])])
    }
    let reference = ModelSchema.Field.Kind.reference(to: "List", onDelete: .cascade)
    let cases: [(ModelSchema.Field, ModelSchema.Field)] = [
      (.init("f", .text), .init("f", .integer)), (.init("f", .text), .init("f", reference)),
      (.init("f", reference), .init("f", .reference(to: "List", onDelete: .setNull))),
      (.init("f", reference), .init("f", .reference(to: "Note", onDelete: .cascade))),
      (.init("f", .text), .init("f", .text, isUnique: true)),
      (.init("f", .text, isUnique: true), .init("f", .text)),
      (.init("f", .integer), .init("f", .integer, merging: .counter)),
      (.init("f", .integer, merging: .counter), .init("f", .integer)),
    ]
    for (former, changed) in cases {
      let fleet = try ModelFleet([.memory], schema: schema(former))
      try await fleet[0].synchronize()
      try await fleet[0].kill()
      func open(_ field: ModelSchema.Field) async throws {
        try await ModelMirror.open(
          storeAt: fleet[0].path, directory: fleet[0].directory, document: "notes",
          schema: schema(field), adapter: MemoryAdapter()
        ).close()
      }
      let error = await #expect(throws: SyncError.self) { try await open(changed) }
      #expect(error?.code == .schemaUnsuitable)
      #expect(error?.message.contains("“f” of “Note”") == true)
      try await open(former)
    }
  }

  @Test func aMergeTypeThatIsNotThatOfTheDocumentIsRefused() async throws {
    let former = ModelSchema([.init("Note", fields: [])])
    let fleet = try ModelFleet([.memory], schema: former)
    try await fleet[0].synchronize()
    try await fleet[0].kill()
    let schemas = [
      ModelSchema([.init("Note", fields: [], merging: .editWins)]),
      // What is added later merges by `latestWins`.
      ModelSchema([.init("Note", fields: [.init("sum", .integer, merging: .counter)])]),
      ModelSchema([.init("Note", fields: []), .init("List", fields: [], merging: .wholeRow)]),
    ]
    for schema in schemas {
      let error = await #expect(throws: SyncError.self) {
        try await ModelMirror.open(
          storeAt: fleet[0].path, directory: fleet[0].directory, document: "notes",
          schema: schema, adapter: MemoryAdapter())
      }
      #expect(error?.code == .schemaUnsuitable)
      #expect(error?.message.contains("“latestWins”") == true)
    }
    try await fleet[0].synchronize()
    try await fleet[0].kill()
  }

  @Test func policiesThatTheApplicationHasSetStay() async throws {
    let fleet = try ModelFleet([.memory])
    try await fleet[0].open().manager.setPolicies {
      $0.set(.localWins, table: "Note", column: "title")
    }
    let policies = try await fleet[0].open().manager.policies()
    try await fleet[0].kill()
    #expect(try await fleet[0].open().manager.policies() == policies)
    try await fleet[0].kill()
  }
}
