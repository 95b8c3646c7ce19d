import SyncModel

/// Names a row in the whole document.
struct RowKey: Hashable {
  var table: Int
  var identity: RowIdentity
}

/// Names a cell in the whole document.
struct CellKey: Hashable {
  var row: RowKey
  var column: Int
}

/// A value, or a combination of values, that one row at most can hold.
struct ClaimKey: Hashable {
  /// The index number for the identity of a row: other rows claim that if they would be shown
  /// under it.
  static let identityIndex = -1

  var table: Int
  var index: Int
  var key: RowIdentity

  init(table: Int, index: Int, key: RowIdentity) {
    self.table = table
    self.index = index
    self.key = key
  }

  /// The claim of a row that would be shown as another one.
  init(identityOf row: RowKey) {
    self.init(table: row.table, index: Self.identityIndex, key: row.identity)
  }
}
