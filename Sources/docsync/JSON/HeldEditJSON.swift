import SyncModel
import SyncStore

/// An edit that stays on the device since it is too large to be sent, as printed.
struct HeldEditJSON: Encodable, Sendable {
  var table: SQLName
  /// The row's key.
  var row: String
  var columns: [SQLName]
  /// `insertion`, `update` or `deletion`.
  var kind: String
  var byteCount: Int
  var message: String
  var remedy: String

  init(_ edit: StoreStatus.HeldEdit) {
    table = edit.table
    row = edit.row
    columns = edit.columns
    kind = edit.kind.rawValue
    byteCount = edit.byteCount
    message = edit.message
    remedy = edit.remedy
  }
}
