import CSQLite
import GRDB
import SyncModel

/// Reads a database's schema and decides how each table is synchronized.
struct SchemaReader {
  /// What bookkeeping remembers of a table between two readings.
  struct Registered {
    var id: Int
    /// Names by bit.
    var columns: [String]
    var hasUnstampedRows: Bool
    var origin: UInt64
  }

  let database: Database
  let configuration: StoreConfiguration
  let path: String

  /// Reads the schema. Tables that are not registered get ids that follow.
  func read(registered: [String: Registered] = [:]) throws -> StoreSchema {
    var leftOut: [String: String] = [:]
    var drafts: [Draft] = []
    var nextID = (registered.values.map(\.id).max() ?? 0) + 1
    let names = try tableNames(leftOut: &leftOut)
    try checkConfiguration(against: names + Array(leftOut.keys))
    for name in names {
      let known = registered[name]
      drafts.append(try draft(of: name, id: known?.id ?? nextID, registered: known))
      if known == nil { nextID += 1 }
    }
    let identifiers = Dictionary(uniqueKeysWithValues: drafts.map { ($0.name.lowercased(), $0.id) })
    var tables = drafts.map(\.table)
    var ordinal = 0
    for index in tables.indices {
      tables[index].foreignKeys = try foreignKeys(
        of: tables[index], drafts: drafts, identifiers: identifiers, ordinal: &ordinal)
      tables[index].uniqueIndexes = try uniqueIndexes(of: tables[index])
    }
    resolveDomains(&tables)
    for table in tables { try checkSurrogate(table) }
    return StoreSchema(tables: tables.sorted { $0.id < $1.id }, leftOut: leftOut)
  }

  /// A table before its references are known.
  private struct Draft {
    var table: TableSchema
    var primaryKey: [String]
    var id: Int { table.id }
    var name: String { table.name }
  }

  // MARK: - Tables

  private func tableNames(leftOut: inout [String: String]) throws -> [String] {
    let excluded = Set(configuration.excludedTables.map { $0.lowercased() })
    var names: [String] = []
    for row in try Row.fetchAll(database, sql: "PRAGMA main.table_list") {
      let name: String = row["name"]
      let type: String = row["type"]
      let lowercased = name.lowercased()
      guard !lowercased.hasPrefix("sqlite_"), !lowercased.hasPrefix("docsync_") else { continue }
      switch type {
      case "table" where excluded.contains(lowercased): leftOut[name] = "excluded"
      case "table": names.append(name)
      case "virtual": leftOut[name] = "virtual table"
      case "shadow": leftOut[name] = "part of a virtual table"
      default: continue
      }
    }
    return names.sorted()
  }

  private func checkConfiguration(against names: [String]) throws {
    let known = Set(names.map { $0.lowercased() })
    let named =
      Array(configuration.excludedTables) + Array(configuration.excludedColumns.keys)
      + Array(configuration.identities.keys) + Array(configuration.references.keys)
    for name in named.sorted() where !known.contains(name.lowercased()) {
      throw StoreError(
        .badConfiguration, path: path, message: "There is no table \(quoted(name)).",
        remedy: "Name one of: \(names.sorted().joined(separator: ", ")).")
    }
  }

  private func lookup<Element>(_ values: [String: Element], _ name: String) -> Element? {
    values.first { $0.key.lowercased() == name.lowercased() }?.value
  }

