import SyncModel
import SyncStore

/// A change of a row that is not sent, as printed.
struct PendingChangeJSON: Encodable, Sendable {
  var table: SQLName
  /// `inserted`, `updated` or `deleted`.
  var kind: String
  /// The identity in hexadecimal digits; absent if the key is the identity.
  var row: String?
  /// The row's key; absent if it is not known here.
  var key: NamedValues<ValueJSON>?
  /// The changed columns of an updated row.
  var columns: [SQLName]
  var sinceMilliseconds: Int64
  /// `unsealed`, `unpublished` or `tooLarge`.
  var stage: String

  init(_ change: StoreStatus.PendingChanges.Change) {
    table = change.table
    kind = change.kind.rawValue
    row = change.identity.map { hexadecimal($0.bytes) }
    key = change.key.map { NamedValues(Array(zip(change.keyColumns, $0.map(ValueJSON.init)))) }
    columns = change.columns
    sinceMilliseconds = change.since.milliseconds
    stage = change.stage.rawValue
  }
}
