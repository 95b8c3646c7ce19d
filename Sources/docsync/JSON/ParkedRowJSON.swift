import SyncModel
import SyncStore

/// A parked row, as shown.
struct ParkedRowJSON: Encodable, Sendable {
  var table: SQLName
  /// The identity in hexadecimal digits.
  var identity: String
  var reason: String

  init(_ row: ParkedRow) {
    table = row.table
    identity = hexadecimal(row.identity.bytes)
    reason = row.reason.rawValue
  }
}
