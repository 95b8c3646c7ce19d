import DocumentSync
import DocumentSyncModels
import Foundation
import Synchronization
import Testing

/// The shipped adapters meet the requirements, and a mirror tells about those that do not.
@Suite struct AdapterContractTests {
  static let samples = (0..<4).map { number in
    ModelAdapterConformance.Sample(
      note(
        "\(number)", ["title": .text("t"), "image": .data(Data([1])), "price": .real(.infinity)]),
      changed: note("\(number)", ["title": .text("u"), "count": .integer(-1)]))
  }

  static func memorySubject(_ adapter: MemoryAdapter) -> ModelAdapterConformance.Subject {
    .init(
      adapter: adapter, put: { await adapter.put($0) }, remove: { await adapter.remove($0) },
      restart: { memorySubject(MemoryAdapter(await adapter.contents)) })
  }

  static func jsonSubject(_ path: String) -> ModelAdapterConformance.Subject {
    let adapter = JSONFileAdapter<Item>(path: path)
    return .init(
      adapter: adapter,
      put: { record in
        let item = try Item(modelRecord: record)
        try await adapter.update { items in
          items.removeAll { $0.modelRecord.id == record.id }
          items.append(item)
        }
      },
      remove: { id in try await adapter.update { $0.removeAll { $0.modelRecord.id == id } } },
      restart: { jsonSubject(path) })
  }

  @Test func theMemoryAdapterConforms() async throws {
    let failures = try await ModelAdapterConformance.run(samples: Self.samples) {
      Self.memorySubject(MemoryAdapter())
    }
    #expect(failures == [])
  }

  @Test func theJSONFileAdapterConforms() async throws {
    let fleet = try ModelFleet([])
    let failures = try await ModelAdapterConformance.run(samples: Self.samples) {
      Self.jsonSubject(fleet.folder + "/" + UUID().uuidString)
    }
    #expect(failures == [])
  }

  /// An adapter that breaks one rule is found out.
  @Test(arguments: [
    "hasChanges", "recordsToUpload", "didUpload", "didDelete", "save", "delete",
    "deleteChangeTracking", "lastImport",
  ])
  func theSuiteFindsACallThatDoesNothing(call: String) async throws {
    let failures = try await ModelAdapterConformance.run(samples: Self.samples) {
      Self.memorySubject(MemoryAdapter(), without: call)
    }
    #expect(!failures.isEmpty)
  }

