import Foundation
import GRDB
import SyncModel

/// The rows of which bookkeeping stores more than their tables show (`docsync_kept`), with their
/// references (`docsync_kept_reference`) and the unique values that they claim (`docsync_claim`).
final class KeptRows {
  static let definition = TableDefinition(
    "docsync_kept", .document,
    columns: [
      .integer("tbl", "", .table), .blob("identity", "", .row), .text("reason", "NOT NULL"),
      .blob("moved", "", .row, isOptional: true), .blob("cells", "NOT NULL", .cells),
    ], constraint: "PRIMARY KEY (tbl, identity)", isWithoutRowID: true,
    indexes: [
      // Rows that are shown although they are deleted.
      TableDefinition.Index(
        name: "docsync_kept_rescued", columns: "tbl", condition: "reason = 'rescued'",
        isLate: true),
      // Rows under whose identity another row is shown.
      TableDefinition.Index(
        name: "docsync_kept_borrowed", columns: "tbl", condition: "reason = 'borrowed'", version: 4),
    ])

  /// The references of these rows, by the row that they refer to.
  static let references = TableDefinition(
    "docsync_kept_reference", .document,
    columns: [
      .integer("parent", "", .parent), .text("columns"), .blob("key"), .integer("tbl", "", .table),
      .blob("identity", "", .row),
    ], constraint: "PRIMARY KEY (parent, columns, key, tbl, identity)", isWithoutRowID: true,
    indexes: [TableDefinition.Index(name: "docsync_kept_reference_row", columns: "tbl, identity")])

  static let claims = TableDefinition(
    "docsync_claim", .document,
    columns: [
      .integer("tbl", "", .table), .integer("ix"), .blob("key"), .blob("identity", "", .row),
    ], constraint: "PRIMARY KEY (tbl, ix, key, identity)", isWithoutRowID: true,
    indexes: [TableDefinition.Index(name: "docsync_claim_row", columns: "tbl, identity")])

  let schema: StoreSchema
  private let statements: StatementCache
  /// The result of ``undead()``; `nil` until it is first asked for.
  private var undeadRows: Set<RowKey>?

  init(_ statements: StatementCache, _ schema: StoreSchema) {
    self.statements = statements
    self.schema = schema
  }

  var database: Database { statements.database }

  /// Returns the table of a row. Throws if there is none: the number may come from damaged
  /// bookkeeping.
  private func table(of row: RowKey) throws -> TableSchema {
    guard schema.contains(row.table) else {
      throw StoreError(damagedTable: TableRegistry.tables.name, "no table has the id \(row.table)")
    }
    return schema[row.table]
  }

  // MARK: - One row

  /// Returns what bookkeeping stores of a row, with values as their columns would store them now, or
  /// `nil` if it stores nothing.
  func row(_ row: RowKey) throws -> KeptRow? {
    let table = try table(of: row)
    let statement = try statements.statement(
      "SELECT reason, moved, cells FROM docsync_kept WHERE tbl = ? AND identity = ?")
    statement.bind(row)
    guard try statement.step() else { return nil }
    defer { statement.reset() }
    guard let reason = KeptRow.Reason(rawValue: statement.text(at: 0)) else {
      throw Self.definition.damaged()
    }
    let cells = try KeptCells.decode(statement.bytes(at: 2))
    guard cells.allSatisfy({ table.columns.indices.contains($0.column) }) else {
      throw StoreError(damagedTable: "docsync_kept", "cells of columns that do not exist")
    }
    return KeptRow(
      reason: reason,
      movedTo: statement.isNull(at: 1) ? nil : RowIdentity(bytes: statement.bytes(at: 1)),
      cells: cells.map { ($0.column, table.columns[$0.column].inPresentForm($0.value)) })
  }

