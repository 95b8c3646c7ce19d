import DocumentSync

/// The client that deleted a document or removed a client, as printed.
struct DeletionJSON: Encodable, Sendable {
  var client: String
  var clientDescription: String?
  var milliseconds: Int64?

  init(_ deletion: DocumentDeletion) {
    client = deletion.client.description
    clientDescription = deletion.clientDescription
    milliseconds = deletion.milliseconds
  }
}
