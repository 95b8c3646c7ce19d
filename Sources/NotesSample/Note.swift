import GRDB

/// A note of the app.
struct Note: Codable, FetchableRecord, MutablePersistableRecord {
  static let databaseTableName = "notes"

  var id: Int64?
  var text: String

  mutating func didInsert(_ inserted: InsertionSuccess) {
    id = inserted.rowID
  }

  /// Opens the database, and brings its schema up to date.
  static func openDatabase(at path: String) throws -> DatabasePool {
    var configuration = Configuration()
    // A synchronization writes to the database too: wait for it.
    configuration.busyMode = .timeout(10)
    let pool = try DatabasePool(path: path, configuration: configuration)
    var migrator = DatabaseMigrator()
    migrator.registerMigration("notes") { database in
      try database.create(table: "notes") { table in
        table.primaryKey("id", .integer)
        table.column("text", .text).notNull()
      }
    }
    try migrator.migrate(pool)
    return pool
  }
}
