import GRDB
import SyncModel

/// The rows to which integer keys lead, also the keys of rows that the edits in the log removed.
extension TableAccess {
  /// Returns the identity of the row to which a local key leads: a row that has the key, or had it
  /// until an edit that is not sealed. `nil` if there is none.
  ///
  /// - Parameter countsUnseen: Whether rows count that were inserted and removed again, so that
  ///   change sets do not mention them.
  func identity(ofKeyInUse key: Int64, countsUnseen: Bool = false) throws -> RowIdentity? {
    if table.identity == .surrogate {
      if let identity = try explicitIdentity(of: key) {
        return try !countsUnseen && keysInLog().unseen.contains(key) ? nil : identity
      }
      guard try isTaken(key) || keysInLog().gone.contains(key) || mayHaveGoneUnseen(key) else {
        return nil
      }
      return try originalIdentity(of: key)
    }
    if try !isTaken(key) {
      let held = { try self.session.goneKeys.heldIdentity(of: key, in: self.table) }
      guard let values = try loggedKey(key) else { return try held() }
      if try !countsUnseen && cameAndWent(key, as: values) { return try held() }
    }
    return try identity(ofLocalKey: key)
  }

  /// Returns whether the edits in the log gave a local key to a row with declared columns and
  /// removed that row again, so that no other device ever knew it by that key. No row may have the
  /// key now.
  private func cameAndWent(_ key: Int64, as values: [Value]) throws -> Bool {
    try !wasTakenBefore(key, orMoved: true) && row(values) == nil
  }

  /// Returns whether a row from before syncing may have had a key until it was removed unnoticed:
  /// the table was remade and is not compared yet.
  private func mayHaveGoneUnseen(_ key: Int64) throws -> Bool {
    guard table.hasUnstampedRows, try session.tablesToCompare().contains(table.id),
      try session.originalKeys().contains(key, of: table), try !hasOriginalMoved(from: key)
    else { return false }
    return try !session.isGone(originalIdentity(of: key), self)
  }

  private func keysInLog() throws -> LoggedKeys {
    if let loggedKeys { return loggedKeys }
    typealias Entry = CaptureTriggers.Entry
    let kinds = [Entry.delete, .replaced, .present, .hiddenDelete].map { "\($0.rawValue)" }
    var keys = LoggedKeys(
      gone: try Int64.fetchSet(
        session.database,
        sql: "SELECT k0 FROM \(table.logName) WHERE op IN (\(kinds.joined(separator: ", ")))"),
      unseen: [])
    // Triggers do not see how a row of a remade table goes.
    if try !keys.gone.isEmpty || session.tablesToCompare().contains(table.id) {
      keys.unseen = try Int64.fetchSet(
        session.database,
        sql: """
          SELECT k0 FROM (SELECT k0, op, min(seq), \
          sum(op = \(Entry.insert.rawValue)) - sum(op = \(Entry.delete.rawValue)) AS balance \
          FROM \(table.logName) WHERE op <> \(Entry.update.rawValue) GROUP BY k0) \
          WHERE op = \(Entry.insert.rawValue) AND balance >= 0 AND NOT EXISTS \
          (SELECT 1 FROM \(table.quotedName) AS t WHERE t.\(quoted(table.keyColumns[0])) = k0) \
          AND NOT \(session.goneKeys.containedCondition("+k0", in: table.id))
          """
      ).filter { try !isKnown($0) }
      keys.gone.subtract(keys.unseen)
    }
    loggedKeys = keys
    return keys
  }

  /// Returns whether other devices know the row with a local key. If REPLACE removed the row, the
  /// log contains only its insertion.
  private func isKnown(_ key: Int64) throws -> Bool {
    guard let identity = try explicitIdentity(of: key) else { return false }
    guard let state = try stamps.state(of: fingerprint(identity)) else { return false }
    if state.existence == .inserted { return true }
    // Until remade tables are compared, the key of a deleted row still means that row.
    if state.existence == .deleted, try session.areKeysHeld() { return true }
    // It may have been shown although it is deleted.
    guard state.isKept else { return false }
    return try session.keptRows.row(RowKey(table: table.id, identity: identity))?.reason.isShown
      == true
  }

  /// Reads which keys in the log no longer lead to a row. Sealing calls this before it notes that a
  /// row is deleted: afterwards it would seem that other devices never knew that row.
  func readKeysInLog() throws {
    if table.identity == .surrogate { _ = try keysInLog() }
  }

  func forgetGoneKeys() {
    loggedKeys = nil
    rewritten = nil
  }

