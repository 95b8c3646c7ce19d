import Foundation
import SyncModel

extension StoreStatus {
  /// Edits of this device that no other device can have, row by row.
  ///
  /// A row whose key changed is deleted under its former key and inserted under its new one. A row that was
  /// inserted and deleted again is not here. Rows that change only by what they refer to, such as one whose
  /// key contains the number of a row that was renamed, are not here either, although they are sent.
  public struct PendingChanges: Hashable, Sendable {
    /// The changes: first those of change sets that are not sent, in order, then edits that are too large, then
    /// those that are in no change set yet, by table.
    public var changes: [Change] = []
    /// Whether there are more than were asked for.
    public var hasMore = false
    /// Tables that may have other changes than these: a program has made the table again, and the next
    /// synchronization compares its rows; a row of it got NULL in its key, which the next synchronization
    /// restores; or it cannot be synchronized at present. In order of name.
    public var incompleteTables: [SQLName] = []

    /// What has become of one row.
    public struct Change: Hashable, Sendable {
      /// The table of the row.
      public var table: SQLName
      /// The columns that name a row, as in ``RowChanges/Table/keyColumns``.
      public var keyColumns: [SQLName]
      /// The values of ``keyColumns`` on this device; `nil` if they are not known here, such as when a row that
      /// the key refers to is gone, or the table is not synchronized any more.
      public var key: [Value]?
      /// The random identity of a row that has one, beside its integer key; `nil` if the key is the identity.
      public var identity: RowIdentity?
      /// What has become of it.
      public var kind: Kind
      /// The changed columns of an updated row, in order of column; empty if the row was inserted or deleted.
      public var columns: [SQLName]
      /// The time of the first of these edits; in a change set, of the last edit of the cell that was edited
      /// first. About 1970 for rows of a table that a program has created, whose time is not known.
      public var since: Date
      /// Where the change waits.
      public var stage: Stage
    }

    /// What has become of a row.
    public enum Kind: String, Hashable, Sendable, CaseIterable {
      /// It is new. In a change set, also a row that was deleted and inserted again.
      case inserted
      /// Values of it are new.
      case updated
      /// It was deleted.
      case deleted
    }

    /// Where a change waits.
    public enum Stage: String, Hashable, Sendable, CaseIterable {
      /// In the log: it is in no change set yet.
      case unsealed
      /// In a change set that is not in the shared directory.
      case unpublished
      /// On this device, as long as it is too large for a change set: see ``StoreStatus/heldEdits``.
      case tooLarge
    }
  }

  /// How many edits no other device can have. A row that was edited several times counts several times, so there
  /// may be fewer ``PendingChanges/changes``.
  public struct PendingCount: Hashable, Sendable {
    /// About how many edits are in no change set yet.
    public var unsealed: Int
    /// The rows in change sets that are not in the shared directory.
    public var unpublished: Int
    /// The edits that are too large for a change set.
    public var tooLarge: Int

    /// The number of all of them.
    public var total: Int { unsealed.clampedSum(unpublished).clampedSum(tooLarge) }
  }
}
