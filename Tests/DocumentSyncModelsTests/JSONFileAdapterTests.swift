import DocumentSync
import DocumentSyncModels
import Foundation
import Synchronization
import Testing

/// The file of a `JSONFileAdapter`, with other programs that write it.
@Suite struct JSONFileAdapterTests {
  /// An element whose number JSON cannot have without help.
  private struct Price: ModelElement {
    var name: String
    var price: Double

    init(modelRecord: ModelRecord) throws {
      name = modelRecord.id.identity
      price = if case .real(let price) = modelRecord["price"] { price } else { 0 }
    }

    var modelRecord: ModelRecord { note(name, ["price": .real(price)]) }
  }

  /// An element that cannot be written, and one that is read as another one.
  private struct Unsteady: ModelElement {
    struct Failure: Error {}
    var name: String

    init(modelRecord: ModelRecord) throws { name = modelRecord.id.identity }

    init(from decoder: any Decoder) throws {
      name = try decoder.singleValueContainer().decode(String.self)
      if name == "lost" { name = "other" }
    }

    func encode(to encoder: any Encoder) throws {
      if name == "bad" { throw Failure() }
      var container = encoder.singleValueContainer()
      try container.encode(name)
    }

    var modelRecord: ModelRecord { note(name) }
  }

  @Test func infiniteNumbersAreKept() async throws {
    let fleet = try ModelFleet([])
    let adapter = JSONFileAdapter<Price>(path: fleet.folder + "/x.json")
    let records = [
      note("a", ["price": .real(.infinity)]), note("b", ["price": .real(-.infinity)]),
      note("c", ["price": .real(0.1)]),
    ]
    try await adapter.prepareToImport()
    try await adapter.save(records)
    _ = try await adapter.persistImportedChanges(position: "1")
    let other = JSONFileAdapter<Price>(path: fleet.folder + "/x.json")
    #expect(try await other.elements().map(\.modelRecord) == records)
    #expect(try await !other.hasChanges())
  }

  @Test(arguments: ["bad", "lost"])
  func anElementThatTheFileCannotHaveIsRefused(name: String) async throws {
    let fleet = try ModelFleet([])
    let adapter = JSONFileAdapter<Unsteady>(path: fleet.folder + "/x.json")
    try await adapter.prepareToImport()
    try await adapter.save([note("good")])
    await #expect(throws: (any Error).self) { try await adapter.save([note(name)]) }
    _ = try await adapter.persistImportedChanges(position: "1")
    #expect(try await adapter.elements().map(\.name) == ["good"])
  }

