import DocumentSync

/// The client that deleted a document or removed a client, as printed.
struct DeletionJSON: Encodable, Sendable {
  var client: String
  var clientName: String?
  var removedMilliseconds: Int64?

  init(_ deletion: DocumentDescription.Deletion) {
    client = deletion.client.description
    clientName = deletion.clientDescription
    removedMilliseconds = deletion.milliseconds
  }
}
