import DocumentSync

/// A document whose describing file cannot be read, as printed.
struct UnreadableDocumentJSON: Encodable, Sendable {
  /// The name of its folder.
  var folder: String
  var path: String
  var isMissing: Bool
  var isDeleted: Bool
  var detail: String

  init(_ document: UnreadableDocument) {
    folder = document.name.description
    path = document.path
    isMissing = document.isMissing
    isDeleted = document.isDeleted
    detail = document.detail
  }
}