  private func draft(of name: String, id: Int, registered: Registered?) throws -> Draft {
    let information = try Row.fetchAll(database, sql: "PRAGMA main.table_xinfo(\(quoted(name)))")
    let excluded = Set(
      (lookup(configuration.excludedColumns, name) ?? []).map { $0.lowercased() })
    let sql =
      try String.fetchOne(
        database, sql: "SELECT sql FROM main.sqlite_schema WHERE type = 'table' AND name = ?",
        arguments: [name]) ?? ""
    let list = try Row.fetchOne(database, sql: "PRAGMA main.table_list(\(quoted(name)))")
    let isWithoutRowid = (list?["wr"] ?? 0) != 0

    let primaryKey =
      information.filter { ($0["pk"] as Int) > 0 }
      .sorted { ($0["pk"] as Int) < ($1["pk"] as Int) }.map { $0["name"] as String }
    guard !primaryKey.isEmpty else {
      throw StoreError(
        .unsupportedSchema, path: path,
        message: "The table \(quoted(name)) has no primary key, so its rows cannot be told apart.",
        remedy: "Give it one (for example a column “id INTEGER PRIMARY KEY”) or leave the table "
          + "out with --exclude \(name).")
    }
    let rowidAlias = try rowidAlias(
      of: name, primaryKey: primaryKey, information: information, isWithoutRowid: isWithoutRowid)
    let identity = try chosenIdentity(for: name, primaryKey: primaryKey, rowidAlias: rowidAlias)

    var localKey: String?
    var identityNames: [String] = []
    switch identity {
    case .surrogate: localKey = rowidAlias
    case .primaryKey: identityNames = primaryKey
    case .columns(let names):
      localKey = rowidAlias
      identityNames = names
    }
    let identitySet = Set(identityNames.map { $0.lowercased() })

    var columns: [ColumnSchema] = []
    for row in information {
      let column: String = row["name"]
      let hidden: Int = row["hidden"]
      if hidden != 0 || column.lowercased() == localKey?.lowercased() { continue }
      if excluded.contains(column.lowercased()) {
        try checkExcludable(row, of: name, isIdentity: identitySet.contains(column.lowercased()))
        continue
      }
      columns.append(try columnSchema(row, of: name, identity: identitySet))
    }
    columns = try ordered(columns, registered: registered, table: name)
    let positions = try identityNames.map { wanted in
      guard
        let position = columns.firstIndex(where: { $0.name.lowercased() == wanted.lowercased() })
      else {
        throw StoreError(
          .badConfiguration, path: path,
          message: "The table \(quoted(name)) has no column \(quoted(wanted)) to identify rows by.",
          remedy: "Name columns of the table that are neither generated nor excluded.")
      }
      return position
    }
    let chosen: TableSchema.Identity =
      switch identity {
      case .surrogate: .surrogate
      case .primaryKey: .primaryKey(positions)
      case .columns: .columns(positions)
      }
    let tokens = SQLTokens(sql).tokens
    let table = TableSchema(
      id: id, name: name, identity: chosen, columns: columns, excludedColumns: excluded,
      localKey: localKey, rowidAlias: rowidAlias,
      allColumns: information.filter { ($0["hidden"] as Int) != 1 }.map { $0["name"] },
      generatedColumns: try generatedColumns(information, of: name, sql: sql),
      isWithoutRowid: isWithoutRowid,
      hasUnstampedRows: registered?.hasUnstampedRows ?? false, origin: registered?.origin ?? 0,
      foreignKeys: [], uniqueIndexes: [],
      hasConditions: tokens.contains { $0.isWord("CHECK") } || columns.contains(where: \.isNotNull))
    return Draft(table: table, primaryKey: primaryKey)
  }

  /// The column that is another name of the rowid. `INTEGER PRIMARY KEY DESC`
  /// is none: SQLite makes an index for it, as for every other key.
  private func rowidAlias(
    of name: String, primaryKey: [String], information: [Row], isWithoutRowid: Bool
  ) throws -> String? {
    guard primaryKey.count == 1, !isWithoutRowid else { return nil }
    let type = information.first { ($0["pk"] as Int) > 0 }?["type"] as String?
    guard type?.uppercased() == "INTEGER" else { return nil }
    let indexes = try Row.fetchAll(database, sql: "PRAGMA main.index_list(\(quoted(name)))")
    return indexes.contains { ($0["origin"] as String) == "pk" } ? nil : primaryKey[0]
  }

