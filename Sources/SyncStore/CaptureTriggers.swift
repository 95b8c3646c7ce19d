import GRDB

/// The triggers by which every edit of a synchronized table is logged,
/// whichever program makes it.
///
/// They use nothing but SQLite's own functions, append to one table with an
/// integer key, and leave all thinking to the export. An entry of the kinds
/// ``Entry/replaced`` and ``Entry/present`` is a hint: the row of that key
/// was there before the statement, and may be gone after it.
struct CaptureTriggers {
  /// The kinds of entries in a log.
  enum Entry: Int64 {
    /// The row was inserted.
    case insert = 0
    /// Columns of the row changed.
    case update = 1
    /// The row was deleted.
    case delete = 2
    /// Another row was written with a value of this row that must be unique,
    /// so that REPLACE would have removed it.
    case replaced = 3
    /// The row was there when an insert of its key began.
    case present = 4
  }

  /// The bits of one mask; further columns go to further masks.
  static let bitsPerMask = 62

  let table: TableSchema

  /// Statements that make the log and the triggers.
  var creation: [String] { [logTable] + removal + triggers }

  /// The statements that make the triggers, as SQLite keeps them.
  var triggers: [String] {
    [insertTrigger, updateTrigger, keyTrigger, deleteTrigger]
      + [beforeInsertTrigger, beforeUpdateTrigger].compactMap { $0 }
  }

  /// Statements that remove the triggers and keep the log.
  var removal: [String] {
    ["ai", "au", "ak", "ad", "bi", "bu"].map { "DROP TRIGGER IF EXISTS \(name($0))" }
  }

  // MARK: - The log

  private var logTable: String {
    // Without a type a column keeps every value as it is.
    """
    CREATE TABLE IF NOT EXISTS \(table.logName) \
    (seq INTEGER PRIMARY KEY, op INTEGER, at REAL, mask, \
    \(keyNames.map { "\($0)" }.joined(separator: ", ")), identity BLOB)
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
      + "BEGIN \(entry(.delete, "OLD")) END"
  }

  private var updateTrigger: String {
    let positions = table.cellPositions
    guard !positions.isEmpty else {
      return "CREATE TRIGGER \(name("au")) AFTER UPDATE ON \(table.quotedName) WHEN 0 "
        + "BEGIN SELECT 1; END"
    }
    let condition = positions.map { difference(table.columns[$0]) }.joined(separator: " OR ")
    return """
      CREATE TRIGGER \(name("au")) AFTER UPDATE ON \(table.quotedName) WHEN \(condition) BEGIN \
      INSERT INTO \(table.logName) (op, at, mask, \(keyNames.joined(separator: ", "))) \
      VALUES (\(Entry.update.rawValue), julianday('now'), \(mask), \(keys("NEW"))); END
      """
  }

  /// A changed key is a deletion under the old one and an insertion under the
  /// new one. A rowid can be set by names that UPDATE OF does not know.
  private var keyTrigger: String {
    let columns = table.keyColumns.map(quoted).joined(separator: ", ")
    let event = table.localKey == nil ? "UPDATE OF \(columns)" : "UPDATE"
    let condition = table.keyColumns.map {
      "OLD.\(quoted($0)) IS NOT NEW.\(quoted($0))"
    }.joined(separator: " OR ")
    return "CREATE TRIGGER \(name("ak")) AFTER \(event) ON \(table.quotedName) WHEN \(condition) "
      + "BEGIN \(entry(.delete, "OLD")) \(insertEntry) END"
  }

  /// True if the column's value changed in any way that shows. `IS NOT` alone
  /// would take 1 for 1.0 and, under a collation, `a` for `A`.
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
    let groups = (0...(last / Self.bitsPerMask)).map { group in
      let terms = positions.filter { $0 / Self.bitsPerMask == group }.map {
        "((\(difference(table.columns[$0]))) << \($0 % Self.bitsPerMask))"
      }
      return terms.isEmpty ? "0" : "(\(balanced(terms)))"
    }
    return groups.joined(separator: " || ',' || ")
  }

  /// Joins many terms by `|` in a tree: SQLite limits the depth to 1,000.
  private func balanced(_ terms: [String]) -> String {
    guard terms.count > 8 else { return terms.joined(separator: " | ") }
    let middle = terms.count / 2
    return "(\(balanced(Array(terms[..<middle])))) | (\(balanced(Array(terms[middle...]))))"
  }

  // MARK: - Before: what REPLACE removes without firing a delete trigger

  private var beforeInsertTrigger: String? {
    var hints = table.uniqueIndexes.map { hint(for: $0, except: "NEW") }
    if table.hasUnstampedRows {
      hints.append(
        """
        INSERT INTO \(table.logName) (op, at, \(keyNames.joined(separator: ", "))) \
        SELECT \(Entry.present.rawValue), julianday('now'), \(keys(table.quotedName)) \
        FROM \(table.quotedName) WHERE \
        \(table.keyColumns.map { "\(quoted($0)) = NEW.\(quoted($0))" }.joined(separator: " AND "));
        """)
    }
    guard !hints.isEmpty else { return nil }
    return "CREATE TRIGGER \(name("bi")) BEFORE INSERT ON \(table.quotedName) "
      + "BEGIN \(hints.joined(separator: " ")) END"
  }

  private var beforeUpdateTrigger: String? {
    guard !table.uniqueIndexes.isEmpty else { return nil }
    let hints = table.uniqueIndexes.map { hint(for: $0, except: "OLD") }
    return "CREATE TRIGGER \(name("bu")) BEFORE UPDATE ON \(table.quotedName) "
      + "WHEN \(uniqueDifference) BEGIN \(hints.joined(separator: " ")) END"
  }

  /// Expressions and conditions can read any column.
  private var uniqueDifference: String {
    guard table.uniqueIndexes.allSatisfy(\.isPlain) else { return "1" }
    let positions = Set(table.uniqueIndexes.flatMap { $0.columns.compactMap { $0 } }).sorted()
    return positions.map { difference(table.columns[$0]) }.joined(separator: " OR ")
  }

  private func hint(for index: UniqueIndex, except row: String) -> String {
    let matches: [String]
    if index.isPlain {
      matches = zip(index.terms, index.collations).map { term, collation in
        "\(term) = NEW.\(term) COLLATE \(quoted(collation))"
      }
    } else {
      // The new row as a table of one row with the same column names, so that
      // the index's own text can be evaluated on it unchanged.
      let columns = table.columns.map { "NEW.\(quoted($0.name)) AS \(quoted($0.name))" }
      let key = table.localKey.map { ["NEW.\(quoted($0)) AS \(quoted($0))"] } ?? []
      let source =
        "(SELECT \((key + columns).joined(separator: ", "))) AS \(table.quotedName)"
      let condition = index.condition.map { " WHERE \($0)" } ?? ""
      matches =
        zip(index.terms, index.collations).map { term, collation in
          "(\(term)) = (SELECT \(term) FROM \(source)\(condition)) COLLATE \(quoted(collation))"
        } + (index.condition.map { ["(\($0))"] } ?? [])
    }
    let others = table.keyColumns.map {
      "\(table.quotedName).\(quoted($0)) IS NOT \(row).\(quoted($0))"
    }
    return """
      INSERT INTO \(table.logName) (op, at, \(keyNames.joined(separator: ", "))) \
      SELECT \(Entry.replaced.rawValue), julianday('now'), \(keys(table.quotedName)) \
      FROM \(table.quotedName) WHERE \(matches.joined(separator: " AND ")) \
      AND (\(others.joined(separator: " OR ")));
      """
  }
}
