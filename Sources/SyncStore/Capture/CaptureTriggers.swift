import Foundation
import GRDB
import SyncModel

/// The triggers that log every edit of a synchronized table, whichever program
/// makes it.
///
/// They use only SQLite's own functions, append to one table with an integer key, and leave all
/// interpretation to the export. An entry of the kinds ``Entry/replaced`` and ``Entry/present`` is
/// a hint: the row of that key was there before the statement, and may be gone after it.
///
/// SQLite (3.40.1) looks for rows that refer to a row by means of an index. If the index has numbers
/// and the key of the row is a text, SQLite converts the key where it lies, and triggers after the
/// edit read 5 in place of `'05'`. So, in a table with ``TableSchema/convertibleColumns``, triggers
/// before the edit log what leaves, and new values are read from the table.
struct CaptureTriggers {
  /// The kinds of entries in a log.
  enum Entry: Int64 {
    /// The row was inserted.
    case insert = 0
    /// Columns of the row changed.
    case update = 1
    /// The row was deleted.
    case delete = 2
    /// Another row was written with a unique value of this row, so that REPLACE would have removed
    /// this row.
    case replaced = 3
    /// The row was there when an insert of its key began.
    case present = 4
    /// A row that bookkeeping stores and that is not shown was deleted with a row that it refers
    /// to. No trigger writes this.
    case hiddenDelete = 5
    /// An edit refers to a row that is shown although it is deleted. No trigger
    /// writes this.
    case rebirth = 6
    /// A row to which this row's key refers has another identity now. Or, with a number, the entry
    /// only tells which declared columns belong to that number. No trigger writes this.
    case renamed = 7
    /// The row is about to be deleted, or to get another key, in a table with
    /// ``TableSchema/convertibleColumns``. After that the entry becomes one of a deletion. Where
    /// SQLite skips the row, it is a hint that stays. The mask is 1 for another key.
    case leaving = 8
  }

  let table: TableSchema

  /// The columns that a log has only if the schema needs them.
  struct Column {
    /// Returns the column of the new key of a row whose key changed: one for each key column.
    static func destination(_ index: Int) -> String { "n\(index)" }
    /// Returns the column of the old value of a column of the table, by its position.
    static func old(_ position: Int) -> String { "o\(position)" }
  }

  /// The statements that create the log and the triggers.
  var creation: [String] { [logTable] + removal + triggers }

  /// The columns that this log has beyond those of every log.
  var furtherColumns: [String] {
    (table.isReferred ? table.keyColumns.indices.map(Column.destination) : [])
      + table.recordedColumns.map(Column.old)
  }

  /// The statements that create the triggers, as SQLite stores them.
  var triggers: [String] {
    [NamesTrigger(table: table).creation, insertTrigger, updateTrigger, keyTrigger, deleteTrigger]
      + [beforeInsertTrigger, beforeUpdateTrigger, beforeKeyTrigger].compactMap { $0 }
      + leavingTriggers
  }

  /// Returns whether triggers, by their names, have the names of these, and write to the log where
  /// these do.
  func areAlike(_ others: [SQLName: SQLText]) -> Bool {
    let own = triggers.map { (name: SQLName($0.split(separator: " ")[2]), sql: $0) }
    return Set(own.map(\.name)) == Set(others.keys)
      && own.allSatisfy { !writesLog($0.sql) || writesLog(others[$0.name]?.text ?? "") }
  }

  private func writesLog(_ trigger: String) -> Bool {
    trigger.contains(" INSERT INTO \(table.logName) (")
  }

  /// The statements that remove the triggers and keep the log.
  var removal: [String] {
    ["nm", "ai", "au", "ak", "ad", "bi", "bu", "bk", "bd", "bm"].map {
      "DROP TRIGGER IF EXISTS \(name($0))"
    }
  }

  // MARK: - The log

  var logTable: String {
    // A column without a type stores every value as it is.
    """
    CREATE TABLE IF NOT EXISTS \(table.logName) \
    (seq INTEGER PRIMARY KEY, op INTEGER, at REAL, mask, \
    \((keyNames + ["identity BLOB"] + furtherColumns).joined(separator: ", ")))
    """
  }

  var keyNames: [String] { table.keyColumns.indices.map { "k\($0)" } }

  func name(_ suffix: String) -> String { "docsync_\(table.id)_\(suffix)" }

  func keys(_ row: String) -> String {
    table.keyColumns.map { "\(row).\(quoted($0))" }.joined(separator: ", ")
  }

  private func entry(_ entry: Entry, _ row: String) -> String {
    """
    INSERT INTO \(table.logName) (op, at, \(keyNames.joined(separator: ", "))) \
    VALUES (\(entry.rawValue), julianday('now'), \(row == "NEW" ? newKeys : keys(row)));
    """
  }

  /// Returns the local key of a row that is identified by declared columns. Other rows refer to it
  /// by that key, which leads nowhere once the row is gone, so the log records both.
  func referredKey(_ row: String) -> String? {
    guard case .columns = table.identity, let key = table.localKey else { return nil }
    return "\(row).\(quoted(key))"
  }

