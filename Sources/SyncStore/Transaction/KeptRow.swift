import GRDB
import SyncModel

/// A row whose cells bookkeeping stores, since its table does not show it as it is in the merged
/// state.
struct KeptRow {
  enum Reason: Hashable {
    /// It exists, or changes of it are known, and it is not shown.
    case parked(ParkedRow.Reason)
    /// It is deleted. Bookkeeping stores its cells, in case it has to come back, or only its new
    /// identity.
    case tombstone
    /// It is deleted, and shown since other rows refer to it.
    case rescued
    /// It is shown with other references than its own.
    case overlaid
    /// It exists, and is shown under the identity that it has with the stand-ins of the rows that
    /// it refers to.
    case elsewhere
    /// It does not exist: its table shows another row under this identity.
    case borrowed
  }

  var reason: Reason
  /// The new identity of a deleted row that moved. For a row that exists and refers by its identity
  /// to rows that have stand-ins: the identity under which it is shown, or would be.
  var movedTo: RowIdentity?
  /// The cells, in order of column. For a row that is shown, only those in which it differs.
  var cells: [(column: Int, value: Value)]
}

extension KeptRow.Reason: RawRepresentable {
  init?(rawValue: String) {
    switch rawValue {
    case "tombstone": self = .tombstone
    case "rescued": self = .rescued
    case "overlaid": self = .overlaid
    case "elsewhere": self = .elsewhere
    case "borrowed": self = .borrowed
    default:
      guard let reason = ParkedRow.Reason(rawValue: rawValue) else { return nil }
      self = .parked(reason)
    }
  }

  var rawValue: String {
    switch self {
    case .parked(let reason): reason.rawValue
    case .tombstone: "tombstone"
    case .rescued: "rescued"
    case .overlaid: "overlaid"
    case .elsewhere: "elsewhere"
    case .borrowed: "borrowed"
    }
  }

  /// Whether the row's table has a row with its identity.
  var isShown: Bool {
    switch self {
    case .rescued, .overlaid, .borrowed: true
    case .parked, .tombstone, .elsewhere: false
    }
  }

  /// The reasons that are not reported as parked rows, as a list in SQL.
  static var silentList: String {
    let reasons: [KeptRow.Reason] = [.tombstone, .rescued, .overlaid, .elsewhere, .borrowed]
    return "(\(reasons.map { literal($0.rawValue) }.joined(separator: ", ")))"
  }
}

/// The key by which a row's reference finds the parent.
struct ReferenceKey: Hashable {
  var parent: Int
  var columns: String
  var key: RowIdentity
}

extension StoreSession {
  /// What bookkeeping stores about a row; `nil` if it stores nothing.
  func kept(_ row: RowKey) throws -> KeptRow? {
    let statement = try access(row.table).statement(
      "SELECT reason, moved, cells FROM docsync_kept WHERE tbl = ? AND identity = ?")
    statement.bind(Int64(row.table), at: 1)
    statement.bind(blob: row.identity.bytes, at: 2)
    guard try statement.step() else { return nil }
    defer { statement.reset() }
    guard let reason = KeptRow.Reason(rawValue: statement.text(at: 0)) else {
      throw DatabaseError(resultCode: .SQLITE_CORRUPT, message: "docsync_kept is damaged")
    }
    let cells = try KeptCells.decode(statement.bytes(at: 2))
    guard cells.allSatisfy({ schema[row.table].columns.indices.contains($0.column) }) else {
      throw StoreError(damagedTable: "docsync_kept", "cells of columns that do not exist")
    }
    return KeptRow(
      reason: reason,
      movedTo: statement.isNull(at: 1) ? nil : RowIdentity(bytes: statement.bytes(at: 1)),
      cells: cells)
  }

  /// Stores a row that is not stored yet, with its references and claims.
  func keep(
    _ kept: KeptRow, of row: RowKey, references: Set<ReferenceKey> = [], claims: [ClaimKey] = []
  ) throws {
    let access = try access(row.table)
    remember(row, isUndead: kept.reason == .rescued || kept.reason == .borrowed)
    let keeping = try access.statement(
      "INSERT OR REPLACE INTO docsync_kept (tbl, identity, reason, moved, cells) "
        + "VALUES (?, ?, ?, ?, ?)")
    keeping.bind(Int64(row.table), at: 1)
    keeping.bind(blob: row.identity.bytes, at: 2)
    keeping.bind(kept.reason.rawValue, at: 3)
    if let destination = kept.movedTo {
      keeping.bind(blob: destination.bytes, at: 4)
    } else {
      keeping.bind(null: 4)
    }
    keeping.bind(blob: KeptCells.encode(kept.cells), at: 5)
    try keeping.run()
    try noteReferences(references, of: row)
    for claim in claims {
      let statement = try access.statement(
        "INSERT OR IGNORE INTO docsync_claim (tbl, ix, key, identity) VALUES (?, ?, ?, ?)")
      statement.bind(Int64(claim.table), at: 1)
      statement.bind(Int64(claim.index), at: 2)
      statement.bind(blob: claim.key.bytes, at: 3)
      statement.bind(blob: row.identity.bytes, at: 4)
      try statement.run()
    }
  }

