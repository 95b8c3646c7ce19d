import Foundation
import GRDB

/// Small values for the layer above (`docsync_record`).
struct DeviceRecords {
  static let definition = TableDefinition(
    "docsync_record", .device(.store), columns: [.text("key", "PRIMARY KEY"), .blob("value")],
    isWithoutRowID: true)

  let database: Database

  /// Returns the value of a key, or `nil` if there is none.
  func read(_ key: String) throws -> [UInt8]? {
    try Data.fetchOne(
      database.cachedStatement(sql: "SELECT value FROM docsync_record WHERE key = ?"),
      arguments: [key]
    ).map(Array.init)
  }

  /// Returns all keys and values.
  func all() throws -> [(key: String, value: [UInt8])] {
    try StoredRow.fetchAll(database, sql: "SELECT key, value FROM docsync_record").map { row in
      (try row["key"], Array(try row["value"] as Data))
    }
  }

  /// Returns the values whose keys begin with a text, in order of key.
  func values(startingWith prefix: String) throws -> [[UInt8]] {
    try StoredRow.fetchAll(
      database, sql: "SELECT value FROM docsync_record WHERE key GLOB ? ORDER BY key",
      arguments: [prefix + "*"]
    ).map { Array(try $0["value"] as Data) }
  }

  func count(startingWith prefix: String) throws -> Int {
    try Int.fetchOne(
      database, sql: "SELECT count(*) FROM docsync_record WHERE key GLOB ?",
      arguments: [prefix + "*"]) ?? 0
  }

  /// Writes a value; `nil` removes it.
  func write(_ key: String, to value: [UInt8]?) throws {
    guard let value else {
      return try database.execute(
        sql: "DELETE FROM docsync_record WHERE key = ?", arguments: [key])
    }
    try database.execute(
      sql: "INSERT OR REPLACE INTO docsync_record (key, value) VALUES (?, ?)",
      arguments: [key, Data(value)])
  }

  func write(_ records: [String: [UInt8]?]) throws {
    for (key, value) in records { try write(key, to: value) }
  }

  /// Renames a key. The value replaces one that the new key already has.
  func rename(_ key: String, to other: String) throws {
    try database.execute(
      sql: "UPDATE OR REPLACE docsync_record SET key = ? WHERE key = ?", arguments: [other, key])
  }

  func removeAll(startingWith prefix: String) throws {
    try database.execute(
      sql: "DELETE FROM docsync_record WHERE key GLOB ?", arguments: [prefix + "*"])
  }
}
