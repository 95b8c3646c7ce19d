import SyncModel

/// The rows of the application's tables that one transaction of a synchronization, or of another call
/// of the library, has changed.
///
/// Rows are named by the values of ``Table/keyColumns`` on this device. A row that was inserted and
/// deleted again in the transaction is not in it, and one that was deleted and inserted again counts as
/// updated. What the database's own triggers have changed beside is not in it; see
/// ``mayConcernOtherTables``.
public struct RowChanges: Hashable, Sendable {
  /// The changed rows of one table.
  public struct Table: Hashable, Sendable {
    /// The name of the table.
    public var name: SQLName
    /// The columns that name a row: its `INTEGER PRIMARY KEY` if its rows have random identities, otherwise
    /// the columns by which the rows are identified.
    public var keyColumns: [SQLName]
    /// The keys of the inserted rows: the values of ``keyColumns``, in no particular order.
    public var inserted: [[Value]] = []
    /// The keys of the updated rows.
    public var updated: [[Value]] = []
    /// The keys of the deleted rows, which they had before.
    public var deleted: [[Value]] = []
    /// Whether the keys of all changed rows are here. If not, no keys are here: more than
    /// ``RowChanges/bound`` rows have changed, their keys have more than 1 MiB, or the rows cannot be named,
    /// for example because the content of the whole table was exchanged.
    public var isComplete = true

    /// Creates a table without changes.
    package init(name: SQLName, keyColumns: [SQLName]) {
      self.name = name
      self.keyColumns = keyColumns
    }
  }

  /// The most rows of one table that are named one by one.
  public static let bound = 1_000

  /// The tables with changed rows, in order of their names.
  public var tables: [Table]
  /// The clients whose change sets were applied in the transaction; empty for changes that are not from a
  /// change set, such as a conflict that was answered.
  public var authors: Set<ClientIdentifier>
  /// Whether the database has triggers that may have changed further tables, or further rows, such as
  /// those of a full-text index.
  public var mayConcernOtherTables: Bool

  /// Creates changes from their parts.
  package init(
    tables: [Table], authors: Set<ClientIdentifier>, mayConcernOtherTables: Bool
  ) {
    self.tables = tables
    self.authors = authors
    self.mayConcernOtherTables = mayConcernOtherTables
  }
}

/// Hears of the rows that transactions change.
package struct RowChangeObserver: Sendable {
  /// Called at the end of a transaction, before its commit. It must not use the store.
  package var willCommit: @Sendable (RowChanges) -> Void
  /// Called after the commit, in the order of commits. It must not use the store.
  package var didCommit: @Sendable (RowChanges) -> Void

  /// Creates an observer from its parts.
  package init(
    willCommit: @escaping @Sendable (RowChanges) -> Void,
    didCommit: @escaping @Sendable (RowChanges) -> Void
  ) {
    self.willCommit = willCommit
    self.didCommit = didCommit
  }
}
