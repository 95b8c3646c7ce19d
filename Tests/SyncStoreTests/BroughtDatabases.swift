import Foundation
import SyncModel
import Testing

@testable import SyncStore

/// Databases with rows that become stores of documents, with what the tests ask of them.
struct BroughtDatabases {
  let scratch: Scratch

  /// How the database becomes a store of the document.
  enum Way: CaseIterable { case joins, goesOver }

  private func store(
    _ path: String, _ sql: String, _ configuration: StoreConfiguration, later: String = ""
  ) throws -> Device {
    try Program(path).run(sql)
    var binding = scratch.binding(path)
    binding.generation = .random()
    let device = try Device(
      store: LocalStore.create(at: path, binding: binding, configuration: configuration),
      path: path)
    guard !later.isEmpty else { return device }
    let changed = try device.changed(isOpen: false) { try $0.run(later) }
    _ = try changed.store.status()
    return changed
  }

  func snapshot(_ device: Device) throws -> String {
    let path = scratch.path + "/whole-\(UInt64.random(in: 0 ... .max)).db"
    _ = try device.outgoing()
    _ = try device.store.snapshot(to: path)
    return path
  }

  /// A device of a document, and one that has come to it with a database.
  ///
  /// - Parameter later: What the database has in addition, and could not have when its store was made.
  @discardableResult
  func bring(
    _ database: String, to document: String, _ way: Way, later: String = "",
    _ configuration: StoreConfiguration = StoreConfiguration(), at path: String? = nil
  ) throws -> [Device] {
    let path = path ?? scratch.path + "/joining.db"
    let first = try store(path + ".document", document, configuration)
    let whole = try snapshot(first)
    let second: Device
    switch way {
    case .joins:
      try Program(path).run(database + later)
      var binding = first.store.binding
      binding.client = .random()
      let (store, _) = try LocalStore.adopt(
        snapshotAt: whole, mergingDatabaseAt: path, binding: binding)
      second = try Device(store: store, path: whole)
    case .goesOver:
      second = try store(path, database, configuration, later: later)
      var binding = second.store.binding
      binding.generation = first.store.binding.generation
      _ = try second.store.replaceContent(withSnapshotAt: whole, mergingInto: binding)
    }
    try second.checkIntegrity()
    #expect(try version(second) >= version(first))
    return [first, second]
  }

  func version(_ device: Device) throws -> Int {
    try #require(Int(device.rows("PRAGMA user_version")[0]))
  }

  /// Checks that the database is refused and stays as it is, and that the error names the difference.
  func expectRefusal(
    _ database: String, to document: String, _ way: Way, naming words: String...,
    later: String = "", configuration: StoreConfiguration = StoreConfiguration(),
    sourceLocation: SourceLocation = #_sourceLocation
  ) throws {
    let path = scratch.path + "/\(UInt64.random(in: 0 ... .max)).db"
    let error = #expect(throws: StoreError.self, sourceLocation: sourceLocation) {
      try bring(database, to: document, way, later: later, configuration, at: path)
    }
    #expect(error?.code == .schemasDiffer, sourceLocation: sourceLocation)
    for word in words {
      #expect(
        error?.message.contains(word) ?? false, "\(error?.message ?? "")",
        sourceLocation: sourceLocation)
    }
    #expect(error?.path == path, sourceLocation: sourceLocation)
    // What it had is there.
    let other = path + ".expected"
    try Program(other).run(database + later)
    let tables = try Program(other).rows(
      "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type <> 'view' "
        + "AND name NOT GLOB 'sqlite_*'")
    #expect(!tables.isEmpty, sourceLocation: sourceLocation)
    for query in tables.map({ "SELECT * FROM \(quoted(SQLName($0)))" }) + [
      "SELECT name, sql FROM sqlite_schema WHERE name NOT GLOB 'docsync_*' "
        + "AND name NOT GLOB 'sqlite_*' AND tbl_name NOT GLOB 'docsync_*' ORDER BY 1",
      "PRAGMA user_version",
    ] {
      #expect(
        try Program(path).rows(query) == Program(other).rows(query), sourceLocation: sourceLocation)
    }
    // A table that cannot be synchronized would be found.
    if way == .goesOver, later.isEmpty {
      #expect(
        try LocalStore.verify(at: path).report.findings == [], sourceLocation: sourceLocation)
    }
  }

  func expectSound(_ devices: [Device]) throws {
    for device in devices {
      #expect(try LocalStore.verify(at: device.path).report.findings == [])
    }
  }

  func names(_ device: Device, _ type: String) throws -> [String] {
    try device.rows(
      "SELECT name FROM sqlite_schema WHERE type = '\(type)' AND name NOT GLOB 'docsync_*' "
        + "AND name NOT GLOB 'sqlite_*' AND tbl_name NOT GLOB 'docsync_*' ORDER BY 1")
  }
}