  private func chosenIdentity(
    for name: String, primaryKey: [String], rowidAlias: String?
  ) throws -> StoreConfiguration.Identity {
    let wanted = lookup(configuration.identities, name)
    switch wanted {
    case .surrogate where rowidAlias == nil:
      throw StoreError(
        .badConfiguration, path: path,
        message: "The table \(quoted(name)) has no INTEGER PRIMARY KEY.",
        remedy: "Surrogate identities are for such keys; use --identity \(name)=primaryKey.")
    case .columns where rowidAlias == nil:
      throw StoreError(
        .badConfiguration, path: path,
        message: "The table \(quoted(name)) has no INTEGER PRIMARY KEY beside its natural key.",
        remedy: "Use --identity \(name)=primaryKey, or give the table an integer key.")
    default:
      return wanted ?? (rowidAlias == nil ? .primaryKey : .surrogate)
    }
  }

  // MARK: - Columns

  private func columnSchema(_ row: Row, of table: String, identity: Set<String>) throws
    -> ColumnSchema
  {
    let name: String = row["name"]
    let declared: String = row["type"]
    return ColumnSchema(
      name: name, affinity: Self.affinity(of: declared),
      collation: try collation(of: name, in: table), domain: .plain,
      isIdentity: identity.contains(name.lowercased()), isNotNull: (row["notnull"] as Int) != 0,
      hasDefault: row["dflt_value"] as String? != nil)
  }

  /// The rules of “Determination Of Column Affinity” in SQLite's
  /// documentation on datatypes, in their order.
  static func affinity(of declared: String) -> ColumnSchema.Affinity {
    let type = declared.uppercased()
    if type.contains("INT") { return .integer }
    if type.contains("CHAR") || type.contains("CLOB") || type.contains("TEXT") { return .text }
    if type.isEmpty || type.contains("BLOB") || type == "ANY" { return .blob }
    if type.contains("REAL") || type.contains("FLOA") || type.contains("DOUB") { return .real }
    return .numeric
  }

  private func generatedColumns(
    _ information: [Row], of table: String, sql: String
  ) throws -> [GeneratedColumn] {
    try information.filter { ($0["hidden"] as Int) > 1 }.map { row in
      let name: String = row["name"]
      guard let expression = Self.expression(ofGenerated: name, in: sql) else {
        throw StoreError(
          .unsupportedSchema, path: path,
          message: "How \(quoted(table)).\(quoted(name)) is generated cannot be read.",
          remedy: "Leave the table out with --exclude \(table).")
      }
      return GeneratedColumn(
        name: name, affinity: Self.affinity(of: row["type"]),
        collation: try collation(of: name, in: table), expression: expression)
    }
  }

  /// The expression of a generated column in the text of a CREATE TABLE
  /// statement.
  static func expression(ofGenerated column: String, in sql: String) -> String? {
    let tokens = SQLTokens(sql)
    guard let open = tokens.tokens.firstIndex(where: { $0.isSymbol("(") }) else { return nil }
    for part in tokens.parts(in: open) where tokens.tokens[part].first?.isName(column) == true {
      var position = part.lowerBound
      while position + 1 < part.upperBound {
        if tokens.tokens[position + 1].isSymbol("("),
          let close = tokens.closing(position + 1)
        {
          if position > part.lowerBound, tokens.tokens[position].isWord("AS") {
            return tokens.text((position + 2)..<close)
          }
          position = close
        } else {
          position += 1
        }
      }
    }
    return nil
  }

  private func collation(of column: String, in table: String) throws -> String {
    var collation: UnsafePointer<CChar>?
    let code = sqlite3_table_column_metadata(
      database.sqliteConnection, "main", table, column, nil, &collation, nil, nil, nil)
    guard code == SQLITE_OK, let collation else {
      throw StoreError(
        .unsupportedSchema, path: path,
        message: "The column \(quoted(table)).\(quoted(column)) cannot be described.",
        remedy: "Check the database with PRAGMA integrity_check.")
    }
    let name = String(cString: collation).uppercased()
    guard ["BINARY", "NOCASE", "RTRIM"].contains(name) else {
      throw StoreError(
        .unsupportedSchema, path: path,
        message: "The column \(quoted(table)).\(quoted(column)) has the collation \(name), which "
          + "only its own program knows.",
        remedy: "Use BINARY, NOCASE or RTRIM, or leave the column out with "
          + "--exclude \(table).\(column).")
    }
    return name
  }

