import GRDB
import SyncModel

/// The tables whose key is a reference, and whose rows an earlier version gave identities of their
/// own in place of those of the rows to which they refer.
struct MisidentifiedTables {
  private let tables: [TableSchema]

  init(_ schema: StoreSchema) { tables = schema.tables.filter { $0.misidentifiedParent != nil } }

  /// Throws if there is such a table: other devices may show its rows beside other rows.
  func check(_ path: String) throws {
    guard let table = tables.first, let parent = table.misidentifiedParent else { return }
    throw StoreError(
      .unsupportedSchema, path: path,
      message:
        "The key of the table \(quoted(table.name)) refers to \(quoted(parent)), but the "
        + "document was made by a version that gave its rows numbers of their own: on other devices they "
        + "may belong to other rows of \(quoted(parent)).",
      remedy:
        "Choose the device whose rows of \(quoted(table.name)) are right, and begin the document "
        + "again there with \(elsewhere: .reset).")
  }

  /// Makes the tables new to bookkeeping, so that a renewed session identifies their rows by the
  /// rows to which they refer. The rows of this store count as the right ones. Returns whether there
  /// are such tables.
  func forget(_ database: Database) throws -> Bool {
    for table in tables {
      try TableRegistry.forget(table.id, database)
      try LostNames.forget(table.wireName, database)
    }
    return !tables.isEmpty
  }
}
