import SyncModel
import Testing

@testable import SyncStore

extension Scratch {
  /// The first device of a document of its own.
  func document(
    _ name: String, _ sql: String, configuration: StoreConfiguration,
    options: StoreOptions = StoreOptions()
  ) throws -> Device {
    let path = path + "/\(name).db"
    try Program(path).run(sql)
    var binding = binding(name)
    binding.generation = .random()
    return try Device(
      store: try LocalStore.create(
        at: path, binding: binding, configuration: configuration, options: options), path: path)
  }

  /// A document with one device, and a device that brings the rows of a database, as `join --merge`
  /// does, or as a store that switches to the document.
  func merge(
    _ schema: String, document: String, local: String, prefer: MergedRows.Preference = .document,
    configuration: StoreConfiguration = StoreConfiguration(), localSchema: String? = nil,
    isInPlace: Bool = false, options: StoreOptions = StoreOptions()
  ) throws -> (devices: [Device], merged: MergedRows) {
    let start = "PRAGMA foreign_keys = OFF;"
    let first = try devices(1, start + schema + document, configuration: configuration)[0]
    let database = path + "/local-\(UInt64.random(in: 0 ... .max)).db"
    try Program(database).run(start + (localSchema ?? schema) + local)
    let snapshot = path + "/whole-\(UInt64.random(in: 0 ... .max)).db"
    _ = try first.outgoing()
    _ = try first.store.snapshot(to: snapshot)
    guard isInPlace else {
      let (store, merged) = try LocalStore.adopt(
        snapshotAt: snapshot, mergingDatabaseAt: database, prefer: prefer,
        binding: binding("joined"), options: options)
      return ([first, try Device(store: store, path: snapshot)], merged)
    }
    var binding = self.binding("joined")
    binding.generation = .random()
    let device = try Device(
      store: try LocalStore.create(at: database, binding: binding, configuration: configuration),
      path: database)
    binding = device.store.binding
    binding.generation = first.store.binding.generation
    let result = try device.store.replaceContent(withSnapshotAt: snapshot, mergingInto: binding)
    return ([first, device], try #require(result.merged))
  }
}

/// Checks that nothing is wrong on devices that have converged.
func expectSound(_ devices: [Device]) throws {
  for device in devices {
    #expect(try LocalStore.verify(at: device.path).report.findings == [])
    #expect(try device.sealsNothing())
  }
}
