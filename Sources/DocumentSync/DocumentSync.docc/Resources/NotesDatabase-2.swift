import GRDB

/// A note of the app.
struct Note: Codable, FetchableRecord, MutablePersistableRecord {
  static let databaseTableName = "notes"

  var id: Int64?
  var text: String

  mutating func didInsert(_ inserted: InsertionSuccess) {
    id = inserted.rowID
  }
}

/// Opens the database.
func openNotes(at path: String) throws -> DatabasePool {
  var configuration = Configuration()
  // A synchronization writes to the database too: wait for it.
  configuration.busyMode = .timeout(10)
  return try DatabasePool(path: path, configuration: configuration)
}