  @Test func whatAnotherProgramWritesDuringAnEditStays() async throws {
    let fleet = try ModelFleet([])
    let path = fleet.folder + "/x.json"
    let adapter = JSONFileAdapter<Item>(path: path)
    let (before, after) = (
      try Item(modelRecord: note("a", ["title": .text("before")])), try Item(modelRecord: note("b"))
    )
    try await adapter.update { $0 = [before] }
    let edits = Mutex(0)
    try await adapter.update { items in
      items.append(after)
      let count = edits.withLock { count in
        count += 1
        return count
      }
      guard count == 1 else { return }
      let url = URL(fileURLWithPath: path)
      let text = try String(contentsOf: url, encoding: .utf8)
      try text.replacingOccurrences(of: "before", with: "afterwards").write(
        to: url, atomically: true, encoding: .utf8)
    }
    #expect(edits.withLock { $0 } == 2)
    #expect(
      try await adapter.elements().map(\.modelRecord)
        == [note("a", ["title": .text("afterwards")]), note("b")])
  }

  @Test func aLinkToTheFileStaysALink() async throws {
    let fleet = try ModelFleet([])
    let path = fleet.folder + "/x.json"
    let item = try Item(modelRecord: note("a"))
    let target = JSONFileAdapter<Item>(path: path)
    try await target.update { $0 = [] }
    let link = fleet.folder + "/link.json"
    try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: path)
    let adapter = JSONFileAdapter<Item>(path: link)
    #expect(try await adapter.elements().isEmpty)
    try await adapter.update { $0 = [item] }
    #expect(try await target.elements().map(\.modelRecord) == [note("a")])
    #expect(try FileManager.default.destinationOfSymbolicLink(atPath: link) == path)
    try await target.update { $0 = [] }
    #expect(try await adapter.elements().isEmpty)
  }

  @Test func aFileWithOnlyElementsIsAModel() async throws {
    let fleet = try ModelFleet([])
    let path = fleet.folder + "/x.json"
    try JSONEncoder().encode(["elements": [Item(modelRecord: note("a"))]]).write(
      to: URL(fileURLWithPath: path))
    let adapter = JSONFileAdapter<Item>(path: path)
    #expect(try await adapter.recordsToUpload(limit: 10) == [note("a")])
  }

  /// The adapter does not know any more what was edited or deleted.
  @Test(arguments: [MergedRows.Preference.document, .local])
  func aFileThatIsWrittenWithElementsOnlyIsCompared(
    preference: MergedRows.Preference
  ) async throws {
    let fleet = try ModelFleet([.json, .memory])
    for name in ["a", "b"] { try await fleet[0].put(note(name, ["title": .text("1")])) }
    try await fleet.settle()
    try await fleet[0].kill()
    let items = try [note("a", ["title": .text("2")]), note("c")].map(Item.init)
    try JSONEncoder().encode(["elements": items]).write(
      to: URL(fileURLWithPath: fleet[0].path + ".json"))
    let isLocal = preference == .local
    let report = try await fleet[0].open(preference: preference).synchronize()
    #expect(report.problems.map(\.kind) == [.modelPutBack] + (isLocal ? [] : [.recordReplaced]))
    #expect(
      try await fleet.expectEqual() == [
        note("a", ["title": .text(isLocal ? "2" : "1")]), note("b", ["title": .text("1")]),
        note("c"),
      ])
  }

  /// It would look as if the application had deleted all elements.
  @Test func aFileThatHasLostItsElementsIsRefused() async throws {
    let fleet = try ModelFleet([.json, .memory])
    try await fleet[0].put(note("a"))
    try await fleet.settle()
    let url = URL(fileURLWithPath: fleet[0].path + ".json")
    let whole = try Data(contentsOf: url)
    for value in [nil, NSNull()] as [NSNull?] {
      var object = try #require(
        try JSONSerialization.jsonObject(with: whole) as? [String: Any])
      object["elements"] = value
      try JSONSerialization.data(withJSONObject: object).write(to: url)
      let error = await #expect(throws: SyncError.self) { try await fleet[0].synchronize() }
      #expect(error?.code == .adapterFailed)
      let failure = error?.underlying as? JSONFileAdapter<Item>.Failure
      #expect(failure?.description.contains("no “elements”") == true)
    }
    try whole.write(to: url)
    #expect(try await fleet.expectEqual() == [note("a")])
  }

  @Test func aWriteDoesNotWaitForEver() async throws {
    let fleet = try ModelFleet([])
    let path = fleet.folder + "/x.json"
    let adapter = JSONFileAdapter<Item>(path: path, timeLimit: .milliseconds(50))
    let item = try Item(modelRecord: note("a"))
    let descriptor = open(fleet.folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    defer { close(descriptor) }
    // The adapter needs the lock for itself.
    #expect(flock(descriptor, LOCK_SH) == 0)
    let error = await #expect(throws: JSONFileAdapter<Item>.Failure.self) {
      try await adapter.update { $0 = [item] }
    }
    #expect(error?.description.contains("locked the folder") == true)
    flock(descriptor, LOCK_UN)
    try await adapter.update { $0 = [item] }
    #expect(try await adapter.elements().count == 1)
  }

  @Test func otherMembersOfTheFileStay() async throws {
    let fleet = try ModelFleet([])
    let url = URL(fileURLWithPath: fleet.folder + "/x.json")
    let others: [String: Any] = [
      "version": 3, "large": 9_007_199_254_740_993, "scale": 1.5, "isDark": true,
      "none": NSNull(), "name": "1", "window": ["size": [800, 600.25], "open": ["a": [:]]],
    ]
    try JSONSerialization.data(withJSONObject: others).write(to: url)
    let adapter = JSONFileAdapter<Item>(path: url.path)
    let item = try Item(modelRecord: note("a"))
    try await adapter.update { $0 = [item] }
    try await adapter.didUpload([item.modelRecord])
    var object = try #require(
      try JSONSerialization.jsonObject(with: Data(contentsOf: url)) as? [String: Any])
    for name in ["elements", "reported"] { #expect(object.removeValue(forKey: name) != nil) }
    #expect(object as NSDictionary == others as NSDictionary)
  }

  @Test func adaptersOfOneFileWaitForOneAnother() async throws {
    let fleet = try ModelFleet([])
    let path = fleet.folder + "/x.json"
    try await withThrowingTaskGroup(of: Void.self) { group in
      for number in 0..<4 {
        group.addTask {
          let adapter = JSONFileAdapter<Item>(path: path)
          for edit in 0..<25 {
            let item = try Item(modelRecord: note("\(number)-\(edit)"))
            try await adapter.update { $0.append(item) }
          }
        }
      }
      try await group.waitForAll()
    }
    #expect(try await JSONFileAdapter<Item>(path: path).elements().count == 100)
  }
}
