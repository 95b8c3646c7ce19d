import SyncModel
import SyncStore

/// The rows of a device before its store noticed a change of the schema.
struct FormerRows {
  private let reader: VisibleRows
  let tables: [SQLName: [[Value]]]

  init(_ program: FleetSQLite, _ version: FleetVersion) throws {
    reader = try VisibleRows(program, schema: version)
    tables = try reader.localRows()
  }

  /// Returns a reader that gives these rows and those of a later reader the same identities, those
  /// that sealing has given to new rows since. A value that was the key of a row deleted by earlier
  /// edits refers to that row, whether or not the edits are sealed at that time.
  ///
  /// - Parameter keys: The integer keys that rows with declared columns had, or have got and lost.
  func naming(
    _ later: VisibleRows, shown: some Sequence<OracleKey>, keys: [SQLName: [Int64: RowIdentity]]
  ) -> VisibleRows {
    var reader = later
    reader.addMissing(from: self.reader)
    reader.addOriginals(among: shown)
    reader.formerKeys = keys
    return reader
  }
}
