import Foundation
import GRDB
import SyncModel

/// The change sets of this client, apart from what of them is applied.
///
/// Usually all of them are, from the moment of sealing. After the store's
/// content was exchanged, some may wait for others', as anybody's do: they
/// are in the inbox then, and what is sealed meanwhile is in the tables
/// without being counted as applied. Once the last one that waited is
/// applied, all are.
extension StoreSession {
  /// How the outbox names this client.
  var ownBytes: Data { Data(ownClient.bits.bytes) }

  /// The last number that this client has given out; `nil` for none.
  func ownHead() throws -> VersionVector.Entry? {
    let applied = try clients.vector()[ownClient]
    let row = try Row.fetchOne(
      database,
      sql: "SELECT number, hash FROM docsync_outbox WHERE client = ? "
        + "ORDER BY number DESC LIMIT 1",
      arguments: [ownBytes])
    guard let row, let hash = ContentHash(bytes: row["hash"] as Data) else { return applied }
    let sealed = VersionVector.Entry(number: UInt64(row["number"] as Int64), hash: hash)
    return sealed.number > applied?.number ?? 0 ? sealed : applied
  }

  /// Whether own change sets wait for those of others.
  func isAwaitingOthers() throws -> Bool {
    try Bool.fetchOne(
      database, sql: "SELECT EXISTS (SELECT 1 FROM docsync_inbox WHERE client = ?)",
      arguments: [ownBytes]) ?? false
  }

  /// Counts what was sealed while others waited as applied, once none does.
  func completeOwn() throws {
    guard try !isAwaitingOthers(), let head = try ownHead() else { return }
    guard try clients.vector().number(of: ownClient) < head.number else { return }
    try clients.advance(ownClient, to: head)
  }

  /// An own change set, from the outbox or from `bytes`.
  func ownChangeSet(_ number: UInt64, bytes given: [UInt64: [UInt8]]) throws -> ReceivedChangeSet {
    let row = try Row.fetchOne(
      database, sql: "SELECT hash, bytes FROM docsync_outbox WHERE client = ? AND number = ?",
      arguments: [ownBytes, Int64(clamping: number)])
    let kept = row.map { Array($0["bytes"] as Data) } ?? []
    let bytes = kept.isEmpty ? given[number] ?? [] : kept
    let hash = ContentHash(of: bytes)
    guard !bytes.isEmpty, row == nil || (row?["hash"] as Data?) == Data(hash.bytes) else {
      throw StoreError(
        .missing, path: "",
        message: "The whole store does not contain this device's change set \(number), and the "
          + "store does not keep it any more.",
        remedy: "Wait until its file is in the shared directory again, or until a newer whole "
          + "store is.")
    }
    return ReceivedChangeSet(
      changeSet: try ChangeSetCodec.decode(bytes), hash: hash, bytes: bytes)
  }

  /// Keeps a change set until it can be applied.
  func keepWaiting(_ set: ReceivedChangeSet) throws {
    try database.execute(
      sql: "INSERT OR IGNORE INTO docsync_inbox (client, number, hash, bytes) VALUES (?, ?, ?, ?)",
      arguments: [
        Data(set.changeSet.header.client.bits.bytes), Int64(set.changeSet.header.number),
        Data(set.hash.bytes), Data(set.bytes),
      ])
  }

  /// Removes entries of the journal, made after a number, that say what an
  /// earlier one says.
  func withdrawRepeated(after last: Int64) throws {
    let same = [
      "tbl", "identity", "col", "kind", "local_time", "local_client", "remote_time",
      "remote_client",
    ]
    try database.execute(
      sql: """
        DELETE FROM docsync_conflict AS c WHERE number > ?1 AND status <> 'open' AND EXISTS \
        (SELECT 1 FROM docsync_conflict AS o WHERE o.number <= ?1 AND \
        \(same.map { "o.\($0) IS c.\($0)" }.joined(separator: " AND ")))
        """, arguments: [last])
  }

  // MARK: - Another generation

  private static let returningKeys = "returning/"

  /// Empties inbox and outbox, and keeps the own change sets after a number,
  /// which are to be written anew.
  func setAsideOwn(
    after contained: UInt64, bytes: [UInt64: [UInt8]]
  ) throws -> [ContentReplacement.OwnChangeSet] {
    let numbers = try Int64.fetchAll(
      database,
      sql: "SELECT number FROM docsync_outbox WHERE client = ? AND number > ? ORDER BY number",
      arguments: [ownBytes, Int64(clamping: contained)])
    for number in numbers {
      let set = try ownChangeSet(UInt64(number), bytes: bytes)
      try database.execute(
        sql: "INSERT OR REPLACE INTO docsync_record (key, value) VALUES (?, ?)",
        arguments: [Self.returningKey(UInt64(number), ownClient), Data(set.bytes)])
    }
    try database.execute(sql: "DELETE FROM docsync_outbox; DELETE FROM docsync_inbox")
    return try returning()
  }

  /// In order of client, then of number.
  private static func returningKey(_ number: UInt64, _ client: ClientIdentifier) -> String {
    let digits = String(number)
    return returningKeys + "\(client)/" + String(repeating: "0", count: 20 - digits.count) + digits
  }

  /// The own change sets that are to be written anew, in order.
  func returning() throws -> [ContentReplacement.OwnChangeSet] {
    let rows = try Row.fetchAll(
      database, sql: "SELECT value FROM docsync_record WHERE key GLOB ? ORDER BY key",
      arguments: [Self.returningKeys + "*"])
    return try rows.map { row in
      let bytes = Array(row["value"] as Data)
      return ContentReplacement.OwnChangeSet(
        number: try ChangeSetCodec.decode(bytes).header.number, hash: ContentHash(of: bytes),
        bytes: bytes)
    }
  }

  func forgetReturning() throws {
    try database.execute(
      sql: "DELETE FROM docsync_record WHERE key GLOB ?", arguments: [Self.returningKeys + "*"])
  }
}