  private func checkExcludable(_ row: Row, of table: String, isIdentity: Bool) throws {
    let name: String = row["name"]
    if isIdentity || (row["pk"] as Int) > 0 {
      throw StoreError(
        .badConfiguration, path: path,
        message: "\(quoted(table)).\(quoted(name)) identifies the rows and cannot be excluded.",
        remedy: "Exclude the whole table with --exclude \(table), or keep the column.")
    }
    if (row["notnull"] as Int) != 0, row["dflt_value"] as String? == nil {
      throw StoreError(
        .badConfiguration, path: path,
        message: "\(quoted(table)).\(quoted(name)) is NOT NULL without a default and cannot be "
          + "excluded, since rows from other devices would not have it.",
        remedy: "Give the column a default, or keep it.")
    }
  }

  /// Columns that bookkeeping knows keep their bits; new ones follow.
  private func ordered(
    _ columns: [ColumnSchema], registered: Registered?, table: String
  ) throws -> [ColumnSchema] {
    guard let registered else { return columns }
    var rest = columns
    var result: [ColumnSchema] = []
    for name in registered.columns {
      guard let position = rest.firstIndex(where: { $0.name == name }) else {
        throw StoreError(
          .unsupportedSchema, path: path,
          message: "The column \(quoted(table)).\(quoted(name)) has gone since syncing began.",
          remedy: "Bring the column back; dropping and renaming synchronized columns is not "
            + "supported yet.")
      }
      result.append(rest.remove(at: position))
    }
    return result + rest
  }

  // MARK: - References

  private func foreignKeys(
    of table: TableSchema, drafts: [Draft], identifiers: [String: Int], ordinal: inout Int
  ) throws -> [ForeignKey] {
    let rows = try Row.fetchAll(
      database, sql: "PRAGMA main.foreign_key_list(\(quoted(table.name)))")
    var keys: [ForeignKey] = []
    for (_, group) in Dictionary(grouping: rows, by: { $0["id"] as Int }).sorted(by: {
      $0.key < $1.key
    }) {
      let terms = group.sorted { ($0["seq"] as Int) < ($1["seq"] as Int) }
      let parentName: String = terms[0]["table"]
      guard let parent = drafts.first(where: { $0.name.lowercased() == parentName.lowercased() })
      else {
        try checkReference(from: table, terms, to: parentName)
        continue
      }
      let positions = terms.map { term in
        table.columns.firstIndex {
          $0.name.lowercased() == (term["from"] as String).lowercased()
        }
      }
      // A reference through an excluded or generated column, or through the
      // local key itself, cannot be followed on another device.
      guard !positions.contains(nil) else { continue }
      let named = terms.map { $0["to"] as String? }
      keys.append(
        ForeignKey(
          ordinal: ordinal, child: table.id, columns: positions.compactMap { $0 },
          parent: parent.id,
          parentColumns: named.contains(nil) ? parent.primaryKey : named.compactMap { $0 },
          onDelete: (terms[0]["on_delete"] as String).uppercased()))
      ordinal += 1
    }
    for (column, target) in (lookup(configuration.references, table.name) ?? [:]).sorted(by: <) {
      guard
        let position = table.columns.firstIndex(where: {
          $0.name.lowercased() == column.lowercased()
        }), let parentID = identifiers[target.lowercased()],
        let parent = drafts.first(where: { $0.id == parentID }), parent.primaryKey.count == 1
      else {
        throw StoreError(
          .badConfiguration, path: path,
          message: "\(quoted(table.name)).\(quoted(column)) cannot refer to \(quoted(target)).",
          remedy: "Name a synchronized column, and a synchronized table with a single key column.")
      }
      keys.append(
        ForeignKey(
          ordinal: ordinal, child: table.id, columns: [position], parent: parentID,
          parentColumns: parent.primaryKey, onDelete: "NO ACTION"))
      ordinal += 1
    }
    return keys
  }

