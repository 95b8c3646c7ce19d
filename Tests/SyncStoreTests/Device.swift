import CSQLite
import Foundation
import SyncModel
import Testing

@testable import SyncStore

/// A device with a store, and the means to edit it as another program would:
/// through a connection of its own that knows nothing of syncing.
final class Device {
  let store: LocalStore
  let path: String
  private(set) var program: Program
  /// What the shared directory would have of the document.
  var world: World?

  init(store: LocalStore, path: String) throws {
    self.store = store
    self.path = path
    program = try Program(path)
  }

  /// The same device after something was done to the file, while the store
  /// was open, or after it was closed and before it was opened again.
  func changed(isOpen: Bool, _ body: (Device) throws -> Void) throws -> Device {
    let options = store.options
    if !isOpen { try store.close() }
    try body(self)
    if isOpen { return self }
    let device = try Device(store: try LocalStore.open(at: path, options: options), path: path)
    world?.remove(self)
    world?.add(device)
    return device
  }

  /// Runs SQL as another program, with foreign keys on unless told otherwise.
  func run(_ sql: String) throws { try program.run(sql) }

  /// Makes the clock of ``run(_:)`` stand, `offset` seconds from `base`. Clocks whose distance
  /// matters have one base.
  func setClock(offset: Double, from base: Date = Date()) throws {
    try program.setClock(offset: offset, from: base)
  }

  /// Makes the clock of ``run(_:)`` stand at a time after 1970.
  func setClock(milliseconds: Int64) throws { try program.setClock(milliseconds: milliseconds) }

  /// Makes the identities that ``run(_:)`` draws predictable: `letter`, and
  /// how many were drawn before.
  func setIdentities(letter: UInt8) throws { try program.setIdentities(letter: letter) }

  /// The rows of a query.
  func values(_ sql: String) throws -> [[Value]] { try program.values(sql) }

  /// The rows of a query, each as text with `|` between the columns.
  func rows(_ sql: String) throws -> [String] { try program.rows(sql) }

  /// Seals, and gives the change sets after `number` as others receive them.
  func outgoing(after number: UInt64 = 0) throws -> [ReceivedChangeSet] {
    try world?.compareRemadeTables(of: self)
    _ = try store.seal()
    return try store.sealedChangeSets().filter { $0.number > number }.map { sealed in
      let bytes = try store.sealedBytes(sealed.number)
      try store.markPublished(sealed.number)
      return ReceivedChangeSet(
        changeSet: try ChangeSetCodec.decode(bytes), hash: ContentHash(of: bytes), bytes: bytes)
    }
  }

  /// Applies everything of `others` that this device does not have.
  @discardableResult
  func receive(from others: Device...) throws -> ApplyReport {
    var received: [ReceivedChangeSet] = []
    for other in others {
      let applied = try store.appliedVector().number(of: other.store.binding.client)
      received += try other.outgoing(after: applied)
    }
    try world?.compareRemadeTables(of: self)
    return try store.apply(received)
  }

  /// Checks what holds at every commit.
  func checkIntegrity() throws {
    #expect(try rows("PRAGMA integrity_check") == ["ok"])
    #expect(try rows("PRAGMA foreign_key_check") == [])
  }
}

extension StoreOptions {
  /// Options for a store that another program writes to all the time. SQLite grants a lock to
  /// any of those that wait for it, so on a busy machine the store may wait for long.
  static var patient: StoreOptions {
    var options = StoreOptions()
    options.busyTimeout = 60
    return options
  }
}

/// Another program that has the database open.
final class Program {
  private let connection: OpaquePointer

  struct Failure: Error, CustomStringConvertible {
    var description: String
  }

  init(_ path: String, foreignKeys: Bool = true) throws {
    var connection: OpaquePointer?
    guard sqlite3_open(path, &connection) == SQLITE_OK, let connection else {
      throw Failure(description: "cannot open \(path)")
    }
    self.connection = connection
    // Hundreds of tests share two processors; a lock may be held for long.
    sqlite3_busy_timeout(connection, 60_000)
    try run("PRAGMA foreign_keys = \(foreignKeys ? "ON" : "OFF")")
  }

  deinit { sqlite3_close_v2(connection) }

  func run(_ sql: String) throws {
    guard sqlite3_exec(connection, sql, nil, nil, nil) == SQLITE_OK else {
      throw Failure(description: "\(String(cString: sqlite3_errmsg(connection))): \(sql)")
    }
  }

  var isInTransaction: Bool { sqlite3_get_autocommit(connection) == 0 }

  func rows(_ sql: String) throws -> [String] {
    try values(sql).map { $0.map(Self.text).joined(separator: "|") }
  }

  func values(_ sql: String) throws -> [[Value]] {
    let statement = try SQLStatement(sql, on: connection)
    var rows: [[Value]] = []
    while try statement.step() {
      let count = Int(sqlite3_column_count(statement.handle))
      rows.append((0..<count).map { statement.value(at: $0) })
    }
    return rows
  }

