import SyncModel
import SyncStore

/// A parked row, as shown.
struct ParkedRowJSON: Encodable, Sendable {
  var table: SQLName
  /// The identity in hexadecimal digits.
  var row: String
  var reason: String
  /// Whether another row stands for it.
  var hasStandIn: Bool

  init(_ parked: ParkedRow) {
    table = parked.table
    row = hexadecimal(parked.identity.bytes)
    reason = parked.reason.rawValue
    hasStandIn = parked.hasStandIn
  }
}