  /// The keys that are plain values somewhere, and that REPLACE has written in the log again, of
  /// rows that other devices know. Sealing calls this before it notes that a row was inserted:
  /// afterwards every row of the log seems to be known.
  @discardableResult
  func rewrittenKeys() throws -> Set<Int64> {
    if let rewritten { return rewritten }
    let plain = try session.plainKeys.keys(of: table.id)
    var keys: Set<Int64> = []
    if !plain.isEmpty {
      keys = try Int64.fetchSet(
        session.database,
        sql: "SELECT DISTINCT k0 FROM \(table.logName) "
          + "WHERE op = \(CaptureTriggers.Entry.insert.rawValue)"
      ).filter { try plain.contains($0) && isKnown($0) }
    }
    rewritten = keys
    return keys
  }

  /// Returns whether the edits in the log gave a local key to a row, and no row had it before them.
  func isGiven(_ key: Int64) throws -> Bool {
    typealias Entry = CaptureTriggers.Entry
    guard table.identity == .surrogate else {
      // The log knows these rows by their declared columns.
      if try loggedKey(key) != nil {
        if try wasTakenBefore(key) { return false }
        // Its row may have another key by now.
        if try !hasRow(localKey: key) { return true }
      }
      let match = table.keyColumns.enumerated().map { "l.k\($0) = p.\(quoted($1))" }
      let insertion = try statement(
        "SELECT 1 FROM \(table.quotedName) AS p JOIN \(table.logName) AS l "
          + "ON \(match.joined(separator: " AND ")) "
          + "WHERE (l.op = \(Entry.insert.rawValue) OR l.identity IS NOT NULL) "
          + "AND p.\(quoted(table.localKey ?? "rowid")) = ?")
      insertion.bind(key, at: 1)
      defer { insertion.reset() }
      return try insertion.step()
    }
    // A changed key is logged as an insertion; updates by a cascade come before it.
    let first = try statement(
      "SELECT op, identity FROM \(table.logName) WHERE k0 = ? AND op <> \(Entry.update.rawValue) "
        + "ORDER BY seq LIMIT 1")
    first.bind(key, at: 1)
    guard try first.step() else { return false }
    defer { first.reset() }
    guard first.integer(at: 0) == Entry.insert.rawValue else { return false }
    if !session.schema.namers(of: table.id).isEmpty, !first.isNull(at: 1),
      let known = try explicitIdentity(of: key), known.bytes != first.bytes(at: 1)
    {
      // The key stood for a row that is gone, which lives again.
      return false
    }
    return try !rewrittenKeys().contains(key)
  }

  /// Returns the plain values that the edits in the log made keys of rows.
  ///
  /// - Parameter evenForAWhile: Whether all keys count that rows have lost again. Otherwise such a key
  ///   counts as long as it still stands for its row, since other rows contain it in their own keys.
  func givenPlainKeys(evenForAWhile: Bool) throws -> Set<Int64> {
    let plain = try session.plainKeys.keys(of: table.id)
    guard !plain.isEmpty else { return [] }
    guard table.identity == .surrogate else {
      return try Set(plain.filter(hasRow)).union(lostKeys(among: plain)).filter(isGiven)
    }
    let inserted = try Int64.fetchSet(
      session.database,
      sql: "SELECT DISTINCT k0 FROM \(table.logName) "
        + "WHERE op = \(CaptureTriggers.Entry.insert.rawValue)"
    ).intersection(plain)
    let candidates =
      try evenForAWhile
      ? inserted
      : inserted.filter(hasRow).union(session.goneKeys.contained(inserted, in: table.id))
    return try candidates.filter(isGiven)
  }

  /// The identity of a row that has a local key and came unseen into a table that was made again
  /// and is not compared yet; `nil` if there is none.
  func unseenIdentity(ofLocalKey key: Int64) throws -> RowIdentity? {
    guard table.identity == .surrogate, try session.tablesToCompare().contains(table.id),
      let identity = try explicitIdentity(of: key),
      try stamps.state(of: fingerprint(identity)) == nil
    else { return nil }
    return identity
  }

  /// Whether a row with declared columns had a local key before the edits in the log: the row has
  /// lost the key by them, or has been looked at, and none of them inserted it first.
  ///
  /// - Parameter orMoved: Whether it counts too that a row has had the key that had another one
  ///   before.
  func wasTakenBefore(_ key: Int64, orMoved: Bool = false) throws -> Bool {
    let match = table.identityPositions.enumerated().map {
      "i.k\($0) = l.k\($0) COLLATE \(quoted(SQLName(table.columns[$1].collation)))"
    }
    let moved = orMoved ? "" : " OR i.identity <> l.identity"
    let taken = try statement(
      "SELECT 1 FROM \(table.logName) AS l WHERE l.identity = ? AND NOT EXISTS "
        + "(SELECT 1 FROM \(table.logName) AS i WHERE i.seq < l.seq "
        + "AND (i.op = \(CaptureTriggers.Entry.insert.rawValue)\(moved)) "
        + "AND \(match.joined(separator: " AND ")))")
    taken.bind(key, at: 1)
    defer { taken.reset() }
    return try taken.step()
  }
}
