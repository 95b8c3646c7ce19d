import SyncModel

/// Draws names that a program must quote and that are easily taken for others: names that Unicode
/// holds equal and SQLite does not, words of SQL, names with quotation marks and line breaks. It has
/// dice of its own, and only renames, so that it does not change the rest of a history.
struct RandomNames {
  private var dice: Dice
  /// Whether a history has such names.
  let isDrawn: Bool

  init(seed: UInt64, options: Fleet.Options) {
    dice = Dice(seed: seed &* 0x9e37_79b9_7f4a_7c15 ^ 0x6e61_6d65)
    let isChosen = dice.chance(15) || options.always.contains(.hostileNames)
    isDrawn = isChosen && options.features.contains(.hostileNames)
  }

  /// The same for a life, of which `percentage` of a hundred have such names.
  init(seed: UInt64, percentage: Int) {
    dice = Dice(seed: seed &* 0x9e37_79b9_7f4a_7c15 ^ 0x6e61_6d65)
    isDrawn = dice.chance(percentage)
  }

  /// Groups of names that some comparison other than SQLite's takes for one: canonical equivalents,
  /// other case outside of ASCII, the same start, patterns of LIKE.
  private static let families: [[String]] = [
    ["\u{E9}", "e\u{301}"], ["\u{C5}", "A\u{30A}", "\u{212B}"], ["\u{C4}", "\u{E4}"],
    ["k", "\u{212A}"], ["s", "\u{17F}"], ["\u{AC01}", "\u{1100}\u{1161}\u{11A8}"],
    ["\u{DF}", "ss"], ["a\u{200D}b", "ab"], ["x", "x (2)", "x (3)"], ["a_c", "abc", "a%c"],
    [String(repeating: "long", count: 60) + "1", String(repeating: "long", count: 60) + "2"],
    [" a", "a", "a "], ["a\"b", "a\"\"b", "a'b"], ["1", "01", "1.0"],
  ]

  private static let others: [String] = [
    "select", "table", "order", "group", "index", "values", "check", "primary", "constraint",
    "foreign", "references", "generated", "not", "null", "true", "default", "new", "old",
    "excluded", "main", "temp", "rowid", "oid", "_rowid_", "it's", "\"", "'", "`", "[x]", "]", "[",
    "a b", "a.b", "main.a", "50%", "a\tb", "a\nb", "a\r\nb", "\u{1}", "\u{7F}", "\u{85}", "--",
    "/*",
    "*/", ";", "?", "?1", ":a", "@a", "$a", "a(b", "a)", "a,b", "2x", "0x1", "1e5", "-1", "\\",
    "\u{301}", "\u{FEFF}a", "\u{202E}a", "\u{1F469}\u{200D}\u{1F4BB}", "docsync", "docsyncs",
    "sqlites", "t-1", "a=b", "{}", "CHECK (a)", "\u{2028}",
  ]

  /// Draws names in the order in which they are to be used, some of one family beside one another.
  private mutating func pool() -> [SQLName] {
    let families = dice.shuffled(Self.families).prefix(1 + dice.below(3)).flatMap {
      dice.shuffled($0)
    }
    let others = dice.shuffled(Self.others + Self.families.flatMap { $0 })
    return (families + others).map { SQLName($0) }
  }

  /// Takes the first name of a pool that SQLite does not take for one of `taken`.
  private func take(from pool: inout [SQLName], _ taken: inout Set<SQLName>) -> SQLName? {
    guard let index = pool.firstIndex(where: { !taken.contains($0.folded) }) else { return nil }
    let name = pool.remove(at: index)
    taken.insert(name.folded)
    return name
  }

  /// Renames tables, columns and indexes of a schema.
  mutating func draw(_ schema: inout FleetSchema) {
    guard isDrawn else { return }
    schema.hasHostileNames = true
    renameTables(of: &schema)
    // The triggers that are drawn by now name columns.
    if schema.triggers.isEmpty {
      for index in schema.tables.indices where dice.chance(80) { renameColumns(of: index, &schema) }
    }
  }

  /// Returns whether SQLite may take a table's name for a quoted one. Its program of a reference with
  /// RESTRICT removes quotation marks from the name (`fkActionTrigger` in SQLite 3.40.1), and
  /// overwrites memory if it finds no second one.
  private static func looksQuoted(_ name: SQLName) -> Bool {
    name.text.utf8.first.map(Array("\"'`[".utf8).contains) ?? false
  }