  /// Makes this program's clock stand, `offset` seconds from `base`. Only its
  /// own statements see that.
  func setClock(offset: Double, from base: Date = Date()) throws {
    try setClock(milliseconds: Int64((base.timeIntervalSince1970 + offset) * 1000))
  }

  /// Makes this program's clock stand at a time after 1970.
  func setClock(milliseconds: Int64) throws {
    let julianDay = Double(milliseconds) / 86_400_000 + 2_440_587.5
    let day = Unmanaged.passRetained(NSNumber(value: julianDay)).toOpaque()
    let code = sqlite3_create_function_v2(
      connection, "julianday", -1, SQLITE_UTF8, day,
      { context, _, _ in
        guard let day = sqlite3_user_data(context) else { return }
        let number = Unmanaged<NSNumber>.fromOpaque(day).takeUnretainedValue()
        sqlite3_result_double(context, number.doubleValue)
      }, nil, nil, { if let day = $0 { Unmanaged<NSNumber>.fromOpaque(day).release() } })
    guard code == SQLITE_OK else { throw Failure(description: "no function: \(code)") }
  }

  /// What `randomblob` gives this program from now on: `letter`, zeros, and
  /// how many it gave before.
  func setIdentities(letter: UInt8) throws {
    let drawn = Unmanaged.passRetained(DrawnIdentities(letter: letter)).toOpaque()
    let code = sqlite3_create_function_v2(
      connection, "randomblob", 1, SQLITE_UTF8, drawn,
      { context, _, _ in
        guard let drawn = sqlite3_user_data(context) else { return }
        let bytes = Unmanaged<DrawnIdentities>.fromOpaque(drawn).takeUnretainedValue().next()
        sqlite3_result_blob(
          context, bytes, Int32(bytes.count), unsafeBitCast(-1, to: sqlite3_destructor_type.self))
      }, nil, nil, { if let drawn = $0 { Unmanaged<DrawnIdentities>.fromOpaque(drawn).release() } })
    guard code == SQLITE_OK else { throw Failure(description: "no function: \(code)") }
  }

  private final class DrawnIdentities {
    let letter: UInt8
    var count: UInt64 = 0

    init(letter: UInt8) { self.letter = letter }

    func next() -> [UInt8] {
      count += 1
      return Bits128(high: UInt64(letter) << 56, low: count).bytes
    }
  }

  static func text(_ value: Value) -> String {
    switch value {
    case .null: "NULL"
    case .integer(let integer): "\(integer)"
    case .real(let real): "\(real)"
    case .text(let text): String(decoding: text, as: UTF8.self)
    case .blob(let blob):
      "x" + blob.map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined()
    case .identity: "?"
    }
  }
}

/// A directory of its own for one test, removed at the end.
final class Scratch {
  let path: String

  init() throws {
    // In memory where there is such a place: stores are flushed often.
    let inMemory = "/dev/shm"
    let folder =
      FileManager.default.isWritableFile(atPath: inMemory) ? inMemory : NSTemporaryDirectory()
    path = folder + "/docsync-test-\(getpid())-\(UInt64.random(in: 0 ... .max))"
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
  }

  deinit {
    do {
      try FileManager.default.removeItem(atPath: path)
    } catch {
      Issue.record("cannot remove \(path): \(error)")
    }
  }

  private static let root = RootIdentifier.random()

  func binding(_ description: String, client: ClientIdentifier = .random()) -> StoreBinding {
    StoreBinding(
      application: "test", root: Self.root, directory: path, documentIdentifier: "document",
      document: DocumentName(bits: Bits128(high: 1, low: 1)),
      generation: IntegrityKey(bits: Bits128(high: 2, low: 2)), generationOrdinal: 1,
      client: client, clientDescription: description)
  }

  /// Makes a database with `sql`, puts it under sync on the first device, and
  /// has the others join.
  func devices(
    _ count: Int, _ sql: String, configuration: StoreConfiguration = StoreConfiguration(),
    options: StoreOptions = StoreOptions(), clients: [ClientIdentifier]? = nil
  ) throws -> [Device] {
    func binding(_ number: Int) -> StoreBinding {
      self.binding("device \(number)", client: clients?[number - 1] ?? .random())
    }
    let first = path + "/device1.db"
    try Program(first).run(sql)
    let store = try LocalStore.create(
      at: first, binding: binding(1), configuration: configuration, options: options)
    var devices = [try Device(store: store, path: first)]
    let world = World(beginning: path + "/beginning.db")
    world.add(devices[0])
    for number in 1..<max(count, 1) {
      let path = path + "/device\(number + 1).db"
      _ = try store.snapshot(to: path)
      if number == 1 { try FileManager.default.copyItem(atPath: path, toPath: world.beginning) }
      devices.append(
        try Device(
          store: try LocalStore.adopt(
            snapshotAt: path, binding: binding(number + 1), options: options),
          path: path))
      world.add(devices[number])
    }
    return devices
  }
}
