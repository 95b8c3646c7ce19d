import SyncModel
import SyncStore

/// A table that stays on the device since it cannot be synchronized, as printed.
struct UnsuitableTableJSON: Encodable, Sendable {
  var table: SQLName
  var reason: String
  var message: String
  var remedy: String
  /// Whether it was synchronized before.
  var wasSynchronized: Bool

  init(_ table: StoreStatus.UnsuitableTable) {
    self.table = table.name
    reason = table.reason.rawValue
    message = table.message
    remedy = table.remedy
    wasSynchronized = table.wasSynchronized
  }
}
