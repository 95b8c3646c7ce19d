import DocumentSync
import DocumentSyncTesting
import Foundation
import SyncDirectory
import Testing

/// Runs an operation, and cancels it before one of its calls on a directory.
enum Cancelling {
  /// What came of it.
  struct Outcome<Output: Sendable> {
    var result: Result<Output, SyncError>
    /// Whether there was such a call.
    var wasCalled: Bool
  }

  /// Runs what `make` makes with the directory that it is given. More than
  /// one completion, or another error than the cancellation, is an issue.
  static func run<Output: Sendable>(
    beforeCall number: Int, on directory: any SharedDirectory,
    _ make: (any SharedDirectory) throws -> SyncOperation<Output>,
    sourceLocation: SourceLocation = #_sourceLocation
  ) async throws -> Outcome<Output> {
    let target = Target()
    let hooked = HookedDirectory(directory, beforeCall: number) { target.cancel() }
    let operation = try make(hooked)
    target.set { operation.cancel() }
    let events = SyncEvents()
    let stream = events.stream()
    operation.events = events
    let completions = Count()
    let result = await withCheckedContinuation { continuation in
      operation.whenFinished { result in
        completions.add()
        continuation.resume(returning: result)
      }
      operation.start()
    }
    operation.cancel()
    #expect(completions.value == 1, sourceLocation: sourceLocation)
    #expect(operation.isFinished && !operation.isExecuting, sourceLocation: sourceLocation)
    if case .failure(let error) = result {
      // The last call may be over before anyone looks.
      #expect(error.code == .cancelled, "\(error)", sourceLocation: sourceLocation)
    }
    var (begun, ended) = (0, 0)
    for await event in stream {
      if case .activityBegan = event { begun += 1 }
      if case .activityEnded = event {
        ended += 1
        break
      }
    }
    #expect(begun == 1 && ended == 1, sourceLocation: sourceLocation)
    return Outcome(result: result, wasCalled: hooked.wasCalled)
  }

  private final class Target: @unchecked Sendable {
    private let lock = NSLock()
    private var action: (@Sendable () -> Void)?

    func set(_ action: @escaping @Sendable () -> Void) { lock.withLock { self.action = action } }
    func cancel() { lock.withLock { action }?() }
  }

  private final class Count: @unchecked Sendable {
    private let lock = NSLock()
    private var number = 0

    func add() { lock.withLock { number += 1 } }
    var value: Int { lock.withLock { number } }
  }
}
