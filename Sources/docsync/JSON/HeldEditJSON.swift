import SyncModel
import SyncStore

/// An edit that stays on the device since it is too large to be sent, as printed.
struct HeldEditJSON: Encodable, Sendable {
  var table: SQLName
  /// The row's key.
  var row: String
  var columns: [SQLName]
  /// Whether the whole row is kept back.
  var isInsertion: Bool
  var byteCount: Int
  var message: String
  var remedy: String

  init(_ edit: StoreStatus.HeldEdit) {
    table = edit.table
    row = edit.row
    columns = edit.columns
    isInsertion = edit.isInsertion
    byteCount = edit.byteCount
    message = edit.message
    remedy = edit.remedy
  }
}
