import SyncModel

/// A row that stays on this device, or has a column that does, and refers to a synchronized row.
struct LocalReferrer {
  /// What becomes of the row to which it refers.
  enum Target {
    case deleted
    /// It gets other values, or lives on as this row, which may get a number in the meantime.
    case updated(RowKey, newNumber: () -> Int64?)
    /// It is the same row under another key.
    case moved(RowKey)
  }

  /// The row to which it refers.
  var row: RowKey
  var key: [Value]
  var reference: LocalReference
  /// The values by which it refers.
  var values: [Value]
  /// The values to which it refers.
  var referred: [Value]
  var target: Target
}
