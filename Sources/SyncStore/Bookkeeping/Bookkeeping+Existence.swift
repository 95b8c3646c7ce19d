import GRDB
import SyncModel

extension Bookkeeping {
  /// Returns whether a database is under sync. Throws if it has lost a part of bookkeeping.
  static func exists(in database: Database) throws -> Bool {
    if try MetaTable.exists(in: database) { return true }
    // The application may have a table with one of these names, but hardly with two.
    let left = try [
      TableRegistry.tables, TableRegistry.columns, ClientRegistry.definition,
      DeviceRecords.definition,
    ].filter { try $0.exists(in: database) }
    guard left.count > 1 else { return false }
    throw StoreError(
      .damaged, path: "",
      message: "The store's bookkeeping is damaged: the table “docsync_meta” is gone.",
      remedy:
        "Restore the file from a backup, or fetch the document again with \(.joinReplacing), which keeps this file beside it, and copy over what was edited here."
    )
  }
}
