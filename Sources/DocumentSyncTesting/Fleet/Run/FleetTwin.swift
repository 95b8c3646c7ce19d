import Foundation
import SyncModel

/// A database with a device's application tables, without bookkeeping and triggers of ours. The
/// same statements must have the same results in it.
///
/// By SQLite's design two results differ if a table has a trigger, whatever the trigger does:
/// `total_changes()` counts the changes of triggers, and `last_insert_rowid()` changes if a foreign
/// key refuses an insertion.
final class FleetTwin {
  private let database: FleetSQLite
  /// The versions of the content and the schema of the device's file.
  private let version: [[Value]]
  private let tables: [Table]
  /// Triggers that do nothing, one for the event of each of our triggers.
  private let idleTriggers: [String]

  private struct Table {
    var name: String
    /// The query for all rows of a table, with the rowid first if there is one.
    var all: String
  }

  /// Copies the tables with their rowids, then creates the indexes and triggers.
  ///
  /// - Parameter program: A connection to the device's store.
  init(of program: FleetSQLite, at path: String) throws {
    version = try Self.version(program)
    database = try FleetSQLite(":memory:")
    // Only databases with the same text encoding can be attached to each other.
    for row in try program.rows("PRAGMA encoding") {
      try database.run("PRAGMA encoding = '\(Self.text(row[0]))'")
    }
    try database.run("PRAGMA foreign_keys = OFF")
    try database.run("ATTACH '\(path)' AS device")
    // Compare names by their bytes: different names can be equal as `String`s.
    let withoutRowid = Set(
      try database.rows("SELECT name FROM pragma_table_list WHERE schema = 'device' AND wr"))
    let schema = try database.rows(
      "SELECT type, name, sql FROM device.sqlite_schema WHERE sql IS NOT NULL "
        + "AND name NOT GLOB 'docsync_*' AND name NOT GLOB 'sqlite_*' ORDER BY rowid")
    var tables: [Table] = []
    for values in schema where Self.text(values[0]) == "table" {
      let object = values.map(Self.text)
      try database.run(object[2])
      let columns = try database.rows(
        "SELECT name, hidden, pk, upper(type) FROM device.pragma_table_xinfo(?)", [values[1]])
      let quoted = SQLName(object[1]).quoted
      let keys = columns.filter { $0[2] != .integer(0) }
      let hasRowid =
        !withoutRowid.contains([values[1]])
        && !(keys.count == 1 && Self.text(keys[0][3]) == "INTEGER")
      let taken = columns.map { SQLName(Self.text($0[0])).folded }
      // Columns may have all three names of the rowid.
      let free = ["rowid", "oid", "_rowid_"].first { !taken.contains(SQLName($0)) }
      let rowid = hasRowid ? [free].compactMap { $0 } : []
      let plain = columns.filter { $0[1] == .integer(0) }.map { SQLName(Self.text($0[0])).quoted }
      let names = (rowid + plain).joined(separator: ", ")
      try database.run(
        "INSERT INTO main.\(quoted) (\(names)) "
          + "SELECT \(names) FROM device.\(quoted)")
      let all = columns.map { SQLName(Self.text($0[0])).quoted }
      tables.append(
        Table(
          name: object[1],
          all: "SELECT \((rowid + all).joined(separator: ", ")) FROM \(quoted)"))
    }
    self.tables = tables
    for object in schema where Self.text(object[0]) != "table" {
      try database.run(Self.text(object[2]))
    }
    if try Self.hasSequences(database) {
      try database.run("DELETE FROM main.sqlite_sequence")
      try database.run(
        "INSERT INTO main.sqlite_sequence SELECT * FROM device.sqlite_sequence "
          + "WHERE name NOT GLOB 'docsync_*'")
    }
    idleTriggers = try database.rows(
      "SELECT sql FROM device.sqlite_schema WHERE type = 'trigger' AND name GLOB 'docsync_*'"
    ).map { row in
      let words = Self.text(row[0]).components(separatedBy: " ")
      let event = words.prefix { !["WHEN", "BEGIN"].contains($0) }
      // A trigger that may refuse the statement lets SQLite undo it.
      let isNeverRun = words.dropFirst(event.count).starts(with: ["WHEN", "0"])
      let body = isNeverRun ? "SELECT 1" : "SELECT RAISE(ABORT, '')"
      return "\(event.joined(separator: " ")) WHEN 0 BEGIN \(body); END"
    }
    try database.run("DETACH device")
  }

