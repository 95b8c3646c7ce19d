import GRDB
import SyncModel

/// The objects of a database's schema that neither SQLite nor bookkeeping has created, in the order
/// in which they were made.
struct SchemaObjects {
  enum Kind: String {
    case table = "a table"
    case virtualTable = "a virtual table"
    case virtualTablePart = "a part of a virtual table"
    case view = "a view"
    case index = "an index"
    case trigger = "a trigger"
  }

  struct Object {
    var kind: Kind
    var name: SQLName
    /// The table of an index or a trigger, and otherwise the object itself.
    var table: SQLName
    var sql: String

    var definition: SchemaDefinition { SchemaDefinition(sql, isTable: kind == .table) }
    /// Whether it goes with its table.
    var isPart: Bool { kind == .index || kind == .trigger }

    /// Returns whether both are of one kind and of one table, and have the same ``definition``.
    func isSame(as other: Object) -> Bool {
      kind == other.kind && table.isSame(as: other.table) && definition == other.definition
    }
  }

  let objects: [Object]
  private let positions: [SQLName: Int]
  /// Triggers have names of their own.
  private let triggers: [SQLName: Int]

  /// - Parameter schema: The name of the database: `main`, or that of an attached one.
  init(_ database: Database, in schema: String = "main") throws {
    let types = Dictionary(
      try TableType.all(database, schema: schema).map { ($0.name.folded, $0.type) },
      uniquingKeysWith: { first, _ in first })
    let objects = try Row.fetchAll(
      database,
      sql: "SELECT type, name, tbl_name, sql FROM \(schema).sqlite_schema WHERE sql IS NOT NULL "
        + "AND name NOT LIKE 'sqlite~_%' ESCAPE '~' AND name NOT LIKE 'docsync~_%' ESCAPE '~' "
        + "AND tbl_name NOT LIKE 'docsync~_%' ESCAPE '~' ORDER BY rowid"
    ).map { row in
      let name: SQLName = row["name"]
      let kind: Kind =
        switch row["type"] as String {
        case "index": .index
        case "trigger": .trigger
        case "view": .view
        default:
          switch types[name.folded] {
          case .virtual: .virtualTable
          case .virtualTablePart: .virtualTablePart
          default: .table
          }
        }
      return Object(kind: kind, name: name, table: row["tbl_name"], sql: row["sql"])
    }
    func numbers(_ isWanted: (Object) -> Bool) -> [SQLName: Int] {
      Dictionary(
        objects.enumerated().filter { isWanted($1) }.map { ($1.name.folded, $0) },
        uniquingKeysWith: min)
    }
    self.objects = objects
    positions = numbers { $0.kind != .trigger }
    triggers = numbers { $0.kind == .trigger }
  }

  /// Returns the table, the view or the index with a name.
  func object(named name: SQLName) -> Object? { positions[name.folded].map { objects[$0] } }

  /// Returns the object that takes the name of another one, which is in another database.
  func namesake(of other: Object) -> Object? {
    other.kind == .trigger
      ? triggers[other.name.folded].map { objects[$0] } : object(named: other.name)
  }

  /// The indexes and triggers of a table.
  func parts(of table: SQLName) -> [Object] {
    objects.filter { $0.isPart && $0.table.isSame(as: table) }
  }
}

/// What a statement of a schema says, apart from white space, comments, quotation marks and the case
/// of letters. In a table, the order of the columns and constraints does not matter: ALTER TABLE adds
/// a column after all others.
struct SchemaDefinition: Equatable {
  private var parts: Set<[SQLText]> = []
  private var rest: [SQLText] = []

  fileprivate init(_ sql: String, isTable: Bool) {
    let tokens = SQLTokens(sql)
    let words = tokens.tokens.map(Self.text)
    let open = isTable ? tokens.tokens.firstIndex { $0.isSymbol("(") } : nil
    guard let open, let close = tokens.closing(open) else {
      rest = words
      return
    }
    parts = Set(tokens.parts(in: open).map { Array(words[$0]) })
    // WITHOUT ROWID and STRICT.
    rest = words[(close + 1)...].filter { $0.text != "," }.sorted { $0.text < $1.text }
  }

  private static func text(_ token: SQLTokens.Token) -> SQLText {
    switch token.kind {
    case .word, .quotedName: SQLText(token.name.folded.text)
    case .string: SQLText("'" + token.text)
    case .symbol: SQLText(token.text)
    }
  }
}

/// Ways in which two schemas differ, which keep one database from becoming a part of the other.
struct SchemaDifferences {
  private(set) var list: [String] = []

  mutating func add(_ difference: String) { list.append(difference) }

  /// Throws `schemasDiffer` if there are any.
  ///
  /// - Parameters:
  ///   - path: The path of the database.
  ///   - start: The first words of the message.
  func check(path: String, _ start: String, remedy: Remedy) throws {
    guard !list.isEmpty else { return }
    throw StoreError(
      .schemasDiffer, path: path, message: "\(start): \(list.joined(separator: "; ")).",
      remedy: remedy)
  }
}
