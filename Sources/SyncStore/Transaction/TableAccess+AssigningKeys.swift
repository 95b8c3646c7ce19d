import GRDB
import SyncModel

/// The choice of the integer key that a row gets on this device.
extension TableAccess {
  /// Gives a row with a surrogate key a key that no other row has: the key that it has on its
  /// author's device, if that is free here, or else the next one.
  func assignKey(to identity: RowIdentity, preferring hint: Int64?) throws -> Int64 {
    guard table.identity == .surrogate else {
      let plain = try session.plainKeys.keys(of: table.id)
      for former in [formerKeys[identity], try localKey(of: identity)].compactMap({ $0 })
      where try !plain.contains(former) && !isTaken(former) {
        return former
      }
      var key = try nextKey()
      // Other rows may still refer to a row that the edits in the log removed, by the key that it
      // had.
      while try plain.contains(key) || isTaken(key) || loggedKey(key) != nil {
        key = key == .max ? Self.randomKey() : key + 1
      }
      greatestKey = key
      return key
    }
    if let kept = try session.goneKeys.key(of: rowKey(identity)), try !isTaken(kept) { return kept }
    let original = Bits128(bytes: identity.bytes).flatMap {
      $0.high == table.origin ? Int64(bitPattern: $0.low) : nil
    }
    for wanted in [hint, original].compactMap({ $0 }) where try isFree(wanted) {
      try setIdentity(identity, of: wanted)
      if let original, original != wanted { moved?.insert(original) }
      return wanted
    }
    if let original { moved?.insert(original) }
    var key = try nextKey()
    while try !isFree(key) { key = key == .max ? Self.randomKey() : key + 1 }
    greatestKey = key
    try setIdentity(identity, of: key)
    return key
  }

  /// Gives a row that is not in its table a key by which the log can name it. The log names no
  /// other row by that key, not even a row that is gone.
  func assignLogKey(to identity: RowIdentity) throws -> Int64 {
    let logged =
      try Int64.fetchOne(session.database, sql: "SELECT max(k0) FROM \(table.logName)") ?? 0
    greatestKey = max(try nextKey() - 1, logged)
    return try assignKey(to: identity, preferring: nil)
  }

  private func isFree(_ key: Int64) throws -> Bool {
    if try session.plainKeys.keys(of: table.id).contains(key) { return false }
    if try explicitIdentity(of: key) != nil { return false }
    return try !isTaken(key)
  }

  func isTaken(_ key: Int64) throws -> Bool {
    try reservedKeys.contains(key) || hasRow(localKey: key)
  }

  /// Returns whether the table has a row with a local key.
  func hasRow(localKey key: Int64) throws -> Bool {
    let statement = try statement(
      "SELECT 1 FROM \(table.quotedName) WHERE \(quoted(table.localKey ?? "rowid")) = ?")
    statement.bind(key, at: 1)
    defer { statement.reset() }
    return try statement.step()
  }

  /// Returns one more than the greatest key of the table, of bookkeeping, and, for AUTOINCREMENT,
  /// of all earlier rows.
  private func nextKey() throws -> Int64 {
    if let greatestKey { return greatestKey == .max ? Self.randomKey() : greatestKey + 1 }
    let key = quoted(table.localKey ?? "rowid")
    var greatest =
      try Int64.fetchOne(
        session.database, sql: "SELECT max(\(key)) FROM \(table.quotedName)") ?? 0
    if table.identity == .surrogate {
      greatest = max(
        greatest,
        try Int64.fetchOne(
          session.database, sql: "SELECT max(key) FROM \(table.identityName)") ?? 0)
    }
    if try session.database.tableExists("sqlite_sequence") {
      greatest = max(
        greatest,
        try Int64.fetchOne(
          session.database, sql: "SELECT seq FROM sqlite_sequence WHERE name = ?",
          arguments: [table.name]) ?? 0)
    }
    greatest = max(greatest, 0)
    return greatest == .max ? Self.randomKey() : greatest + 1
  }

  /// Returns a random key. SQLite, too, tries one when the greatest key is taken.
  private static func randomKey() -> Int64 { .random(in: 1..<(.max)) }

  func setIdentity(_ identity: RowIdentity, of key: Int64) throws {
    let statement = try statement(
      "INSERT OR REPLACE INTO \(table.identityName) (key, identity) VALUES (?, ?)")
    statement.bind(key, at: 1)
    statement.bind(blob: identity.bytes, at: 2)
    try statement.run()
  }

  /// Frees the key of a row that is gone, unless another row has it by now.
  func forgetKey(_ key: Int64, of identity: RowIdentity) throws {
    guard table.identity == .surrogate else { return }
    let statement = try statement(
      "DELETE FROM \(table.identityName) WHERE key = ? AND identity = ?")
    statement.bind(key, at: 1)
    statement.bind(blob: identity.bytes, at: 2)
    try statement.run()
  }
}
