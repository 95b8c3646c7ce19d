import DocumentSync
import GRDB

/// The tables of a mirror, and how they come to be.
///
/// Each type of records has a table, which is synchronized. Eight tables stay on the device:
///
/// - `mirror_known`: each record as the model is known to have it;
/// - `mirror_gone`: records that imports have deleted from the model since its edits were taken last;
/// - `mirror_taken`: records that were taken and whose acknowledgement may be missing;
/// - `mirror_waiting`: records of the model that their table cannot have yet;
/// - `mirror_deletions`: records that the model has deleted, and that are still in their tables;
/// - `mirror_import`: what the import under way gives to the model; no content means a deletion;
/// - `mirror_problems`: problems that no call has returned;
/// - `mirror_state`: the positions of the last import and of the one under way.
enum MirrorTables {
  static let known = "mirror_known"
  static let gone = "mirror_gone"
  static let taken = "mirror_taken"
  static let waiting = "mirror_waiting"
  static let deletions = "mirror_deletions"
  static let underWay = "mirror_import"
  static let problems = "mirror_problems"
  static let state = "mirror_state"
  /// Those that have records.
  private static let contents = [known, gone, taken, waiting, deletions, underWay]
  static let local = contents + [problems, state]

  /// Makes what is missing of the tables of a schema.
  static func make(_ schema: ModelSchema, in database: Database) throws {
    for table in contents {
      try database.execute(
        sql: """
          CREATE TABLE IF NOT EXISTS \(table) (
            type TEXT NOT NULL, identity TEXT NOT NULL, content BLOB,
            PRIMARY KEY (type, identity))
          """)
    }
    try database.execute(
      sql: "CREATE TABLE IF NOT EXISTS \(state) (name TEXT NOT NULL PRIMARY KEY, value TEXT)")
    try database.execute(
      sql: """
        CREATE TABLE IF NOT EXISTS \(problems) (
          number INTEGER PRIMARY KEY, kind TEXT NOT NULL, type TEXT, identity TEXT,
          message TEXT NOT NULL, remedy TEXT NOT NULL)
        """)
    for type in schema.types {
      if try !database.tableExists(type.name) {
        let columns = type.fields.map { ", " + definition(of: $0) }.joined()
        try database.execute(
          sql: "CREATE TABLE \(quoted(type.name)) (identity TEXT NOT NULL PRIMARY KEY\(columns))")
      } else {
        try add(type, to: database)
      }
      for field in type.fields where field.isUnique {
        try database.execute(
          sql: """
            CREATE UNIQUE INDEX IF NOT EXISTS \(quoted(index(of: field, type)))
              ON \(quoted(type.name)) (\(quoted(field.name)))
            """)
      }
    }
  }

  /// Names cannot have dots of their own.
  private static func index(
    of field: ModelSchema.Field, _ type: ModelSchema.RecordType
  ) -> String { "\(type.name).\(field.name).unique" }

  /// Whether a database has the tables of a mirror.
  static func areIn(_ database: Database) throws -> Bool {
    try local.allSatisfy { try database.tableExists($0) }
  }

  private static func add(_ type: ModelSchema.RecordType, to database: Database) throws {
    let present = Set(
      try String.fetchAll(
        database, sql: "SELECT name FROM pragma_table_xinfo(?)", arguments: [type.name]
      ).map { $0.lowercased() })
    guard present.contains("identity") else {
      throw SyncError(
        .schemaUnsuitable, operation: "open the mirror",
        message: "The document has a table “\(type.name)” that is no table of a mirror.",
        remedy: "Give the type another name, or the mirror a document of its own.")
    }
    for field in type.fields {
      if present.contains(field.name.lowercased()) {
        try check(field, type, in: database)
      } else {
        try database.execute(
          sql: "ALTER TABLE \(quoted(type.name)) ADD COLUMN \(definition(of: field))")
      }
    }
  }

  /// Throws `schemaUnsuitable` if a field is another one than in the document.
  private static func check(
    _ field: ModelSchema.Field, _ type: ModelSchema.RecordType, in database: Database
  ) throws {
    let declared = try String.fetchOne(
      database, sql: "SELECT type FROM pragma_table_xinfo(?) WHERE name = ? COLLATE NOCASE",
      arguments: [type.name, field.name])
    let references = try Row.fetchAll(
      database,
      sql: """
        SELECT "table", on_delete FROM pragma_foreign_key_list(?) WHERE "from" = ? COLLATE NOCASE
        """, arguments: [type.name, field.name]
    ).map { "\($0[0] as String) \($0[1] as String)".uppercased() }
    var expected: [String] = []
    if case .reference(let parent, let rule) = field.kind {
      expected = ["\(parent) \(action(rule))".uppercased()]
    }
    let isUnique =
      try Row.fetchOne(
        database,
        sql: "SELECT 1 FROM sqlite_schema WHERE type = 'index' AND name = ? COLLATE NOCASE",
        arguments: [index(of: field, type)]) != nil
    guard declared?.uppercased() == declaredType(of: field), references == expected,
      field.isUnique == isUnique
    else {
      throw SyncError(
        .schemaUnsuitable, operation: "open the mirror",
        message:
          "The field “\(field.name)” of “\(type.name)” has another kind, another deletion rule, or "
          + "another uniqueness in the document.",
        remedy: "Declare the field as before, and add another one with a name of its own.")
    }
  }

  private static func declaredType(of field: ModelSchema.Field) -> String {
    switch field.kind {
    case .integer: "INTEGER"
    case .real: "REAL"
    case .text, .reference: "TEXT"
    case .data: "BLOB"
    }
  }

  private static func definition(of field: ModelSchema.Field) -> String {
    var definition = "\(quoted(field.name)) \(declaredType(of: field))"
    if case .reference(let parent, let rule) = field.kind {
      definition +=
        " REFERENCES \(quoted(parent)) (identity) ON DELETE \(action(rule)) "
        + "DEFERRABLE INITIALLY DEFERRED"
    }
    return definition
  }

  private static func action(_ rule: ModelSchema.Field.DeletionRule) -> String {
    switch rule {
    case .cascade: "CASCADE"
    case .setNull: "SET NULL"
    case .restrict: "RESTRICT"
    }
  }

  /// A name between quotation marks. Names in a schema have none of their own.
  static func quoted(_ name: String) -> String { "\"\(name)\"" }
}
