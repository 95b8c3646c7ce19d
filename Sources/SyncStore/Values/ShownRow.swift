import SyncModel

/// A row in its table.
struct ShownRow {
  /// The local values of the key columns.
  var key: [Value]
  /// The local values by column.
  var values: [Value]
}
