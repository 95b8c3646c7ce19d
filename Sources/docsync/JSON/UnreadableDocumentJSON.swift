import DocumentSync

/// A document whose generation file cannot be read, as printed.
struct UnreadableDocumentJSON: Encodable, Sendable {
  /// The name of the document's folder.
  var folder: String
  var path: String
  var isMissing: Bool
  var isDeleted: Bool
  var detail: String

  init(_ document: DocumentDescription.Unreadable) {
    folder = document.name.description
    path = document.path
    isMissing = document.isMissing
    isDeleted = document.isDeleted
    detail = document.detail
  }
}
