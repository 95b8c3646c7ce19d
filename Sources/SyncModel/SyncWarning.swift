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
    /// A device's clock is far ahead.
    public static let clockAhead = Code(rawValue: "clockAhead")
    /// Another device has tables or columns that this store does not have.
    public static let schemaAhead = Code(rawValue: "schemaAhead")
    /// A policy could not decide a conflict, which stays open.
    public static let policyFailed = Code(rawValue: "policyFailed")
  }

  /// What was noticed.
  public var code: Code
  /// The table that it is about.
  public var table: String?
  /// The columns that it is about, or names that are not known here, in
  /// order.
  public var names: [String] = []
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
  public init(_ code: Code, table: String? = nil, message: String) {
    self.code = code
    self.table = table
    self.message = message
  }
}
