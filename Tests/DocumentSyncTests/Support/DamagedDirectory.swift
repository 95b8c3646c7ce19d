import DocumentSyncTesting
import Foundation
import SyncDirectory
import SyncModel
import Testing

@testable import DocumentSync

/// A copy of the shared directory of three devices with a busy history, to
/// be damaged by hand.
struct DamagedDirectory {
  /// What such a directory begins with.
  struct Original: Sendable {
    var items: [RelativePath: MemoryDirectory.Item]
    var clients: [ClientIdentifier]
    var document: DocumentName
    var key: IntegrityKey
  }

  /// Three devices that edited, synchronized and uploaded whole stores.
  static let original = Task {
    let fleet = try await TestFleet(3, rows: 5, seed: 11)
    for round in 0..<4 {
      for index in 0..<3 {
        try fleet[index].put("\(round)-\(index)", "by \(index)")
        try fleet[index].put("shared", "round \(round) by \(index)")
        try await fleet[index].synchronize()
      }
      try fleet[round % 3].edit("DELETE FROM notes WHERE id = 'seed-\(round)'")
      try await fleet.settle()
    }
    try await fleet[1].uploadWholeStore()
    for number in 1...3 { try await fleet[2].sendCommand(name: "command \(number)") }
    try await fleet.settle()
    let binding = fleet[0].binding
    return Original(
      items: fleet.memory.items, clients: fleet.managers.map(\.binding.client),
      document: binding.document, key: binding.generation)
  }

  let original: Original
  let memory: MemoryDirectory

  init() async throws {
    original = try await Self.original.value
    memory = MemoryDirectory(seed: 3)
    memory.takeOver(original.items)
  }

  /// The directory of a fleet, as it is.
  init(of fleet: TestFleet) {
    let binding = fleet[0].binding
    original = Original(
      items: fleet.memory.items, clients: fleet.managers.map(\.binding.client),
      document: binding.document, key: binding.generation)
    memory = fleet.memory
  }

  var layout: DirectoryLayout.Generation {
    DirectoryLayout.Document(original.document).generation(original.key)
  }

  // MARK: - What is there

  /// The names in a folder, parsed.
  func names<Name: DirectoryName>(_ folder: RelativePath, as type: Name.Type) throws -> [Name] {
    try memory.list(folder, as: type).names
  }

  var application: RelativePath {
    get throws {
      let names = try names(.root, as: RootName.self).compactMap { name in
        if case .application(let name) = name { name } else { nil }
      }
      return DirectoryLayout.path(of: names[0])
    }
  }

  var generation: RelativePath {
    get throws {
      let names = try names(layout.document.folder, as: DocumentEntryName.self)
      return try layout.document.folder / #require(names.first { !$0.isFolder }).description
    }
  }

  func description(of index: Int) -> RelativePath {
    DirectoryLayout.path(of: ClientDeviceName(client: original.clients[index], revision: 1))
  }

  /// The path of a change set of one device.
  func changeSet(_ number: UInt64, of index: Int) throws -> RelativePath {
    let client = original.clients[index]
    let names = try names(layout.syncChanges(of: client), as: ChangeFileName.self)
    return layout.path(
      of: try #require(names.first { $0.numbers == number...number }), by: client)
  }

  /// The number of a device's last change set.
  func head(of index: Int) throws -> UInt64 {
    let folder = layout.syncChanges(of: original.clients[index])
    return try #require(
      try names(folder, as: ChangeFileName.self).map(\.numbers.upperBound).max())
  }

