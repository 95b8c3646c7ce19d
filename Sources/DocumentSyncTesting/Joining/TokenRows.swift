import SyncModel

/// The rows of the synchronized tables of a database, by their tokens, and the rows to which they
/// refer.
struct TokenRows {
  struct Row: Equatable {
    /// The values by column position, without generated columns.
    var values: [Int: Value]
    /// The tokens of the rows to which the row refers, by index among the references.
    var parents: [Int: String] = [:]
  }

  /// A row by its table and token.
  struct Name: Hashable, Comparable, CustomStringConvertible {
    var table: SQLName
    var token: String

    var description: String { "\(table) \(token)" }

    static func < (left: Name, right: Name) -> Bool {
      (left.table.text, left.token) < (right.table.text, right.token)
    }
  }

  let schema: FleetSchema
  private(set) var rows: [Name: Row] = [:]
  /// The tokens that two rows of a table have.
  private(set) var repeated: [Name] = []

  init(of database: FleetSQLite, _ schema: FleetSchema) throws {
    self.schema = schema
    for table in schema.synchronized {
      let columns = table.settable
      guard let token = table.position(of: FleetSchema.token) else { continue }
      for row in try database.rows("SELECT \(table.names(columns)) FROM \(table.name.sql)") {
        let values = Dictionary(uniqueKeysWithValues: zip(columns, row))
        guard let text = values[token]?.string else { continue }
        let name = Name(table: table.name, token: text)
        if rows.updateValue(Row(values: values), forKey: name) != nil { repeated.append(name) }
      }
    }
    for table in schema.synchronized {
      for (index, reference) in schema.references(of: table).enumerated() {
        for row in try database.rows(Self.leading(reference, from: table)) {
          guard let child = row[0].string, let parent = row[1].string else { continue }
          rows[Name(table: table.name, token: child)]?.parents[index] = parent
        }
      }
    }
  }

  /// Returns a query for the tokens of rows, and of the rows to which a reference leads from them.
  /// SQLite compares them as a foreign key does: as values of the columns to which it refers.
  private static func leading(_ reference: FleetReference, from table: FleetTable) -> String {
    let conditions = zip(reference.columns, reference.parentNames).map { column, parent in
      "p.\(parent.sql) = +c.\(table.columns[column].name.sql)"
    }
    return "SELECT c.token, p.token FROM \(table.name.sql) AS c JOIN \(reference.parent.sql) AS p "
      + "ON \(conditions.joined(separator: " AND "))"
  }

  /// Returns the rows that are not as in another database, directly or since they refer to such a
  /// row.
  func changed(since former: TokenRows) -> Set<Name> {
    var changed = Set(rows.keys.filter { rows[$0] != former.rows[$0] })
    var isGrowing = true
    while isGrowing {
      let before = changed.count
      for (name, row) in rows where !changed.contains(name) {
        let parents = row.parents.compactMap { parent(of: name, $0.key) }
        if !changed.isDisjoint(with: parents) { changed.insert(name) }
      }
      isGrowing = changed.count > before
    }
    return changed
  }

  /// Returns the row to which a row refers; `nil` for none.
  ///
  /// - Parameter reference: The index of the reference.
  func parent(of name: Name, _ reference: Int) -> Name? {
    guard let table = schema.table(name.table), let token = rows[name]?.parents[reference] else {
      return nil
    }
    return Name(table: schema.references(of: table)[reference].parent, token: token)
  }
}

extension TokenRows {
  /// Gives a token to each row that has none, and a new one to each row that has changed.
  ///
  /// - Parameters:
  ///   - letter: Begins the tokens.
  ///   - former: The rows that have their tokens; `nil` for none.
  static func give(
    _ letter: String, in database: FleetSQLite, _ schema: FleetSchema,
    since former: TokenRows? = nil
  ) throws {
    var number = 0
    func next() -> Value {
      number += 1
      return .text(Array("\(letter)\(number)".utf8))
    }
    for table in schema.synchronized {
      let key = (table.integerKey.map { [$0] } ?? table.key).map { table.columns[$0].name.sql }
      let condition = key.map { "\($0) IS ?" }.joined(separator: " AND ")
      for row in try database.rows(
        "SELECT \(key.joined(separator: ", ")) FROM \(table.name.sql) WHERE token IS NULL")
      {
        _ = try database.rows(
          "UPDATE \(table.name.sql) SET token = ? WHERE \(condition)", [next()] + row)
      }
    }
    guard let former else { return }
    let rows = try TokenRows(of: database, schema)
    for name in rows.changed(since: former).sorted() where former.rows[name] != nil {
      _ = try database.rows(
        "UPDATE \(name.table.sql) SET token = ? WHERE token = ?",
        [next(), .text(Array(name.token.utf8))])
    }
  }
}

extension Value {
  /// The text, if it is one.
  var string: String? {
    if case .text(let bytes) = self { String(decoding: bytes, as: UTF8.self) } else { nil }
  }
}
