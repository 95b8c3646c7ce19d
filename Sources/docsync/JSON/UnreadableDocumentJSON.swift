import DocumentSync

/// A document whose describing file cannot be read, as printed.
struct UnreadableDocumentJSON: Encodable, Sendable {
  var name: String
  var path: String
  var isMissing: Bool
  var isDeleted: Bool
  var detail: String

  init(_ document: UnreadableDocument) {
    name = document.name.description
    path = document.path
    isMissing = document.isMissing
    isDeleted = document.isDeleted
    detail = document.detail
  }
}
