import SyncModel
import SyncStore

/// The outcome of merging the rows of a database into a document, as printed.
struct MergedRowsJSON: Encodable, Sendable {
  var insertedRows: Int
  var equalRows: Int
  var differingRows: Int
  var differingCells: Int
  var refusedRows: Int
  var movedRows: Int
  var newTables: [SQLName]
  var localTables: [SQLName]

  init(_ merged: MergedRows) {
    insertedRows = merged.insertedRows
    equalRows = merged.equalRows
    differingRows = merged.differingRows
    differingCells = merged.differingCells
    refusedRows = merged.refusedRows
    movedRows = merged.movedRows
    newTables = merged.newTables
    localTables = merged.localTables
  }
}
