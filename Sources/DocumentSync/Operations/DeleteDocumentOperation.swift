import SyncDirectory
import SyncModel

/// Deletes a document from a shared directory.
///
/// The operation first publishes the tombstone, which tells the other devices,
/// then removes the document's files of all devices. Their stores stay as they
/// are, with all edits. If it is interrupted in between, the next call
/// completes it; a repeated call removes the files that have arrived since.
public final class DeleteDocumentOperation: SyncOperation<RemovalReport>, @unchecked Sendable {
  private let directory: any SharedDirectory
  private let applicationIdentifier: String?
  private let document: String
  private let client: ClientIdentifier
  private let clientDescription: String
  private let isPreview: Bool

  /// Creates an operation that deletes a document on behalf of a client.
  ///
  /// - Parameters:
  ///   - applicationIdentifier: The application; `nil` accepts any.
  ///   - isPreview: Whether to change nothing.
  package init(
    directory: any SharedDirectory, applicationIdentifier: String? = nil, document: String,
    by client: ClientIdentifier, described clientDescription: String, isPreview: Bool = false,
    environment: SyncEnvironment = SyncEnvironment()
  ) {
    self.directory = environment.retrying(directory)
    self.applicationIdentifier = applicationIdentifier
    self.document = document
    self.client = client
    self.clientDescription = clientDescription
    self.isPreview = isPreview
    super.init("delete the document", environment: environment)
  }

  override func perform() async throws -> RemovalReport {
    try await blocking { [self] in
      try SyncDescriptions.check(clientDescription, verb)
      begin(.listing)
      try directory.check(for: isPreview ? .reading : .writing)
      let files = SharedFiles(directory, context: OperationContext(self))
      let application = try ApplicationSteps(files).require(applicationIdentifier)
      let documents = DocumentSteps(files)
      let found = try documents.requireAny(document)
      var report = RemovalReport(isPreview: isPreview)
      begin(.measuring)
      guard
        let inventory = try documents.bury(
          found.file.document, root: application.root, by: client, described: clientDescription,
          isPreview: isPreview)
      else { return report }
      if !isPreview { try DocumentFiles(files).remove(inventory) }
      let after = try documents.find(found.file.document) ?? found
      report.documents = [after.description]
      report.fileCount = inventory.files.count
      report.byteCount = inventory.byteCount
      report.remaining = inventory.foreignNames
      if let deletion = after.deletion, !found.isDeleted, !isPreview {
        send(.documentDeleted(identifier: document, deletion))
      }
      return report
    }
  }
}
