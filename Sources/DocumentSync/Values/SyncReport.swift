import SyncModel
import SyncStore

/// The result of one synchronization.
public struct SyncReport: Hashable, Sendable {
  /// A change set that was sent, received, applied or restored.
  public struct ChangeSet: Hashable, Sendable {
    /// Its author.
    public var client: ClientIdentifier
    /// Its place among the change sets of its author, from 1 on.
    public var number: UInt64
    /// The hash of its file.
    public var hash: ContentHash
    /// The number of rows that it changes.
    public var rowCount: Int
    /// The length of its file in bytes; `nil` if it was not measured.
    public var byteCount: Int?

    /// Creates an entry from its parts.
    package init(
      client: ClientIdentifier, number: UInt64, hash: ContentHash, rowCount: Int,
      byteCount: Int? = nil
    ) {
      self.client = client
      self.number = number
      self.hash = hash
      self.rowCount = rowCount
      self.byteCount = byteCount
    }
  }

  /// Change sets of this client that were published, in order.
  public var sent: [ChangeSet] = []
  /// Change sets of others that were read and checked.
  public var received: [ChangeSet] = []
  /// Change sets of others that were applied, in order.
  public var applied: [ChangeSet] = []
  /// Change sets of this client that were missing or damaged in the directory
  /// and were published again.
  public var restored: [ChangeSet] = []
  /// Other files that were missing or damaged and were published again, by
  /// their paths below the root of the directory: commands, RecentSyncs,
  /// descriptions, whole stores, the files of the application and of the
  /// generation.
  public var restoredFiles: [String] = []
  /// Damaged files of this client that were removed because other files replace
  /// them, by their paths.
  public var removedFiles: [String] = []
  /// Damaged files of this client that stay for now, by their paths. A whole
  /// store has to replace them, which this client can make only when its edits
  /// are published and those of others do not wait.
  public var damagedFiles: [String] = []
  /// The change sets and commands that cannot be applied yet, and why. If it is
  /// empty, this store has all that it knows of.
  public var waiting: [SyncReport.Wait] = []

  /// Commands of this client that were published.
  public var sentCommands = 0
  /// Commands of others that were processed.
  public var processedCommands = 0
  /// Commands for the application that it has not acknowledged, at the end of
  /// the run; see ``DocumentSyncManager/pendingCommands()``.
  public var pendingCommands = 0

  /// Rows inserted into tables.
  public var insertedRows = 0
  /// Rows whose columns changed.
  public var updatedRows = 0
  /// Rows deleted from tables.
  public var deletedRows = 0
  /// Cells and rows that two sides changed concurrently. The conflict journal
  /// contains the side that lost.
  public var conflicts = 0
  /// How many entries of the conflict journal are where at the end of the run; `nil` if the run had
  /// no conflicts.
  public var conflictPlaces: Conflict.Places?
  /// The conflicts that this run has left undecided, or an earlier one that
  /// failed, by their numbers in the journal. They may have been answered by the
  /// end of the run.
  public var questions: [Int64] = []
  /// How many conflicts are open at the end of the run, including older ones.
  public var openConflicts = 0
  /// Warnings for the user.
  public var warnings: [SyncWarning] = []
  /// How many rows are parked at the end of the run.
  public var parkedRows = 0
  /// Tables, and columns as `table.column`, that this store does not have and
  /// that occur in changes of others. The store holds these changes until the
  /// application creates the tables and columns.
  public var unknownNames: Set<SQLName> = []

  /// Bytes that were published.
  public var bytesSent = 0
  /// Bytes that were read.
  public var bytesReceived = 0
  /// The number of folders that were listed.
  public var listings = 0
  /// Whether the whole store was uploaded, to replace change sets of this
  /// client that every member has and that are missing or damaged in the
  /// directory.
  public var uploadedWholeStore = false
  /// The new clients that the store became, because it is a copy, or was an
  /// older state of itself, or was retired.
  public var incarnations: [Incarnation] = []
  /// The result of the vacuum, if one was due.
  public var housekeeping: VacuumReport?
  /// The exchange of the store's content for that of a whole store, if there
  /// was one.
  public var rebootstrap: Rebootstrap?
  /// Whether a new RecentSync was published.
  public var publishedMarker = false

  /// Creates an empty report.
  package init() {}

  /// Whether nothing was sent, received or published again.
  public var isIdle: Bool {
    sent.isEmpty && received.isEmpty && applied.isEmpty && restored.isEmpty
      && restoredFiles.isEmpty && removedFiles.isEmpty && sentCommands == 0
      && processedCommands == 0
      && !publishedMarker && !uploadedWholeStore && rebootstrap == nil
  }
}

extension SyncReport {
  /// A change set or command that a store knows of and cannot apply yet.
  public struct Wait: Hashable, Sendable, Codable, CustomStringConvertible {
    /// Why a change set or command waits. Open: later versions may add reasons.
    public struct Reason: RawRepresentable, Hashable, Sendable, Codable {
      /// The reason's name.
      public let rawValue: String
      /// Creates a reason with the given name.
      public init(rawValue: String) { self.rawValue = rawValue }

      /// It was announced, and its file has not arrived.
      public static let notArrived = Reason(rawValue: "notArrived")
      /// Its file could not be read.
      public static let unreadable = Reason(rawValue: "unreadable")
      /// Its file is damaged or short.
      public static let damaged = Reason(rawValue: "damaged")
      /// Its file belongs elsewhere: another document, client or number.
      public static let misplaced = Reason(rawValue: "misplaced")
      /// Its file does not continue the one before it.
      public static let brokenChain = Reason(rawValue: "brokenChain")
      /// Two files claim its number.
      public static let fork = Reason(rawValue: "fork")
      /// Its file needs a newer version of this software.
      public static let newerFormat = Reason(rawValue: "newerFormat")
      /// The store refused it.
      public static let refused = Reason(rawValue: "refused")
      /// Other change sets have to be applied before it.
      public static let dependencies = Reason(rawValue: "dependencies")
      /// It was removed, and this store does not have it.
      public static let clearedAway = Reason(rawValue: "clearedAway")
      /// Its author is being retired, and not every member has announced how
      /// far it has applied that author's change sets.
      public static let retiring = Reason(rawValue: "retiring")
      /// It deletes more rows than ``SyncEnvironment/deletionLimit`` allows.
      public static let manyDeletions = Reason(rawValue: "manyDeletions")
    }

    /// The author.
    public var client: ClientIdentifier
    /// The first number that waits; the later ones of that author wait for it.
    public var number: UInt64
    /// Whether it is the number of a command, rather than of a change set.
    public var isCommand: Bool
    /// Why it waits.
    public var reason: Reason
    /// The reason as a sentence for the user.
    public var message: String
    /// The file, as a path below the root of the directory.
    public var path: String?

    /// Creates an entry from its parts.
    package init(
      client: ClientIdentifier, number: UInt64, reason: Reason, message: String,
      path: String? = nil, isCommand: Bool = false
    ) {
      self.client = client
      self.number = number
      self.isCommand = isCommand
      self.reason = reason
      self.message = message
      self.path = path
    }

    /// The change set or command, the sentence and the path.
    public var description: String {
      "\(isCommand ? "command" : "change set") \(number) of \(client): \(message)"
        + (path.map { " (\($0))" } ?? "")
    }
  }
}
