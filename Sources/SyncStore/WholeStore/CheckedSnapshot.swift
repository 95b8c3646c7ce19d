import Foundation
import GRDB
import SyncModel

/// A downloaded whole store that was found sound, and its properties.
struct CheckedSnapshot {
  let path: String
  /// The choice of what is synchronized, and how rows are identified, in its document.
  let configuration: StoreConfiguration
  /// Its tables, with the numbers that they have in it.
  let schema: StoreSchema
  /// The change sets that it contains.
  let vector: VersionVector
  /// The version that its application gave its schema.
  let userVersion: Int
  /// The encoding of its text.
  let encoding: String

  /// Checks the file at `path`. Throws `missing`, `damaged` or `newerFormat`, and the errors of
  /// `checkCancellation`.
  init(
    path: String, busyTimeout: Double, checkCancellation: @escaping () throws -> Void
  ) throws {
    try StoreError.checkFile(path)
    self = try StoreError.mapping(path) {
      let connection = try StoreConnection(path: path, busyTimeout: busyTimeout)
      return try connection.queue.closing {
        try connection.queue.writeWithoutTransaction { database in
          try QueryCancellation.run(database, checkCancellation) {
            try CheckedSnapshot(database, path)
          }
        }
      }
    }
  }

  private init(_ database: Database, _ path: String) throws {
    self.path = path
    configuration = try Self.check(database, path)
    schema = try SchemaReader(
      database: database, configuration: configuration, path: path
    ).read(registered: try TableRegistry.registered(database))
    try Self.checkTables(of: schema, path)
    vector = try ClientRegistry(database).vector()
    userVersion = try Int.fetchOne(database, sql: "PRAGMA main.user_version") ?? 0
    encoding = try String.fetchOne(database, sql: "PRAGMA main.encoding") ?? "UTF-8"
  }

  /// Checks that a database is a whole store as
  /// ``LocalStore/snapshot(to:checkCancellation:onProgress:)`` makes it. Returns its configuration.
  static func check(_ database: Database, _ path: String) throws -> StoreConfiguration {
    let broken = try brokenPages(database)
    guard broken.isEmpty, try database.tableExists("docsync_meta"),
      try MetaTable.read(.binding, database) == nil,
      let configuration = try MetaTable.value(
        .configuration, as: StoreConfiguration.self, database, path: path),
      let format = try Bookkeeping.format(of: database)
    else { throw damaged(path, broken.first) }
    guard format <= Bookkeeping.format else {
      throw StoreError(
        .newerFormat, path: path,
        message: "The whole store was made by a newer version (format \(format)).",
        remedy: "Update DocumentSync on this device.")
    }
    try checkForStrangers(database, path)
    var damage = try BookkeepingCheck(database: database, format: format).run()
    if damage.isEmpty {
      damage = try BookkeepingTypes(database: database, format: format).run()
    }
    if let (name, message) = damage.first { throw damaged(path, "\(name): \(message)") }
    return configuration
  }

  /// Returns the damage that SQLite finds, as its messages.
  ///
  /// Rows that violate a condition of their own table are not counted: they do so on the device
  /// that uploaded them, too, and the application has to correct them.
  static func brokenPages(_ database: Database) throws -> [String] {
    try database.execute(sql: "PRAGMA ignore_check_constraints = ON")
    var limit = 100
    var broken: [String] = []
    while true {
      let lines = try String.fetchAll(database, sql: "PRAGMA main.quick_check(\(limit))")
      broken = lines.filter {
        $0 != "ok" && (!$0.hasPrefix("NULL value in ") || $0.hasPrefix("NULL value in docsync_"))
      }
      // Further damage may follow after the lines that are skipped.
      guard broken.isEmpty, lines.count >= limit, limit < 1_000_000 else { break }
      limit *= 100
    }
    try database.execute(sql: "PRAGMA ignore_check_constraints = OFF")
    return broken
  }

  /// Checks that no trigger or view concerns bookkeeping. A whole store has no
  /// capture triggers; all its triggers and views are the application's.
  static func checkForStrangers(_ database: Database, _ path: String) throws {
    let rows = try Row.fetchAll(
      database,
      sql: "SELECT name, tbl_name, sql FROM main.sqlite_schema WHERE type IN ('trigger', 'view')")
    for row in rows {
      let name: SQLName = row["name"]
      let text: String? = row["sql"]
      let words = SQLTokens(text ?? "").tokens.map { $0.name }
      let names = [name, row["tbl_name"] as SQLName] + words
      guard names.contains(where: { $0.begins(with: "docsync_") }) else { continue }
      throw damaged(path, "\(name) concerns bookkeeping")
    }
  }

  /// Throws if a table of the document cannot be synchronized: no store uploads such a whole store.
  static func checkTables(of schema: StoreSchema, _ path: String) throws {
    guard schema.suspendedTables.isEmpty else {
      let names = schema.suspendedNames.sorted().map { quoted($0) }.joined(separator: ", ")
      throw damaged(path, "cannot be synchronized: \(names)")
    }
  }

  private static func damaged(_ path: String, _ detail: String?) -> StoreError {
    StoreError(
      .damaged, path: path, message: "The file is not a usable copy of the document's database.",
      remedy: "Fetch it again with \(.join).", detail: detail)
  }
}