  /// An adapter that never marks what it has not reported.
  @Test func theSuiteFindsADeletionBeforeTheAcknowledgementThatIsForgotten() async throws {
    let failures = try await ModelAdapterConformance.run(samples: Self.samples) {
      let adapter = MemoryAdapter()
      var subject = Self.memorySubject(adapter)
      let reported = Mutex<Set<ModelRecord.ID>>([])
      let forgets = LazyAdapter(
        base: adapter, marked: { ids in ids.filter { id in reported.withLock { $0.contains(id) } } }
      )
      subject.adapter = forgets
      subject.remove = { id in
        let isUnreported = await adapter.recordsToUpload(limit: 100).contains { $0.id == id }
        if !isUnreported { reported.withLock { _ = $0.insert(id) } }
        await adapter.remove(id)
      }
      return subject
    }
    #expect(
      failures.contains {
        $0.check == "a record that is deleted before it is acknowledged is marked then"
      })
  }

  private static func memorySubject(
    _ adapter: MemoryAdapter, without call: String
  ) -> ModelAdapterConformance.Subject {
    var subject = memorySubject(adapter)
    subject.adapter = LazyAdapter(base: adapter, call: call)
    subject.restart = { memorySubject(MemoryAdapter(await adapter.contents), without: call) }
    return subject
  }

  // MARK: What the mirror tells

  private func problems(
    _ records: [ModelRecord], deleting ids: [ModelRecord.ID] = []
  ) async throws -> [ModelReport.Problem] {
    let fleet = try ModelFleet([.memory, .json], batchSize: 1)
    // A new mirror asks for no deletions.
    try await fleet[0].synchronize()
    for record in records { try await fleet[0].put(record) }
    for id in ids { try await fleet[0].put(ModelRecord(id: id)) }
    for id in ids { try await fleet[0].remove(id) }
    // Comes after them by its name.
    try await fleet[0].put(note("zzz"))
    let report = try await fleet[0].synchronize()
    // The others go on.
    try await fleet[1].synchronize()
    #expect(try await fleet[1].records == [note("zzz")])
    #expect(try await fleet[0].synchronize().problems == report.problems)
    try await fleet[0].kill()
    try await fleet[1].kill()
    return report.problems
  }

  @Test func aRecordThatDoesNotFitTheSchemaIsReportedAndTheOthersGoOn() async throws {
    typealias Kind = ModelReport.Problem.Kind
    let cases: [(ModelRecord, Kind, String)] = [
      (ModelRecord(type: "Book", identity: "b"), .unknownType, "Book"),
      (note("1", ["author": .text("x")]), .unknownField, "author"),
      (note("2", ["title": .integer(1)]), .unsuitableValue, "title"),
      (note("3", ["title": .text("a\u{0}b")]), .unsuitableValue, "NUL"),
      (note("4", ["price": .real(.nan)]), .unsuitableValue, "NaN"),
      (note("5", ["list": .text("l")]), .unsuitableValue, "list"),
      (note("6", ["list": .reference(id("Note", "l"))]), .unsuitableValue, "“Note”"),
      (note("7", ["list": .reference(id("List", ""))]), .unsuitableValue, "empty"),
      (note(""), .unsuitableIdentity, "empty"),
      (note("a\u{0}"), .unsuitableIdentity, "NUL"),
    ]
    let problems = try await problems(cases.map(\.0))
    #expect(problems.count == cases.count)
    for (record, kind, word) in cases {
      let problem = try #require(problems.first { $0.record == record.id }, "\(record)")
      #expect(problem.kind == kind, "\(record)")
      #expect(problem.message.contains(word), "\(problem)")
      #expect(!problem.remedy.isEmpty)
    }
  }

  @Test func aDeletionThatDoesNotFitTheSchemaIsReported() async throws {
    let problems = try await problems([], deleting: [id("Book", "b")])
    #expect(problems.map(\.kind) == [.unknownType])
  }

  /// An adapter that changes what another one returns.
  private func report(
    _ change: @escaping @Sendable ([ModelRecord]) -> [ModelRecord],
    marked: @escaping @Sendable ([ModelRecord.ID]) -> [ModelRecord.ID] = { $0 },
    without call: String = ""
  ) async throws -> (ModelReport, MemoryAdapter) {
    let fleet = try ModelFleet([.memory, .json])
    _ = try await fleet[1].open()
    let adapter = MemoryAdapter()
    await adapter.put(note("n", ["title": .text("a")]))
    await adapter.put(note("m"))
    await adapter.put(note("gone"))
    await adapter.remove(id("Note", "gone"))
    let mirror = try await ModelMirror.open(
      storeAt: fleet[0].path, directory: fleet[0].directory, document: "notes",
      schema: notesSchema,
      adapter: LazyAdapter(base: adapter, call: call, change: change, marked: marked))
    try await mirror.synchronize()
    await adapter.put(note("o"))
    await adapter.remove(id("Note", "m"))
    let report = try await mirror.synchronize()
    try await mirror.close()
    try await fleet[1].kill()
    return (report, adapter)
  }

  @Test func aRecordThatIsReportedTwiceIsTakenOnce() async throws {
    let (report, _) = try await report({ $0 + $0 })
    #expect(report.problems.map(\.kind) == [.reportedTwice])
    #expect(report.takenRecords == 1)
    let (other, _) = try await self.report({ records in
      records + records.map { ModelRecord(id: $0.id, fields: ["title": .text("other")]) }
    })
    #expect(other.problems.map(\.kind).first == .reportedTwice)
    #expect(other.problems.first?.message.contains("different") == true)
  }

  @Test func anAdapterThatIgnoresAcknowledgementsIsReportedAndEnds() async throws {
    let (report, _) = try await report({ $0 }, without: "didUpload")
    #expect(Set(report.problems.map(\.kind)) == [.acknowledgedBefore])
    let (other, _) = try await self.report({ $0 }, without: "didDelete")
    #expect(Set(other.problems.map(\.kind)) == [.acknowledgedBefore])
    #expect(other.problems.contains { $0.record == id("Note", "m") })
  }

  @Test func aRecordThatIsReportedAsChangedAndAsDeletedStays() async throws {
    let (report, adapter) = try await report({ $0 }, marked: { $0 + [id("Note", "o")] })
    #expect(report.problems.map(\.kind) == [.changedAndDeleted])
    #expect(await adapter.records.contains(note("o")))
  }

  @Test func anAdapterThatChangesThePositionGetsAnError() async throws {
    let error = await #expect(throws: SyncError.self) {
      _ = try await self.report({ $0 }, without: "position")
      let fleet = try ModelFleet([.memory, .json])
      try await fleet[1].put(note("n"))
      try await fleet[1].synchronize()
      let mirror = try await ModelMirror.open(
        storeAt: fleet[0].path, directory: fleet[0].directory, document: "notes",
        schema: notesSchema, adapter: LazyAdapter(base: MemoryAdapter(), call: "position"))
      try await mirror.synchronize()
    }
    #expect(error?.code == .adapterFailed)
    #expect(error?.message.contains("position") == true)
  }

  @Test func aSchemaThatCannotBeAMirrorIsRefused() async throws {
    let schemas: [(ModelSchema, String)] = [
      (ModelSchema([.init("", fields: [])]), "“”"),
      (ModelSchema([.init("A B", fields: [])]), "A B"),
      (ModelSchema([.init("docsync_a", fields: [])]), "docsync_a"),
      (ModelSchema([.init("A", fields: []), .init("a", fields: [])]), "“a”"),
      (ModelSchema([.init("A", fields: [.init("Identity", .text)])]), "Identity"),
      (ModelSchema([.init("A", fields: [.init("1", .text)])]), "“1”"),
      (
        ModelSchema([.init("A", fields: [.init("b", .reference(to: "B", onDelete: .cascade))])]),
        "“B”"
      ),
      (ModelSchema([.init("A", fields: [.init("b", .text, merging: .counter)])]), "counter"),
    ]
    for (schema, word) in schemas {
      let fleet = try ModelFleet([.memory], schema: schema)
      let error = await #expect(throws: SyncError.self) { try await fleet[0].synchronize() }
      #expect(error?.code == .schemaUnsuitable)
      #expect(error?.message.contains(word) == true)
      #expect(!FileManager.default.fileExists(atPath: fleet[0].path))
    }
  }

  @Test func aDatabaseOfTheUserInTheWayStays() async throws {
    let fleet = try ModelFleet([.memory])
    try Data("my notes".utf8).write(to: URL(fileURLWithPath: fleet[0].path))
    await #expect(throws: SyncError.self) { try await fleet[0].synchronize() }
    #expect(try Data(contentsOf: URL(fileURLWithPath: fleet[0].path)) == Data("my notes".utf8))
  }

  // MARK: The JSON file

  @Test func editsThatOtherProgramsMakeInTheFileAreTaken() async throws {
    let fleet = try ModelFleet([.json, .memory])
    try await fleet[0].put(note("n", ["title": .text("before")]))
    try await fleet.settle()
    let url = URL(fileURLWithPath: fleet[0].path + ".json")
    let text = try String(contentsOf: url, encoding: .utf8)
    // The elements come first.
    let range = try #require(text.range(of: "before"))
    try text.replacingCharacters(in: range, with: "after").write(
      to: url, atomically: true, encoding: .utf8)
    #expect(try await fleet.expectEqual() == [note("n", ["title": .text("after")])])
  }

  @Test func aFileThatCannotBeReadIsAnErrorAndStays() async throws {
    let fleet = try ModelFleet([.json])
    let url = URL(fileURLWithPath: fleet[0].path + ".json")
    try Data("{".utf8).write(to: url)
    let error = await #expect(throws: SyncError.self) { try await fleet[0].synchronize() }
    #expect(error?.code == .adapterFailed)
    #expect(error?.detail?.contains(url.path) == true)
    #expect(try Data(contentsOf: url) == Data("{".utf8))
    try await fleet[0].kill()
  }

  @Test func twoElementsOfOneIdentityAreRefused() async throws {
    let fleet = try ModelFleet([])
    let adapter = JSONFileAdapter<Item>(path: fleet.folder + "/x.json")
    let item = try Item(modelRecord: note("n"))
    await #expect(throws: JSONFileAdapter<Item>.Failure.self) {
      try await adapter.update { $0 = [item, item] }
    }
    #expect(try await adapter.elements().isEmpty)
  }

  /// An element without a field that the schema has.
  private struct Title: ModelElement {
    var modelRecord: ModelRecord

    init(modelRecord: ModelRecord) throws {
      self.modelRecord = note(modelRecord.id.identity, ["title": modelRecord["title"]])
    }
  }

  @Test func anElementThatLosesFieldsIsRefused() async throws {
    let fleet = try ModelFleet([])
    let adapter = JSONFileAdapter<Title>(path: fleet.folder + "/x.json")
    await #expect(throws: JSONFileAdapter<Title>.Failure.self) {
      try await adapter.save([note("n", ["price": .real(1)])])
    }
  }

  @Test func valuesSurviveJSON() throws {
    let records =
      Self.samples.map(\.record) + [
        note(
          "é",
          [
            "list": .reference(id("List", "l")), "price": .real(-.infinity),
            "count": .integer(.min),
            "image": .data(Data()), "title": .text("\u{1F600}"),
          ])
      ]
    #expect(
      try JSONDecoder().decode([ModelRecord].self, from: JSONEncoder().encode(records)) == records)
  }
}

