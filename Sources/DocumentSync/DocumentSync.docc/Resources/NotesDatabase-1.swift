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
