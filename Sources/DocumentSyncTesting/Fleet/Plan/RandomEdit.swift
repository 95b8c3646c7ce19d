import SyncModel

/// Random edits of programs that do not know about syncing. There are few keys and values, so that
/// devices often edit the same rows.
struct RandomEdit {
  private let schema: FleetSchema
  private let features: FleetFeatures
  /// Where values may be large; `nil` for nowhere.
  private var large: Large?

  init(schema: FleetSchema, features: FleetFeatures, large: Large? = nil) {
    self.schema = schema
    self.features = features
    self.large = large
  }

  /// Returns the same edits with large values.
  func with(large: Large) -> RandomEdit {
    var edits = self
    edits.large = large
    return edits
  }

  var tables: [FleetTable] { schema.tables }

  static func literals(_ type: FleetColumn.DataType) -> [String] {
    switch type {
    case .integer: ["0", "1", "2", "3", "9223372036854775807"]
    case .text: ["'a'", "'b'", "'\u{E9}'", "'A'", "''", "'e\u{301}'"]
    case .real: ["0.5", "1.0", "2.0", "-9e999"]
    case .blob: ["x'00'", "x''", "x'ff'"]
    case .any: ["1", "1.0", "'1'", "'a'", "x'61'"]
    }
  }

  /// Returns values that are easily confused with others or changed in transit. The texts contain
  /// halves of surrogate pairs in UTF-16 and are invalid in UTF-8.
  private func oddities(_ column: FleetColumn) -> [String] {
    let text = [
      "CAST(x'00d8' AS TEXT)", "CAST(x'610000dc' AS TEXT)", "'a' || char(0) || 'b'",
      "CAST(x'fffe00d8' AS TEXT)",
    ]
    let numbers = [
      "9007199254740993", "9007199254740992.0", "9223372036854775807", "-9223372036854775808",
    ]
    return switch column.type {
    case .integer:
      // The other real is stored as an integer. A counter would show a rounded sum.
      features.contains(.leastReals) && !column.isCounter
        ? [numbers[0], "-9223372036854775808.0", numbers[2], numbers[3]] : numbers
    case .text: text
    case .real: ["-0.0", "0.0", "9e999", "4.9e-324", "1.7976931348623157e308"]
    case .blob: ["zeroblob(5000)", "x'ff00ff'"]
    case .any: ["-0.0", "0.0", "0"] + text + numbers
    }
  }

  /// Returns the values that a key can have.
  static func keys(_ column: FleetColumn) -> [String] {
    switch column.type {
    case .integer: ["1", "2", "3", "4", "5", "6"]
    case .text:
      column.collation == .binary
        ? ["'k1'", "'k\u{E9}'", "'ke\u{301}'"] : ["'k1'", "'K1'", "'k2'", "'k2 '"]
    case .real: ["1.0", "1.5", "2.0"]
    case .blob: ["x'01'", "x'02'"]
    case .any: ["1", "1.0", "'1'", "x'31'"]
    }
  }

  /// Returns the values that a key can have in this schema.
  private func keys(_ column: FleetColumn) -> [String] {
    guard schema.hasHostileNames, column.type == .text else { return Self.keys(column) }
    // SQLite tells these apart, whatever the collation.
    let others = ["'\u{C4}'", "'\u{E4}'", "'A\u{308}'", "'k''\"'"]
    return Self.keys(column) + others
  }

  /// Draws the statements that a program runs together.
  func draw(_ dice: inout Dice) -> [String] {
    switch dice.below(100) {
    case 0..<75: return [statement(&dice)]
    case 75..<85: return swap(&dice) ?? [statement(&dice)]
    default: return (0..<(2 + dice.below(3))).map { _ in statement(&dice) }
    }
  }

  /// Draws an insertion to fill a store.
  func insertion(_ dice: inout Dice) -> String {
    insertion(into: dice.pick(schema.tables), verb: "INSERT", &dice)
  }

  /// An insert of a row with NULL in its key.
  func insertionWithoutKey(into table: FleetTable, _ dice: inout Dice) -> String {
    let missing = dice.pick(table.key.filter { !table.columns[$0].isNotNull })
    let columns = table.settable
    let values = columns.map { $0 == missing ? "NULL" : value($0, of: table, &dice) }
    return "INSERT INTO \(table.name.sql) (\(table.names(columns))) VALUES "
      + "(\(values.joined(separator: ", ")))"
  }

