import SyncModel

extension MergedRows {
  /// The choice of the values that are shown when a database with rows joins a document.
  public enum Preference: String, Hashable, Sendable, Codable, CaseIterable {
    /// The values of the document; the others go to the conflict journal.
    case document
    /// The values of the database, as edits of now; the document's go to the journal.
    case local
  }
}

/// The result of merging the rows of a database into a document.
public struct MergedRows: Hashable, Sendable, Codable {
  /// Rows that the document did not have.
  public var insertedRows = 0
  /// Rows that the document had, with the same values.
  public var equalRows = 0
  /// Rows that the document had, with other values.
  public var differingRows = 0
  /// The values in which these rows differ; those that are not shown are in the conflict journal.
  public var differingCells = 0
  /// Rows that cannot be in the document beside other rows, or refer to such rows: they are in the
  /// conflict journal.
  public var refusedRows = 0
  /// Rows that got another key than they had.
  public var movedRows = 0
  /// Tables that the document did not have, and that it has from now on.
  public var newTables: [SQLName] = []
  /// Tables that stay on the device and were taken along.
  public var localTables: [SQLName] = []

  /// Creates an empty report.
  package init() {}
}
