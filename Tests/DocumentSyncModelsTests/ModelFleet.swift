import DocumentSync
import DocumentSyncModels
import DocumentSyncTesting
import Foundation
import Synchronization
import Testing

/// The schema of the tests: lists, also in lists, notes in lists, and notes that refer to one another.
let notesSchema = ModelSchema([
  .init(
    "List",
    fields: [
      .init("name", .text), .init("slug", .text, isUnique: true),
      .init("parent", .reference(to: "List", onDelete: .cascade)),
    ]),
  .init(
    "Note",
    fields: [
      .init("title", .text), .init("body", .text, policy: .mergeText),
      .init("count", .integer, merging: .counter), .init("price", .real), .init("image", .data),
      .init("list", .reference(to: "List", onDelete: .cascade)),
      .init("next", .reference(to: "Note", onDelete: .setNull)),
      .init("own0", .integer), .init("own1", .integer), .init("own2", .integer),
    ]),
  .init("Tag", fields: [.init("note", .reference(to: "Note", onDelete: .restrict))]),
])

/// A record of any type, as an application may have it in a JSON file.
struct Item: ModelElement {
  var type: String
  var name: String
  var values: [String: ModelValue]

  init(modelRecord: ModelRecord) throws {
    type = modelRecord.id.type
    name = modelRecord.id.identity
    values = modelRecord.fields
  }

  var modelRecord: ModelRecord { ModelRecord(type: type, identity: name, fields: values) }
}

func note(_ name: String, _ fields: [String: ModelValue] = [:]) -> ModelRecord {
  ModelRecord(type: "Note", identity: name, fields: fields)
}

func list(_ name: String, _ fields: [String: ModelValue] = [:]) -> ModelRecord {
  ModelRecord(type: "List", identity: name, fields: fields)
}

func id(_ type: String, _ name: String) -> ModelRecord.ID { .init(type: type, identity: name) }

/// A moment before or after a call of an adapter.
struct Moment: Hashable, Sendable, CustomStringConvertible {
  var call: String
  var isBefore: Bool
  var description: String { (isBefore ? "before " : "after ") + call }
}

/// An adapter whose calls a test hears of, and can let fail.
struct HookedAdapter: ModelAdapter {
  typealias Hook = @Sendable (Moment, [ModelRecord.ID]) async throws -> Void

  let base: any ModelAdapter
  let hook: Hook

  private func run<Output: Sendable>(
    _ call: String, _ ids: [ModelRecord.ID] = [], _ body: () async throws -> Output
  ) async throws -> Output {
    try await hook(Moment(call: call, isBefore: true), ids)
    let output = try await body()
    try await hook(Moment(call: call, isBefore: false), ids)
    return output
  }

  func hasChanges() async throws -> Bool {
    try await run("hasChanges") { try await base.hasChanges() }
  }

  func recordsToUpload(limit: Int) async throws -> [ModelRecord] {
    try await run("recordsToUpload") { try await base.recordsToUpload(limit: limit) }
  }

  func didUpload(_ records: [ModelRecord]) async throws {
    try await run("didUpload", records.map(\.id)) { try await base.didUpload(records) }
  }

  func recordsMarkedForDeletion(limit: Int) async throws -> [ModelRecord.ID] {
    try await run("recordsMarkedForDeletion") {
      try await base.recordsMarkedForDeletion(limit: limit)
    }
  }

  func didDelete(_ ids: [ModelRecord.ID]) async throws {
    try await run("didDelete", ids) { try await base.didDelete(ids) }
  }

  func deleteChangeTracking() async throws {
    try await run("deleteChangeTracking") { try await base.deleteChangeTracking() }
  }

  func prepareToImport() async throws {
    try await run("prepareToImport") { try await base.prepareToImport() }
  }

  func save(_ records: [ModelRecord]) async throws {
    try await run("save", records.map(\.id)) { try await base.save(records) }
  }

  func delete(_ ids: [ModelRecord.ID]) async throws {
    try await run("delete", ids) { try await base.delete(ids) }
  }

  func persistImportedChanges(position: String) async throws -> ModelImport {
    try await run("persist") { try await base.persistImportedChanges(position: position) }
  }

  func lastImport() async throws -> ModelImport? {
    try await run("lastImport") { try await base.lastImport() }
  }

  func didFinishImport(error: (any Error)?) async { await base.didFinishImport(error: error) }

  func record(for id: ModelRecord.ID) async throws -> ModelRecord? {
    try await base.record(for: id)
  }
}

