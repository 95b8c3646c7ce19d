import Foundation
import GRDB
import SyncModel

/// Received change sets that wait for others (`docsync_inbox`).
struct Inbox {
  static let definition = TableDefinition(
    "docsync_inbox", .device(.changeSets),
    columns: [.blob("client"), .integer("number", "", .number), .blob("hash"), .blob("bytes")],
    constraint: "PRIMARY KEY (client, number)")

  let database: Database

  /// Stores a change set until it can be applied. Does nothing if one with its client and number is
  /// stored.
  func add(_ set: ReceivedChangeSet) throws {
    let statement = try SQLStatement(
      "INSERT OR IGNORE INTO docsync_inbox (client, number, hash, bytes) VALUES (?, ?, ?, ?)",
      on: database)
    statement.bind(blob: set.changeSet.header.client.bits.bytes, at: 1)
    statement.bind(Int64(set.changeSet.header.number), at: 2)
    statement.bind(blob: set.hash.bytes, at: 3)
    statement.bind(blob: set.bytes, at: 4)
    try statement.run()
  }

  func count() throws -> Int {
    try Int.fetchOne(database, sql: "SELECT count(*) FROM docsync_inbox") ?? 0
  }

  func has(_ client: ClientIdentifier) throws -> Bool {
    try Bool.fetchOne(
      database, sql: "SELECT EXISTS (SELECT 1 FROM docsync_inbox WHERE client = ?)",
      arguments: [Data(client.bits.bytes)]) ?? false
  }

  /// Returns the numbers of a client's change sets.
  func numbers(of client: ClientIdentifier) throws -> Set<UInt64> {
    let statement = try SQLStatement(
      "SELECT number FROM docsync_inbox WHERE client = ?", on: database)
    statement.bind(blob: client.bits.bytes, at: 1)
    var numbers: Set<UInt64> = []
    while try statement.step() { numbers.insert(try statement.number(at: 0)) }
    return numbers
  }

  /// A change set that waits.
  typealias Entry = (client: ClientIdentifier, number: UInt64, hash: ContentHash)

  /// Returns the change sets in order, and whether there are others, whose client or hash is invalid.
  func all() throws -> (entries: [Entry], hasInvalid: Bool) {
    var entries: [Entry] = []
    var hasInvalid = false
    try forEach(withBytes: false) { client, number, hash, _ in
      if let client, let hash {
        entries.append((client, number, hash))
      } else {
        hasInvalid = true
      }
    }
    return (entries, hasInvalid)
  }

  /// Removes the change sets whose client or hash is invalid, so that they are fetched from the
  /// directory again. Throws ``StoreError/Code/damaged`` if one of them is this client's own: the
  /// store does not fetch those.
  func removeInvalid(own: ClientIdentifier) throws {
    let isInvalid = "(length(client) <> 16 OR length(hash) <> 32)"
    let isOwn = try Bool.fetchOne(
      database,
      sql: "SELECT EXISTS (SELECT 1 FROM docsync_inbox WHERE client = ? AND \(isInvalid))",
      arguments: [Data(own.bits.bytes)])
    guard isOwn == false else { throw Self.definition.damaged() }
    try database.execute(sql: "DELETE FROM docsync_inbox WHERE \(isInvalid)")
  }

  func bytes(
    of client: ClientIdentifier, number: UInt64, hash: ContentHash
  ) throws -> [UInt8] {
    let statement = try SQLStatement(
      "SELECT bytes FROM docsync_inbox WHERE client = ? AND number = ? AND hash = ?", on: database)
    statement.bind(blob: client.bits.bytes, at: 1)
    statement.bind(Int64(clamping: number), at: 2)
    statement.bind(blob: hash.bytes, at: 3)
    guard try statement.step() else { throw Self.definition.damaged() }
    defer { statement.reset() }
    return statement.bytes(at: 0)
  }

  /// Calls `body` with each change set. Its client and its hash are `nil` if they are invalid.
  func forEach(
    withBytes: Bool = true,
    _ body: (ClientIdentifier?, UInt64, ContentHash?, [UInt8]) throws -> Void
  ) throws {
    let reading = try SQLStatement(
      "SELECT client, number, hash\(withBytes ? ", bytes" : "") FROM docsync_inbox "
        + "ORDER BY client, number", on: database)
    while try reading.step() {
      try body(
        Bits128(bytes: Array(reading.content(at: 0))).map(ClientIdentifier.init(bits:)),
        UInt64(bitPattern: reading.integer(at: 1)), ContentHash(bytes: reading.content(at: 2)),
        withBytes ? reading.bytes(at: 3) : [])
    }
  }

  /// Calls `body` with the bytes of a client's change sets, in order.
  func forEach(of client: ClientIdentifier, _ body: ([UInt8]) throws -> Void) throws {
    let statement = try SQLStatement(
      "SELECT bytes FROM docsync_inbox WHERE client = ? ORDER BY number", on: database)
    statement.bind(blob: client.bits.bytes, at: 1)
    while try statement.step() { try body(statement.bytes(at: 0)) }
  }

  func remove(of client: ClientIdentifier, through number: UInt64) throws {
    try database.execute(
      sql: "DELETE FROM docsync_inbox WHERE client = ? AND number <= ?",
      arguments: [Data(client.bits.bytes), Int64(clamping: number)])
  }

  func remove(of client: ClientIdentifier, after number: UInt64) throws {
    try database.execute(
      sql: "DELETE FROM docsync_inbox WHERE client = ? AND number > ?",
      arguments: [Data(client.bits.bytes), Int64(clamping: number)])
  }

  func removeAll() throws { try database.execute(sql: "DELETE FROM docsync_inbox") }
}