/// An adapter that leaves out a call, or changes what another adapter returns.
struct LazyAdapter: ModelAdapter {
  let base: MemoryAdapter
  var call = ""
  var change: @Sendable ([ModelRecord]) -> [ModelRecord] = { $0 }
  var marked: @Sendable ([ModelRecord.ID]) -> [ModelRecord.ID] = { $0 }

  func hasChanges() async throws -> Bool {
    if call == "hasChanges" { return false }
    return await base.hasChanges()
  }

  func recordsToUpload(limit: Int) async throws -> [ModelRecord] {
    call == "recordsToUpload" ? [] : change(await base.recordsToUpload(limit: limit))
  }

  func didUpload(_ records: [ModelRecord]) async throws {
    if call != "didUpload" { await base.didUpload(records) }
  }

  func recordsMarkedForDeletion(limit: Int) async throws -> [ModelRecord.ID] {
    marked(await base.recordsMarkedForDeletion(limit: limit))
  }

  func didDelete(_ ids: [ModelRecord.ID]) async throws {
    if call != "didDelete" { await base.didDelete(ids) }
  }

  func deleteChangeTracking() async throws {
    if call != "deleteChangeTracking" { await base.deleteChangeTracking() }
  }

  func prepareToImport() async throws { await base.prepareToImport() }

  func save(_ records: [ModelRecord]) async throws {
    if call != "save" { await base.save(records) }
  }

  func delete(_ ids: [ModelRecord.ID]) async throws {
    if call != "delete" { await base.delete(ids) }
  }

  func persistImportedChanges(position: String) async throws -> ModelImport {
    await base.persistImportedChanges(position: call == "position" ? "1" : position)
  }

  func lastImport() async throws -> ModelImport? {
    call == "lastImport" ? nil : await base.lastImport()
  }

  func didFinishImport(error: (any Error)?) async { await base.didFinishImport(error: error) }

  func record(for id: ModelRecord.ID) async throws -> ModelRecord? { await base.record(for: id) }
}
