import SyncModel

/// Which values stand where a database with rows joins a document.
public enum MergePreference: String, Hashable, Sendable, Codable, CaseIterable {
  /// Those of the document; the others go to the conflict journal.
  case document
  /// Those of the database, as edits of now; the document's go to the journal.
  case local
}

/// What merging the rows of a database into a document did.
public struct MergedRows: Hashable, Sendable, Codable {
  /// Rows that the document did not have.
  public var insertedRows = 0
  /// Rows that it had, with the same values.
  public var equalRows = 0
  /// Rows that it had with other values.
  public var differingRows = 0
  /// The values in which these differ; those that do not stand are in the
  /// conflict journal.
  public var differingCells = 0
  /// Rows that cannot be in the document beside others, or refer to such
  /// rows: they are in the conflict journal.
  public var refusedRows = 0
  /// Rows that got another key than they had.
  public var movedRows = 0
  /// Tables that the document did not have, and that it has from now on.
  public var newTables: [SQLName] = []
  /// Tables that stay on the device and were taken along.
  public var localTables: [SQLName] = []

  /// A report of nothing.
  public init() {}
}
