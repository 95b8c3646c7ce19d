import GRDB
import SyncModel

/// A search for columns that seem to refer to rows by an integer key that differs on every device,
/// without a declared foreign key.
///
/// A column is a candidate if it holds whole numbers, and nothing but 0, −1 or an empty text beside
/// them. It is taken for a reference to a table if
///
/// - its name is the table's, with or without a word for a key (`book`, `post_id`, `ZFOLDER`,
///   `AlbumId`), or that of the table's key, and at least half of its values are keys of the table,
///   if it has any; or
/// - its name is one of a key (`fk`, `nid`, `owner_id`), or it is the first column of an index or
///   part of a primary key and is not named like a number or a date, and all of its values are keys
///   of one table; or
/// - all of its values are keys of a table that has few of the numbers between its least and its
///   greatest key.
///
/// If several tables match, it is taken for a reference to the table of whose keys it contains the
/// greatest part.
struct LikelyReferences {
  /// A table whose keys differ on other devices.
  private struct Target {
    var table: TableSchema
    var key: SQLName
    var count: Int
    var least: Int64
    var greatest: Int64

    /// Whether the keys are so sparse that numbers from another source would hardly be among them.
    var isSparse: Bool {
      let (width, overflows) = greatest.subtractingReportingOverflow(least)
      return overflows || width / 20 > count
    }
  }

  /// The values of a column.
  private struct Sample {
    var values: [Int64]
    /// Whether the column holds nothing else, apart from values that mean "none".
    var isWhole: Bool
  }

  /// The limits of reading: rows, and different numbers.
  private static let rowLimit = 100_000
  private static let valueLimit = 200

  private let database: Database
  private let schema: StoreSchema
  private let plainColumns: [SQLName: Set<SQLName>]
  private let targets: [Target]

  /// - Parameter plainColumns: Columns that are known to be none, by table.
  init(
    _ database: Database, _ schema: StoreSchema, plainColumns: [SQLName: Set<SQLName>]
  ) throws {
    self.database = database
    self.schema = schema
    self.plainColumns = plainColumns
    targets = try schema.tables.compactMap { table in
      guard let key = Self.sharedKey(of: table) else { return nil }
      let row = try Row.fetchOne(
        database,
        sql: "SELECT count(*), min(\(quoted(key))), max(\(quoted(key))) FROM \(table.quotedName)")
      return Target(
        table: table, key: key, count: row?[0] ?? 0, least: row?[1] ?? 0, greatest: row?[2] ?? 0)
    }
  }

  /// Returns the integer key of a table, if it may differ on another device.
  private static func sharedKey(of table: TableSchema) -> SQLName? {
    if let key = table.localKey { return key }
    guard let alias = table.rowidAlias,
      let column = table.columns.first(where: { $0.name == alias }),
      case .key = column.domain
    else { return nil }
    return alias
  }

  /// Returns all likely references, in order of table and column.
  func found() throws -> [StorePlan.LikelyReference] {
    var result: [StorePlan.LikelyReference] = []
    guard !targets.isEmpty else { return result }
    for table in schema.tables {
      let leading = try leadingColumns(of: table)
      for (position, column) in table.columns.enumerated()
      where isOpen(position, table) && !Self.isOwnKey(position, table) {
        let isLeading = leading.contains(column.name)
        if let found = try reference(from: column, of: table, isLeading: isLeading) {
          result.append(found)
        }
      }
    }
    return result.sorted { ($0.table, $0.column) < ($1.table, $1.column) }
  }

  /// Returns whether the schema leaves open what the values of a column stand for.
  private func isOpen(_ position: Int, _ table: TableSchema) -> Bool {
    let column = table.columns[position]
    guard column.domain == .plain, column.affinity != .text, column.affinity != .real else {
      return false
    }
    let isPlain = plainColumns.contains { plain, columns in
      plain.isSame(as: table.name) && columns.contains { $0.isSame(as: column.name) }
    }
    return !isPlain && !table.foreignKeys.contains { $0.columns.contains(position) }
  }

