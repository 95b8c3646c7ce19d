import SyncStore

/// The change of a store to a new client, as printed.
struct IncarnationJSON: Encodable, Sendable {
  var ancestor: String
  var client: String
  var reason: String
  var isAncestorGone: Bool
  var madeMilliseconds: Int64

  init(_ incarnation: Incarnation) {
    ancestor = incarnation.ancestor.description
    client = incarnation.client.description
    reason = incarnation.reason.rawValue
    isAncestorGone = incarnation.isAncestorGone
    madeMilliseconds = incarnation.milliseconds
  }
}