  /// On another device a reference to rows that stay here would lead nowhere.
  private func checkReference(from table: TableSchema, _ terms: [Row], to parent: String) throws {
    guard configuration.excludedTables.contains(where: { $0.lowercased() == parent.lowercased() }),
      !terms.contains(where: {
        table.excludedColumns.contains(($0["from"] as String).lowercased())
      })
    else { return }
    throw StoreError(
      .badConfiguration, path: path,
      message: "The table \(quoted(table.name)) refers to the excluded table \(quoted(parent)).",
      remedy: "Keep \(parent), or exclude the referring columns as well with "
        + "--exclude \(table.name).\(terms[0]["from"] as String).")
  }

  /// A column stands for a row's key if it refers to a local key, or to a
  /// column that itself does, through any number of tables.
  private func resolveDomains(_ tables: inout [TableSchema]) {
    let positions = Dictionary(uniqueKeysWithValues: tables.enumerated().map { ($1.id, $0) })
    var isSettled = false
    while !isSettled {
      isSettled = true
      for index in tables.indices {
        for key in tables[index].foreignKeys {
          guard let parentIndex = positions[key.parent] else { continue }
          let parent = tables[parentIndex]
          for (column, target) in zip(key.columns, key.parentColumns) {
            var domain = ColumnSchema.Domain.plain
            if target.lowercased() == parent.localKey?.lowercased() {
              domain = .key(of: parent.id)
            } else if let position = parent.columns.firstIndex(where: {
              $0.name.lowercased() == target.lowercased()
            }) {
              domain = parent.columns[position].domain
            }
            if domain != .plain, tables[index].columns[column].domain == .plain {
              tables[index].columns[column].domain = domain
              isSettled = false
            }
          }
        }
      }
    }
  }

  // MARK: - Unique indexes

  private func uniqueIndexes(of table: TableSchema) throws -> [UniqueIndex] {
    var result: [UniqueIndex] = []
    let rows = try Row.fetchAll(database, sql: "PRAGMA main.index_list(\(quoted(table.name)))")
    let identity = Set(table.identityPositions.map { table.columns[$0].name.lowercased() })
    for row in rows.sorted(by: { ($0["seq"] as Int) > ($1["seq"] as Int) })
    where (row["unique"] as Int) != 0 {
      let name: String = row["name"]
      let terms = try Row.fetchAll(database, sql: "PRAGMA main.index_xinfo(\(quoted(name)))")
        .filter { ($0["key"] as Int) != 0 }
      let names = terms.map { $0["name"] as String? }
      let isPartial = (row["partial"] as Int) != 0
      // The primary key's own index, and any other over exactly the
      // identity, says nothing that the identity does not.
      let collations = terms.map { ($0["coll"] as String?)?.uppercased() ?? "BINARY" }
      let isIdentity =
        !isPartial && !names.contains(nil)
        && Set(names.compactMap { $0?.lowercased() }) == identity
        && zip(names, collations).allSatisfy { $0.map(table.collation(of:)) == $1 }
      if (row["origin"] as String) == "pk" || isIdentity { continue }
      let sql = try String.fetchOne(
        database, sql: "SELECT sql FROM main.sqlite_schema WHERE type = 'index' AND name = ?",
        arguments: [name])
      let parsed = sql.map(Self.terms)
      try checkExcluded(table, index: name, terms: terms, sql: sql)
      // An index over the local key is unique whenever the key is.
      if names.contains(where: { $0 != nil && $0?.lowercased() == table.localKey?.lowercased() }) {
        continue
      }
      result.append(
        UniqueIndex(
          ordinal: result.count, name: name,
          columns: names.map { name in
            name.flatMap { name in
              table.columns.firstIndex { $0.name.lowercased() == name.lowercased() }
            }
          },
          collations: collations,
          terms: names.enumerated().map { position, name in
            name.map(quoted) ?? parsed?.terms[position] ?? "NULL"
          },
          condition: isPartial ? parsed?.condition : nil))
    }
    return result
  }

