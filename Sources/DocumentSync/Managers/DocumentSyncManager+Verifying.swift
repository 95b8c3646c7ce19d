import Foundation
import SyncDirectory
import SyncModel

extension DocumentSyncManager {
  /// Checks the store and every file of the shared directory against every
  /// rule, and compares the two; changes nothing in either.
  ///
  /// The report lists the faults; they are not thrown.
  public func verify(onProgress: SyncProgress.Handler? = nil) async throws -> VerifyReport {
    try await run(makeVerifyStoreOperation(), onProgress: onProgress)
  }

  /// Does the same as ``verify(onProgress:)`` for a store that is not open:
  /// opening it would need permission to write to it.
  ///
  /// - Parameters:
  ///   - path: The path of the store.
  ///   - directory: The shared directory, where it is now; `nil` takes its last
  ///     known path.
  ///   - events: The receiver of the events.
  ///   - environment: The clock, the random numbers and the limits for the
  ///     operation.
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
