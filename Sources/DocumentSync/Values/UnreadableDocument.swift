import SyncModel

/// A document in a shared directory whose describing file cannot be read: it
/// is damaged, or missing, or has not arrived completely.
public struct UnreadableDocument: Hashable, Sendable {
  /// The opaque name of its folder.
  package var name: DocumentName
  /// The file, below the root of the directory; the document's folder if the
  /// file is missing.
  public var path: String
  /// Whether the file is missing, rather than damaged or incomplete.
  public var isMissing: Bool
  /// Whether it was deleted.
  public var isDeleted: Bool
  /// Why the file cannot be read, for the developer.
  public var detail: String

  /// What to do about it, a sentence for the user.
  public static let remedy: Remedy =
    "Wait until the shared directory has arrived completely. If it has, run \(.synchronizeThoroughly) on a device that has the document, which writes the file again."

  /// What is wrong with the file, as it follows “is”.
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
