/// An entry of the conflict journal: two changes that were made without
/// knowledge of one another and cannot both be shown.
///
/// *Local* is what the store had, *remote* is what came, whoever made them.
/// Everything that lost is in here.
public struct Conflict: Hashable, Sendable {
  /// What it is about.
  public enum Kind: String, Hashable, Sendable, Codable, CaseIterable {
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

  /// What decided.
  public struct Rule: RawRepresentable, Hashable, Sendable, Codable {
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
    /// Somebody is to be asked, or was.
    public static let ask = Rule(rawValue: "ask")
    /// A database with rows of its own joined the document.
    public static let join = Rule(rawValue: "join")
  }

  /// Which value stands.
  public enum Outcome: String, Hashable, Sendable, Codable {
    /// The one that the store had.
    case local
    /// The one that came.
    case remote
    /// A third one.
    case other
    /// Both: what was in the way has gone.
    case both
  }

  /// How far it is decided.
  public enum Status: String, Hashable, Sendable, Codable, CaseIterable {
    /// Decided by a rule.
    case settled
    /// Somebody is to decide; ``Conflict/outcome`` is what stands until then.
    case open
    /// Somebody decided.
    case answered
    /// What had lost was put back.
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

    /// Joins the two.
    public init(column: SQLName, value: Value) {
      self.column = column
      self.value = value
    }
  }

  /// One of the two sides.
  public struct Side: Hashable, Sendable {
    /// When it was said, and by whom; `nil` where nobody did since syncing
    /// began, or there is no such side.
    public var stamp: Stamp?
    /// What it said: one cell, or, where whole rows are concerned, all cells
    /// that are known of the row; `nil` for a deletion or no side.
    public var cells: [Cell]?

    /// Joins the two.
    public init(stamp: Stamp?, cells: [Cell]?) {
      self.stamp = stamp
      self.cells = cells
    }
  }

  /// The number of the entry; never used again in a store.
  public var number: Int64
  /// When it was noticed, in milliseconds since 1970.
  public var milliseconds: Int64
  /// What it is about.
  public var kind: Kind
  /// The table.
  public var table: SQLName
  /// The row.
  public var identity: RowIdentity
  /// The values by which people know the row: those of its key here.
  public var key: [Cell]
  /// The column; `nil` where the row as a whole is concerned.
  public var column: SQLName?
  /// The value before both changes; `nil` where it is not known, which is so
  /// unless a policy or a merge type asks for it.
  public var base: Value?
  /// What the store had.
  public var local: Side
  /// What came.
  public var remote: Side
  /// What decided.
  public var rule: Rule
  /// Which value stands.
  public var outcome: Outcome
  /// How far it is decided.
  public var status: Status
  /// What else there is to say, such as why a policy failed.
  public var message: String?

  /// Joins the parts.
  public init(
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

/// How an open question is answered.
public enum ConflictAnswer: Hashable, Sendable {
  /// By what the store had.
  case local
  /// By what came.
  case remote
  /// By another value; for cells only. A reference is given as the row's
  /// identity, or as its key here.
  case value(Value)
}

/// What the conflict journal has dropped to stay within its bound.
public struct DroppedConflicts: Hashable, Sendable, Codable {
  /// How many entries, all of them decided.
  public var count = 0
  /// When the first of them was noticed, in milliseconds since 1970.
  public var firstMilliseconds: Int64?
  /// When the last of them was noticed.
  public var lastMilliseconds: Int64?

  /// Nothing dropped.
  public init() {}
}