  /// An insert of many rows, as far as the schema accepts them.
  ///
  /// - Parameter offset: Added to the numbers in the values of the rows, so that they differ from
  ///   those of another insert.
  func bulk(
    of count: Int, in table: FleetTable, after offset: Int = 0, _ dice: inout Dice
  ) -> String {
    let columns = table.settable
    let values = columns.map { column -> String in
      let type = table.columns[column].type
      if table.references.contains(where: { $0.columns.contains(column) }) {
        return table.columns[column].isNotNull || table.key.contains(column)
          ? value(column, of: table, &dice) : "NULL"
      }
      if !table.key.contains(column), dice.chance(40) { return value(column, of: table, &dice) }
      switch type {
      case .integer: return "i"
      case .text: return "'k' || i"
      case .real: return "i + 0.5"
      case .blob: return "CAST('b' || i AS BLOB)"
      case .any: return "i"
      }
    }
    let first = offset + 10 + dice.below(40)
    return "INSERT OR IGNORE INTO \(table.name.sql) (\(table.names(columns))) "
      + "WITH n(i) AS (SELECT \(first) UNION ALL SELECT i + 1 FROM n WHERE i < \(first + count)) "
      + "SELECT \(values.joined(separator: ", ")) FROM n"
  }

  /// Draws a trigger by which edits of one table change another. It does not write to a table that
  /// stays on its device: such a trigger would also run for changes of other devices, and SQLite
  /// could refuse its change then.
  func trigger(_ name: String, _ dice: inout Dice) -> String {
    let table = dice.pick(schema.synchronized).name
    let event = dice.pick(["INSERT", "UPDATE", "DELETE"])
    let shared = RandomEdit(
      schema: FleetSchema(tables: schema.synchronized), features: features)
    var body = shared.statement(&dice)
    while body.contains("DEFAULT VALUES") { body = shared.statement(&dice) }
    let time = dice.pick(["AFTER", "AFTER", "BEFORE"])
    return "CREATE TRIGGER \(name) \(time) \(event) ON \(table.sql) BEGIN \(body); END"
  }

  private func statement(_ dice: inout Dice) -> String {
    let table = dice.pick(schema.tables)
    switch dice.below(100) {
    case 0..<26: return insertion(into: table, verb: "INSERT", &dice)
    case 26..<33:
      let verb = dice.pick(["INSERT OR REPLACE", "REPLACE", "INSERT OR IGNORE"])
      return insertion(into: table, verb: canInsertOrReplace(table) ? verb : "INSERT", &dice)
    case 33..<42: return upsert(table, &dice)
    case 42..<72: return update(table, &dice)
    case 72..<78: return keyUpdate(of: table, &dice)
    case 78..<96: return "DELETE FROM \(table.name.sql) WHERE \(condition(table, &dice))"
    default:
      let column = table.columns[dice.pick(table.settable)].name
      let key = table.columns[table.key[0]].name
      return "DELETE FROM \(table.name.sql) WHERE \(column.sql) IS NOT NULL AND \(key.sql) % 2 = 0"
    }
  }

  /// Adds a clause to a statement that returns the rows that it writes.
  static func returning(_ statement: String) -> String {
    let isEdit = ["INSERT", "REPLACE", "UPDATE", "DELETE"].contains { statement.hasPrefix($0) }
    return isEdit ? statement + " RETURNING *" : statement
  }

  // MARK: - Statements

  private func insertion(into table: FleetTable, verb: String, _ dice: inout Dice) -> String {
    var columns = table.settable.filter { _ in dice.chance(85) }
    for column in table.key where !columns.contains(column) && !table.hasSurrogateKey {
      columns.append(column)
    }
    if let key = table.integerKey, dice.chance(60) { columns.removeAll { $0 == key } }
    guard !columns.isEmpty else { return "\(verb) INTO \(table.name.sql) DEFAULT VALUES" }
    let rows = (0..<(dice.chance(80) ? 1 : 2)).map { _ in
      "(" + columns.map { value($0, of: table, &dice) }.joined(separator: ", ") + ")"
    }
    return "\(verb) INTO \(table.name.sql) (\(table.names(columns))) VALUES "
      + rows.joined(separator: ", ")
  }

