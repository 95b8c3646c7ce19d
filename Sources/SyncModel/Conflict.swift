import Foundation

/// An entry of the conflict journal: two concurrent changes that a table cannot both show.
///
/// *Local* is the version that the store had, *remote* the version that arrived; any client may
/// have made either. The entry contains every value that lost.
public struct Conflict: Hashable, Sendable {
  /// The kind of conflict.
  public enum Kind: String, Hashable, Sendable, CaseIterable {
    /// One cell was given two values.
    case cell
    /// A row was deleted on one side, and edited or inserted on the other.
    case existence
    /// Two rows have the same value where values must be unique.
    case uniqueValue
    /// A row refers to a row that is not shown.
    case reference
    /// A CHECK or NOT NULL constraint refuses a row.
    case condition
  }

  /// The rule that decided.
  public struct Rule: RawRepresentable, Hashable, Sendable {
    /// The rule's name.
    public let rawValue: String
    /// Creates a rule with the given name.
    public init(rawValue: String) { self.rawValue = rawValue }

    /// The later stamp wins.
    public static let latestWins = Rule(rawValue: "latestWins")
    /// A deletion wins over concurrent edits.
    public static let deleteWins = Rule(rawValue: "deleteWins")
    /// An edit wins over a concurrent deletion.
    public static let editWins = Rule(rawValue: "editWins")
    /// The later claim holds the unique value.
    public static let uniqueValue = Rule(rawValue: "uniqueValue")
    /// A reference needs a row that is shown.
    public static let reference = Rule(rawValue: "reference")
    /// The row must meet the conditions of the schema.
    public static let condition = Rule(rawValue: "condition")
    /// This device's policy took the local value.
    public static let localWins = Rule(rawValue: "localWins")
    /// This device's policy took the remote value.
    public static let remoteWins = Rule(rawValue: "remoteWins")
    /// A function decided.
    public static let resolve = Rule(rawValue: "resolve")
    /// The user decides or has decided.
    public static let ask = Rule(rawValue: "ask")
    /// A database with rows of its own joined the document.
    public static let join = Rule(rawValue: "join")
  }

  /// Which of the two sides stands.
  public enum Outcome: String, Hashable, Sendable {
    /// The value that the store had.
    case local
    /// The value that arrived.
    case remote
    /// A third value.
    case other
    /// Both values: the obstacle has gone.
    case both
  }

  /// Whether and how the conflict is decided.
  public enum Status: String, Hashable, Sendable, CaseIterable {
    /// A rule decided.
    case settled
    /// The user has yet to decide. Until then ``Conflict/outcome`` counts.
    case open
    /// The user decided.
    case answered
    /// The losing version was put back.
    case restored
    /// A later conflict of the same cell has replaced this open question, or a later edit has
    /// replaced the outcome of a rule.
    case superseded
  }

  /// A value of a column.
  public struct Cell: Hashable, Sendable {
    /// The column's name.
    public var column: SQLName
    /// The value, with references as the identities of rows.
    public var value: Value

    /// Creates a cell from its column and value.
    package init(column: SQLName, value: Value) {
      self.column = column
      self.value = value
    }
  }

  /// One of the two sides.
  public struct Side: Hashable, Sendable {
    /// When and by which client the change was made; `nil` if no client made one
    /// since syncing began, or if there is no such side.
    package var stamp: Stamp?
    /// When the change was made, by the clock of the client that made it; `nil`
    /// if no client made one since syncing began, or if there is no such side.
    public var date: Date? { stamp.map { Date(milliseconds: $0.time.milliseconds) } }
    /// The client that made the change; `nil` in the same cases.
    public var client: ClientIdentifier? { stamp?.client }
    /// The cells of this side: one cell, or, if whole rows are concerned, all
    /// known cells of the row; `nil` for a deletion or no side.
    public var cells: [Cell]?

    /// Creates a side from its stamp and cells.
    package init(stamp: Stamp?, cells: [Cell]?) {
      self.stamp = stamp
      self.cells = cells
    }
  }

  /// The cell or the row as the store has it when the entry is read.
  public struct Present: Hashable, Sendable {
    /// Whether the row is shown: whether it is in its table.
    public var isShown: Bool
    /// The side that is shown, ``Outcome/both`` for a row for which the obstacle has gone; `nil` if
    /// the conflict is about a cell and the row is not shown.
    public var outcome: Outcome?
    /// The value of the cell, with a reference as the identity of a row; `nil` if the row is not
    /// shown, or the conflict is about a whole row.
    public var value: Value?

