import SyncDirectory
import SyncModel

/// Checks every file of a shared directory against every rule; changes nothing
/// in the directory.
///
/// The operation never stops at a fault: the result is a ``VerifyReport`` with
/// a finding for each. It unpacks whole stores, one at a time, in the system's
/// folder for temporary files. It throws if the directory is away, or if it is
/// cancelled.
public final class VerifyDirectoryOperation: SyncOperation<VerifyReport>, @unchecked Sendable {
  private let directory: any SharedDirectory
  private let application: String?

  /// Creates an operation for a directory.
  ///
  /// - Parameter applicationIdentifier: The application that the directory
  ///   should belong to; `nil` for any.
  package init(
    directory: any SharedDirectory, applicationIdentifier: String? = nil,
    environment: SyncEnvironment = SyncEnvironment()
  ) {
    self.directory = environment.retrying(directory)
    application = applicationIdentifier
    super.init("verify the directory", environment: environment)
  }

  override func perform() async throws -> VerifyReport {
    try await blocking { [self] in
      try DirectoryVerifier(
        directory: directory, context: OperationContext(self), application: application
      ).run().report
    }
  }
}
