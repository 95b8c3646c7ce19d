import Foundation
import SyncModel

/// A change set that this store made.
package struct SealedChangeSet: Hashable, Sendable {
  /// The client as which it was sealed.
  package var client: ClientIdentifier
  /// Its number, from 1.
  package var number: UInt64
  /// The hash of its file.
  package var hash: ContentHash
  /// The length of its file in bytes.
  package var byteCount: Int
  /// The number of rows that it changes.
  package var rowCount: Int
  /// Whether it is known to be in the shared directory.
  package var isPublished: Bool
  /// Whether the store still has its bytes.
  package var isKept: Bool

  /// Creates a sealed change set from its parts.
  package init(
    client: ClientIdentifier, number: UInt64, hash: ContentHash, byteCount: Int, rowCount: Int,
    isPublished: Bool, isKept: Bool = true
  ) {
    self.client = client
    self.number = number
    self.hash = hash
    self.byteCount = byteCount
    self.rowCount = rowCount
    self.isPublished = isPublished
    self.isKept = isKept
  }
}

/// A change set that came from the shared directory and passed its checks.
package struct ReceivedChangeSet: Sendable {
  /// The decoded change set.
  package var changeSet: SyncChangeSet
  /// The hash of its file.
  package var hash: ContentHash
  /// The bytes of its file, which the store holds while it has to wait.
  package var bytes: [UInt8]

  /// Creates a received change set from its parts.
  package init(changeSet: SyncChangeSet, hash: ContentHash, bytes: [UInt8]) {
    self.changeSet = changeSet
    self.hash = hash
    self.bytes = bytes
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

/// The change sets that a store has sealed, as one transaction sees them.
package struct SealedChangeSets: Hashable, Sendable {
  /// The change sets that it made as its present client, in order. The store may no longer have the
  /// bytes of those that every member has applied.
  package var own: [SealedChangeSet]
  /// The change sets that this store, or the store of which it is a copy, has sealed as another
  /// client and that are not known to be published, in order.
  package var ancestral: [SealedChangeSet]
  /// The last change set of the present client; `nil` for none.
  package var head: VersionVector.Entry?
}

/// The result of sealing.
package struct SealReport: Hashable, Sendable {
  /// The change sets made, in order; none if there was nothing to send.
  package var changeSets: [SealedChangeSet] = []
  /// Rows that were removed from the tables, since no other device would show them.
  package var parkedRows = 0
  /// Warnings about the edits, and warnings since the last sealing that no other report contains.
  package var warnings: [SyncWarning] = []
  /// The files of the first change sets by their numbers, as far as they have few bytes, so that
  /// publishing need not read them again or compute their hashes.
  package var files: [UInt64: [UInt8]] = [:]

  /// Creates an empty report.
  package init() {}
}

/// The result of applying.
package struct ApplyReport: Hashable, Sendable {
  /// The change sets applied, in order.
  package var applied: [AppliedChangeSet] = []
  /// The change sets that wait, with those that have to be applied before them.
  package var waiting: [StoreStatus.WaitingChangeSet] = []
  /// The change sets that cannot be applied, with the reasons. No part of them was applied, nor any
  /// later change set of their authors.
  package var refused: [RefusedChangeSet] = []
  /// Rows inserted into tables.
  package var insertedRows = 0
  /// Rows whose columns changed.
  package var updatedRows = 0
  /// Rows deleted from tables.
  package var deletedRows = 0
  /// Cells and rows for which two sides had concurrent changes.
  package var conflicts = 0
  /// Warnings for the user.
  package var warnings: [SyncWarning] = []
  /// The questions that are new, or have a new side, by their numbers in the
  /// conflict journal.
  package var questions: [Int64] = []
  /// The number of questions that are open afterwards.
  package var openConflicts = 0
  /// Rows that are parked afterwards, not only those that applying parked.
  package var parkedRows = 0
  /// Tables, and columns as `table.column`, that the change sets name and this store does not have:
  /// their values are stored until the application creates them.
  package var unknownNames: Set<SQLName> = []

  /// Creates an empty report.
  package init() {}
}

/// A change set that cannot be applied.
package struct RefusedChangeSet: Hashable, Sendable {
  /// The reason why a change set is refused.
  package enum Reason: Hashable, Sendable {
    /// It belongs to another document or generation.
    case foreign
    /// It does not follow the one that was applied before it.
    case fork
    /// It contains changes that no store can make.
    case contradictory
  }

  /// Its author.
  package var client: ClientIdentifier
  /// Its number among the change sets of its author, from 1 on.
  package var number: UInt64
  /// The hash of its file.
  package var hash: ContentHash
  /// The reason why it is refused.
  package var reason: Reason
  /// The reason in words.
  package var message: String
}

/// One change set in a store's history.
public struct AppliedChangeSet: Hashable, Sendable {
  /// Its author.
  public var client: ClientIdentifier
  /// Its number among the change sets of its author, from 1 on.
  public var number: UInt64
  /// The hash of its file.
  public var hash: ContentHash
  /// The number of rows that it changes.
  public var rowCount: Int
  /// The time at which it was sealed or applied here, in milliseconds since 1970.
  package var milliseconds: Int64
  /// The time at which it was sealed or applied here.
  public var date: Date { Date(milliseconds: milliseconds) }

  /// Creates an entry of the history from its parts.
  package init(
    client: ClientIdentifier, number: UInt64, hash: ContentHash, rowCount: Int,
    milliseconds: Int64
  ) {
    self.client = client
    self.number = number
    self.hash = hash
    self.rowCount = rowCount
    self.milliseconds = milliseconds
  }
}

/// The content of a store's document, reduced to two hashes.
public struct StoreDigest: Hashable, Sendable {
  /// The hash over the visible synchronized rows, in order of identity, with surrogate keys
  /// replaced by identities.
  public var visible: ContentHash
  /// The hash over the logical state beneath: stamps, tombstones, parked rows.
  public var logical: ContentHash
  /// The number of visible rows.
  public var rowCount: Int

  /// Creates a digest from its parts.
  package init(visible: ContentHash, logical: ContentHash, rowCount: Int) {
    self.visible = visible
    self.logical = logical
    self.rowCount = rowCount
  }
}

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
    /// Its name begins like those of docsync's own tables.
    case reservedName = "has a name of docsync"
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
        .renamedExclusion, .configuration, .unreadable, .tooManyColumns, .reservedName:
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

  /// Creates a parked row from its parts.
  package init(table: SQLName, identity: RowIdentity, reason: Reason) {
    self.table = table
    self.identity = identity
    self.reason = reason
  }
}

/// A consistent copy of a store, ready to be uploaded.
package struct StoreSnapshot: Hashable, Sendable {
  /// The path of the copy.
  package var path: String
  /// The change sets that it contains, including the store's own.
  package var vector: VersionVector
  /// The hash of the schema.
  package var schema: ContentHash

  /// Creates a snapshot from its parts.
  package init(path: String, vector: VersionVector, schema: ContentHash) {
    self.path = path
    self.vector = vector
    self.schema = schema
  }
}