  /// The newest marker of one device.
  func marker(of index: Int) throws -> RelativePath {
    let names = try names(layout.recentSyncs, as: MarkerName.self)
      .filter { $0.client == original.clients[index] }
    return layout.path(of: try #require(names.max { $0.revision < $1.revision }))
  }

  /// A whole store of one device.
  func wholeStore(of index: Int) throws -> RelativePath {
    let client = original.clients[index]
    let names = try names(layout.wholeStores(of: client), as: WholeStoreName.self)
    return layout.path(of: try #require(names.max()), by: client)
  }

  func bytes(_ path: RelativePath) throws -> [UInt8] { try memory.read(path, limit: .max) }

  // MARK: - Damage

  func take(_ path: RelativePath) { memory.take(path) }

  @discardableResult
  func put(_ bytes: [UInt8], at path: RelativePath) -> RelativePath {
    memory.put(.file(bytes), at: path)
    return path
  }

  func flip(_ path: RelativePath, at offset: Int = -50) throws {
    var content = try bytes(path)
    content[offset < 0 ? content.count + offset : offset] ^= 0x10
    put(content, at: path)
  }

  func cut(_ path: RelativePath, to part: Double = 0.6) throws {
    let content = try bytes(path)
    put(Array(content.prefix(Int(Double(content.count) * part))), at: path)
  }

  /// Bytes of a file with a change before its own hash, which is computed again.
  func resealed(_ bytes: [UInt8], _ change: (inout [UInt8]) -> Void) -> [UInt8] {
    var content = Array(bytes.dropLast(36))
    change(&content)
    return content + ContentHash(of: content).bytes + [0, 0, 0, 0]
  }

  /// The file as a newer version would write it.
  func newer(_ path: RelativePath) throws -> [UInt8] {
    resealed(try bytes(path)) { $0[8] = 2 }
  }

  /// Puts a file in the place of another, under a name with its own hash.
  @discardableResult
  func replace(_ path: RelativePath, by bytes: [UInt8]) throws -> RelativePath {
    take(path)
    return put(bytes, at: try renamed(path, for: bytes))
  }

  /// A path of the same number with the hash of other bytes.
  func renamed(_ path: RelativePath, for bytes: [UInt8]) throws -> RelativePath {
    var parts = path.name.split(separator: ".").map(String.init)
    let position = parts.lastIndex { HashFragment($0) != nil } ?? parts.count - 1
    parts[position] = ContentHash(of: bytes).nameFragment
    return try #require(path.parent) / parts.joined(separator: ".")
  }

  /// Changes what a file with a JSON body says.
  func json<Value: Codable>(
    _ path: RelativePath, as type: Value.Type, _ fileType: Envelope.FileType,
    _ change: (inout Value) -> Void
  ) throws -> [UInt8] {
    var value = try Envelope.decodeJSON(type, from: bytes(path), type: fileType)
    change(&value)
    return try Envelope.encodeJSON(value, type: fileType)
  }

  /// Publishes a marker after a device's newest one.
  @discardableResult
  func publishMarker(
    of index: Int, _ change: (inout RecentSyncFile) -> Void
  ) throws -> RelativePath {
    let last = try marker(of: index)
    var file = try Envelope.decodeJSON(
      RecentSyncFile.self, from: bytes(last), type: .recentSync)
    file.revision += 1
    file.previous = ContentHash(of: try bytes(last))
    change(&file)
    let content = try Envelope.encodeJSON(file, type: .recentSync)
    let name = MarkerName(
      client: file.client, changeHead: file.changeHead?.number ?? 0,
      commandHead: file.commandHead?.number ?? 0, revision: file.revision,
      hash: HashFragment(ContentHash(of: content)))
    return put(content, at: layout.path(of: name))
  }

  /// Publishes a change set after a device's last one, without a marker.
  @discardableResult
  func publishChangeSet(
    of index: Int, _ change: (inout SyncChangeSet) -> Void
  ) throws -> RelativePath {
    let last = try changeSet(head(of: index), of: index)
    var changeSet = try ChangeSetCodec.decode(bytes(last))
    changeSet.header.number += 1
    changeSet.header.previous = ContentHash(of: try bytes(last))
    change(&changeSet)
    let content = try ChangeSetCodec.encode(changeSet)
    let name = ChangeSetName(
      number: changeSet.header.number, hash: HashFragment(ContentHash(of: content)))
    return put(content, at: layout.path(of: name, by: original.clients[index]))
  }

  /// Publishes a whole store after a device's last one, with another database
  /// or header.
  @discardableResult
  func publishWholeStore(
    of index: Int, database change: (String) throws -> Void = { _ in },
    header changeHeader: (inout WholeStoreHeader) -> Void = { _ in }
  ) throws -> RelativePath {
    let scratch = try Scratch()
    let operation = SyncOperation<Void>("test", environment: SyncEnvironment())
    let file = WholeStoreFile(OperationContext(operation))
    let last = try wholeStore(of: index)
    try memory.download(last, to: scratch.path + "/old", limit: .max)
    let old = try file.check(scratch.path + "/old")
    try file.expand(old, at: scratch.path + "/old", to: scratch.path + "/database")
    try change(scratch.path + "/database")
    var header = old.header
    header.number += 1
    changeHeader(&header)
    let new = try file.write(
      scratch.path + "/database", header: header, to: scratch.path + "/new")
    let content = Array(try Data(contentsOf: URL(fileURLWithPath: scratch.path + "/new")))
    let name = WholeStoreName(number: header.number, hash: HashFragment(new.hash))
    return put(content, at: layout.path(of: name, by: original.clients[index]))
  }

  /// Has a device's marker list a whole store as found whole, perhaps as
  /// another than it is.
  func listWholeStore(
    _ path: RelativePath, of index: Int,
    as change: (inout RecentSyncFile.WholeStore) -> Void = { _ in }
  ) throws {
    let scratch = try Scratch()
    let operation = SyncOperation<Void>("test", environment: SyncEnvironment())
    try memory.download(path, to: scratch.path + "/file", limit: .max)
    let checked = try WholeStoreFile(OperationContext(operation)).check(scratch.path + "/file")
    var listed = RecentSyncFile.WholeStore(
      client: checked.header.client, number: checked.header.number, hash: checked.hash,
      vector: checked.header.vector, commands: checked.header.commands,
      byteCount: checked.byteCount)
    change(&listed)
    try publishMarker(of: index) { $0.wholeStores.append(listed) }
  }

  // MARK: - Verifying

  /// - Parameter view: How the directory is reached.
  func verify(
    application: String? = nil, through view: (any SharedDirectory)? = nil
  ) async throws -> VerifyReport {
    var environment = SyncEnvironment()
    environment.retries = .none
    return try await ApplicationSyncManager(
      directory: view ?? memory, applicationIdentifier: application, environment: environment
    ).verify()
  }
}

/// A path below a folder, for names that can be names.
func / (folder: RelativePath, name: String) -> RelativePath {
  guard let path = folder.appending(name) else { preconditionFailure("\(name) is no name") }
  return path
}
