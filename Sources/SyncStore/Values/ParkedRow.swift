import Foundation
import SyncModel

/// A row that is stored with all its cells and not shown.
public struct ParkedRow: Hashable, Sendable {
  /// The reason why a row is parked.
  public enum Reason: String, Hashable, Sendable, CaseIterable {
    /// A row that it refers to is not shown.
    case parentMissing
    /// A row that it refers to was deleted, and the deletion would have included it.
    case parentDeleted
    /// Another row holds a value that must be unique.
    case uniqueValueTaken
    /// A CHECK constraint refuses it.
    case check
    /// A NOT NULL constraint refuses it.
    case notNull
    /// The row is deleted, and an edit of it is newer than the deletion.
    case deleted
    /// An update arrived for a row whose insertion has not arrived.
    case rowMissing
  }

  /// The table in which it would be shown.
  public var table: SQLName
  /// The bytes that identify the row on every device.
  public var identity: RowIdentity
  /// The reason why it is parked.
  public var reason: Reason
  /// Whether another row stands for it, so that there is nothing to do: its reason is
  /// ``Reason/uniqueValueTaken``, and rows of its table have stand-ins, so that those that refer to it are shown with the
  /// row that has the value; or that row has the same values in all other columns.
  public var hasStandIn = false

  /// Creates a parked row from its parts.
  package init(table: SQLName, identity: RowIdentity, reason: Reason) {
    self.table = table
    self.identity = identity
    self.reason = reason
  }
}
