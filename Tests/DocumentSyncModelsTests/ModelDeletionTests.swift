import DocumentSync
import DocumentSyncModels
import DocumentSyncTesting
import Foundation
import Synchronization
import Testing

/// Deletions of records to which others refer whose edits come at the same time, later, or not at all.
@Suite struct ModelDeletionTests {
  struct Failure: Error {}

  /// A list `a` with an entry `e`, which all models have.
  private func fleet(
    _ kinds: [Device.Kind] = [.memory, .json], batchSize: Int = 200, slug: String? = nil
  ) async throws -> ModelFleet {
    let fleet = try ModelFleet(
      kinds, schema: ModelCornerTests.lists(.cascade), batchSize: batchSize)
    try await fleet[0].put(list("a", slug.map { ["slug": .text($0)] } ?? [:]))
    try await fleet[0].put(entry("e", in: "a"))
    try await fleet.settle()
    return fleet
  }

  private func entry(_ name: String, in list: String) -> ModelRecord {
    ModelRecord(type: "Entry", identity: name, fields: ["list": .reference(id("List", list))])
  }

  private func folder(_ name: String, in parent: String? = nil) -> ModelRecord {
    ModelRecord(
      type: "Folder", identity: name,
      fields: ["parent": parent.map { .reference(id("Folder", $0)) } ?? .null])
  }

  private static let folders = ModelSchema([
    .init(
      "Folder",
      fields: [
        .init("name", .text), .init("slug", .text, isUnique: true),
        .init("parent", .reference(to: "Folder", onDelete: .cascade)),
      ])
  ])

  /// Creates a list, moves the entry to it, and deletes its former list, as one edit.
  private static func replaceList(
    of device: Device, _ fields: [String: ModelValue] = [:]
  ) async throws {
    try await device.put(list("b", fields))
    try await device.edit(id("Entry", "e"), ["list": .reference(id("List", "b"))])
    try await device.remove(id("List", "a"))
  }

  // MARK: Records that are moved away from what is deleted

  @Test func aRecordWhoseNewParentComesWithALaterBatchIsNotDeletedWithTheFormerOne() async throws {
    let fleet = try await fleet(batchSize: 1)
    try await Self.replaceList(of: fleet[0])
    #expect(try await fleet[0].synchronize().problems == [])
    #expect(try await fleet.expectEqual() == [entry("e", in: "b"), list("b")])
  }