  /// Stores a row that is not stored yet, with its references and claims.
  func store(
    _ kept: KeptRow, of row: RowKey, references: Set<ReferenceKey> = [], claims: [ClaimKey] = []
  ) throws {
    _ = try table(of: row)
    remember(row, isUndead: kept.reason == .rescued || kept.reason == .borrowed)
    let keeping = try statements.statement(
      "INSERT OR REPLACE INTO docsync_kept (tbl, identity, reason, moved, cells) "
        + "VALUES (?, ?, ?, ?, ?)")
    keeping.bind(row)
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
      let statement = try statements.statement(
        "INSERT OR IGNORE INTO docsync_claim (tbl, ix, key, identity) VALUES (?, ?, ?, ?)")
      statement.bind(Int64(claim.table), at: 1)
      statement.bind(Int64(claim.index), at: 2)
      statement.bind(blob: claim.key.bytes, at: 3)
      statement.bind(blob: row.identity.bytes, at: 4)
      try statement.run()
    }
  }

  /// Stores the references of a stored row. Idempotent.
  func noteReferences(_ references: Set<ReferenceKey>, of row: RowKey) throws {
    for reference in references {
      let statement = try statements.statement(
        "INSERT OR IGNORE INTO docsync_kept_reference (parent, columns, key, tbl, identity) "
          + "VALUES (?, ?, ?, ?, ?)")
      bind(reference, to: statement)
      statement.bind(row, at: 4)
      try statement.run()
    }
  }

  private func bind(_ reference: ReferenceKey, to statement: SQLStatement) {
    statement.bind(Int64(reference.parent), at: 1)
    statement.bind(reference.columns.text, at: 2)
    statement.bind(blob: reference.key.bytes, at: 3)
  }

  /// Replaces the stored cells of a row. The cells must be in order of column.
  func replaceCells(of row: RowKey, with cells: [(column: Int, value: Value)]) throws {
    let replacing = try statements.statement(
      "UPDATE docsync_kept SET cells = ? WHERE tbl = ? AND identity = ?")
    replacing.bind(blob: KeptCells.encode(cells), at: 1)
    replacing.bind(row, at: 2)
    try replacing.run()
  }

  /// Removes a stored row, with its references and claims.
  func remove(_ row: RowKey) throws {
    remember(row, isUndead: false)
    for table in [Self.definition, Self.references, Self.claims] {
      let statement = try statements.statement(
        "DELETE FROM \(table.name) WHERE tbl = ? AND identity = ?")
      statement.bind(row)
      try statement.run()
    }
  }

  private func remember(_ row: RowKey, isUndead: Bool) {
    if isUndead { undeadRows?.insert(row) } else { undeadRows?.remove(row) }
  }

  // MARK: - References and claims

  /// Returns the stored rows that have a reference.
  func rows(referringBy reference: ReferenceKey) throws -> [RowKey] {
    let statement = try statements.statement(
      "SELECT tbl, identity FROM docsync_kept_reference "
        + "WHERE parent = ? AND columns = ? AND key = ?")
    bind(reference, to: statement)
    return try keys(statement)
  }

  /// Returns the rows that a statement reads, without those of tables that the schema does not have
  /// (``StoreSchema/passesOver(_:)``).
  private func keys(_ statement: SQLStatement) throws -> [RowKey] {
    var found: [RowKey] = []
    while try statement.step() {
      let table: Int = try statement.number(at: 0)
      if schema.passesOver(table) { continue }
      found.append(RowKey(table: table, identity: RowIdentity(bytes: statement.bytes(at: 1))))
    }
    return found
  }

  /// Returns the references of a stored row.
  func references(of row: RowKey) throws -> Set<ReferenceKey> {
    let statement = try statements.statement(
      "SELECT parent, columns, key FROM docsync_kept_reference WHERE tbl = ? AND identity = ?")
    statement.bind(row)
    var found: Set<ReferenceKey> = []
    while try statement.step() {
      found.insert(
        ReferenceKey(
          parent: try statement.number(at: 0), columns: SQLName(statement.text(at: 1)),
          key: RowIdentity(bytes: statement.bytes(at: 2))))
    }
    return found
  }

  /// Returns the unique values that a row claimed when it was stored.
  func claims(of row: RowKey) throws -> [ClaimKey] {
    let table = try table(of: row)
    let statement = try statements.statement(
      "SELECT ix, key FROM docsync_claim WHERE tbl = ? AND identity = ?")
    statement.bind(row)
    var found: [ClaimKey] = []
    while try statement.step() {
      let index: Int = try statement.number(at: 0)
      guard index == ClaimKey.identityIndex || table.uniqueIndexes.indices.contains(index) else {
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

  /// Returns the stored rows that claim a value.
  func claimants(of claim: ClaimKey) throws -> [RowIdentity] {
    let statement = try statements.statement(
      "SELECT identity FROM docsync_claim WHERE tbl = ? AND ix = ? AND key = ?")
    statement.bind(Int64(claim.table), at: 1)
    statement.bind(Int64(claim.index), at: 2)
    statement.bind(blob: claim.key.bytes, at: 3)
    return try statement.identities()
  }

  /// Returns the stored rows that claim any unique value of a table.
  func claimants(in table: Int) throws -> [RowIdentity] {
    let statement = try statements.statement(
      "SELECT DISTINCT identity FROM docsync_claim WHERE tbl = ?")
    statement.bind(Int64(table), at: 1)
    return try statement.identities()
  }

  /// Returns the rows of a table that are parked since another row has their key or a unique value,
  /// and that have a number in a part of their key that stands for keys.
  func rowsGivingWay(in table: TableSchema) throws -> [RowIdentity] {
    let positions = table.identityPositions
    return try identities(in: table.id, for: .parked(.uniqueValueTaken)).filter { identity in
      guard let values = IdentityEncoding.values(of: identity, count: positions.count) else {
        return false
      }
      return zip(positions, values).contains {
        table.columns[$0].isKeyed && Value.key($1) != nil
      }
    }
  }

  /// Returns whether stored rows refer to rows of a table, or claim values of it.
  func hasDependents(of table: Int) throws -> Bool {
    try Bool.fetchOne(
      database,
      sql: """
        SELECT EXISTS (SELECT 1 FROM docsync_kept_reference WHERE parent = \(table)) \
        OR EXISTS (SELECT 1 FROM docsync_claim WHERE tbl = \(table))
        """) ?? false
  }

  /// Returns the tables to which stored rows refer, or under whose identities they would be shown.
  func referredTables() throws -> [Int] {
    try Int.fetchAll(
      database,
      sql: "SELECT DISTINCT parent FROM docsync_kept_reference UNION "
        + "SELECT DISTINCT tbl FROM docsync_claim WHERE ix = \(ClaimKey.identityIndex)")
  }

  /// Returns the parents and the columns by which stored rows refer.
  static func referenceNames(_ database: Database) throws -> [(parent: Int, columns: SQLName)] {
    try StoredRow.fetchAll(
      database, sql: "SELECT DISTINCT parent, columns FROM docsync_kept_reference"
    ).map { (try $0["parent"], try $0["columns"]) }
  }

  /// The SQL condition that a row is of a table that is synchronized at present.
  var isPresent: String {
    guard !schema.suspendedTables.isEmpty else { return "1" }
    return "tbl IN (\(schema.tables.map { "\($0.id)" }.joined(separator: ", ")))"
  }

  /// Returns the identities under which rows of a table would be shown.
  static func claimedIdentities(in table: Int, _ database: Database) throws -> [RowIdentity] {
    let statement = try SQLStatement(
      "SELECT DISTINCT key FROM docsync_claim WHERE tbl = ? AND ix = \(ClaimKey.identityIndex)",
      on: database)
    statement.bind(Int64(table), at: 1)
    return try statement.identities()
  }

  /// Replaces an identity under which rows of a table would be shown.
  static func renameClaimed(
    _ former: RowIdentity, to present: RowIdentity, in table: Int, _ database: Database
  ) throws {
    try database.cachedStatement(
      sql: "UPDATE OR REPLACE docsync_claim SET key = ?3 WHERE tbl = ?1 "
        + "AND ix = \(ClaimKey.identityIndex) AND key = ?2"
    ).execute(arguments: [table, Data(former.bytes), Data(present.bytes)])
  }

  /// Removes the claims of unique values; those of identities stay.
  func forgetClaims() throws {
    try database.execute(
      sql: "DELETE FROM docsync_claim WHERE ix <> \(ClaimKey.identityIndex)")
  }

  /// Removes all claims, and the references of all stored rows.
  func forgetClaimsAndReferences() throws {
    try database.execute(
      sql: "DELETE FROM docsync_claim; DELETE FROM docsync_kept_reference")
  }

  /// Returns how many claims or references belong to rows that are not stored.
  static func strayCount(in table: TableDefinition, _ database: Database) throws -> Int {
    try Int.fetchOne(
      database,
      sql: "SELECT count(*) FROM \(table.name) AS c WHERE NOT EXISTS (SELECT 1 FROM docsync_kept "
        + "AS k WHERE k.tbl = c.tbl AND k.identity = c.identity)") ?? 0
  }

  // MARK: - Rows that are shown as others

  /// Returns the rows that exist and are shown under the identity of `row`, or would be if nothing
  /// prevented it.
  func rows(shownAs row: RowKey) throws -> [RowKey] {
    _ = try table(of: row)
    let statement = try statements.statement(
      "SELECT c.identity FROM docsync_claim AS c JOIN docsync_kept AS k "
        + "ON k.tbl = c.tbl AND k.identity = c.identity "
        + "WHERE c.tbl = ?1 AND c.ix = \(ClaimKey.identityIndex) AND c.key = ?2 AND k.moved = ?2 "
        + "AND k.reason <> 'tombstone'")
    statement.bind(row)
    return try statement.identities().map { RowKey(table: row.table, identity: $0) }
  }

  /// Returns the rows that are shown although they are deleted or never existed.
  func undead() throws -> Set<RowKey> {
    if let undeadRows { return undeadRows }
    // Two queries, each of which has an index.
    let statement = try SQLStatement(
      "SELECT tbl, identity FROM docsync_kept WHERE reason = 'rescued' UNION ALL "
        + "SELECT tbl, identity FROM docsync_kept WHERE reason = 'borrowed'", on: database)
    let found = Set(try keys(statement))
    undeadRows = found
    return found
  }
}
