import SyncModel

/// A row of the document, by its table and its identity.
struct RowKey: Hashable {
  var table: Int
  var identity: RowIdentity
}

/// A cell of the document.
struct CellKey: Hashable {
  var row: RowKey
  var column: Int
}

/// A value, or a combination of values, that at most one row can hold.
struct ClaimKey: Hashable {
  /// The index number that stands for the identity of a row: another row claims the identity if it
  /// would be shown under it.
  static let identityIndex = -1

  var table: Int
  var index: Int
  var key: RowIdentity

  init(table: Int, index: Int, key: RowIdentity) {
    self.table = table
    self.index = index
    self.key = key
  }

  /// Creates the claim of a row that would be shown as another one.
  init(identityOf row: RowKey) {
    self.init(table: row.table, index: Self.identityIndex, key: row.identity)
  }
}
