import DocumentSync

/// The result of removing from a shared directory, as printed.
struct RemovalJSON: Encodable, Sendable {
  var documents: [DocumentJSON]
  var clients: [ClientJSON]
  var fileCount: Int
  var byteCount: Int
  /// The paths of files that do not belong to DocumentSync and stay.
  var otherFiles: [String]

  init(_ report: RemovalReport) {
    documents = report.documents.map(DocumentJSON.init)
    clients = report.clients.map(ClientJSON.init)
    fileCount = report.fileCount
    byteCount = report.byteCount
    otherFiles = report.remaining
  }
}
