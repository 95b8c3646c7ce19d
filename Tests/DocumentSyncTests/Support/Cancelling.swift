import DocumentSync
import DocumentSyncTesting
import Foundation
import SyncDirectory
import Testing

/// Runs an operation, and cancels it before one of its calls on a directory, or
/// before each in turn.
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
    try await hooked.waitForAbandonedCalls()
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

  /// Cancels at every call in turn.
  ///
  /// - Parameters:
  ///   - least: How many calls there are at least.
  ///   - prepare: Makes the fleet ready, of which device 1 acts.
  ///   - make: Makes the operation.
  ///   - check: Looks at what it left, lets the next run complete, and looks
  ///     again.
  static func sweep<Output: Sendable>(
    least: Int, devices: Int = 2, prepare: (TestFleet) async throws -> Void,
    make: (TestFleet, any SharedDirectory) throws -> SyncOperation<Output>,
    check: (TestFleet, Result<Output, SyncError>) async throws -> Void
  ) async throws {
    var call = 0
    while true {
      call += 1
      let fleet = try await TestFleet(devices, seed: UInt64(call))
      try await prepare(fleet)
      let outcome = try await Cancelling.run(beforeCall: call, on: fleet.memory) {
        try make(fleet, $0)
      }
      try await check(fleet, outcome.result)
      let leftovers = try fleet.scratch.names().filter { $0.contains("-docsync-tmp") }
      #expect(leftovers.isEmpty)
      guard outcome.wasCalled else { break }
    }
    #expect(call > least)
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
