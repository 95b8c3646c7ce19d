import SyncModel

/// A warning of a synchronization, as printed.
struct WarningJSON: Encodable, Sendable {
  var code: String
  var table: SQLName?
  /// The key of the row concerned.
  var row: String?
  var names: [SQLName]
  /// Why rows are parked.
  var reason: String?
  var count: Int
  var client: String?
  /// How far the clock of the client is ahead.
  var aheadMilliseconds: Int64?
  /// The number of the conflict in the journal.
  var conflict: Int64?
  var message: String

  init(_ warning: SyncWarning) {
    code = warning.code.rawValue
    table = warning.table
    row = warning.row
    names = warning.names
    reason = warning.reason
    count = warning.count
    client = warning.client?.description
    aheadMilliseconds = warning.milliseconds
    conflict = warning.conflict
    message = warning.message
  }
}
