import Foundation
import SyncDirectory
import SyncModel

/// The application that a shared directory belongs to.
public struct ApplicationDescription: Hashable, Sendable {
  /// The identifier that its developer chose.
  public var identifier: String
  /// The identifier of the shared directory.
  package var root: RootIdentifier
  /// Its name; `nil` if its file does not contain one.
  public var description: String?
  /// The notes about it.
  public var userInfo: SyncUserInfo
  /// The client that created it.
  public var creator: ClientIdentifier
  /// When that client created it, by its own clock, in milliseconds since 1970.
  package var createdMilliseconds: Int64
  /// When that client created it, by its own clock.
  public var creationDate: Date { Date(milliseconds: createdMilliseconds) }

  init(_ file: ApplicationFile) {
    identifier = file.application
    root = file.root
    description = file.description
    userInfo = file.userInfo ?? [:]
    creator = file.creator
    createdMilliseconds = file.createdMilliseconds
  }
}

/// Finds the application that a shared directory belongs to.
public final class FindApplicationOperation: SyncOperation<ApplicationDescription>,
  @unchecked Sendable
{
  private let directory: any SharedDirectory
  private let applicationIdentifier: String?

  /// Creates an operation for a directory. If `applicationIdentifier` is `nil`, it
  /// accepts any application.
  package init(
    directory: any SharedDirectory, applicationIdentifier: String? = nil,
    environment: SyncEnvironment = SyncEnvironment()
  ) {
    self.directory = environment.retrying(directory)
    self.applicationIdentifier = applicationIdentifier
    super.init("find the application", environment: environment)
  }

  override func perform() async throws -> ApplicationDescription {
    try await blocking { [self] in
      begin(.listing)
      try directory.check(for: .reading)
      let files = SharedFiles(directory, context: OperationContext(self))
      return ApplicationDescription(try ApplicationSteps(files).require(applicationIdentifier))
    }
  }
}
