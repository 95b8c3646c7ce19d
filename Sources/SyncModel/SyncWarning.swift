/// Something that a synchronization noticed and the user may want to know.
///
/// Equal warnings become one with a ``count``.
public struct SyncWarning: Hashable, Sendable, Codable {
  /// The kind of a warning. Later versions may add codes.
  public struct Code: RawRepresentable, Hashable, Sendable, Codable {
    /// The code's name.
    public let rawValue: String
    /// Creates a code with the given name.
    public init(rawValue: String) { self.rawValue = rawValue }

    /// Another device edited columns of rows that are deleted here.
    public static let editOfDeletedRow = Code(rawValue: "editOfDeletedRow")
    /// Another device edited references of rows that are deleted here.
    public static let referenceOfDeletedRow = Code(rawValue: "referenceOfDeletedRow")
    /// Another device deleted rows whose columns had been edited.
    public static let deletionOfEditedRow = Code(rawValue: "deletionOfEditedRow")
    /// Another device deleted rows whose references had been edited.
    public static let deletionOfReferringRow = Code(rawValue: "deletionOfReferringRow")
    /// An edit arrived for rows that this store has never had.
    public static let rowMissingForUpdate = Code(rawValue: "rowMissingForUpdate")
    /// A deletion arrived for rows that this store has never had.
    public static let rowMissingForDelete = Code(rawValue: "rowMissingForDelete")
    /// Rows are newly parked; ``reason`` is the reason.
    public static let parked = Code(rawValue: "parked")
    /// Rows have NULL in their key: they stay on this device.
    public static let keyMissing = Code(rawValue: "keyMissing")
    /// A program set NULL in the key of rows that other devices have. This store has restored the
    /// key.
    public static let keyRestored = Code(rawValue: "keyRestored")
    /// A device's clock is far ahead.
    public static let clockAhead = Code(rawValue: "clockAhead")
    /// A table stays on this device, since it cannot be synchronized.
    public static let tableUnsuitable = Code(rawValue: "tableUnsuitable")
    /// Another device has tables or columns that this store does not have.
    public static let schemaAhead = Code(rawValue: "schemaAhead")
    /// A policy could not decide a conflict, which stays open.
    public static let policyFailed = Code(rawValue: "policyFailed")
    /// A trigger of the application failed when changes were applied, and was skipped. ``table`` is
    /// its table.
    public static let triggerFailed = Code(rawValue: "triggerFailed")
    /// Rows came back without a value that stays on this device: a condition of their table refuses
    /// it. Or a table that stays on this device refuses some of its rows, after a database has joined
    /// with its rows.
    public static let localValueRefused = Code(rawValue: "localValueRefused")
    /// This device did not upload a whole store that was due: the store is damaged, so that no
    /// device could join from it.
    public static let wholeStoreRefused = Code(rawValue: "wholeStoreRefused")
    /// The other devices stopped waiting for this device and removed commands that it had not read.
    /// It never gets the commands for the application among them.
    public static let commandsMissed = Code(rawValue: "commandsMissed")
    /// The file beside the store with older conflicts is missing, belongs to another store, or cannot
    /// be written; ``reason`` is the reason. If it cannot be written, the conflicts stay in the store.
    public static let conflictArchive = Code(rawValue: "conflictArchive")
    /// A row has more bytes than a change set can carry, so that its edit stays on this device;
    /// ``table``, ``row`` and ``names`` say where it is.
    public static let editTooLarge = Code(rawValue: "editTooLarge")
  }

  /// The kind of warning.
  public var code: Code
  /// The table concerned.
  public var table: SQLName?
  /// The columns concerned, or the names that this store does not know, in order.
  public var names: [SQLName] = []
  /// The key of the row concerned, as text.
  public var row: String?
  /// Why rows are parked, or what is wrong with a file.
  public var reason: String?
  /// How many times the device noticed it.
  public var count = 1
  /// The device concerned.
  public var client: ClientIdentifier?
  /// How many milliseconds the clock is ahead.
  package var milliseconds: Int64?
  /// How far the clock of the device is ahead.
  public var clockLead: Duration? { milliseconds.map { .milliseconds($0) } }
  /// The number of the conflict in the journal.
  public var conflict: Int64?
  /// The warning as a sentence for the user.
  public var message: String

  /// Creates a warning with the parts that every warning has.
  package init(_ code: Code, table: SQLName? = nil, message: String) {
    self.code = code
    self.table = table
    self.message = message
  }
}

extension SyncWarning {
  /// Returns the warnings, equal ones counted together.
  package static func joining(_ warnings: [SyncWarning]) -> [SyncWarning] {
    var counter = WarningCounter()
    for warning in warnings { counter.add(warning) }
    return counter.all
  }
}

/// A list of warnings in which equal ones are counted together.
package struct WarningCounter: Sendable {
  private struct Key: Hashable, Sendable {
    var code: SyncWarning.Code
    var table: SQLName?
    var row: String?
    var reason: String?
    var client: ClientIdentifier?
    var conflict: Int64?
  }

  private var warnings: [SyncWarning] = []
  private var index: [Key: Int] = [:]

  /// Creates a counter without warnings.
  package init() {}

  /// The warnings in the order of their first appearance.
  package var all: [SyncWarning] { warnings }

  /// Adds a warning, or adds its count to an equal one.
  package mutating func add(_ warning: SyncWarning) {
    let key = Key(
      code: warning.code, table: warning.table, row: warning.row, reason: warning.reason,
      client: warning.client, conflict: warning.conflict)
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
