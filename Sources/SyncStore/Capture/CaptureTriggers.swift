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
    let bases = table.baseColumns
    let names = keyNames + bases.map(Column.old)
    let olds = bases.map { position in
      ", " + fallingBack(to: ["OLD"], "OLD.\(quoted(table.columns[position].name))", [position])
    }
    let condition = balanced(positions.map { difference(table.columns[$0]) }, by: "OR")
    // SQLite evaluates all terms of an OR that is a value, but not those of a condition.
    let isChanged = fallingBack(to: ["OLD", "NEW"], "CASE WHEN \(condition) THEN 1 END", positions)
    // A subquery costs less here than INSERT … SELECT.
    let mask = fallingBack(to: ["OLD", "NEW"], mask, positions)
    return """
      CREATE TRIGGER \(name("au")) AFTER UPDATE ON \(table.quotedName) WHEN \(isChanged) BEGIN \
      INSERT INTO \(table.logName) (op, at, mask, \(names.joined(separator: ", "))) \
      VALUES (\(Entry.update.rawValue), julianday('now'), \(mask), \(keys("NEW"))\(olds.joined())); END
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
      "\(table.quotedName).\(quoted($0)) IS NOT OLD.\(quoted($0))"
    }
    let hints = table.uniqueIndexes.map {
      hint(.replaced, where: matches($0) + ["(\(others.joined(separator: " OR ")))"])
    }
    return "CREATE TRIGGER \(name("bu")) BEFORE \(uniqueUpdate) ON \(table.quotedName) "
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
      where: table.keyColumns.map { "\(table.quotedName).\(quoted($0)) = NEW.\(quoted($0))" })
  }

  /// The statement that logs a hint of the row that has the new row's rowid, where other columns
  /// identify the rows.
  private var rowidHint: String? {
    guard case .columns = table.identity, let key = table.localKey else { return nil }
    return hint(.replaced, where: ["\(table.quotedName).\(quoted(key)) = NEW.\(quoted(key))"])
  }

  /// The event of an update that may change a unique value. `UPDATE OF` may name columns that have
  /// gone.
  private var uniqueUpdate: String {
    guard table.uniqueIndexes.allSatisfy(\.isPlain) else { return "UPDATE" }
    let positions = Set(table.uniqueIndexes.flatMap(\.positions)).sorted()
    return updateOf(positions.map { table.columns[$0].name })
  }

  /// An SQL term that is true if an update may change a unique value. Expressions and conditions
  /// can read any column.
  private var uniqueDifference: String {
    guard table.uniqueIndexes.allSatisfy(\.isPlain) else { return "1" }
    let positions = Set(table.uniqueIndexes.flatMap(\.positions)).sorted()
    let term = positions.map { difference(table.columns[$0]) }.joined(separator: " OR ")
    guard table.uniqueIndexes.contains(where: { rowKeyIfDroppable($0) != nil }) else { return term }
    return fallingBack(to: ["OLD", "NEW"], term, positions)
  }

  /// Returns the conditions under which another row has the new row's values in a unique index.
  /// They may hold too often: whether the new row meets the condition of a partial index is mostly
  /// not checked, see ``mayMeet(_:of:)``.
  private func matches(_ index: UniqueIndex) -> [String] {
    guard !index.isPlain else {
      guard let key = rowKeyIfDroppable(index) else {
        return plainMatches(index, of: table.quotedName)
      }
      // At most one row has the values.
      let conditions = plainMatches(index, of: Self.other).joined(separator: " AND ")
      let found =
        "\(Self.other).\(key) FROM \(table.quotedName) AS \(Self.other) WHERE \(conditions)"
      let claimant = fallingBack(to: [Self.other, "NEW"], found, index.positions)
      return ["\(table.quotedName).\(key) = \(claimant)"]
    }
    let source = newRow(for: index) { newValue($0) }
    let isEvaluated =
      index.columns.contains(nil) ? index.condition.map { mayMeet($0, of: index) } : nil
    let terms = zip(index.terms, index.collations).map { term, collation in
      let value = "(SELECT \(term) FROM \(source))"
      let guarded = isEvaluated.map { "CASE WHEN \($0) THEN \(value) END" } ?? value
      return "(\(term)) = \(guarded) COLLATE \(quoted(SQLName(collation)))"
    }
    // The condition comes first: existing rows, too, have values for the terms only if they meet
    // it.
    return (index.condition.map { ["(\($0))"] } ?? []) + terms
  }

  private func plainMatches(_ index: UniqueIndex, of row: String) -> [String] {
    zip(index.terms, zip(index.columns, index.collations)).map { term, column in
      let value = column.0.map { newValue(table.columns[$0].name) } ?? "NEW.\(term)"
      return "\(row).\(term) = \(value) COLLATE \(quoted(SQLName(column.1)))"
    }
  }

  /// Returns the name of the key that finds a row, if a program may drop the index and then its
  /// columns; otherwise `nil`.
  private func rowKeyIfDroppable(_ index: UniqueIndex) -> String? {
    guard index.isPlain, !index.isConstraint else { return nil }
    // A later column can take a name of the rowid, but not that of the key.
    if table.keyColumns.count == 1, case .primaryKey = table.identity {
      return table.keyColumns.first.map(quoted)
    }
    return table.isWithoutRowid ? nil : table.rowidName
  }

  /// Returns the SQL of a table that contains only the new row, under the same column names, so
  /// that the index's own text can be evaluated on it unchanged. It has the columns that the text
  /// names: another column can be dropped.
  private func newRow(for index: UniqueIndex, _ value: (SQLName) -> String) -> String {
    let texts = index.terms + [index.condition].compactMap { $0 }
    var columns = named(in: texts, among: table.allColumns).map { "\(value($0)) AS \(quoted($0))" }
    if columns.isEmpty { columns = ["1"] }
    return "(SELECT \(columns.joined(separator: ", "))) AS \(table.quotedName)"
  }

  /// Returns the columns that SQL names.
  private func named(in texts: [String], among columns: [SQLName]) -> [SQLName] {
    let tokens = texts.flatMap { SQLTokens($0).tokens }
    return columns.filter { column in tokens.contains { $0.isName(column) } }
  }

  /// Returns an SQL term that is true if the new row may meet a partial index's condition.
  /// Expressions of such an index are not evaluated otherwise: they may fail
  /// (`json_extract(data, '$.id')`, `abs(n)`), where the condition (`json_valid(data)`) keeps
  /// SQLite from evaluating them.
  ///
  /// NEW's columns have lost their affinities and collations, by which a condition compares. A cast
  /// has an affinity, but changes values of other types. So the term checks the condition both
  /// ways.
  private func mayMeet(_ condition: String, of index: UniqueIndex) -> String {
    let cast = newRow(for: index) { name in
      guard let column = table.columns.first(where: { $0.name == name }) else {
        return newValue(name)
      }
      let value =
        column.affinity == .blob
        ? newValue(name) : "CAST(\(newValue(name)) AS \(column.affinity.rawValue))"
      return "\(value) COLLATE \(quoted(SQLName(column.collation)))"
    }
    let sources = [newRow(for: index) { newValue($0) }, cast]
    return sources.map { "(SELECT \(condition) FROM \($0))" }.joined(separator: " OR ")
  }

  /// Returns the SQL of the value that a column of the new row will have. REPLACE puts the default
  /// into a column that must not be NULL, and generated columns follow, but only after these
  /// triggers.
  private func newValue(_ name: SQLName) -> String {
    let replaced = table.columns.filter { $0.isNotNull && $0.defaultExpression != nil }
    if let column = replaced.first(where: { $0.name == name }) {
      return "coalesce(NEW.\(quoted(name)), (\(column.defaultExpression ?? "NULL")))"
    }
    guard !replaced.isEmpty,
      let generated = table.generatedColumns.first(where: { $0.name == name })
    else { return "NEW.\(quoted(name))" }
    let columns = named(in: [generated.expression], among: table.columns.map(\.name)).map {
      "\(newValue($0)) AS \(quoted($0))"
    }
    return
      "(SELECT (\(generated.expression)) FROM (SELECT \((columns + ["1"]).joined(separator: ", "))) "
      + "AS \(table.quotedName))"
  }

  /// The name of the table, or of a row of it, in a query within a query of it.
  private static let other = "docsync_other"

  /// Returns the tables of a hint: this one and, for names of columns that a program has dropped, one
  /// without rows. A natural join takes a column that both have from the first.
  private var hintSource: String {
    guard !table.recordedColumns.isEmpty else { return table.quotedName }
    let columns = table.recordedColumns.map { "NULL AS \(quoted(table.columns[$0].name))" }
    return
      "\(table.quotedName) NATURAL LEFT JOIN (SELECT \(columns.joined(separator: ", ")) WHERE 0)"
  }

  private func hint(_ kind: Entry, where conditions: [String]) -> String {
    let reference = referredKey(table.quotedName).map { [("identity", $0)] } ?? []
    let terms =
      zip(keyNames, table.keyColumns).map { ($0, "\(table.quotedName).\(quoted($1))") } + reference
      + table.recordedColumns.map { (Column.old($0), quoted(table.columns[$0].name)) }
    return """
      INSERT INTO \(table.logName) (op, at, \(terms.map(\.0).joined(separator: ", "))) \
      SELECT \(kind.rawValue), julianday('now'), \(terms.map(\.1).joined(separator: ", ")) \
      FROM \(hintSource) WHERE \(conditions.joined(separator: " AND "));
      """
  }
}