  private mutating func renameTables(of schema: inout FleetSchema) {
    var pool = pool().filter { !Self.looksQuoted($0) }
    // In a trigger these are the row, and not a table.
    if !schema.triggers.isEmpty { pool.removeAll { ["new", "old"].contains($0) } }
    var taken = Set(schema.tables.flatMap { [$0.name] + $0.uniques.map(\.name) }.map(\.folded))
    var names: [SQLName: SQLName] = [:]
    for table in schema.tables where dice.chance(80) {
      names[table.name] = take(from: &pool, &taken)
    }
    for index in schema.tables.indices {
      schema.tables[index].name =
        names[schema.tables[index].name] ?? schema.tables[index].name
      for position in schema.tables[index].references.indices {
        let parent = schema.tables[index].references[position].parent
        schema.tables[index].references[position].parent = names[parent] ?? parent
      }
      for position in schema.tables[index].uniques.indices where dice.chance(50) {
        schema.tables[index].uniques[position].name =
          take(from: &pool, &taken) ?? schema.tables[index].uniques[position].name
      }
    }
    schema.triggers = schema.triggers.map { Self.renamed($0, names) }
  }

  private mutating func renameColumns(of index: Int, _ schema: inout FleetSchema) {
    let table = schema.tables[index]
    var pool = pool()
    if dice.chance(25) { pool.insert(table.name, at: 0) }
    var taken = Set(table.columns.map(\.name.folded))
    var names: [SQLName: SQLName] = [:]
    for column in dice.shuffled(table.columns) where dice.chance(70) {
      names[column.name] = take(from: &pool, &taken)
    }
    schema.tables[index].rename(names)
    for other in schema.tables.indices {
      for position in schema.tables[other].references.indices
      where schema.tables[other].references[position].parent == table.name {
        let parent = schema.tables[index]
        schema.tables[other].references[position].parentNames = schema.tables[other]
          .references[position].parentColumns.map { parent.columns[$0].name }
      }
    }
  }

  /// Returns a new name for a table or a column that a migration gives it.
  ///
  /// - Parameter plain: A name that no other one is equal to; it is a part of the result.
  mutating func migrated(_ plain: SQLName) -> SQLName {
    guard isDrawn, dice.chance(60) else { return plain }
    let name = dice.pick(Self.others + Self.families.flatMap { $0 })
    let migrated = SQLName(name + plain.text)
    return Self.looksQuoted(migrated) ? SQLName(plain.text + name) : migrated
  }

  /// Returns an expression, or a trigger, with other names. Texts in it stay as they are.
  static func renamed(_ text: String, _ names: [SQLName: SQLName]) -> String {
    var result: [UInt8] = []
    var word: [UInt8] = []
    var isInText = false
    func isPart(_ byte: UInt8) -> Bool {
      byte >= 128 || byte == UInt8(ascii: "_") || (48...57).contains(byte)
        || (65...90).contains(byte & 0xDF)
    }
    for byte in Array(text.utf8) + [0] {
      if !isInText, isPart(byte) {
        word.append(byte)
        continue
      }
      let name = SQLName(String(decoding: word, as: UTF8.self))
      result += Array((names[name]?.sql ?? name.text).utf8)
      word = []
      if byte == UInt8(ascii: "'") { isInText.toggle() }
      result.append(byte)
    }
    return String(decoding: result.dropLast(), as: UTF8.self)
  }
}

extension FleetTable {
  /// Renames columns, also in expressions.
  fileprivate mutating func rename(_ names: [SQLName: SQLName]) {
    for index in columns.indices {
      columns[index].name = names[columns[index].name] ?? columns[index].name
      columns[index].generated = columns[index].generated.map { RandomNames.renamed($0, names) }
    }
    for index in checks.indices {
      checks[index].condition = RandomNames.renamed(checks[index].condition, names)
    }
    for index in uniques.indices {
      uniques[index].condition = uniques[index].condition.map { RandomNames.renamed($0, names) }
      uniques[index].terms = uniques[index].terms.map { term in
        if case .expression(let text) = term {
          .expression(RandomNames.renamed(text, names))
        } else {
          term
        }
      }
    }
  }
}
