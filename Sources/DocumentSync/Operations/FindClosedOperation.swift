import SyncDirectory
import SyncModel

/// Finds the folders of a shared directory that other users of its group cannot use.
final class FindClosedOperation: SyncOperation<VerifyReport.Finding?>, @unchecked Sendable {
  private let directory: any SharedDirectory

  init(directory: any SharedDirectory, environment: SyncEnvironment) {
    self.directory = environment.retrying(directory)
    super.init("look at the permissions", environment: environment)
  }

  override func perform() async throws -> VerifyReport.Finding? {
    try await blocking { [self] in
      try directory.check(for: .reading)
      return try DirectoryLister(
        directory: directory, context: OperationContext(self), checksFiles: false
      ).run().closed?.finding
    }
  }
}
