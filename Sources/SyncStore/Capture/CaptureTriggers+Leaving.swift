import SyncModel

/// What triggers log in a table with ``TableSchema/convertibleColumns``.
extension CaptureTriggers {
  /// Returns whether SQLite may convert the values of one of the columns.
  func canConvert(_ columns: [SQLName]) -> Bool {
    columns.contains { column in table.convertibleColumns.contains(where: column.isSame) }
  }

  /// The triggers that log the rows that are about to leave.
  var leavingTriggers: [String] {
    guard !table.convertibleColumns.isEmpty else { return [] }
    let deletion =
      "CREATE TRIGGER \(name("bd")) BEFORE DELETE ON \(table.quotedName) "
      + "BEGIN \(oldEntry(.leaving)) END"
    guard canConvert(table.keyColumns) else { return [deletion] }
    // It logs keys that stay, too: SQLite converts them as well, so that they seem to change.
    let move =
      "CREATE TRIGGER \(name("bm")) BEFORE \(updateOf(table.keyColumns)) ON \(table.quotedName) "
      + "BEGIN \(oldEntry(.leaving, isMove: true)) END"
    return [deletion, move]
  }

  /// The statements that turn the entry of a row that was about to leave into its deletion, after
  /// the effects of foreign keys.
  var deletionOfLeaving: String {
    let names = keyNames + ["identity"] + furtherColumns
    let isOwn = isLast(isSameKey("OLD", keyNames) + isMove(false))
    return copy(.delete, names, from: names, where: isOwn) + removal(isOwn)
  }

  /// The trigger that turns such an entry into the deletion of the former key and the insertion of
  /// the new one.
  var convertedKeyTrigger: String {
    let names = keyNames + ["identity"] + furtherColumns
    let destinations = table.keyColumns.indices.map(Column.destination)
    let isOwn = isLast(
      isSameKey("OLD", keyNames) + isSameKey("NEW", destinations) + isMove(true))
    let isChanged = zip(keyNames, destinations).map { "\($0) IS NOT \($1)" }
    let condition = "\(isOwn) AND (\(isChanged.joined(separator: " OR ")))"
    let entries =
      copy(.delete, names, from: names, where: condition)
      + copy(.insert, keyNames, from: destinations, where: condition) + removal(isOwn)
    return "CREATE TRIGGER \(name("ak")) AFTER \(updateOf(table.keyColumns)) "
      + "ON \(table.quotedName) BEGIN \(entries) END"
  }

  /// Returns the SQL of a value of the new row, as it is in the table.
  ///
  /// In a table WITHOUT ROWID it is found by the converted key. So the result can be the key of
  /// another row, which is the same number, or the converted key itself.
  func storedValue(_ column: SQLName) -> String {
    let row = "docsync_other"
    let source = "FROM \(table.quotedName) AS \(row) WHERE"
    let new = "(SELECT NEW.\(quoted(column)))"
    guard !table.isWithoutRowid, let rowid = table.rowidName else {
      // The comparison converts a number to a text again.
      let match = table.keyColumns.map { "\(row).\(quoted($0)) = (SELECT +NEW.\(quoted($0)))" }
      return "coalesce((SELECT \(row).\(quoted(column)) \(source) "
        + "\(match.joined(separator: " AND "))), \(new))"
    }
    // A program may have given another column the name of the rowid.
    let match = isConverted("\(row).\(quoted(column))", to: new)
    return "coalesce((SELECT \(row).\(quoted(column)) \(source) \(row).\(rowid) = NEW.\(rowid) "
      + "AND \(match)), \(new))"
  }

  // MARK: - Entries

  private func copy(
    _ kind: Entry, _ names: [String], from columns: [String], where condition: String
  ) -> String {
    """
    INSERT INTO \(table.logName) (op, at, \(names.joined(separator: ", "))) \
    SELECT \(kind.rawValue), at, \(columns.joined(separator: ", ")) \
    FROM \(table.logName) WHERE \(condition);
    """ + " "
  }

  private func removal(_ condition: String) -> String {
    "DELETE FROM \(table.logName) WHERE \(condition);"
  }

  /// Returns the SQL condition that an entry is the last one of its kind that meets further
  /// conditions. Triggers of the application can log others between the edit and this one.
  private func isLast(_ conditions: [String]) -> String {
    let all = ["op = \(Entry.leaving.rawValue)"] + conditions
    return "seq = (SELECT seq FROM \(table.logName) WHERE \(all.joined(separator: " AND ")) "
      + "ORDER BY seq DESC LIMIT 1)"
  }

  /// Returns the SQL condition that an entry is one of a changed key, or one of a deletion.
  private func isMove(_ isMove: Bool) -> [String] {
    guard canConvert(table.keyColumns) else { return [] }
    return ["mask IS \(isMove ? "1" : "NULL")"]
  }

  /// Returns the SQL conditions that columns of an entry have the key of a row.
  private func isSameKey(_ row: String, _ names: [String]) -> [String] {
    zip(names, table.keyColumns).map { name, column in
      isConverted(name, to: "\(row).\(quoted(column))")
    }
  }

  /// Returns the SQL condition that a value is another one, or that SQLite converts it to that number.
  private func isConverted(_ value: String, to other: String) -> String {
    "(\(value) IS \(other) OR typeof(\(value)) = 'text' "
      + "AND typeof(\(other)) IN ('integer', 'real') AND \(value) + 0 = \(other))"
  }
}
