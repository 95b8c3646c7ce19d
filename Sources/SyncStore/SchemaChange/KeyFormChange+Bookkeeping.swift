import Foundation
import GRDB
import SyncModel

/// The rows and cells that bookkeeping names by identities.
extension StoreSession {
  /// Returns the identities by which bookkeeping names rows of a table.
  func namedRows(of table: TableSchema) throws -> Set<RowIdentity> {
    var named = Set(try heldEdits().edits.filter { $0.table == table.wireName }.map(\.row))
    for definition in Bookkeeping.tables {
      for column in definition.columns(.row) {
        named.formUnion(try definition.identities(in: column, of: table.id, database))
      }
    }
    named.formUnion(try AsideValues.identities(in: table.wireName, database))
    named.formUnion(
      try aside.references().filter { $0.entry.parent == table.wireName }
        .compactMap(\.entry.referred))
    for row in try RemadeTables.read(database).named where row.table == table.id {
      named.insert(row.identity)
    }
    return named
  }

  /// Gives rows other identities wherever bookkeeping names them.
  ///
  /// - Parameter renamed: The present identities by the former ones, by table.
  func rename(_ renamed: [Int: [RowIdentity: RowIdentity]]) throws {
    for (id, rows) in renamed.sorted(by: { $0.key < $1.key }) where !rows.isEmpty {
      for definition in Bookkeeping.tables {
        for column in definition.columns(.row) {
          for former in try definition.identities(in: column, of: id, database) {
            guard let present = rows[former] else { continue }
            try definition.rename(former, to: present, in: column, of: id, database)
          }
        }
      }
      let wireName = schema[id].wireName
      for former in try AsideValues.identities(in: wireName, database) {
        guard let present = rows[former] else { continue }
        try AsideValues.rename(former, to: present, in: wireName, database)
      }
      try aside.renameReferred(rows, in: wireName)
      for former in try KeptRows.claimedIdentities(in: id, database) {
        guard let present = rows[former] else { continue }
        try KeptRows.renameClaimed(former, to: present, in: id, database)
      }
    }
    try rename(inHeldEdits: renamed)
    try write(RemadeTables.read(database).renaming(renamed))
  }

  private func rename(inHeldEdits renamed: [Int: [RowIdentity: RowIdentity]]) throws {
    var held = try heldEdits()
    guard !held.edits.isEmpty else { return }
    for index in held.edits.indices {
      let edit = held.edits[index]
      guard let table = schema.table(wireName: edit.table),
        let present = renamed[table.id]?[edit.row]
      else { continue }
      held.edits[index].identity = Data(present.bytes)
    }
    knownHeldEdits = held
    try MetaTable.write(.heldEdits, to: Array(JSONEncoder().encode(held)), database)
  }
}

extension RemadeTables {
  /// The rows that it names.
  fileprivate var named: [(table: Int, identity: RowIdentity)] {
    (heldKeys ?? []).map { ($0.table, RowIdentity(bytes: $0.identity)) }
      + (references ?? []).map { ($0.table, RowIdentity(bytes: $0.identity)) }
  }

  /// Returns the same with other identities of rows.
  fileprivate func renaming(_ renamed: [Int: [RowIdentity: RowIdentity]]) -> RemadeTables {
    func present(_ identity: [UInt8], of table: Int) -> [UInt8] {
      renamed[table]?[RowIdentity(bytes: identity)]?.bytes ?? identity
    }
    var result = self
    result.heldKeys = heldKeys?.map { held in
      var held = held
      held.identity = present(held.identity, of: held.table)
      return held
    }
    result.references = references.map { references in
      Set(
        references.map { reference in
          var reference = reference
          reference.identity = present(reference.identity, of: reference.table)
          return reference
        })
    }
    return result
  }
}

extension TableDefinition {
  /// The column with the number of the table to which a row of bookkeeping belongs.
  private var tableColumn: String? { columns(.table).first ?? columns(.journalTable).first }

  /// Returns the identities in a column of the rows that belong to a table.
  fileprivate func identities(
    in column: String, of table: Int, _ database: Database
  ) throws -> [RowIdentity] {
    guard let tableColumn else { return [] }
    let statement = try SQLStatement(
      "SELECT DISTINCT \(column) FROM \(name) WHERE \(tableColumn) = ? AND \(column) IS NOT NULL",
      on: database)
    statement.bind(Int64(table), at: 1)
    return try statement.identities()
  }

  /// Replaces an identity in a column of the rows that belong to a table.
  fileprivate func rename(
    _ former: RowIdentity, to present: RowIdentity, in column: String, of table: Int,
    _ database: Database
  ) throws {
    guard let tableColumn else { return }
    try database.cachedStatement(
      sql: "UPDATE OR REPLACE \(name) SET \(column) = ?3 WHERE \(tableColumn) = ?1 "
        + "AND \(column) = ?2"
    ).execute(arguments: [table, Data(former.bytes), Data(present.bytes)])
  }

  /// Lets `body` change the values of the cells in a column of the rows that belong to a table.
  func rewrite(
    _ column: String, of table: Int, _ database: Database,
    _ body: (_ column: Int, _ value: Value) throws -> Value
  ) throws {
    guard let tableColumn, let rowColumn = columns(.row).first else { return }
    let found = try StoredRow.fetchAll(
      database,
      sql: "SELECT \(rowColumn) AS row, \(column) AS cells FROM \(name) "
        + "WHERE \(tableColumn) = ? AND \(column) IS NOT NULL", arguments: [table])
    for row in found {
      let former = try row["cells"] as Data
      let cells = try KeptCells.decode(Array(former)).map {
        (column: $0.column, value: try body($0.column, $0.value))
      }
      let present = Data(KeptCells.encode(cells))
      guard present != former else { continue }
      try database.execute(
        sql: "UPDATE \(name) SET \(column) = ? "
          + "WHERE \(tableColumn) = ? AND \(rowColumn) = ? AND \(column) = ?",
        arguments: [present, table, try row["row"] as Data, former])
    }
  }
}
