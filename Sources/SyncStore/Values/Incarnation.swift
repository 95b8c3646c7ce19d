import Foundation
import SyncModel

/// A store's change to a new client.
public struct Incarnation: Hashable, Sendable, Codable {
  /// The reason why a store cannot continue as its former client.
  public enum Reason: String, Hashable, Sendable, Codable {
    /// The store is in another place than before: it was copied or moved.
    case copied
    /// The store was put back to an older state.
    case restored
    /// Another state of the same client has published.
    case forked
    /// The client was retired, or removed.
    case retired
    /// The document was begun again.
    case begunAgain = "begunAnew"
  }

  /// The status of a change set that the store sealed as its former client: whether other devices
  /// have it.
  public enum Standing: Hashable, Sendable {
    /// Every device has it, or will have it.
    case common
    /// Some devices may have it. It no longer belongs to the former client.
    case known
    /// No other device can have it: the former client has another change set with its number.
    case unknown
  }

  /// The client that the store was.
  public var ancestor: ClientIdentifier
  /// The client that the store is.
  public var client: ClientIdentifier
  /// The reason why it became another client.
  public var reason: Reason
  /// Whether no other state of the ancestor can be in use: the ancestor was in the same place, or
  /// its place is empty now.
  public var isAncestorGone: Bool
  /// The time by the store's own clock, in milliseconds since 1970.
  package var milliseconds: Int64
  /// The time by the store's own clock.
  public var date: Date { Date(milliseconds: milliseconds) }

  /// Creates an incarnation from its parts.
  package init(
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

extension Incarnation: StoredValue {
  /// The time is shown.
  package func checkNumbers() throws {
    try StoredNumbers.check("milliseconds", milliseconds: milliseconds)
  }
}
