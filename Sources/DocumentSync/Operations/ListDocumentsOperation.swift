import SyncDirectory
import SyncModel
import SyncStore

/// Lists the documents of an application.
public final class ListDocumentsOperation: SyncOperation<[DocumentDescription]>, @unchecked Sendable
{
  private let directory: any SharedDirectory
  private let applicationIdentifier: String?

  /// Does nothing yet.
  public init(
    directory: any SharedDirectory, applicationIdentifier: String? = nil,
    environment: SyncEnvironment = SyncEnvironment()
  ) {
    self.directory = directory
    self.applicationIdentifier = applicationIdentifier
    super.init("list the documents", environment: environment)
  }
}
