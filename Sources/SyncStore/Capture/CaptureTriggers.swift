import Foundation
import GRDB
import SyncModel

/// The triggers that log every edit of a synchronized table, whichever program
/// makes it.
///
/// They use only SQLite's own functions, append to one table with an integer key, and leave all
/// interpretation to the export. An entry of the kinds ``Entry/replaced`` and ``Entry/present`` is
/// a hint: the row of that key was there before the statement, and may be gone after it.
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
  }

  /// The statements that remove the triggers and keep the log.
  var removal: [String] {
    ["nm", "ai", "au", "ak", "ad", "bi", "bu", "bk"].map { "DROP TRIGGER IF EXISTS \(name($0))" }
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

  private var keyNames: [String] { table.keyColumns.indices.map { "k\($0)" } }

  private func name(_ suffix: String) -> String { "docsync_\(table.id)_\(suffix)" }

  private func keys(_ row: String) -> String {
    table.keyColumns.map { "\(row).\(quoted($0))" }.joined(separator: ", ")
  }

  private func entry(_ entry: Entry, _ row: String) -> String {
    """
    INSERT INTO \(table.logName) (op, at, \(keyNames.joined(separator: ", "))) \
    VALUES (\(entry.rawValue), julianday('now'), \(keys(row)));
    """
  }

  /// Returns the local key of a row that is identified by declared columns. Other rows refer to it
  /// by that key, which leads nowhere once the row is gone, so the log records both.
  private func referredKey(_ row: String) -> String? {
    guard case .columns = table.identity, let key = table.localKey else { return nil }
    return "\(row).\(quoted(key))"
  }

  /// Returns the statement that logs a row as it was and, if its key changed, its new key.
  private func oldEntry(_ kind: Entry, isMove: Bool = false) -> String {
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
    return """
      INSERT INTO \(table.logName) (op, at, \(terms.map(\.0).joined(separator: ", "))) \
      VALUES (\(kind.rawValue), julianday('now'), \(terms.map(\.1).joined(separator: ", ")));
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

  private var insertTrigger: String {
    "CREATE TRIGGER \(name("ai")) AFTER INSERT ON \(table.quotedName) BEGIN \(insertEntry) END"
  }

  private var deleteTrigger: String {
    "CREATE TRIGGER \(name("ad")) AFTER DELETE ON \(table.quotedName) "
      + "BEGIN \(oldEntry(.delete)) END"
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
    let condition = balanced(positions.map { difference(table.columns[$0]) }, by: "OR")
    let bases = table.baseColumns
    let names = keyNames + bases.map(Column.old)
    let olds = bases.map { ", OLD.\(quoted(table.columns[$0].name))" }.joined()
    return """
      CREATE TRIGGER \(name("au")) AFTER UPDATE ON \(table.quotedName) WHEN \(condition) BEGIN \
      INSERT INTO \(table.logName) (op, at, mask, \(names.joined(separator: ", "))) \
      VALUES (\(Entry.update.rawValue), julianday('now'), \(mask), \(keys("NEW"))\(olds)); END
      """
  }

  /// A changed key is a deletion under the old one and an insertion under the
  /// new one.
  private var keyTrigger: String {
    "CREATE TRIGGER \(name("ak")) AFTER \(updateOf(table.keyColumns)) ON \(table.quotedName) "
      + "WHEN \(changed(table.keyColumns)) BEGIN \(oldEntry(.delete, isMove: true)) \(insertEntry) END"
  }

  /// Returns the event of an update that names one of the columns. UPDATE OF compares names as they
  /// are written, and a rowid can be set by three other names.
  private func updateOf(_ columns: [SQLName]) -> String {
    let isRowid = table.rowidAlias.map(columns.contains) ?? false
    return "UPDATE OF "
      + (columns.map(quoted) + (isRowid ? ["rowid", "oid", "_rowid_"] : [])).joined(separator: ", ")
  }

  private func changed(_ columns: [SQLName]) -> String {
    columns.map { "OLD.\(quoted($0)) IS NOT NEW.\(quoted($0))" }.joined(separator: " OR ")
  }

  /// Returns an SQL term that is true if the column's value changed in any visible way. `IS NOT`
  /// alone would take 1 for 1.0 and, under a collation, `a` for `A`.
  private func difference(_ column: ColumnSchema) -> String {
    let name = quoted(column.name)
    let collated = column.collation == "BINARY" ? "" : " COLLATE BINARY"
    let values = "OLD.\(name)\(collated) IS NOT NEW.\(name)"
    guard column.affinity == .blob || column.affinity == .numeric else { return values }
    return "\(values) OR typeof(OLD.\(name)) <> typeof(NEW.\(name))"
  }

  /// An integer with a bit for each changed column, or, where 62 bits do not
  /// suffice, several integers with commas between them.
  private var mask: String {
    let positions = table.cellPositions
    let last = positions.last ?? 0
    let groups = (0...(last / ColumnSet.bitsPerMask)).map { group in
      let terms = positions.filter { $0 / ColumnSet.bitsPerMask == group }.map {
        "((\(difference(table.columns[$0]))) << \($0 % ColumnSet.bitsPerMask))"
      }
      return terms.isEmpty ? "0" : "(\(balanced(terms, by: "|")))"
    }
    return groups.joined(separator: " || ',' || ")
  }

  /// Joins many terms in a tree: SQLite limits the depth of an expression to 1,000.
  private func balanced(_ terms: [String], by joint: String) -> String {
    guard terms.count > 8 else { return terms.joined(separator: " \(joint) ") }
    let middle = terms.count / 2
    return "(\(balanced(Array(terms[..<middle]), by: joint))) \(joint) "
      + "(\(balanced(Array(terms[middle...]), by: joint)))"
  }

  // MARK: - Before: what REPLACE removes without firing a delete trigger

  private var beforeInsertTrigger: String? {
    // A row of the same key may be among them: NEW has the key -1 until SQLite has chosen one.
    var hints = table.uniqueIndexes.map { hint(.replaced, where: matches($0)) }
    if let hint = presenceHint { hints.append(hint) }
    if let hint = rowidHint { hints.append(hint) }
    guard !hints.isEmpty else { return nil }
    return "CREATE TRIGGER \(name("bi")) BEFORE INSERT ON \(table.quotedName) "
      + "BEGIN \(hints.joined(separator: " ")) END"
  }

  private var beforeUpdateTrigger: String? {
    guard !table.uniqueIndexes.isEmpty else { return nil }
    let others = table.keyColumns.map {
      "\(table.quotedName).\(quoted($0)) IS NOT \(ofRow("OLD", quoted($0)))"
    }
    let hints = table.uniqueIndexes.map {
      hint(.replaced, where: matches($0) + ["(\(others.joined(separator: " OR ")))"])
    }
    return "CREATE TRIGGER \(name("bu")) BEFORE UPDATE ON \(table.quotedName) "
      + "WHEN \(uniqueDifference) BEGIN \(hints.joined(separator: " ")) END"
  }

  /// The trigger before an update that may take the key of another row.
  private var beforeKeyTrigger: String? {
    var hints = [presenceHint, rowidHint].compactMap { $0 }
    guard !hints.isEmpty else { return nil }
    if referredKey("OLD") != nil { hints.append(oldEntry(.present)) }
    let keys = rowidHint == nil ? table.keyColumns : table.keyColumns + [table.localKey ?? "rowid"]
    return "CREATE TRIGGER \(name("bk")) BEFORE \(updateOf(keys)) ON \(table.quotedName) "
      + "WHEN \(changed(keys)) BEGIN \(hints.joined(separator: " ")) END"
  }

  /// The statement that logs a hint of the row that has the new row's key. Bookkeeping knows that a
  /// row was there, unless the row is older than bookkeeping, but not under which rowid.
  private var presenceHint: String? {
    guard table.hasUnstampedRows || referredKey("NEW") != nil else { return nil }
    return hint(
      .present,
      where: table.keyColumns.map {
        "\(table.quotedName).\(quoted($0)) = \(ofRow("NEW", quoted($0)))"
      })
  }

  /// The statement that logs a hint of the row that has the new row's rowid, where other columns
  /// identify the rows.
  private var rowidHint: String? {
    guard case .columns = table.identity, let key = table.localKey else { return nil }
    return hint(
      .replaced, where: ["\(table.quotedName).\(quoted(key)) = \(ofRow("NEW", quoted(key)))"])
  }

  /// An SQL term that is true if an update may change a unique value. Expressions and conditions
  /// can read any column.
  private var uniqueDifference: String {
    guard table.uniqueIndexes.allSatisfy(\.isPlain) else { return "1" }
    let positions = Set(table.uniqueIndexes.flatMap { $0.columns.compactMap { $0 } }).sorted()
    return positions.map { difference(table.columns[$0]) }.joined(separator: " OR ")
  }

  /// Returns the conditions under which another row has the new row's values in a unique index.
  /// They may hold too often: whether the new row meets the condition of a partial index is mostly
  /// not checked, see ``mayMeet(_:)``.
  private func matches(_ index: UniqueIndex) -> [String] {
    guard !index.isPlain else {
      return zip(index.terms, zip(index.columns, index.collations)).map { term, column in
        let value = column.0.map { newValue(table.columns[$0].name) } ?? ofRow("NEW", term)
        return "\(table.quotedName).\(term) = \(value) COLLATE \(quoted(SQLName(column.1)))"
      }
    }
    let source = newRow { newValue($0) }
    let isEvaluated = index.columns.contains(nil) ? index.condition.map(mayMeet) : nil
    let terms = zip(index.terms, index.collations).map { term, collation in
      let value = "(SELECT \(term) FROM \(source))"
      let guarded = isEvaluated.map { "CASE WHEN \($0) THEN \(value) END" } ?? value
      return "(\(term)) = \(guarded) COLLATE \(quoted(SQLName(collation)))"
    }
    // The condition comes first: existing rows, too, have values for the terms only if they meet
    // it.
    return (index.condition.map { ["(\($0))"] } ?? []) + terms
  }

  /// Returns the SQL of a table that contains only the new row, under the same column names, so
  /// that the index's own text can be evaluated on it unchanged.
  private func newRow(_ value: (SQLName) -> String) -> String {
    let columns = table.allColumns.map { "\(value($0)) AS \(quoted($0))" }
    return "(SELECT \(columns.joined(separator: ", "))) AS \(table.quotedName)"
  }

  /// Returns an SQL term that is true if the new row may meet a partial index's condition.
  /// Expressions of such an index are not evaluated otherwise: they may fail
  /// (`json_extract(data, '$.id')`, `abs(n)`), where the condition (`json_valid(data)`) keeps
  /// SQLite from evaluating them.
  ///
  /// NEW's columns have lost their affinities and collations, by which a condition compares. A cast
  /// has an affinity, but changes values of other types. So the term checks the condition both
  /// ways.
  private func mayMeet(_ condition: String) -> String {
    let cast = newRow { name in
      guard let column = table.columns.first(where: { $0.name == name }) else {
        return newValue(name)
      }
      let value =
        column.affinity == .blob
        ? newValue(name) : "CAST(\(newValue(name)) AS \(column.affinity.rawValue))"
      return "\(value) COLLATE \(quoted(SQLName(column.collation)))"
    }
    let sources = [newRow { newValue($0) }, cast]
    return sources.map { "(SELECT \(condition) FROM \($0))" }.joined(separator: " OR ")
  }

  /// Returns the SQL of a column of `OLD` or `NEW`, for a statement that reads the table: if the table
  /// has that name, the bare term would be a column of the table.
  private func ofRow(_ row: String, _ column: String) -> String {
    table.name.isSame(as: SQLName(row)) ? "(SELECT \(row).\(column))" : "\(row).\(column)"
  }

  /// Returns the SQL of the value that a column of the new row will have. REPLACE puts the default
  /// into a column that must not be NULL, and generated columns follow, but only after these
  /// triggers.
  private func newValue(_ name: SQLName) -> String {
    let replaced = table.columns.filter { $0.isNotNull && $0.defaultExpression != nil }
    if let column = replaced.first(where: { $0.name == name }) {
      return "coalesce(\(ofRow("NEW", quoted(name))), (\(column.defaultExpression ?? "NULL")))"
    }
    guard !replaced.isEmpty,
      let generated = table.generatedColumns.first(where: { $0.name == name })
    else { return ofRow("NEW", quoted(name)) }
    let columns = table.columns.map { "\(newValue($0.name)) AS \(quoted($0.name))" }
    return "(SELECT (\(generated.expression)) FROM (SELECT \(columns.joined(separator: ", "))) "
      + "AS \(table.quotedName))"
  }

  private func hint(_ kind: Entry, where conditions: [String]) -> String {
    let terms =
      zip(keyNames, table.keyColumns).map { ($0, "\(table.quotedName).\(quoted($1))") }
      + recordedTerms(table.quotedName)
    return """
      INSERT INTO \(table.logName) (op, at, \(terms.map(\.0).joined(separator: ", "))) \
      SELECT \(kind.rawValue), julianday('now'), \(terms.map(\.1).joined(separator: ", ")) \
      FROM \(table.quotedName) WHERE \(conditions.joined(separator: " AND "));
      """
  }
}