  /// Returns the statement that logs a row as it was and, if its key changed, its new key.
  func oldEntry(_ kind: Entry, isMove: Bool = false) -> String {
    var terms = zip(keyNames, table.keyColumns).map { ($0, "OLD.\(quoted($1))") }
    terms += recordedTerms("OLD")
    if isMove, table.localKey == nil, table.canLoseKeys, let rowid = table.rowidName {
      // The rowid of a row that has lost its key.
      terms.append(("identity", "CASE WHEN \(table.isWithoutKey("NEW")) THEN NEW.\(rowid) END"))
    }
    if isMove, table.isReferred {
      terms += table.keyColumns.enumerated().map {
        (Column.destination($0), "NEW.\(quoted($1))")
      }
    }
    if kind == .leaving, isMove { terms.append(("mask", "1")) }
    let names = terms.map(\.0).joined(separator: ", ")
    guard !table.recordedColumns.isEmpty else {
      return """
        INSERT INTO \(table.logName) (op, at, \(names)) \
        VALUES (\(kind.rawValue), julianday('now'), \(terms.map(\.1).joined(separator: ", ")));
        """
    }
    return """
      INSERT INTO \(table.logName) (op, at, \(names)) \
      SELECT \(kind.rawValue) + count(*), julianday('now'), \
      \(terms.map { "(SELECT \($0.1))" }.joined(separator: ", ")) \
      FROM \(absent(["OLD"], table.recordedColumns)) WHERE 0;
      """
  }

  /// Returns what the log records of a row that goes, beside its key: columns of the log, and
  /// terms.
  private func recordedTerms(_ row: String) -> [(String, String)] {
    let reference = referredKey(row).map { [("identity", $0)] } ?? []
    return reference
      + table.recordedColumns.map { (Column.old($0), "\(row).\(quoted(table.columns[$0].name))") }
  }

  private var insertEntry: String {
    guard table.identity == .surrogate else { return entry(.insert, "NEW") }
    return """
      INSERT INTO \(table.logName) (op, at, k0, identity) \
      VALUES (\(Entry.insert.rawValue), julianday('now'), \(keys("NEW")), randomblob(16));
      """
  }

  // MARK: - After

  /// The key of the new row, as it is in the table.
  private var newKeys: String {
    table.keyColumns.map { column in
      canConvert([column]) ? storedValue(column) : "NEW.\(quoted(column))"
    }.joined(separator: ", ")
  }

  private var insertTrigger: String {
    "CREATE TRIGGER \(name("ai")) AFTER INSERT ON \(table.quotedName) BEGIN \(insertEntry) END"
  }

  private var deleteTrigger: String {
    let entry = table.convertibleColumns.isEmpty ? oldEntry(.delete) : deletionOfLeaving
    return "CREATE TRIGGER \(name("ad")) AFTER DELETE ON \(table.quotedName) BEGIN \(entry) END"
  }

  var deleteTriggerName: String { name("ad") }

  /// Returns the columns of the log that a delete trigger writes, by the trigger's SQL.
  func columnsLogged(by deleteTrigger: String) -> [String] {
    guard let start = deleteTrigger.range(of: "BEGIN INSERT INTO \(table.logName) ("),
      let end = deleteTrigger[start.upperBound...].firstIndex(of: ")")
    else { return [] }
    return deleteTrigger[start.upperBound..<end].components(separatedBy: ", ")
  }

  private var updateTrigger: String {
    let positions = table.cellPositions
    guard !positions.isEmpty else {
      return "CREATE TRIGGER \(name("au")) AFTER UPDATE ON \(table.quotedName) WHEN 0 "
        + "BEGIN SELECT 1; END"
    }
    let bases = table.baseColumns
    let names = keyNames + bases.map(Column.old)
    let olds = bases.map { position in
      ", " + fallingBack(to: ["OLD"], "OLD.\(quoted(table.columns[position].name))", [position])
    }
    let condition = positions.map { difference(table.columns[$0]) }.balanced(by: "OR")
    // SQLite evaluates all terms of an OR that is a value, but not those of a condition.
    let isChanged = fallingBack(to: ["OLD", "NEW"], "CASE WHEN \(condition) THEN 1 END", positions)
    // A subquery costs less here than INSERT … SELECT.
    let mask = fallingBack(to: ["OLD", "NEW"], mask, positions)
    return """
      CREATE TRIGGER \(name("au")) AFTER UPDATE ON \(table.quotedName) WHEN \(isChanged) BEGIN \
      INSERT INTO \(table.logName) (op, at, mask, \(names.joined(separator: ", "))) \
      VALUES (\(Entry.update.rawValue), julianday('now'), \(mask), \(newKeys)\(olds.joined())); END
      """
  }

  /// A changed key is a deletion under the old one and an insertion under the
  /// new one.
  private var keyTrigger: String {
    guard !canConvert(table.keyColumns) else { return convertedKeyTrigger }
    return "CREATE TRIGGER \(name("ak")) AFTER \(updateOf(table.keyColumns)) "
      + "ON \(table.quotedName) WHEN \(changed(table.keyColumns)) "
      + "BEGIN \(oldEntry(.delete, isMove: true)) \(insertEntry) END"
  }

  /// Returns the event of an update that names one of the columns. UPDATE OF compares names as they
  /// are written, and a rowid can be set by three other names.
  func updateOf(_ columns: [SQLName]) -> String {
    let isRowid = table.rowidAlias.map(columns.contains) ?? false
    return "UPDATE OF "
      + (columns.map(quoted) + (isRowid ? ["rowid", "oid", "_rowid_"] : [])).joined(separator: ", ")
  }

  func changed(_ columns: [SQLName]) -> String {
    columns.map { "OLD.\(quoted($0)) IS NOT NEW.\(quoted($0))" }.joined(separator: " OR ")
  }
}
