import SyncDirectory
import SyncModel

/// The result of looking for a document in a directory.
enum DocumentPresence: Sendable {
  /// The directory holds no application.
  case applicationMissing
  /// The directory has the application, with these other documents.
  case missing(others: [String])
  /// The document was deleted.
  case deleted(DocumentDescription, DocumentDescription.Deletion)
  /// The document is in the directory.
  case present(DocumentDescription)
}

/// Looks for a document in a directory. A case that the delegate may decide is
/// a result, not an error.
final class FindDocumentOperation: SyncOperation<DocumentPresence>, @unchecked Sendable {
  private let directory: any SharedDirectory
  private let applicationIdentifier: String
  private let document: String

  init(
    directory: any SharedDirectory, applicationIdentifier: String, document: String,
    environment: SyncEnvironment
  ) {
    self.directory = environment.retrying(directory)
    self.applicationIdentifier = applicationIdentifier
    self.document = document
    super.init("look for the document", environment: environment)
  }

  override func perform() async throws -> DocumentPresence {
    try await blocking { [self] in
      begin(.listing)
      try directory.check(for: .reading)
      let files = SharedFiles(directory, context: OperationContext(self))
      let applications = ApplicationSteps(files)
      guard try applications.find() != nil else { return .applicationMissing }
      _ = try applications.require(applicationIdentifier)
      let steps = DocumentSteps(files)
      let documents = try steps.all()
      guard let found = documents.first(where: { $0.file.identifier == document }) else {
        try steps.checkReadable(document, of: applicationIdentifier)
        return .missing(others: documents.filter { !$0.isDeleted }.map(\.file.identifier))
      }
      return found.deletion.map { .deleted(found.description, $0) } ?? .present(found.description)
    }
  }
}
