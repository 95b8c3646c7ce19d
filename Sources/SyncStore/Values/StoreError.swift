import SyncModel

/// Something that a local store refused or could not do.
public struct StoreError: Error, Hashable, Sendable, CustomStringConvertible {
  /// What went wrong.
  public struct Code: RawRepresentable, Hashable, Sendable {
    /// The name of the code.
    public let rawValue: String
    /// Wraps a name.
    public init(rawValue: String) { self.rawValue = rawValue }

    /// There is no file at the path.
    public static let missing = Code(rawValue: "missing")
    /// The file is no SQLite database.
    public static let notADatabase = Code(rawValue: "notADatabase")
    /// The database is damaged.
    public static let damaged = Code(rawValue: "damaged")
    /// The store is under sync already.
    public static let alreadyUnderSync = Code(rawValue: "alreadyUnderSync")
    /// The store is not under sync.
    public static let notUnderSync = Code(rawValue: "notUnderSync")
    /// The bookkeeping was written by a newer version.
    public static let newerFormat = Code(rawValue: "newerFormat")
    /// The schema, or the configuration for it, cannot be synchronized.
    public static let unsupportedSchema = Code(rawValue: "unsupportedSchema")
    /// A database with rows and the document that it is to join have tables
    /// with different columns.
    public static let schemasDiffer = Code(rawValue: "schemasDiffer")
    /// The configuration names something that does not exist.
    public static let badConfiguration = Code(rawValue: "badConfiguration")
    /// The rows break a foreign key already.
    public static let foreignKeysBroken = Code(rawValue: "foreignKeysBroken")
    /// Another program kept the database locked for longer than the bound.
    public static let busy = Code(rawValue: "busy")
    /// The database or its folder cannot be written to.
    public static let notWritable = Code(rawValue: "notWritable")
    /// The database cannot be read.
    public static let notReadable = Code(rawValue: "notReadable")
    /// There are edits that have not been published.
    public static let unpublishedEdits = Code(rawValue: "unpublishedEdits")
    /// A change set does not belong to this store's document.
    public static let foreignChangeSet = Code(rawValue: "foreignChangeSet")
    /// Two change sets claim one number.
    public static let fork = Code(rawValue: "fork")
    /// A change set contradicts the format or the schema.
    public static let malformedChangeSet = Code(rawValue: "malformedChangeSet")
    /// A change set of this store is needed, and neither the store nor the
    /// whole store has it any more.
    public static let changeSetMissing = Code(rawValue: "changeSetMissing")
    /// A policy names a table or a column that is not synchronized.
    public static let badPolicy = Code(rawValue: "badPolicy")
    /// The journal has no conflict of that number.
    public static let noSuchConflict = Code(rawValue: "noSuchConflict")
    /// A conflict was decided before, or is an open question, and the operation requires the
    /// opposite.
    public static let conflictNotOpen = Code(rawValue: "conflictNotOpen")
    /// A constraint, or the state of a row, forbids an edit.
    public static let editRefused = Code(rawValue: "editRefused")
    /// The disk is full.
    public static let noSpace = Code(rawValue: "noSpace")
    /// SQLite reported something else.
    public static let sqlite = Code(rawValue: "sqlite")
  }

  /// What went wrong.
  public var code: Code
  /// The path of the store.
  public var path: String
  /// What failed, as a sentence for the user.
  public var message: String
  /// What to do about it, as a sentence for the user.
  public var remedy: String
  /// The detail for the developer, such as the message of SQLite.
  public var detail: String?

  /// Creates an error from its parts.
  public init(
    _ code: Code, path: String, message: String, remedy: String, detail: String? = nil
  ) {
    self.code = code
    self.path = path
    self.message = message
    self.remedy = remedy
    self.detail = detail
  }

  /// Message, path, remedy and detail on one line.
  public var description: String {
    "\(message) (\(path)) \(remedy)" + (detail.map { " [\($0)]" } ?? "")
  }
}