  /// Rows from other devices come without what is excluded, so that all would
  /// claim the same value.
  private func checkExcluded(
    _ table: TableSchema, index: String, terms: [Row], sql: String?
  ) throws {
    let named = terms.compactMap { ($0["name"] as String?)?.lowercased() }
    let parsed = sql.map(Self.terms)
    let texts = (parsed?.terms ?? []) + [parsed?.condition ?? ""]
    let words = texts.flatMap { SQLTokens($0).tokens }
    for column in table.excludedColumns.sorted()
    where named.contains(column) || words.contains(where: { $0.isName(column) }) {
      throw StoreError(
        .badConfiguration, path: path,
        message: "\(quoted(table.name)).\(quoted(column)) is part of the unique index "
          + "\(quoted(index)) and cannot be excluded.",
        remedy: "Keep the column, exclude the whole table, or drop the index.")
    }
  }

  /// The terms and the condition in the text of a CREATE INDEX statement.
  static func terms(of sql: String) -> (terms: [String], condition: String?) {
    let tokens = SQLTokens(sql)
    guard let on = tokens.tokens.firstIndex(where: { $0.isWord("ON") }),
      let open = tokens.tokens[on...].firstIndex(where: { $0.isSymbol("(") }),
      let close = tokens.closing(open)
    else { return ([], nil) }
    let terms = tokens.parts(in: open).map { part in
      var end = part.upperBound
      if end > part.lowerBound,
        tokens.tokens[end - 1].isWord("ASC") || tokens.tokens[end - 1].isWord("DESC")
      {
        end -= 1
      }
      return tokens.text(part.lowerBound..<end)
    }
    guard close + 1 < tokens.tokens.count, tokens.tokens[close + 1].isWord("WHERE") else {
      return (terms, nil)
    }
    return (terms, tokens.text((close + 2)..<tokens.tokens.count))
  }

  // MARK: - Surrogates

  /// Keys differ from device to device, so that nothing the schema decides
  /// may depend on them.
  private func checkSurrogate(_ table: TableSchema) throws {
    guard let key = table.localKey else { return }
    let definitions = try String.fetchAll(
      database,
      sql: "SELECT sql FROM main.sqlite_schema WHERE tbl_name = ? AND type IN ('table', 'index') "
        + "AND sql IS NOT NULL",
      arguments: [table.name])
    for definition in definitions where Self.reads(key, in: definition) {
      throw StoreError(
        .unsupportedSchema, path: path,
        message: "The key \(quoted(table.name)).\(quoted(key)) is read by a CHECK, a generated "
          + "column or an index expression, but it is another number on every device.",
        remedy: "Use --identity \(table.name)=primaryKey if the keys are unique across devices, "
          + "or leave the table out with --exclude \(table.name).")
    }
  }

  /// Whether a definition uses the column in a CHECK, in a generated column,
  /// in an expression of an index or in the condition of one.
  static func reads(_ column: String, in definition: String) -> Bool {
    let tokens = SQLTokens(definition)
    func contains(_ range: Range<Int>) -> Bool {
      tokens.tokens[range].contains { $0.isName(column) }
    }
    if tokens.tokens.contains(where: { $0.isWord("INDEX") }) && !tokens.tokens.isEmpty
      && !tokens.tokens[1].isWord("TABLE")
    {
      let (terms, condition) = terms(of: definition)
      let expressions = terms.filter { SQLTokens($0).tokens.count > 1 } + [condition ?? ""]
      return expressions.contains { SQLTokens($0).tokens.contains { $0.isName(column) } }
    }
    for position in tokens.tokens.indices.dropLast()
    where tokens.tokens[position].isWord("CHECK") || tokens.tokens[position].isWord("AS") {
      guard tokens.tokens[position + 1].isSymbol("("), let close = tokens.closing(position + 1)
      else { continue }
      if contains((position + 1)..<close) { return true }
    }
    return false
  }
}
