import Foundation
import GRDB
import SyncModel

/// The clients that a store knows, by short number, each with its last applied change set
/// (`docsync_client`).
final class ClientRegistry {
  static let definition = TableDefinition(
    "docsync_client", .document,
    columns: [
      .integer("id", "PRIMARY KEY"), .blob("client", "NOT NULL UNIQUE"),
      .integer("number", "NOT NULL DEFAULT 0", .number), .blob("hash", isOptional: true),
    ],
    damage: [
      "number > 0 AND hash IS NULL", "id NOT BETWEEN 1 AND \(Int32.max)", "length(client) <> 16",
    ])

  private let database: Database
  private var numbers: [ClientIdentifier: Int32] = [:]
  private var clients: [Int32: ClientIdentifier] = [:]

  init(_ database: Database) throws {
    self.database = database
    for row in try StoredRow.fetchAll(database, sql: "SELECT id, client FROM docsync_client") {
      let client = try Self.definition.client(row["client"])
      guard let number = Int32(exactly: try row["id"] as Int), number > 0 else {
        throw Self.definition.damaged()
      }
      numbers[client] = number
      clients[number] = client
    }
  }

  /// Returns the short number of a client, and assigns one to a new client. Number 0 stands for no
  /// client.
  func number(of client: ClientIdentifier) throws -> Int32 {
    if let number = numbers[client] { return number }
    if client == Stamp.zero.client { return 0 }
    try database.execute(
      sql: "INSERT INTO docsync_client (client) VALUES (?)", arguments: [Data(client.bits.bytes)])
    guard let number = Int32(exactly: database.lastInsertedRowID), number > 0 else {
      throw Self.definition.damaged()
    }
    numbers[client] = number
    clients[number] = client
    return number
  }

  /// Returns the short number of a client; `nil` if it has none.
  func knownNumber(of client: ClientIdentifier) -> Int32? { numbers[client] }

  func client(_ number: Int32) -> ClientIdentifier { clients[number] ?? Stamp.zero.client }

  func stamp(_ local: LocalStamp) -> Stamp {
    Stamp(time: HybridTime(rawValue: local.time), client: client(local.client))
  }

  /// Returns whether one stamp precedes another in their total order. Looks clients up only if the
  /// times are equal.
  @inline(__always)
  func precedes(_ left: LocalStamp, _ right: LocalStamp) -> Bool {
    if left.time != right.time { return left.time < right.time }
    if left.client == right.client { return false }
    return client(left.client) < client(right.client)
  }

  /// Returns the last applied change set of each client, this one included.
  func vector() throws -> VersionVector {
    var vector = VersionVector()
    let rows = try StoredRow.fetchAll(
      database, sql: "SELECT client, number, hash FROM docsync_client WHERE number > 0")
    for row in rows {
      vector[try Self.definition.client(row["client"])] = VersionVector.Entry(
        number: try row["number"], hash: try Self.definition.hash(row["hash"]))
    }
    return vector
  }

  func isKnown(_ client: ClientIdentifier) -> Bool { numbers[client] != nil }

  /// Returns the number of the last applied change set of each client that has one, and of `client`
  /// even if that is 0.
  func lastNumbers(and client: Int32) throws -> [(client: Int32, number: Int64)] {
    let statement = try SQLStatement(
      "SELECT id, number FROM docsync_client WHERE number > 0 OR id = ?", on: database)
    statement.bind(Int64(client), at: 1)
    var found: [(client: Int32, number: Int64)] = []
    while try statement.step() {
      found.append((Int32(truncatingIfNeeded: statement.integer(at: 0)), statement.integer(at: 1)))
    }
    return found
  }

  /// Records that no change set counts as applied.
  func takeBackAll() throws {
    try database.execute(sql: "UPDATE docsync_client SET number = 0, hash = NULL")
  }

  /// Records the last change set of a client that counts as applied; `nil` for none.
  func setLast(_ entry: VersionVector.Entry?, of client: ClientIdentifier) throws {
    let number = try number(of: client)
    try database.execute(
      sql: "UPDATE docsync_client SET number = ?, hash = ? WHERE id = ?",
      arguments: [Int64(entry?.number ?? 0), entry.map { Data($0.hash.bytes) }, number])
  }
}