  private func upsert(_ table: FleetTable, _ dice: inout Dice) -> String {
    let action =
      dice.chance(15) ? "NOTHING" : "UPDATE SET \(assignments(table, excluded: true, &dice))"
    return insertion(into: table, verb: "INSERT", &dice) + " ON CONFLICT DO \(action)"
  }

  private func update(_ table: FleetTable, _ dice: inout Dice) -> String {
    let verb = dice.pick(weighted: [
      (80, "UPDATE"), (canReplace(table) ? 14 : 0, "UPDATE OR REPLACE"), (6, "UPDATE OR IGNORE"),
    ])
    return "\(verb) \(table.name.sql) SET \(assignments(table, excluded: false, &dice)) "
      + "WHERE \(condition(table, &dice))"
  }

  /// Returns whether UPDATE OR REPLACE is safe. SQLite 3.40 damages its index if REPLACE removes a
  /// row to which the updated row refers and the foreign key's action changes the updated row
  /// again.
  private func canReplace(_ table: FleetTable) -> Bool {
    !table.references.contains { $0.parent == table.name && $0.onDelete != .noAction }
  }

  /// Returns whether SQLite treats INSERT OR REPLACE in the same way with and without triggers. If
  /// a row refers to itself by another spelling that the collation allows, SQLite refuses it only
  /// in a table with a trigger.
  private func canInsertOrReplace(_ table: FleetTable) -> Bool {
    !table.references.contains { reference in
      reference.parent == table.name
        && reference.columns.contains { table.columns[$0].collation != .binary }
    }
  }

  private func keyUpdate(of table: FleetTable, _ dice: inout Dice) -> String {
    guard features.contains(.keyChanges) else { return update(table, &dice) }
    let column = dice.pick(table.key + (table.localKey.map { [$0] } ?? []))
    let verb = dice.chance(80) || !canReplace(table) ? "UPDATE" : "UPDATE OR REPLACE"
    return "\(verb) \(table.name.sql) SET \(table.columns[column].name.sql) = "
      + "\(value(column, of: table, &dice)) WHERE \(condition(table, &dice))"
  }

  private func assignments(
    _ table: FleetTable, excluded: Bool, _ dice: inout Dice
  ) -> String {
    var columns = table.settable.filter { !table.key.contains($0) && $0 != table.localKey }
    if columns.isEmpty { columns = table.key }
    let chosen = dice.shuffled(columns).prefix(dice.chance(70) ? 1 : 2)
    return chosen.map { column in
      let name = table.columns[column].name.sql
      if excluded, dice.chance(50) { return "\(name) = excluded.\(name)" }
      if table.columns[column].type == .integer, dice.chance(15) { return "\(name) = \(name) + 1" }
      return "\(name) = \(value(column, of: table, &dice))"
    }.joined(separator: ", ")
  }

  private func condition(_ table: FleetTable, _ dice: inout Dice) -> String {
    if dice.chance(6) { return "1" }
    if dice.chance(15) {
      let column = dice.pick(table.settable)
      return "\(table.columns[column].name.sql) IS \(value(column, of: table, &dice))"
    }
    let key = table.localKey.map { dice.chance(50) ? [$0] : table.key } ?? table.key
    return key.prefix(dice.chance(80) ? 2 : 1).map { column in
      "\(table.columns[column].name.sql) = \(value(column, of: table, &dice))"
    }.joined(separator: " AND ")
  }

  /// Draws statements by which two rows swap their values of a unique column, by means of a third
  /// value.
  private func swap(_ dice: inout Dice) -> [String]? {
    let known = schema.tables.filter { $0.localKey != nil || $0.hasRowidKey }
    if !known.isEmpty, dice.chance(60) { return keySwap(dice.pick(known), &dice) }
    let candidates = schema.tables.flatMap { table in
      table.uniques.flatMap(\.columns).filter { table.columns[$0].generated == nil }.map {
        (table, $0)
      }
    }
    guard !candidates.isEmpty else { return nil }
    let (table, column) = dice.pick(candidates)
    let name = table.columns[column].name.sql
    let (one, two) = (value(column, of: table, &dice), value(column, of: table, &dice))
    return [
      "UPDATE \(table.name.sql) SET \(name) = NULL WHERE \(name) = \(one)",
      "UPDATE \(table.name.sql) SET \(name) = \(one) WHERE \(name) = \(two)",
      "UPDATE \(table.name.sql) SET \(name) = \(two) WHERE \(name) IS NULL",
    ]
  }

