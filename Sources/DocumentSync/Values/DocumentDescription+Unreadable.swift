import SyncModel
extension DocumentDescription {
  /// A document in a shared directory whose describing file cannot be read,
  /// because it is damaged, missing or incomplete.
  public struct Unreadable: Hashable, Sendable {
    /// The opaque name of its folder.
    package var name: DocumentName
    /// The path of the file below the root of the directory; that of the
    /// document's folder if the file is missing.
    public var path: String
    /// Whether the file is missing, rather than damaged or incomplete.
    public var isMissing: Bool
    /// Whether the document was deleted.
    public var isDeleted: Bool
    /// Why the file cannot be read, for the developer.
    public var detail: String

    /// The next action, as a sentence for the user.
    public static let remedy: Remedy =
      "Wait until the shared directory has arrived completely. If it has, run \(elsewhere: .synchronizeThoroughly) on a device that has the document, which writes the file again."

    /// The fault of the file, as words that follow “is”.
    public var fault: String {
      isMissing
        ? "missing, or has not arrived" : "damaged, or has not arrived completely"
    }

    /// Creates a description from its parts.
    package init(
      name: DocumentName, path: String, isMissing: Bool, isDeleted: Bool, detail: String
    ) {
      self.name = name
      self.path = path
      self.isMissing = isMissing
      self.isDeleted = isDeleted
      self.detail = detail
    }
  }
}
