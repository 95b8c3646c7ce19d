import SyncDirectory
import SyncModel

/// Checks every file of a shared directory against every rule, and changes
/// nothing in it.
///
/// It never stops at a finding: the result is a ``VerifyReport`` with a finding
/// for each thing that is wrong. Whole stores are unpacked, one at a time, in
/// the system's folder for temporary files. It throws if the directory is away,
/// or if it is cancelled.
public final class VerifyDirectoryOperation: SyncOperation<VerifyReport>, @unchecked Sendable {
  private let directory: any SharedDirectory
  private let application: String?

  /// Names the directory.
  ///
  /// - Parameter applicationIdentifier: The application that it should belong
  ///   to; `nil` for any.
  package init(
    directory: any SharedDirectory, applicationIdentifier: String? = nil,
    environment: SyncEnvironment = SyncEnvironment()
  ) {
    self.directory = environment.retrying(directory)
    application = applicationIdentifier
    super.init("verify the directory", environment: environment)
  }

  /// Verifies.
  override func perform() async throws -> VerifyReport {
    try await blocking { [self] in
      try DirectoryVerifier(
        directory: directory, context: OperationContext(self), application: application
      ).run().report
    }
  }
}
