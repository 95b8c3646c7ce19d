import Foundation
import SyncDirectory
import SyncModel

extension DocumentSyncManager {
  /// Checks the store and every file of the shared directory against every
  /// rule, and both against each other; changes nothing in either.
  ///
  /// The report contains what is wrong; it is not thrown.
  public func verify(onProgress: SyncProgress.Handler? = nil) async throws -> VerifyReport {
    try await run(makeVerifyStoreOperation(), onProgress: onProgress)
  }

  /// Like ``verify(onProgress:)``, for a store that is not open: opening it
  /// would need permission to write to it.
  ///
  /// - Parameters:
  ///   - path: The path of the store.
  ///   - directory: Where the shared directory is now; `nil` takes the place
  ///     where it was last.
  ///   - events: Where to send the events of its beginning and its end.
  ///   - environment: What the operation needs from the world.
  ///   - onProgress: Called with the progress, on the thread of the operation.
  public static func verify(
    storeAt path: String, directory: (any SharedDirectory)? = nil,
    events: SyncEvents = SyncEvents(), environment: SyncEnvironment = SyncEnvironment(),
    onProgress: SyncProgress.Handler? = nil
  ) async throws -> VerifyReport {
    try await OperationQueue().run(
      VerifyStoreOperation(storeAt: path, directory: directory, environment: environment),
      events: events, onProgress: onProgress)
  }
}
