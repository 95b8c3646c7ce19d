import SyncModel

/// A document in a shared directory whose describing file cannot be read: it
/// is damaged, or has not arrived completely.
public struct UnreadableDocument: Hashable, Sendable, Codable {
  /// The opaque name of its folder.
  public var name: DocumentName
  /// The file, below the root of the directory.
  public var path: String
  /// Whether it was deleted.
  public var isDeleted: Bool
  /// Why the file cannot be read, for the developer.
  public var detail: String

  /// What to do about it, a sentence for the user.
  public static let remedy =
    "Wait until the shared directory has arrived completely. If it has, run “docsync sync "
    + "--thorough” on a device that has the document, which writes the file again."

  /// Joins the parts.
  public init(name: DocumentName, path: String, isDeleted: Bool, detail: String) {
    self.name = name
    self.path = path
    self.isDeleted = isDeleted
    self.detail = detail
  }
}