  /// Notes what a stored row refers to. Idempotent.
  func noteReferences(_ references: Set<ReferenceKey>, of row: RowKey) throws {
    for reference in references {
      let statement = try access(row.table).statement(
        "INSERT OR IGNORE INTO docsync_kept_reference (parent, columns, key, tbl, identity) "
          + "VALUES (?, ?, ?, ?, ?)")
      statement.bind(Int64(reference.parent), at: 1)
      statement.bind(reference.columns, at: 2)
      statement.bind(blob: reference.key.bytes, at: 3)
      statement.bind(Int64(row.table), at: 4)
      statement.bind(blob: row.identity.bytes, at: 5)
      try statement.run()
    }
  }

  /// Replaces the stored cells of a row. They are in order of column.
  func replaceCells(of row: RowKey, with cells: [(column: Int, value: Value)]) throws {
    let replacing = try access(row.table).statement(
      "UPDATE docsync_kept SET cells = ? WHERE tbl = ? AND identity = ?")
    replacing.bind(blob: KeptCells.encode(cells), at: 1)
    replacing.bind(Int64(row.table), at: 2)
    replacing.bind(blob: row.identity.bytes, at: 3)
    try replacing.run()
  }

  /// Removes what bookkeeping stores about a row.
  func forgetKept(_ row: RowKey) throws {
    remember(row, isUndead: false)
    for table in ["docsync_kept", "docsync_kept_reference", "docsync_claim"] {
      let statement = try access(row.table).statement(
        "DELETE FROM \(table) WHERE tbl = ? AND identity = ?")
      statement.bind(Int64(row.table), at: 1)
      statement.bind(blob: row.identity.bytes, at: 2)
      try statement.run()
    }
  }

  /// The stored rows that have a reference.
  func keptRows(referringBy reference: ReferenceKey) throws -> [RowKey] {
    let statement = try access(reference.parent).statement(
      "SELECT tbl, identity FROM docsync_kept_reference "
        + "WHERE parent = ? AND columns = ? AND key = ?")
    statement.bind(Int64(reference.parent), at: 1)
    statement.bind(reference.columns, at: 2)
    statement.bind(blob: reference.key.bytes, at: 3)
    var found: [RowKey] = []
    while try statement.step() {
      found.append(
        RowKey(
          table: try statement.number(at: 0),
          identity: RowIdentity(bytes: statement.bytes(at: 1))))
    }
    return found
  }

  /// The unique values that a row claimed when it was stored.
  func keptClaims(of row: RowKey) throws -> [ClaimKey] {
    let statement = try access(row.table).statement(
      "SELECT ix, key FROM docsync_claim WHERE tbl = ? AND identity = ?")
    statement.bind(Int64(row.table), at: 1)
    statement.bind(blob: row.identity.bytes, at: 2)
    var found: [ClaimKey] = []
    while try statement.step() {
      let index: Int = try statement.number(at: 0)
      guard
        index == ClaimKey.identityIndex || schema[row.table].uniqueIndexes.indices.contains(index)
      else {
        statement.reset()
        throw StoreError(damagedTable: "docsync_claim", "there is no index \(index)")
      }
      found.append(
        ClaimKey(
          table: row.table, index: index,
          key: RowIdentity(bytes: statement.bytes(at: 1))))
    }
    return found
  }

  /// The rows that exist and are shown under the identity of `row`, or would be if nothing
  /// prevented it.
  func rows(shownAs row: RowKey) throws -> [RowKey] {
    let statement = try access(row.table).statement(
      "SELECT c.identity FROM docsync_claim AS c JOIN docsync_kept AS k "
        + "ON k.tbl = c.tbl AND k.identity = c.identity "
        + "WHERE c.tbl = ?1 AND c.ix = \(ClaimKey.identityIndex) AND c.key = ?2 AND k.moved = ?2 "
        + "AND k.reason <> 'tombstone'")
    statement.bind(Int64(row.table), at: 1)
    statement.bind(blob: row.identity.bytes, at: 2)
    var found: [RowKey] = []
    while try statement.step() {
      found.append(RowKey(table: row.table, identity: RowIdentity(bytes: statement.bytes(at: 0))))
    }
    return found
  }

  /// The row that is shown under the identity of another one, with its cells.
  func borrower(of row: RowKey) throws -> KeptRow? {
    try rows(shownAs: row).lazy.compactMap { try self.kept($0) }.first { $0.reason == .elsewhere }
  }

  /// The rows that are shown although they are deleted, or never existed.
  func undeadRows() throws -> Set<RowKey> {
    if let undead { return undead }
    // Two queries, each of which has an index.
    let statement = try SQLStatement(
      "SELECT tbl, identity FROM docsync_kept WHERE reason = 'rescued' UNION ALL "
        + "SELECT tbl, identity FROM docsync_kept WHERE reason = 'borrowed'", on: database)
    var found: Set<RowKey> = []
    while try statement.step() {
      found.insert(
        RowKey(
          table: try statement.number(at: 0),
          identity: RowIdentity(bytes: statement.bytes(at: 1))))
    }
    undead = found
    return found
  }

  private func remember(_ row: RowKey, isUndead: Bool) {
    if isUndead { undead?.insert(row) } else { undead?.remove(row) }
  }
}
