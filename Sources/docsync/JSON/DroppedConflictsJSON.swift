import SyncModel

/// The entries that the conflict journal has dropped, as printed.
struct DroppedConflictsJSON: Encodable, Sendable {
  var count: Int
  var firstMilliseconds: Int64?
  var lastMilliseconds: Int64?

  init(_ dropped: Conflict.Dropped) {
    count = dropped.count
    firstMilliseconds = dropped.firstMilliseconds
    lastMilliseconds = dropped.lastMilliseconds
  }
}
