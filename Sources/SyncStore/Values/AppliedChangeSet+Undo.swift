import SyncModel

extension AppliedChangeSet {
  /// What undoing a change set has done, or would do.
  ///
  /// Undoing makes ordinary edits: rows that the change set has inserted are deleted, rows that it has deleted
  /// are inserted again, and the cells that it has changed get the values that they would have without it. What
  /// was changed since stays as it is.
  public struct Undo: Hashable, Sendable {
    /// The number of edited rows of one table.
    public struct Table: Hashable, Sendable {
      /// The name of the table.
      public var name: SQLName
      /// The number of rows that were inserted again.
      public var insertedRows = 0
      /// The number of rows in which cells got their former values.
      public var updatedRows = 0
      /// The number of rows that were deleted.
      public var deletedRows = 0
    }

    /// A row that the change set has changed, and that stays as it is, wholly or in part.
    public struct LeftRow: Hashable, Sendable {
      /// The table of the row.
      public var table: SQLName
      /// The columns that name a row, as in ``RowChanges/Table/keyColumns``.
      public var keyColumns: [SQLName]
      /// The values of ``keyColumns`` on this device; `nil` if they are not known here.
      public var key: [Value]?
      /// The columns that stay as they are; empty if the whole row does.
      public var columns: [SQLName]
      /// Why.
      public var reason: Reason
      /// The reason in words.
      public var message: String
    }

    /// Why a row stays as it is.
    public enum Reason: String, Hashable, Sendable, CaseIterable {
      /// It was changed, deleted or inserted again since.
      case changedSince
      /// It is not shown, so that it cannot be edited.
      case hidden
      /// Its former state is not known: its table is new or identifies its rows in another way now, or the column
      /// refers to other rows.
      case unknown
      /// A constraint does not permit the edit.
      case refused
    }

    /// The most rows in ``leftRows``.
    public static let bound = 1_000

    /// The tables with edited rows, in order of name.
    public var tables: [Table] = []
    /// The rows that stay as they are, at most ``bound``.
    public var leftRows: [LeftRow] = []
    /// The number of all rows that stay as they are.
    public var leftCount = 0

    /// The number of all edited rows.
    public var rowCount: Int {
      tables.reduce(0) { $0 + $1.insertedRows + $1.updatedRows + $1.deletedRows }
    }
  }
}
