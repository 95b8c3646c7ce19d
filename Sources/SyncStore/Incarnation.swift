import SyncModel

/// How a store came to be a new client.
public struct Incarnation: Hashable, Sendable, Codable {
  /// Why a store cannot go on as the client that it was.
  public enum Reason: String, Hashable, Sendable, Codable {
    /// It is somewhere else than before: a copy, or moved.
    case copied
    /// It is an older state of itself.
    case restored
    /// Another state of the same client has published.
    case forked
    /// The client was retired, or removed.
    case retired
    /// The document was begun anew.
    case begunAnew
  }

  /// What others have of a change set that the store has sealed as the client
  /// that it was.
  public enum Standing: Hashable, Sendable {
    /// Everybody has it, or will.
    case common
    /// Some may have it. It is no longer one of the former client's.
    case known
    /// Nobody can have it: the former client's is another.
    case unknown
  }

  /// The client that it was.
  public var ancestor: ClientIdentifier
  /// The client that it is.
  public var client: ClientIdentifier
  /// Why.
  public var reason: Reason
  /// Whether no other state of the ancestor can be in use: it was in the same
  /// place, or nothing is there any more.
  public var isAncestorGone: Bool
  /// By its own clock, in milliseconds since 1970.
  public var milliseconds: Int64

  /// Joins the parts.
  public init(
    ancestor: ClientIdentifier, client: ClientIdentifier, reason: Reason, isAncestorGone: Bool,
    milliseconds: Int64
  ) {
    self.ancestor = ancestor
    self.client = client
    self.reason = reason
    self.isAncestorGone = isAncestorGone
    self.milliseconds = milliseconds
  }
}