  /// Returns whether a column is the key of its table, and named for nothing else.
  private static func isOwnKey(_ position: Int, _ table: TableSchema) -> Bool {
    guard case .primaryKey([position]) = table.identity else { return false }
    return isGenericKey(table.columns[position].name)
  }

  private func reference(
    from column: ColumnSchema, of table: TableSchema, isLeading: Bool
  ) throws -> StorePlan.LikelyReference? {
    let words = IdentifierWords(column.name)
    let sample = try sample(column, of: table)
    guard sample.isWhole else { return nil }
    func made(_ target: Target, _ matches: Int) -> StorePlan.LikelyReference {
      StorePlan.LikelyReference(
        table: table.name, column: column.name, parent: target.table.name,
        valueCount: sample.values.count, matchCount: matches)
    }
    for target in named(column, words, from: table) {
      let matches = try matchCount(sample.values, target)
      if matches * 2 >= sample.values.count { return made(target, matches) }
    }
    guard !sample.values.isEmpty else { return nil }
    // One or two numbers are keys of almost every table.
    let isTelling = sample.values.count > 2
    let looksLikeKey =
      words.namesKey
      || isTelling && (isLeading || column.isIdentity) && !Self.isNamedLikeNumber(words)
    var candidates: [Target] = []
    for target in targets where looksLikeKey || isTelling && target.isSparse {
      if try matchCount(sample.values, target) == sample.values.count { candidates.append(target) }
    }
    // If there are several, the one whose rows are referred to most, in proportion.
    return candidates.min { ($0.count, $0.table.id) < ($1.count, $1.table.id) }
      .map { made($0, sample.values.count) }
  }

  // MARK: - Names

  /// Returns the tables that a column is named for, the likeliest first.
  private func named(
    _ column: ColumnSchema, _ words: IdentifierWords, from table: TableSchema
  ) -> [Target] {
    let bare = words.withoutKeyWords
    if bare.words.last == "parent" {
      return targets.filter { $0.table.id == table.id }
    }
    let endings = bare.endings
    var found: [(rank: Int, target: Target)] = []
    // In a table of ratings, a rating is the row's own value, not another row.
    let isOwnValue = words == bare && Self.isNamedLikeNumber(words)
    for target in targets where !isOwnValue || target.table.id != table.id {
      let own = IdentifierWords(target.table.name).endings
      if column.name.isSame(as: target.key), !Self.isGenericKey(target.key) {
        found.append((0, target))
      } else if let whole = own.first, let rank = endings.firstIndex(of: whole) {
        found.append((1 + rank, target))
      } else if let whole = endings.first, let rank = own.firstIndex(of: whole),
        words != bare || hasPrefix(target.table, ofWords: rank)
      {
        found.append((10 + rank, target))
      }
    }
    return found.sorted { ($0.rank, $0.target.table.id) < ($1.rank, $1.target.table.id) }
      .map(\.target)
  }

  /// Returns whether other tables begin with the same words: then the words are not part of the
  /// table's own name.
  private func hasPrefix(_ table: TableSchema, ofWords count: Int) -> Bool {
    let prefix = IdentifierWords(table.name).words.prefix(count)
    return schema.tables.contains {
      $0.id != table.id && IdentifierWords($0.name).words.prefix(count) == prefix
    }
  }

  /// Returns whether nearly every key has such a name.
  private static func isGenericKey(_ name: SQLName) -> Bool {
    let generic: [SQLName] = ["id", "_id", "pk", "z_pk", "rowid", "key", "uid", "oid", "n"]
    return generic.contains(name.folded)
  }

  private static func isNamedLikeNumber(_ words: IdentifierWords) -> Bool {
    let numbers: Set<String> = [
      "amount", "at", "code", "count", "created", "date", "day", "duration", "flag", "flags",
      "has", "height", "hour", "index", "is", "length", "level", "modified", "month", "number",
      "opt", "order", "position", "price", "priority", "quantity", "rank", "rating", "score", "seq",
      "size", "sort", "state", "status", "time", "timestamp", "total", "type", "updated",
      "usn", "value", "version", "weight", "width", "year",
    ]
    return words.words.contains(where: numbers.contains)
  }

  // MARK: - Values

