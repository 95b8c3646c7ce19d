import Foundation
import GRDB
import SyncModel

/// The tables in the store itself that hold the data of syncing.
enum Bookkeeping {
  /// The version of the tables' layout.
  static let format = 4
  /// The first version in which rows whose identities contain other rows are shown with the
  /// stand-ins of those rows.
  static let fourthFormat = 4

  /// The tables that every store has, in the order in which they are created. Tables that belong to
  /// a single synchronized table are not listed.
  static let tables: [TableDefinition] = [
    MetaTable.definition, TableRegistry.tables, TableRegistry.columns, ForeignRows.tables,
    ForeignRows.columns, ForeignRows.definition, LostNames.definition, ClientRegistry.definition,
    Outbox.definition, Inbox.definition, History.definition, DeviceRecords.definition,
    KeptRows.definition, KeptRows.references, KeptRows.claims, StampRanges.definition,
    BaseValues.definition, ConflictTable.definition, CommandQueue.definition,
    EventQueue.definition, EarlyAdditions.definition, AsideValues.definition, PlainKeys.definition,
  ]

  /// Returns the statements that create the tables of every store with a layout version.
  static func creation(upTo version: Int = format) -> [String] {
    guard version > 0 else { return [] }
    return (1...version).flatMap { version in
      var late: [String] = []
      return tables.flatMap { table in
        defer { late = table.lateCreation(in: version) }
        return table.creation(in: version) + late
      } + late
    }
  }

  /// Returns the statements that create the bookkeeping of one synchronized table: log, triggers,
  /// stamps and identities.
  static func creation(for table: TableSchema) -> [String] {
    var statements = CaptureTriggers(table: table).creation
    statements.append(
      "CREATE TABLE IF NOT EXISTS \(table.stampsName) (first INTEGER PRIMARY KEY, block BLOB)")
    if table.identity == .surrogate {
      statements.append(
        "CREATE TABLE IF NOT EXISTS \(table.identityName) "
          + "(key INTEGER PRIMARY KEY, identity BLOB NOT NULL)")
    }
    return statements
  }

  /// Returns the layout version of a store, or of an attached one; `nil` if the store records none.
  static func format(of database: Database, in schema: String = "main") throws -> Int? {
    guard let value = try MetaTable.read(.format, database, in: schema),
      let number = Int(String(decoding: value, as: UTF8.self)), number > 0
    else { return nil }
    return number
  }

  /// Upgrades a store of an earlier layout version, within a transaction. Idempotent. An earlier
  /// version of the library cannot open the store afterwards.
  static func upgrade(_ database: Database) throws {
    guard let known = try format(of: database), known < format else { return }
    for statement in creation().dropFirst(creation(upTo: known).count) {
      try database.execute(sql: statement)
    }
    if known < fourthFormat { try RemadeTables.noteSettlingDue(database) }
    try setFormat(database)
  }

  static func setFormat(_ database: Database) throws {
    try MetaTable.write(.format, to: Array("\(format)".utf8), database)
  }

  /// Empties the device's own tables that have one of the lifetimes.
  static func clear(_ lifetimes: [TableDefinition.Lifetime], _ database: Database) throws {
    for table in tables where lifetimes.contains(where: { table.scope == .device($0) }) {
      try database.execute(sql: "DELETE FROM \(table.name)")
    }
  }

  // MARK: - Taking a database out of sync

  /// Removes what ``creation(upTo:)``, ``creation(for:)`` and capture have created. Objects of the
  /// application whose names begin in the same way stay.
  static func remove(_ database: Database) throws {
    func names(_ type: SQLName) throws -> [SQLName] {
      try SQLName.fetchAll(
        database,
        sql: "SELECT name FROM main.sqlite_schema WHERE type = ? AND name GLOB 'docsync_*'",
        arguments: [type])
    }
    for name in try names("trigger") where isTrigger(name) {
      try database.execute(sql: "DROP TRIGGER main.\(quoted(name))")
    }
    for name in try names("table") where name.isOfBookkeeping {
      try database.execute(sql: "DROP TABLE main.\(quoted(name))")
    }
  }

  fileprivate static let fixedNames = Set(tables.map { SQLName($0.name) })

  /// Returns whether a name is that of a capture trigger: a number and two letters.
  static func isTrigger(_ name: SQLName) -> Bool {
    let parts = name.text.split(separator: "_", omittingEmptySubsequences: false)
    guard parts.count == 3, Int(parts[1]) != nil, parts[2].count == 2 else { return false }
    return parts[2].allSatisfy { $0.isASCII && $0.isLowercase }
  }

  /// Returns whether a name is that of a bookkeeping table for a single synchronized table.
  fileprivate static func isOfOneTable(_ name: SQLName) -> Bool {
    ["docsync_log_", "docsync_id_", "docsync_stamps_"].contains { prefix in
      name.begins(with: SQLName(prefix)) && Int(name.text.dropFirst(prefix.count)) != nil
    }
  }
}

extension SQLName {
  /// Whether a table with this name is one of bookkeeping, and not the application's.
  var isOfBookkeeping: Bool {
    Bookkeeping.fixedNames.contains(folded) || Bookkeeping.isOfOneTable(self)
  }
}
