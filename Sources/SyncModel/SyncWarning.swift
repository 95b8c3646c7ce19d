/// Something that a synchronization noticed and that people may want to know.
///
/// Alike ones are counted together.
public struct SyncWarning: Hashable, Sendable, Codable {
  /// What was noticed. Open: later versions may add their own.
  public struct Code: RawRepresentable, Hashable, Sendable, Codable {
    /// The code's name.
    public let rawValue: String
    /// A code of the given name.
    public init(rawValue: String) { self.rawValue = rawValue }

    /// Columns of rows that are deleted here were edited elsewhere.
    public static let editOfDeletedRow = Code(rawValue: "editOfDeletedRow")
    /// References of rows that are deleted here were edited elsewhere.
    public static let referenceOfDeletedRow = Code(rawValue: "referenceOfDeletedRow")
    /// Rows were deleted elsewhere of which columns had been edited.
    public static let deletionOfEditedRow = Code(rawValue: "deletionOfEditedRow")
    /// Rows were deleted elsewhere of which references had been edited.
    public static let deletionOfReferringRow = Code(rawValue: "deletionOfReferringRow")
    /// An edit came for rows that were never seen.
    public static let rowMissingForUpdate = Code(rawValue: "rowMissingForUpdate")
    /// A deletion came for rows that were never seen.
    public static let rowMissingForDelete = Code(rawValue: "rowMissingForDelete")
    /// Rows are kept and not shown, and were not before; ``reason`` says why.
    public static let parked = Code(rawValue: "parked")
    /// Rows have NULL in their key: they stay on this device.
    public static let keyMissing = Code(rawValue: "keyMissing")
    /// NULL was set in the key of rows that others have: they have their key
    /// again.
    public static let keyRestored = Code(rawValue: "keyRestored")
    /// A device's clock is far ahead.
    public static let clockAhead = Code(rawValue: "clockAhead")
    /// Another device has tables or columns that this store does not have.
    public static let schemaAhead = Code(rawValue: "schemaAhead")
    /// A policy could not decide a conflict, which stays open.
    public static let policyFailed = Code(rawValue: "policyFailed")
    /// A trigger of the application that follows changes failed, and was
    /// passed over; ``table`` is the one that it is on.
    public static let triggerFailed = Code(rawValue: "triggerFailed")
    /// A value that stays on this device could not be put back into rows that
    /// have come back: a condition of their table is against it.
    public static let localValueRefused = Code(rawValue: "localValueRefused")
    /// The whole store was to be uploaded, and was not: it is damaged, so that
    /// nobody could join from it.
    public static let wholeStoreRefused = Code(rawValue: "wholeStoreRefused")
    /// Commands were cleared away before this device, which nobody waited
    /// for, came back. Those among them that are for the application it never
    /// gets.
    public static let commandsMissed = Code(rawValue: "commandsMissed")
  }

  /// What was noticed.
  public var code: Code
  /// The table that it is about.
  public var table: SQLName?
  /// The columns that it is about, or names that are not known here, in
  /// order.
  public var names: [SQLName] = []
  /// Why rows are not shown.
  public var reason: String?
  /// How often.
  public var count = 1
  /// The device that it is about.
  public var client: ClientIdentifier?
  /// How far the clock is ahead.
  public var milliseconds: Int64?
  /// The number of the conflict in the journal.
  public var conflict: Int64?
  /// It as a sentence for the user.
  public var message: String

  /// Joins what every warning has.
  public init(_ code: Code, table: SQLName? = nil, message: String) {
    self.code = code
    self.table = table
    self.message = message
  }
}

extension SyncWarning {
  /// The warnings with those that are alike counted together.
  public static func joining(_ warnings: [SyncWarning]) -> [SyncWarning] {
    var counter = WarningCounter()
    for warning in warnings { counter.add(warning) }
    return counter.all
  }
}

/// Counts warnings that are alike together.
public struct WarningCounter: Sendable {
  private struct Key: Hashable, Sendable {
    var code: SyncWarning.Code
    var table: SQLName?
    var reason: String?
    var client: ClientIdentifier?
    var conflict: Int64?
  }

  private var warnings: [SyncWarning] = []
  private var index: [Key: Int] = [:]

  /// None yet.
  public init() {}

  /// In the order in which they came first.
  public var all: [SyncWarning] { warnings }

  /// Adds one, or its count to that of one alike.
  public mutating func add(_ warning: SyncWarning) {
    let key = Key(
      code: warning.code, table: warning.table, reason: warning.reason, client: warning.client,
      conflict: warning.conflict)
    guard let position = index[key] else {
      index[key] = warnings.count
      warnings.append(warning)
      return
    }
    warnings[position].count += warning.count
    if let milliseconds = warning.milliseconds {
      warnings[position].milliseconds = max(warnings[position].milliseconds ?? 0, milliseconds)
    }
    let names = Set(warnings[position].names)
    if !names.isSuperset(of: warning.names) {
      warnings[position].names = names.union(warning.names).sorted()
    }
  }
}