  private func leadingColumns(of table: TableSchema) throws -> Set<SQLName> {
    var result: Set<SQLName> = []
    for index in try Row.fetchAll(
      database, sql: "PRAGMA main.index_list(\(quoted(table.name)))")
    {
      let first = try Row.fetchOne(
        database, sql: "PRAGMA main.index_info(\(quoted(index["name"])))")
      if let name = first?["name"] as SQLName? { result.insert(name) }
    }
    return result
  }

  private func sample(_ column: ColumnSchema, of table: TableSchema) throws -> Sample {
    let name = quoted(column.name)
    let rows = "(SELECT \(name) AS v FROM \(table.quotedName) LIMIT \(Self.rowLimit))"
    let other = try Int.fetchOne(
      database,
      sql: "SELECT 1 FROM \(rows) WHERE typeof(v) NOT IN ('integer', 'null') AND v <> '' LIMIT 1")
    guard other == nil else { return Sample(values: [], isWhole: false) }
    let values = try Int64.fetchAll(
      database,
      sql: "SELECT DISTINCT v FROM \(rows) WHERE typeof(v) = 'integer' AND v NOT IN (0, -1) "
        + "LIMIT \(Self.valueLimit)")
    return Sample(values: values, isWhole: true)
  }

  private func matchCount(_ values: [Int64], _ target: Target) throws -> Int {
    let inRange = values.filter { target.least...max(target.least, target.greatest) ~= $0 }
    guard target.count > 0, !inRange.isEmpty else { return 0 }
    let marks = inRange.map { _ in "?" }.joined(separator: ", ")
    return try Int.fetchOne(
      database,
      sql:
        "SELECT count(*) FROM \(target.table.quotedName) WHERE \(quoted(target.key)) IN (\(marks))",
      arguments: StatementArguments(inRange)) ?? 0
  }

  // MARK: - Hints

  /// Finds keys that devices draw for themselves, columns that count keys, and rows with NULL in
  /// their key.
  func hints() throws -> [StorePlan.Hint] {
    var result: [StorePlan.Hint] = []
    for table in schema.tables {
      if let hint = try missingKeys(in: table) { result.append(hint) }
      if case .primaryKey(let positions) = table.identity, positions.count == 1 {
        let column = table.columns[positions[0]]
        if column.affinity == .integer, isOpen(positions[0], table) {
          result.append(
            StorePlan.Hint(kind: .integerIdentity, table: table.name, column: column.name))
        }
      }
      for (position, column) in table.columns.enumerated()
      where isOpen(position, table) && Self.isNamedLikeCounter(IdentifierWords(column.name)) {
        let values = try sample(column, of: table).values
        let counted = targets.first { target in
          target.table.id != table.id && target.count > 0 && values.contains(target.greatest)
        }
        if let counted {
          result.append(
            StorePlan.Hint(
              kind: .keyCounter, table: table.name, column: column.name,
              counted: counted.table.name))
        }
      }
    }
    return result.sorted { ($0.table, $0.column ?? "") < ($1.table, $1.column ?? "") }
  }

  /// The hint to the rows of a table that have NULL in their key; `nil` if there are none.
  private func missingKeys(in table: TableSchema) throws -> StorePlan.Hint? {
    guard table.canLoseKeys else { return nil }
    let terms =
      ["count(*)"] + table.keyColumns.map { "coalesce(sum(t.\(quoted($0)) IS NULL), 0)" }
    let row = try Row.fetchOne(
      database,
      sql: "SELECT \(terms.joined(separator: ", ")) FROM \(table.quotedName) AS t "
        + "WHERE \(table.isWithoutKey("t"))")
    guard let row, row[0] as Int > 0 else { return nil }
    let position = table.keyColumns.indices.first { row[$0 + 1] as Int > 0 } ?? 0
    return StorePlan.Hint(
      kind: .keyMissing, table: table.name, column: table.keyColumns[position], rowCount: row[0])
  }

  private static func isNamedLikeCounter(_ words: IdentifierWords) -> Bool {
    let counters: Set<String> = ["max", "last", "next", "seq", "sequence", "counter", "highest"]
    return words.words.contains(where: counters.contains)
  }
}
