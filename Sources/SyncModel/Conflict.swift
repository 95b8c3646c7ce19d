import Foundation

/// An entry of the conflict journal: two changes that were made without
/// knowledge of one another and cannot both be shown.
///
/// *Local* is the version that the store had, *remote* is the version that
/// arrived, whichever clients made them. The entry contains everything that lost.
public struct Conflict: Hashable, Sendable {
  /// The kind of conflict.
  public enum Kind: String, Hashable, Sendable, CaseIterable {
    /// Two values for one cell.
    case cell
    /// A row was deleted on one side, and edited or inserted on the other.
    case existence
    /// Two rows with a value that must be unique.
    case uniqueValue
    /// A row that refers to one that is not shown.
    case reference
    /// A row that a CHECK or NOT NULL refuses.
    case condition
  }

  /// The rule that decided.
  public struct Rule: RawRepresentable, Hashable, Sendable {
    /// The rule's name.
    public let rawValue: String
    /// A rule of the given name.
    public init(rawValue: String) { self.rawValue = rawValue }

    /// The later stamp.
    public static let latestWins = Rule(rawValue: "latestWins")
    /// A deletion wins over concurrent edits.
    public static let deleteWins = Rule(rawValue: "deleteWins")
    /// An edit wins over a concurrent deletion.
    public static let editWins = Rule(rawValue: "editWins")
    /// The later claim holds the unique value.
    public static let uniqueValue = Rule(rawValue: "uniqueValue")
    /// A reference has to lead somewhere.
    public static let reference = Rule(rawValue: "reference")
    /// A condition of the schema.
    public static let condition = Rule(rawValue: "condition")
    /// This device's policy took its own value.
    public static let localWins = Rule(rawValue: "localWins")
    /// This device's policy took the other value.
    public static let remoteWins = Rule(rawValue: "remoteWins")
    /// A function of the application.
    public static let resolve = Rule(rawValue: "resolve")
    /// The user is asked, or was.
    public static let ask = Rule(rawValue: "ask")
    /// A database with rows of its own joined the document.
    public static let join = Rule(rawValue: "join")
  }

  /// Which value stands.
  public enum Outcome: String, Hashable, Sendable {
    /// The one that the store had.
    case local
    /// The one that came.
    case remote
    /// A third one.
    case other
    /// Both: the obstacle has gone.
    case both
  }

  /// How far it is decided.
  public enum Status: String, Hashable, Sendable, CaseIterable {
    /// Decided by a rule.
    case settled
    /// The user is to decide; ``Conflict/outcome`` counts until then.
    case open
    /// The user decided.
    case answered
    /// The version that had lost was put back.
    case restored
    /// An open question that a later conflict of the same cell has taken over.
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
    /// The client that made the change, likewise.
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

  /// The number of the entry; never used again in a store.
  public var number: Int64
  /// When it was noticed, in milliseconds since 1970.
  package var milliseconds: Int64
  /// When it was noticed.
  public var date: Date { Date(milliseconds: milliseconds) }
  /// The kind of conflict.
  public var kind: Kind
  /// The table that has the row.
  public var table: SQLName
  /// The row.
  public var identity: RowIdentity
  /// The values by which people know the row: those of its key here.
  public var key: [Cell]
  /// The column; `nil` where the row as a whole is concerned.
  public var column: SQLName?
  /// The value before both changes; `nil` if it is not known. It is known only
  /// if a policy or a merge type asks for it.
  public var base: Value?
  /// The version that the store had.
  public var local: Side
  /// The version that arrived.
  public var remote: Side
  /// The rule that decided.
  public var rule: Rule
  /// Which value stands.
  public var outcome: Outcome
  /// How far it is decided.
  public var status: Status
  /// Further information, such as why a policy failed.
  public var message: String?

  /// Creates an entry from its parts.
  package init(
    number: Int64, milliseconds: Int64, kind: Kind, table: SQLName, identity: RowIdentity,
    key: [Cell], column: SQLName?, base: Value?, local: Side, remote: Side, rule: Rule,
    outcome: Outcome, status: Status, message: String?
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
  }
}

extension Conflict {
  /// How an open question is answered.
  public enum Answer: Hashable, Sendable {
    /// By the version that the store had.
    case local
    /// By the version that arrived.
    case remote
    /// By another value; for cells only. A reference is given as the row's
    /// identity, or as its key here.
    case value(Value)
  }
}

extension Conflict {
  /// The entries that the conflict journal has dropped to stay within its bound.
  public struct Dropped: Hashable, Sendable, Codable {
    /// The number of entries, all of them decided.
    public var count = 0
    /// When the first of them was noticed, in milliseconds since 1970.
    package var firstMilliseconds: Int64?
    /// When the last of them was noticed, in milliseconds since 1970.
    package var lastMilliseconds: Int64?
    /// When the first of them was noticed.
    public var firstDate: Date? { firstMilliseconds.map { Date(milliseconds: $0) } }
    /// When the last of them was noticed.
    public var lastDate: Date? { lastMilliseconds.map { Date(milliseconds: $0) } }

    /// Nothing dropped.
    package init() {}
  }
}
