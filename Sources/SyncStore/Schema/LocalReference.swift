import GRDB
import SyncModel

/// A foreign key of data that stays on this device: a foreign key of a table that is not
/// synchronized, or through an excluded column.
struct LocalReference: Hashable {
  let child: SQLName
  /// The columns that name a row of the child: its key, or a name of the rowid.
  let childKey: [SQLName]
  let columns: [SQLName]
  /// The columns' default values.
  let defaults: [Value]
  let affinities: [ColumnSchema.Affinity]
  let parent: SQLName
  let parentColumns: [SQLName]
  let onDelete: ForeignKey.DeleteAction
  let onUpdate: ForeignKey.DeleteAction
  /// Whether the child is synchronized, so that its rows must not be deleted.
  let isColumn: Bool

  /// Returns all such foreign keys, by the folded name of the table to which they refer. Omits those
  /// to columns that do not identify one row, and those that need functions or collations of their
  /// program.
  static func all(
    _ schema: StoreSchema, _ database: Database
  ) throws -> [SQLName: [LocalReference]] {
    guard
      !schema.localTables.isEmpty || schema.tables.contains(where: { !$0.excludedColumns.isEmpty })
    else { return [:] }
    var found = try all(ofTables: schema.localTables, orColumnsOf: schema.tables, database)
    found = try found.filter { reference in
      let isUnique = schema.table(named: reference.parent)?.isUnique(reference.parentColumns)
      return try isUnique ?? true && reference.canBeRead(database)
    }
    return Dictionary(grouping: found, by: \.parent.folded)
  }

  /// Returns the foreign keys of tables that stay on this device, and those through the excluded
  /// columns of others.
  static func all(
    ofTables local: [SQLName], orColumnsOf tables: [TableSchema], _ database: Database
  ) throws -> [LocalReference] {
    var found = try local.flatMap { try references(of: $0, nil, database) }
    for table in tables where !table.excludedColumns.isEmpty {
      found += try references(of: table.name, table, database)
    }
    return found
  }

  /// Whether SQLite can find the referring rows here.
  private func canBeRead(_ database: Database) throws -> Bool {
    let matching = zip(parentColumns, columns).map { "p.\(quoted($0)) = c.\(quoted($1))" }
    do {
      _ = try SQLStatement(
        "SELECT 1 FROM main.\(quoted(parent)) AS p JOIN main.\(quoted(child)) AS c "
          + "ON \(matching.joined(separator: " AND "))", on: database)
      return true
    } catch let error as DatabaseError where error.resultCode == .SQLITE_ERROR {
      return false
    }
  }

  private static func references(
    of child: SQLName, _ table: TableSchema?, _ database: Database
  ) throws -> [LocalReference] {
    let keys = try Row.fetchAll(
      database, sql: "PRAGMA main.foreign_key_list(\(quoted(child)))")
    guard !keys.isEmpty, let childKey = try table?.keyColumns ?? rowKey(of: child, database)
    else { return [] }
    let columns = try Row.fetchAll(database, sql: "PRAGMA main.table_xinfo(\(quoted(child)))")
    return try Dictionary(grouping: keys, by: { $0["id"] as Int }).sorted { $0.key < $1.key }
      .compactMap { _, group in
        let terms = group.sorted { ($0["seq"] as Int) < ($1["seq"] as Int) }
        let referring = terms.map { $0["from"] as SQLName }
        if let table, !referring.contains(where: { table.excludedColumns.contains($0.folded) }) {
          return nil
        }
        let parent: SQLName = terms[0]["table"]
        let named = terms.compactMap { $0["to"] as SQLName? }
        let referred =
          named.count == terms.count ? named : try primaryKey(of: parent, database)
        guard referred.count == terms.count else { return nil }
        return LocalReference(
          child: child, childKey: childKey, columns: referring,
          defaults: try referring.map { name in
            try ColumnDefault(columns.first { name.isSame(as: $0["name"]) }?["dflt_value"])
              .value(database)
          },
          affinities: referring.map { name in
            SchemaReader.affinity(of: columns.first { name.isSame(as: $0["name"]) }?["type"] ?? "")
          },
          parent: parent, parentColumns: referred,
          onDelete: ForeignKey.DeleteAction(sql: terms[0]["on_delete"]),
          onUpdate: ForeignKey.DeleteAction(sql: terms[0]["on_update"]), isColumn: table != nil)
      }
  }

  /// Returns the columns that identify a row of a table that stays on the device; `nil` if there
  /// are none.
  static func rowKey(of table: SQLName, _ database: Database) throws -> [SQLName]? {
    let isWithoutRowID = try Bool.fetchOne(
      database,
      sql: "SELECT wr FROM pragma_table_list WHERE schema = 'main' AND name = ? COLLATE NOCASE",
      arguments: [table])
    if isWithoutRowID == true { return try primaryKey(of: table, database) }
    let names = Set(
      try SQLName.fetchAll(
        database, sql: "SELECT name FROM pragma_table_xinfo(?, 'main')", arguments: [table]
      ).map(\.folded))
    return (["rowid", "_rowid_", "oid"] as [SQLName]).first { !names.contains($0) }.map { [$0] }
  }

  /// Returns the columns of a table's primary key as they are declared, in their order.
  static func primaryKey(of table: SQLName, _ database: Database) throws -> [SQLName] {
    try SQLName.fetchAll(
      database,
      sql: "SELECT name FROM pragma_table_xinfo(?, 'main') WHERE pk > 0 ORDER BY pk",
      arguments: [table])
  }
}

extension TableSchema {
  /// Whether at most one row can have the same values in some columns.
  func isUnique(_ names: [SQLName]) -> Bool {
    let wanted = Set(names.map(\.folded))
    if Set(keyColumns.map(\.folded)) == wanted { return true }
    if let localKey, wanted == [localKey.folded] { return true }
    return uniqueIndexes.contains { index in
      index.isPlain && Set(index.positions.map { columns[$0].name.folded }) == wanted
    }
  }

  /// Whether a foreign key to some columns contains numbers of rows: another row may get the number
  /// of a row that is gone.
  func containsNumber(_ names: [SQLName]) -> Bool {
    names.contains { name in
      if identity == .surrogate, name.isSame(as: keyColumns[0]) { return true }
      if let localKey, name.isSame(as: localKey) { return true }
      return columns.contains { $0.name.isSame(as: name) && $0.isKeyed }
    }
  }
}
