import Foundation
import SyncModel

/// The state of a store: unsent edits, applied and waiting change sets, parked rows, and tables.
public struct StoreStatus: Hashable, Sendable {
  /// The number of edits in the log that are not sealed yet.
  public var unsealedEdits: Int
  /// The number of change sets that are sealed and not published.
  public var unpublishedChangeSets: Int
  /// The number of its own last change set; 0 for none.
  public var head: UInt64
  /// The change sets of other clients that have been applied.
  package var vector: VersionVector
  /// Change sets that wait, with those that have to be applied before them.
  public var waiting: [WaitingChangeSet]
  /// The parked rows.
  public var parked: [ParkedRow]
  /// The number of open questions in the conflict journal.
  public var openConflicts = 0
  /// The synchronized tables and how their rows are identified.
  public var tables: [TableStatus]
  /// Tables that are not synchronized, with the reasons.
  public var leftOut: [SQLName: LeftOutReason]
  /// Tables, and columns as `table.column`, that this store does not have: it stores what other
  /// devices send for them until the application creates them.
  public var unknownNames: [SQLName] = []
  /// Tables, and columns as `table.column`, that the application dropped and created again: their
  /// former content has to be fetched again.
  public var incompleteNames: [SQLName] = []
  /// The tables that stay on the device since they cannot be synchronized, in order of name.
  public var unsuitableTables: [UnsuitableTable] = []
  /// Why older conflicts stay in the store, and what to do: the file beside it cannot be written.
  /// `nil` if it can.
  public var conflictArchiveProblem: String?
  /// The number of rows that have NULL in their key and stay on this device, by table.
  public var rowsWithoutKey: [SQLName: Int] = [:]
  /// The edits that stay on this device since no change set can carry them, in order of table.
  public var heldEdits: [HeldEdit] = []

  /// The reason why a table is not synchronized.
  public enum LeftOutReason: String, Hashable, Sendable {
    /// The configuration excludes the table.
    case excluded
    /// A framework records its migrations in the table: it describes the schema of this database
    /// (``StoreConfiguration/schemaTables``). Whole stores have its rows.
    case schema = "part of the schema"
    /// A module of SQLite computes its rows, such as those of a full-text table.
    case virtualTable = "virtual table"
    /// The module of a virtual table keeps data in it.
    case virtualTablePart = "part of a virtual table"
    /// It has no primary key, so its rows cannot be told apart.
    case noPrimaryKey = "no primary key"
    /// A CHECK, a generated column or an index expression reads its integer key, which is another
    /// number on every device.
    case keyRead = "an expression reads its key"
    /// Its definition needs functions or collations that only its own program defines.
    case programDefinitions = "needs functions of its program"
    /// It has more columns than can be logged.
    case tooManyColumns = "too many columns"
    /// It refers to a table that is not synchronized.
    case reference = "refers to a table that is left out"
    /// One of its columns refers to rows of several tables.
    case ambiguousReference = "a column refers to several tables"
    /// An excluded table is missing, and it may be that table under another name.
    case renamedExclusion = "may be an excluded table"
    /// It is excluded and does not exist any more.
    case missingExclusion = "excluded and missing"
    /// The application has changed it so that it does not fit the document's configuration.
    case configuration = "does not fit the configuration"
    /// Its definition cannot be read.
    case unreadable = "its definition cannot be read"

    /// Whether the table would be synchronized if its definition were another.
    public var isProblem: Bool {
      switch self {
      case .excluded, .schema, .virtualTable, .virtualTablePart, .missingExclusion: false
      case .noPrimaryKey, .keyRead, .programDefinitions, .reference, .ambiguousReference,
        .renamedExclusion, .configuration, .unreadable, .tooManyColumns:
        true
      }
    }
  }

  /// A table that stays on the device since it cannot be synchronized.
  public struct UnsuitableTable: Hashable, Sendable {
    /// The name that it has on this device.
    public var name: SQLName
    /// The kind of the problem.
    public var reason: LeftOutReason
    /// The problem, as a sentence.
    public var message: String
    /// What to do so that the table is synchronized, as a sentence.
    public var remedy: String
    /// Whether it was synchronized before. Then the store synchronizes nothing until the table can
    /// be synchronized again.
    public var wasSynchronized: Bool

    /// The problem, with what it means if the table was synchronized before.
    public var explanation: String {
      guard wasSynchronized else { return message }
      return message + " It was synchronized before, so the database is not synchronized until the "
        + "table can be again."
    }
  }

  /// A synchronized table.
  public struct TableStatus: Hashable, Sendable {
    /// The name that the table has on this device.
    public var name: SQLName
    /// How its rows are identified.
    public var identity: StoreConfiguration.Identity
    /// Columns that stay on this device.
    public var excludedColumns: [SQLName]

    /// Creates a table's status from its parts.
    package init(
      name: SQLName, identity: StoreConfiguration.Identity, excludedColumns: [SQLName]
    ) {
      self.name = name
      self.identity = identity
      self.excludedColumns = excludedColumns
    }
  }

  /// Creates a status from its parts.
  package init(
    unsealedEdits: Int, unpublishedChangeSets: Int, head: UInt64, vector: VersionVector,
    waiting: [WaitingChangeSet], parked: [ParkedRow], tables: [TableStatus],
    leftOut: [SQLName: LeftOutReason]
  ) {
    self.unsealedEdits = unsealedEdits
    self.unpublishedChangeSets = unpublishedChangeSets
    self.head = head
    self.vector = vector
    self.waiting = waiting
    self.parked = parked
    self.tables = tables
    self.leftOut = leftOut
  }
}

extension StoreStatus {
  /// A change set that was received and cannot be applied yet.
  public struct WaitingChangeSet: Hashable, Sendable {
    /// Its author.
    public var client: ClientIdentifier
    /// Its number among the change sets of its author, from 1 on.
    public var number: UInt64
    /// The hash of its file.
    public var hash: ContentHash
    /// The change sets that have to be applied before it.
    public var missing: [ClientIdentifier: UInt64]
    /// The tables of which it deletes more rows than a synchronization may without being told to;
    /// none if it waits for other reasons alone.
    public var deletions: [Deletions] = []

    /// Creates a waiting change set from its parts.
    package init(
      client: ClientIdentifier, number: UInt64, hash: ContentHash,
      missing: [ClientIdentifier: UInt64]
    ) {
      self.client = client
      self.number = number
      self.hash = hash
      self.missing = missing
    }

    /// How many rows of a table a change set deletes.
    public struct Deletions: Hashable, Sendable, Codable {
      /// The name of the table.
      public var table: String
      /// The number of rows that the table shows here and that the change set deletes, less those that
      /// it inserts.
      public var deletedCount: Int
      /// The number of rows that the table had before the synchronization that received the change
      /// set.
      public var rowCount: Int
    }
  }
}
