import SyncModel

/// An error of a local store: it refused or could not do something.
package struct StoreError: Error, Hashable, Sendable, CustomStringConvertible {
  /// The kind of an error.
  package struct Code: RawRepresentable, Hashable, Sendable {
    /// The name of the code.
    package let rawValue: String
    /// Creates a code with a name.
    package init(rawValue: String) { self.rawValue = rawValue }

    /// There is no file at the path.
    package static let missing = Code(rawValue: "missing")
    /// The file is not an SQLite database.
    package static let notADatabase = Code(rawValue: "notADatabase")
    /// The database is damaged.
    package static let damaged = Code(rawValue: "damaged")
    /// The store is under sync already.
    package static let alreadyUnderSync = Code(rawValue: "alreadyUnderSync")
    /// The store is not under sync.
    package static let notUnderSync = Code(rawValue: "notUnderSync")
    /// The bookkeeping was written by a newer version.
    package static let newerFormat = Code(rawValue: "newerFormat")
    /// The schema, or the configuration for it, cannot be synchronized.
    package static let unsupportedSchema = Code(rawValue: "unsupportedSchema")
    /// A database with rows and the document that it is to join have different schemas: other
    /// columns, for example, or the database has a newer version with something that the document
    /// lacks.
    package static let schemasDiffer = Code(rawValue: "schemasDiffer")
    /// The configuration names something that does not exist.
    package static let badConfiguration = Code(rawValue: "badConfiguration")
    /// The rows break a foreign key already.
    package static let foreignKeysBroken = Code(rawValue: "foreignKeysBroken")
    /// Another program kept the database locked for longer than the busy timeout.
    package static let busy = Code(rawValue: "busy")
    /// The store was closed.
    package static let closed = Code(rawValue: "closed")
    /// The database or its folder cannot be written to.
    package static let notWritable = Code(rawValue: "notWritable")
    /// The database cannot be read.
    package static let notReadable = Code(rawValue: "notReadable")
    /// There are edits that have not been published.
    package static let unpublishedEdits = Code(rawValue: "unpublishedEdits")
    /// A change set does not belong to this store's document.
    package static let foreignChangeSet = Code(rawValue: "foreignChangeSet")
    /// Two change sets claim one number.
    package static let fork = Code(rawValue: "fork")
    /// A change set contradicts the format or the schema.
    package static let malformedChangeSet = Code(rawValue: "malformedChangeSet")
    /// A change set of this store is needed, and neither the store nor the
    /// whole store has it any more.
    package static let changeSetMissing = Code(rawValue: "changeSetMissing")
    /// A policy names a table or a column that is not synchronized.
    package static let badPolicy = Code(rawValue: "badPolicy")
    /// The journal has no conflict of that number.
    package static let noSuchConflict = Code(rawValue: "noSuchConflict")
    /// A conflict was decided before, or is an open question, and the operation requires the
    /// opposite.
    package static let conflictNotOpen = Code(rawValue: "conflictNotOpen")
    /// A constraint, or the state of a row, forbids an edit.
    package static let editRefused = Code(rawValue: "editRefused")
    /// The disk is full.
    package static let noSpace = Code(rawValue: "noSpace")
    /// SQLite reported another error.
    package static let sqlite = Code(rawValue: "sqlite")
  }

  /// The kind of the error.
  package var code: Code
  /// The path of the store.
  package var path: String
  /// The failure, as a sentence for the user.
  package var message: String
  /// The remedy, as a sentence for the user.
  package var remedy: Remedy
  /// The detail for the developer, such as the message of SQLite.
  package var detail: String?

  /// Creates an error from its parts.
  package init(
    _ code: Code, path: String, message: String, remedy: Remedy, detail: String? = nil
  ) {
    self.code = code
    self.path = path
    self.message = message
    self.remedy = remedy
    self.detail = detail
  }

  /// Message, path, remedy and detail on one line.
  package var description: String {
    "\(message) (\(path)) \(remedy)" + (detail.map { " [\($0)]" } ?? "")
  }
}