/// One device: a model, its adapter and its mirror.
actor Device {
  enum Kind: Sendable { case memory, json }

  let path: String
  let directory: MemoryDirectory
  let kind: Kind
  private let environment: SyncEnvironment
  private let schema: ModelSchema
  private let batchSize: Int
  private var memory = MemoryAdapter()
  private var json: JSONFileAdapter<Item>
  private var mirror: ModelMirror?
  private var hook: HookedAdapter.Hook = { _, _ in }

  init(
    path: String, directory: MemoryDirectory, kind: Kind, environment: SyncEnvironment,
    schema: ModelSchema, batchSize: Int
  ) {
    self.path = path
    self.directory = directory
    self.kind = kind
    self.environment = environment
    self.schema = schema
    self.batchSize = batchSize
    json = JSONFileAdapter(path: path + ".json")
  }

  var base: any ModelAdapter { kind == .memory ? memory : json }

  func set(_ hook: @escaping HookedAdapter.Hook) { self.hook = hook }

  /// Runs `edit` before or after the first call of a name.
  func once(
    _ call: String, isBefore: Bool = true, _ edit: @escaping @Sendable () async throws -> Void
  ) {
    let rest = Mutex(1)
    hook = { moment, _ in
      guard moment == Moment(call: call, isBefore: isBefore),
        rest.withLock({ rest in
          rest -= 1
          return rest == 0
        })
      else { return }
      try await edit()
    }
  }

  private func call(_ moment: Moment, _ ids: [ModelRecord.ID]) async throws {
    try await hook(moment, ids)
  }

  nonisolated var options: ModelMirror.Options {
    var options = ModelMirror.Options(
      manager: .init(client: kind == .memory ? "memory" : "json", environment: environment))
    options.batchSize = batchSize
    return options
  }

  /// The mirror, which is opened as an application does at its start.
  func open(preference: MergedRows.Preference = .document) async throws -> ModelMirror {
    if let mirror { return mirror }
    var options = options
    options.preference = preference
    let opened = try await ModelMirror.open(
      storeAt: path, directory: directory, document: "notes", schema: schema,
      adapter: HookedAdapter(base: base) { [self] in try await call($0, $1) }, options: options)
    mirror = opened
    return opened
  }

  @discardableResult
  func synchronize() async throws -> ModelReport { try await open().synchronize() }

  /// Drops the adapter and the mirror, as the end of the process does, and keeps what is durable.
  func kill() async throws {
    if let mirror { try await mirror.close() }
    mirror = nil
    memory = MemoryAdapter(await memory.contents)
    json = JSONFileAdapter(path: path + ".json")
  }

  /// What is durable of the model.
  func put(_ record: ModelRecord) async throws {
    guard kind == .json else { return await memory.put(record) }
    try await json.update { items in
      let item = try Item(modelRecord: record)
      if let index = items.firstIndex(where: { $0.modelRecord.id == record.id }) {
        items[index] = item
      } else {
        items.append(item)
      }
    }
  }

  func remove(_ id: ModelRecord.ID) async throws {
    guard kind == .json else { return await memory.remove(id) }
    try await json.update { $0.removeAll { $0.modelRecord.id == id } }
  }

  /// Changes fields of a record.
  func edit(_ id: ModelRecord.ID, _ fields: [String: ModelValue]) async throws {
    guard var record = try await base.record(for: id) else { return }
    for (name, value) in fields { record[name] = value }
    try await put(record)
  }

  /// Adds to a counter.
  func count(_ id: ModelRecord.ID, _ difference: Int64 = 1) async throws {
    guard case .integer(let count)? = try await base.record(for: id)?["count"] else { return }
    try await edit(id, ["count": .integer(count + difference)])
  }

  var records: [ModelRecord] {
    get async throws {
      let records =
        kind == .memory ? await memory.records : try await json.elements().map(\.modelRecord)
      return records.sorted { $0.id < $1.id }
    }
  }

  var contents: MemoryAdapter.Contents {
    get async { await memory.contents }
  }

  /// Puts the model back to an earlier state.
  func restore(_ contents: MemoryAdapter.Contents) { memory = MemoryAdapter(contents) }

  func record(_ id: ModelRecord.ID) async throws -> ModelRecord? { try await base.record(for: id) }
}

/// Several devices that share one document.
final class ModelFleet: Sendable {
  let folder: String
  let devices: [Device]

  init(
    _ kinds: [Device.Kind], seed: UInt64 = 1, schema: ModelSchema = notesSchema,
    batchSize: Int = 200
  ) throws {
    let inMemory = "/dev/shm"
    let parent =
      FileManager.default.isWritableFile(atPath: inMemory) ? inMemory : NSTemporaryDirectory()
    let folder = parent + "/docsync-test-\(getpid())-" + UUID().uuidString
    self.folder = folder
    try FileManager.default.createDirectory(
      atPath: folder, withIntermediateDirectories: true)
    let directory = MemoryDirectory(seed: seed)
    devices = kinds.enumerated().map { index, kind in
      let random = Mutex(SeededRandom(seed: seed &* 31 &+ UInt64(index)))
      var environment = SyncEnvironment()
      environment.random = { random.withLock { $0.next() } }
      environment.retries = .none
      environment.store.places = nil
      return Device(
        path: folder + "/\(index).db", directory: directory.view(seed: seed &+ UInt64(index)),
        kind: kind, environment: environment, schema: schema, batchSize: batchSize)
    }
  }

  deinit {
    do {
      try FileManager.default.removeItem(atPath: folder)
    } catch {
      Issue.record("the folder stayed: \(error)")
    }
  }

  subscript(index: Int) -> Device { devices[index] }

  /// Synchronizes all devices in turn, until no device has anything to do. Returns the last reports.
  @discardableResult
  func settle(rounds: Int = 12) async throws -> [ModelReport] {
    for _ in 1...rounds {
      var reports: [ModelReport] = []
      for device in devices { reports.append(try await device.synchronize()) }
      let isIdle = reports.allSatisfy {
        $0.takenRecords + $0.takenDeletions + $0.savedRecords + $0.deletedRecords == 0
          && $0.synchronization?.isIdle == true
      }
      if isIdle { return reports }
    }
    Issue.record("not at rest after \(rounds) rounds")
    return []
  }

  /// Settles, and expects the same records in all models. Returns them.
  @discardableResult
  func expectEqual(
    sourceLocation: SourceLocation = #_sourceLocation
  ) async throws -> [ModelRecord] {
    let reports = try await settle()
    for report in reports {
      #expect(report.problems == [], sourceLocation: sourceLocation)
    }
    let first = try await devices[0].records
    for device in devices.dropFirst() {
      let records = try await device.records
      #expect(records == first, sourceLocation: sourceLocation)
    }
    for device in devices {
      #expect(try await device.base.hasChanges() == false, sourceLocation: sourceLocation)
      try await device.kill()
    }
    return first
  }
}