    /// Creates a value from its parts.
    package init(isShown: Bool, outcome: Outcome?, value: Value? = nil) {
      self.isShown = isShown
      self.outcome = outcome
      self.value = value
    }
  }

  /// The number of the entry. A store never uses it again.
  public var number: Int64
  /// When this device noticed the conflict, in milliseconds since 1970.
  package var milliseconds: Int64
  /// When this device noticed the conflict.
  public var date: Date { Date(milliseconds: milliseconds) }
  /// The kind of conflict.
  public var kind: Kind
  /// The table that has the row.
  public var table: SQLName
  /// The row.
  public var identity: RowIdentity
  /// The values of the row's key on this device, by which people recognize the row.
  public var key: [Cell]
  /// The column; `nil` where the row as a whole is concerned.
  public var column: SQLName?
  /// The value before both changes; `nil` if the store did not record it. It does so only for a
  /// policy or a merge type that needs it.
  public var base: Value?
  /// The version that the store had.
  public var local: Side
  /// The version that arrived.
  public var remote: Side
  /// The rule that decided.
  public var rule: Rule
  /// The side that was chosen when the conflict was last decided. See ``now`` for the side that is
  /// shown since.
  public var outcome: Outcome
  /// Whether and how the conflict is decided.
  public var status: Status
  /// Further information, such as why a policy failed.
  public var message: String?
  /// What is shown now; `nil` if the table or the column is not synchronized any more.
  public var now: Present?
  /// Whether the entry is in the file beside the store, to which the oldest ones go.
  public var isArchived = false

  /// Creates an entry from its parts.
  package init(
    number: Int64, milliseconds: Int64, kind: Kind, table: SQLName, identity: RowIdentity,
    key: [Cell], column: SQLName?, base: Value?, local: Side, remote: Side, rule: Rule,
    outcome: Outcome, status: Status, message: String?, now: Present? = nil
  ) {
    self.number = number
    self.milliseconds = milliseconds
    self.kind = kind
    self.table = table
    self.identity = identity
    self.key = key
    self.column = column
    self.base = base
    self.local = local
    self.remote = remote
    self.rule = rule
    self.outcome = outcome
    self.status = status
    self.message = message
    self.now = now
  }
}

extension Conflict {
  /// The answer to an open question.
  public enum Answer: Hashable, Sendable {
    /// The version that the store had.
    case local
    /// The version that arrived.
    case remote
    /// Another value; for cells only. A reference is the row's identity, or its key on this device.
    case value(Value)
  }
}

extension Conflict {
  /// How many entries of the conflict journal are where.
  public struct Places: Hashable, Sendable {
    /// The number of entries in the store.
    public var inTable: Int
    /// The number of entries in the file beside the store, to which the oldest ones go.
    public var inArchive = 0
    /// The number of entries that should be in the file and cannot be read: it is damaged or missing.
    public var unreadable = 0
    /// The path of the file; `nil` if no entry has left the store.
    public var archive: String?
    /// Why the file cannot be read or written, and what to do; `nil` if it can.
    public var problem: String?
    /// The entries that are no longer kept.
    public var dropped = Dropped()

    /// Creates a value for a journal that is in the store alone.
    package init(inTable: Int) { self.inTable = inTable }
  }

  /// A part of the conflict journal, the newest entries first.
  public struct Page: Hashable, Sendable {
    /// The entries.
    public var conflicts: [Conflict]
    /// The number before which the next page begins; `nil` if this is the last one.
    public var next: Int64?

    /// The most entries of a page.
    public static let greatestLimit = 1_000_000

    /// Creates a page from its parts.
    package init(conflicts: [Conflict], next: Int64?) {
      self.conflicts = conflicts
      self.next = next
    }
  }

  /// The entries that the conflict journal does not have any more: the oldest ones in the file
  /// beside the store are removed if it becomes too long.
  public struct Dropped: Hashable, Sendable, Codable {
    /// The number of dropped entries. The journal drops only decided ones.
    public var count = 0
    /// When the first of them was noticed, in milliseconds since 1970.
    package var firstMilliseconds: Int64?
    /// When the last of them was noticed, in milliseconds since 1970.
    package var lastMilliseconds: Int64?
    /// When the first of them was noticed.
    public var firstDate: Date? { firstMilliseconds.map { Date(milliseconds: $0) } }
    /// When the last of them was noticed.
    public var lastDate: Date? { lastMilliseconds.map { Date(milliseconds: $0) } }

    /// Creates a value for a journal that has dropped nothing.
    package init() {}
  }
}