  /// Creates a twin in a former state of another, with triggers that do nothing, since SQLite
  /// behaves differently if a table has triggers, whatever these do.
  private init(_ other: FleetTwin, as content: [UInt8]) throws {
    version = other.version
    tables = other.tables
    idleTriggers = []
    database = try FleetSQLite(content: content)
    for trigger in other.idleTriggers { try database.run(trigger) }
  }

  /// Returns the content of the twin, for ``idleTwin(as:)``.
  func content() throws -> [UInt8] { try database.content() }

  /// Returns the twin in a former state, with triggers that do nothing.
  func idleTwin(as content: [UInt8]) throws -> FleetTwin { try FleetTwin(self, as: content) }

  /// Returns whether another connection than the program's has written to the device's file since,
  /// or its schema has changed.
  func isOutdated(_ program: FleetSQLite) throws -> Bool { try Self.version(program) != version }

  private static func version(_ program: FleetSQLite) throws -> [[Value]] {
    try program.rows("PRAGMA data_version") + program.rows("PRAGMA schema_version")
  }

  func edit(_ edit: FleetEdit) throws -> EditOutcome { try database.edit(edit) }

  /// Returns whether SQLite finds the tables and their indexes undamaged.
  func isSound() throws -> Bool {
    try database.rows("PRAGMA integrity_check") == [[.text(Array("ok".utf8))]]
  }

  /// Runs a statement that changes the schema; returns SQLite's message if SQLite refuses it.
  /// Afterwards this database is no longer a twin.
  func alter(_ statement: String) throws -> String? {
    do {
      _ = try database.rowsOnce(statement)
      return nil
    } catch let refusal as FleetSQLite.Refusal {
      return refusal.description
    }
  }

  /// Returns a line for each difference of the device's schema or tables from the twin's.
  func differencesAfterMigrating(from program: FleetSQLite) throws -> [String] {
    let listing =
      "SELECT type, name, sql FROM sqlite_schema WHERE name NOT GLOB 'docsync_*' "
      + "AND name NOT GLOB 'sqlite_*' ORDER BY type, name"
    let (own, other) = (try program.rows(listing), try database.rows(listing))
    guard own == other else { return ["the schema is \(text(own)) instead of \(text(other))"] }
    return try own.filter { Self.text($0[0]) == "table" }.compactMap { object in
      let rows = "SELECT * FROM \(SQLName(Self.text(object[1])).quoted)"
      let (own, other) = (try program.rowsOnce(rows), try database.rowsOnce(rows))
      return own == other
        ? nil : "\(Self.text(object[1])) has \(text(own)) instead of \(text(other))"
    }
  }

  /// Returns a line for each difference of the device's tables from the twin's.
  func differences(from program: FleetSQLite) throws -> [String] {
    var found: [String] = []
    for table in tables {
      // The edit may have dropped or renamed a table that is not synchronized.
      let isHere = try Self.has(table.name, program)
      guard try isHere == Self.has(table.name, database) else {
        found.append("\(table.name) is \(isHere ? "still there" : "gone")")
        continue
      }
      guard isHere else { continue }
      let (own, other) = (try program.rows(table.all), try database.rows(table.all))
      if own != other { found.append("\(table.name) has \(text(own)) instead of \(text(other))") }
    }
    guard try Self.hasSequences(database) else { return found }
    let sequences =
      "SELECT name, seq FROM sqlite_sequence WHERE name NOT GLOB 'docsync_*' ORDER BY name"
    let (own, other) = (try program.rows(sequences), try database.rows(sequences))
    if own != other { found.append("sqlite_sequence has \(text(own)) instead of \(text(other))") }
    return found
  }

  private func text(_ rows: [[Value]]) -> String {
    rows.map { "(" + $0.map(\.sqlDescription).joined(separator: ", ") + ")" }
      .joined(separator: " ")
  }

  private static func has(_ table: String, _ database: FleetSQLite) throws -> Bool {
    try !database.rows(
      "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?",
      [.text(Array(table.utf8))]
    ).isEmpty
  }

  private static func hasSequences(_ database: FleetSQLite) throws -> Bool {
    try !database.rows("SELECT 1 FROM main.sqlite_schema WHERE name = 'sqlite_sequence'").isEmpty
  }

  private static func text(_ value: Value) -> String {
    if case .text(let bytes) = value { String(decoding: bytes, as: UTF8.self) } else { "" }
  }
}