  /// The new list waits for a unique value, and the entry for the list.
  @Test func aDeletionWaitsForTheEditOfARecordThatItWouldTakeAlong() async throws {
    let fleet = try await fleet()
    try await fleet[0].put(list("m", ["slug": .text("x")]))
    try await fleet.settle()
    try await Self.replaceList(of: fleet[0], ["slug": .text("x")])
    for _ in 0..<2 {
      let report = try await fleet[0].synchronize()
      #expect(Set(report.problems.map(\.kind)) == [.uniqueValueTaken, .parentMissing])
      try await fleet[0].kill()
    }
    #expect(try await fleet[0].record(id("Entry", "e")) == entry("e", in: "b"))
    #expect(try await fleet[0].record(id("List", "a")) == nil)
    // What others do with the list is no reason to bring it back.
    try await fleet[1].edit(id("List", "a"), ["title": .text("t")])
    try await fleet[1].synchronize()
    #expect(try await fleet[1].record(id("Entry", "e")) == entry("e", in: "a"))
    try await fleet[0].synchronize()
    #expect(try await fleet[0].record(id("List", "a")) == nil)
    try await fleet[0].edit(id("List", "b"), ["slug": .text("y")])
    #expect(
      try await fleet.expectEqual() == [
        entry("e", in: "b"), list("b", ["slug": .text("y")]), list("m", ["slug": .text("x")]),
      ])
  }

  /// The mirror cannot take the record as the model has it.
  @Test func aDeletionWaitsForAnEditThatDoesNotFitTheSchema() async throws {
    let fleet = try await fleet()
    try await fleet[0].edit(id("Entry", "e"), ["title": .integer(1)])
    try await Self.replaceList(of: fleet[0])
    #expect(try await fleet[0].synchronize().problems.map(\.kind) == [.unsuitableValue])
    try await fleet[1].synchronize()
    #expect(try await fleet[1].record(id("Entry", "e")) == entry("e", in: "a"))
    try await fleet[0].edit(id("Entry", "e"), ["title": .null])
    #expect(try await fleet.expectEqual() == [entry("e", in: "b"), list("b")])
  }

  @Test func aDeletionThatWaitsIsVoidIfTheRecordIsCreatedAgain() async throws {
    let fleet = try await fleet()
    try await fleet[0].put(list("m", ["slug": .text("x")]))
    try await fleet.settle()
    try await Self.replaceList(of: fleet[0], ["slug": .text("x")])
    try await fleet[0].synchronize()
    try await fleet[0].put(list("a", ["title": .text("again")]))
    try await fleet[0].synchronize()
    try await fleet[0].edit(id("List", "b"), ["slug": .null])
    #expect(
      try await fleet.expectEqual() == [
        entry("e", in: "b"), list("a", ["title": .text("again")]), list("b"),
        list("m", ["slug": .text("x")]),
      ])
  }

  /// The new list has the unique value of the one that it replaces.
  @Test(arguments: [1, 200])
  func aRecordMayHaveTheUniqueValueOfTheOneThatItReplaces(batchSize: Int) async throws {
    let fleet = try await fleet(batchSize: batchSize, slug: "x")
    try await Self.replaceList(of: fleet[0], ["slug": .text("x")])
    #expect(try await fleet[0].synchronize().problems == [])
    #expect(
      try await fleet.expectEqual() == [entry("e", in: "b"), list("b", ["slug": .text("x")])])
  }

  /// Another entry keeps the list, which keeps its value then.
  @Test func aRecordWhoseDeletionWaitsKeepsItsUniqueValue() async throws {
    let fleet = try await fleet(slug: "x")
    try await fleet[0].put(list("m", ["slug": .text("y")]))
    try await fleet[0].put(entry("f", in: "a"))
    try await fleet.settle()
    try await fleet[0].put(list("c", ["slug": .text("y")]))
    try await fleet[0].edit(id("Entry", "f"), ["list": .reference(id("List", "c"))])
    try await Self.replaceList(of: fleet[0], ["slug": .text("x")])
    #expect(try await fleet[0].synchronize().problems.count == 4)
    try await fleet[1].synchronize()
    #expect(
      try await fleet[1].records == [
        entry("e", in: "a"), entry("f", in: "a"), list("a", ["slug": .text("x")]),
        list("m", ["slug": .text("y")]),
      ])
    try await fleet[0].edit(id("List", "c"), ["slug": .null])
    #expect(
      try await fleet.expectEqual() == [
        entry("e", in: "b"), entry("f", in: "c"), list("b", ["slug": .text("x")]), list("c"),
        list("m", ["slug": .text("y")]),
      ])
  }

  /// The application edits its model between two functions that the mirror calls.
  @Test(arguments: [Device.Kind.memory, .json])
  func aRecordThatIsMovedWhileEditsAreReadStays(kind: Device.Kind) async throws {
    for call in ["recordsToUpload", "recordsMarkedForDeletion"]
    where kind == .memory || call == "recordsToUpload" {
      let fleet = try await fleet([kind, .memory])
      try await fleet[0].put(list("other"))
      try await fleet.settle()
      try await fleet[0].remove(id("List", "other"))
      await fleet[0].once(call, isBefore: false) { [device = fleet[0]] in
        try await Self.replaceList(of: device)
      }
      #expect(try await fleet[0].synchronize().problems == [], "\(call)")
      #expect(
        try await fleet.expectEqual() == [entry("e", in: "b"), list("b")], "\(call)")
    }
  }

  /// The mirror has the list, and the model does not know that.
  @Test(arguments: [Device.Kind.memory, .json])
  func aRecordThatIsMovedAwayFromOneThatWasNotAcknowledgedStays(kind: Device.Kind) async throws {
    let fleet = try ModelFleet([kind, .memory], schema: ModelCornerTests.lists(.cascade))
    try await fleet[0].synchronize()
    for record in [entry("e", in: "a"), list("a")] { try await fleet[0].put(record) }
    await fleet[0].once("didUpload") { throw CancellationError() }
    await #expect(throws: SyncError.self) { try await fleet[0].synchronize() }
    try await fleet[0].kill()
    try await Self.replaceList(of: fleet[0])
    #expect(try await fleet.expectEqual() == [entry("e", in: "b"), list("b")])
  }

  // MARK: Records to which others refer that are deleted, too

  /// The note comes before the tags that refer to it, which keep it from being deleted.
  @Test(arguments: [1, 200])
  func aRecordIsDeletedWithThoseThatReferToIt(batchSize: Int) async throws {
    for endsMeanwhile in [false, true] where !endsMeanwhile || batchSize == 1 {
      let fleet = try ModelFleet([.memory, .json], batchSize: batchSize)
      try await fleet[0].put(note("n"))
      for name in ["s", "t"] {
        try await fleet[0].put(
          ModelRecord(
            type: "Tag", identity: name, fields: ["note": .reference(id("Note", "n"))]))
      }
      try await fleet.settle()
      for name in [id("Tag", "s"), id("Tag", "t"), id("Note", "n")] {
        try await fleet[0].remove(name)
      }
      if endsMeanwhile {
        await fleet[0].once("didDelete", isBefore: false) { throw CancellationError() }
        await #expect(throws: SyncError.self) { try await fleet[0].synchronize() }
        try await fleet[0].kill()
      }
      #expect(try await fleet[0].synchronize().problems == [])
      #expect(try await fleet.expectEqual() == [])
    }
  }

  // MARK: Records that another device has deleted

  private var other: ModelRecord {
    var other = folder("m")
    other["slug"] = .text("m")
    return other
  }

  /// Folders `p`, `f` and `m`, and `n` in `f`. Another device deletes `p`, and then this one moves `f` there.
  private func folders(
    batchSize: Int = 200, _ edit: @escaping @Sendable (Device) async throws -> Void
  ) async throws -> ModelFleet {
    let fleet = try ModelFleet(
      [.memory, .json], schema: Self.folders, batchSize: batchSize)
    for record in [folder("p"), folder("f"), folder("n", in: "f"), other] {
      try await fleet[0].put(record)
    }
    try await fleet.settle()
    try await fleet[0].remove(id("Folder", "p"))
    try await fleet[0].synchronize()
    await fleet[1].once("prepareToImport") { [device = fleet[1]] in
      try await device.edit(id("Folder", "f"), ["parent": .reference(id("Folder", "p"))])
      try await edit(device)
    }
    #expect(try await fleet[1].synchronize().deletedRecords == 1)
    return fleet
  }

  @Test func anEditOfARecordThatIsDeletedWithAnotherOneIsReported() async throws {
    let fleet = try await folders { try await $0.edit(id("Folder", "n"), ["name": .text("t")]) }
    let problems = try await fleet[1].synchronize().problems
    #expect(Set(problems.map(\.kind)) == [.editOfDeletedRecord])
    #expect(problems.compactMap(\.record?.identity).sorted() == ["f", "n"])
    #expect(try await fleet.expectEqual() == [other])
  }

  /// Both edits are taken after that of the new folder.
  @Test(arguments: [1, 200])
  func aRecordThatIsMovedAwayFromOneThatIsDeletedStays(batchSize: Int) async throws {
    let fleet = try await folders(batchSize: batchSize) { [folder = folder("x")] in
      try await $0.put(folder)
      try await $0.edit(id("Folder", "n"), ["parent": .reference(id("Folder", "x"))])
    }
    let problems = try await fleet[1].synchronize().problems
    #expect(problems.map(\.kind) == [.editOfDeletedRecord])
    #expect(problems.first?.record == id("Folder", "f"))
    #expect(try await fleet.expectEqual() == [other, folder("n", in: "x"), folder("x")])
  }

  /// It is moved to a record that waits for a unique value.
  @Test func aRecordWhoseEditWaitsIsNotDeletedWithAnotherOne() async throws {
    let fleet = try await folders { device in
      var other = folder("x")
      other["slug"] = .text("m")
      try await device.put(other)
      try await device.edit(id("Folder", "n"), ["parent": .reference(id("Folder", "x"))])
    }
    let kinds = try await fleet[1].synchronize().problems.map(\.kind)
    #expect(kinds.contains(.uniqueValueTaken) && kinds.contains(.parentMissing))
    #expect(try await fleet[1].record(id("Folder", "n")) == folder("n", in: "x"))
    try await fleet[1].edit(id("Folder", "x"), ["slug": .null])
    #expect(try await fleet[1].synchronize().problems.map(\.kind) == [.editOfDeletedRecord])
    #expect(try await fleet.expectEqual() == [other, folder("n", in: "x"), folder("x")])
  }

  /// One reference would bring a record back, and for another one the record itself is deleted.
  @Test func nothingIsBroughtBackForARecordThatIsDeleted() async throws {
    let schema = ModelSchema([
      .init("Kept", fields: []), .init("List", fields: []),
      .init(
        "Entry",
        fields: [
          .init("kept", .reference(to: "Kept", onDelete: .restrict)),
          .init("list", .reference(to: "List", onDelete: .cascade)),
        ]),
    ])
    let fleet = try ModelFleet([.memory, .json], schema: schema)
    let kept = ModelRecord(type: "Kept", identity: "k")
    for record in [kept, list("l")] { try await fleet[0].put(record) }
    try await fleet.settle()
    for name in [kept.id, id("List", "l")] { try await fleet[0].remove(name) }
    try await fleet[0].synchronize()
    await fleet[1].once("prepareToImport") { [device = fleet[1]] in
      var entry = entry("e", in: "l")
      entry["kept"] = .reference(kept.id)
      try await device.put(entry)
    }
    #expect(try await fleet[1].synchronize().deletedRecords == 2)
    #expect(try await fleet[1].synchronize().problems.map(\.kind) == [.editOfDeletedRecord])
    #expect(try await fleet.expectEqual() == [])
  }

  /// Another record has its unique value.
  @Test func aParkedRecordThatIsDeletedDoesNotComeBack() async throws {
    let fleet = try ModelFleet([.memory, .json])
    for (name, slug) in [("a", "x"), ("b", "y")] {
      try await fleet[0].put(list(name, ["slug": .text(slug)]))
    }
    try await fleet.settle()
    try await fleet[0].edit(id("List", "a"), ["slug": .text("q")])
    try await fleet[0].synchronize()
    // The later one has the value.
    try await fleet[1].edit(id("List", "b"), ["slug": .text("q")])
    try await fleet[1].synchronize()
    await fleet[0].once("prepareToImport") { [device = fleet[0]] in
      try await device.remove(id("List", "a"))
    }
    #expect(try await fleet[0].synchronize().problems == [])
    #expect(try await fleet[0].records == [list("b", ["slug": .text("q")])])
    try await fleet[1].edit(id("List", "b"), ["slug": .text("z")])
    #expect(try await fleet.expectEqual() == [list("b", ["slug": .text("z")])])
  }

  // MARK: Problems of calls that fail

  @Test func theProblemsOfACallThatFailsComeWithTheNextOne() async throws {
    let fleet = try ModelFleet([.memory, .json])
    try await fleet[0].put(note("n"))
    try await fleet.settle()
    try await fleet[0].remove(id("Note", "n"))
    try await fleet[0].synchronize()
    await fleet[1].set { [device = fleet[1]] moment, _ in
      if moment == Moment(call: "prepareToImport", isBefore: true) {
        try await device.edit(id("Note", "n"), ["title": .text("t")])
      } else if moment == Moment(call: "didUpload", isBefore: false) {
        throw CancellationError()
      }
    }
    await #expect(throws: SyncError.self) { try await fleet[1].synchronize() }
    // The process ends.
    try await fleet[1].kill()
    await fleet[1].set { _, _ in }
    let report = try await fleet[1].open().takeChanges()
    #expect(report.problems.map(\.kind) == [.editOfDeletedRecord])
    #expect(report.problems.first?.record == id("Note", "n"))
    #expect(try await fleet.expectEqual() == [])
  }

  @Test func aModelThatWasPutBackIsReportedAfterACallThatFails() async throws {
    let fleet = try ModelFleet([.memory, .json])
    try await fleet[0].put(note("n"))
    let earlier = await fleet[0].contents
    try await fleet.settle()
    try await fleet[0].kill()
    await fleet[0].restore(earlier)
    await fleet[0].once("deleteChangeTracking") { throw Failure() }
    let error = await #expect(throws: SyncError.self) { try await fleet[0].synchronize() }
    #expect(error?.code == .adapterFailed)
    #expect(try await fleet[0].synchronize().problems.map(\.kind) == [.modelPutBack])
    #expect(try await fleet.expectEqual() == [note("n")])
  }
}