  /// Draws statements by which two rows swap their keys, or the values that identify them.
  private func keySwap(_ table: FleetTable, _ dice: inout Dice) -> [String] {
    let column = dice.pick(table.key + (table.localKey.map { [$0] } ?? []))
    let name = table.columns[column].name.sql
    let (one, two) = (value(column, of: table, &dice), value(column, of: table, &dice))
    let other = table.columns[column].type == .text ? "'~'" : "99"
    return [(one, other), (two, one), (other, two)].map { old, new in
      "UPDATE \(table.name.sql) SET \(name) = \(new) WHERE \(name) = \(old)"
    }
  }

  // MARK: - Values

  private func value(_ column: Int, of table: FleetTable, _ dice: inout Dice) -> String {
    if let reference = table.references.first(where: { $0.columns.contains(column) }) {
      if !reference.isEnforced, dice.chance(45) {
        let own = table.columns[column]
        if schema.table(reference.parent)?.integerKey == reference.parentColumns[0],
          own.type != .integer
        {
          return dice.pick(["0", "77"].flatMap(own.forms(of:)) + ["''", "'none'"])
        }
        return own.type == .text
          ? dice.pick(["''", "''", "'none'"]) : dice.pick(["0", "0", "-1", "77"])
      }
      if !table.key.contains(column), dice.chance(20) { return "NULL" }
      return dice.pick(referred(reference, table.columns[column], column))
    }
    if let parent = schema.references(of: table).first(where: { $0.columns == [column] })?.parent {
      // The column refers to rows only because of other columns, so give it only keys of existing
      // rows.
      let key = dice.pick(["1", "2", "3"])
      let referred = schema.table(parent)
      let name = referred?.integerKey.flatMap { referred?.columns[$0].name.sql } ?? "id"
      return "(SELECT \(name) FROM \(parent.sql) WHERE \(name) = \(key))"
    }
    if table.localKey != column, let value = large?.value(column, of: table, &dice) { return value }
    if table.key.contains(column) || table.localKey == column {
      if table.canLoseKeys, dice.chance(12) { return "NULL" }
      return dice.pick(keys(table.columns[column]))
    }
    if dice.chance(table.columns[column].isNotNull ? 3 : 15) { return "NULL" }
    if schema.hasOddValues, canBeOdd(column, table), dice.chance(20) {
      return dice.pick(oddities(table.columns[column]))
    }
    return dice.pick(Self.literals(table.columns[column].type))
  }

  /// Returns whether a column can have odd values: NOCASE and RTRIM misread invalid text, and
  /// references need the usual values.
  private func canBeOdd(_ column: Int, _ table: FleetTable) -> Bool {
    let isFolded = table.uniques.contains { unique in
      unique.terms.contains { unique.collation($0) != .binary } && unique.columns.contains(column)
    }
    let isReferredTo = schema.tables.contains { other in
      other.references.contains { $0.parent == table.name && $0.parentColumns.contains(column) }
    }
    return table.columns[column].collation == .binary && !isFolded && !isReferredTo
  }

  /// Returns the values that a reference can have.
  private func referred(
    _ reference: FleetReference, _ own: FleetColumn, _ column: Int
  ) -> [String] {
    guard let parent = schema.table(reference.parent),
      let position = reference.columns.firstIndex(of: column)
    else { return ["NULL"] }
    let target = reference.parentColumns[position]
    guard parent.key.contains(target) || parent.localKey == target else {
      if let next = parent.references.first(where: { $0.columns.contains(target) }) {
        return referred(next, parent.columns[target], target)
      }
      return Self.literals(parent.columns[target].type)
    }
    let keys = keys(parent.columns[target])
    return parent.integerKey == target ? keys.flatMap(own.forms(of:)) : keys
  }
}
