@testable import DocumentSync
import Foundation
import Testing

/// An operation whose work the test supplies.
private final class WorkOperation: SyncOperation<Int>, @unchecked Sendable {
  private let work: @Sendable (WorkOperation) async throws -> Int
  /// What observers were told of, and the properties at that moment.
  let changes = Changes()

  init(_ work: @escaping @Sendable (WorkOperation) async throws -> Int) {
    self.work = work
    super.init("work", environment: SyncEnvironment())
  }

  override func perform() async throws -> Int { try await work(self) }

  override func willChange(_ key: String) {
    changes.add("will \(key): executing \(isExecuting), finished \(isFinished)")
    super.willChange(key)
  }

  override func didChange(_ key: String) {
    changes.add("did \(key): executing \(isExecuting), finished \(isFinished)")
    super.didChange(key)
  }

  /// The value of the result; 0 if there is none.
  var value: Int {
    if case .success(let value) = result { value } else { 0 }
  }
}

private final class Changes: @unchecked Sendable {
  private let lock = NSLock()
  private var texts: [String] = []

  func add(_ text: String) { lock.withLock { texts.append(text) } }
  var all: [String] { lock.withLock { texts } }
}

private final class Counter: @unchecked Sendable {
  private let lock = NSLock()
  private var count = 0

  func increment() { lock.withLock { count += 1 } }
  var value: Int { lock.withLock { count } }
}

/// Runs an operation in a queue and gives its result once it has finished.
private func finish(
  _ operation: WorkOperation, in queue: OperationQueue = OperationQueue()
) async -> Result<Int, SyncError> {
  await withCheckedContinuation { continuation in
    operation.whenFinished { continuation.resume(returning: $0) }
    queue.addOperation(operation)
  }
}

struct SyncOperationTests {
  @Test func workThatReturnsFinishesWithItsValue() async throws {
    let operation = WorkOperation { _ in 7 }
    #expect(operation.result == nil)
    let result = await finish(operation)
    #expect(try result.get() == 7)
    #expect(operation.isFinished)
    #expect(!operation.isExecuting)
    #expect(operation.error == nil)
  }

  @Test func workThatThrowsKeepsItsError() async {
    let operation = WorkOperation { _ in throw CocoaError(.fileNoSuchFile) }
    _ = await finish(operation)
    #expect(operation.error?.code == .internalFault)
    #expect(operation.error?.operation == "work")
    #expect(operation.error?.underlying is CocoaError)
  }

  @Test func handlerAddedAfterTheEndIsCalledAtOnce() async {
    let operation = WorkOperation { _ in 1 }
    _ = await finish(operation)
    let calls = Counter()
    operation.whenFinished { _ in calls.increment() }
    #expect(calls.value == 1)
  }

  @Test func observersAreToldBeforeAndAfterEachChange() async {
    let operation = WorkOperation { _ in 1 }
    _ = await finish(operation)
    #expect(
      operation.changes.all == [
        "will isExecuting: executing false, finished false",
        "did isExecuting: executing true, finished false",
        "will isExecuting: executing true, finished false",
        "will isFinished: executing true, finished false",
        "did isExecuting: executing false, finished true",
        "did isFinished: executing false, finished true",
      ])
  }

  @Test func cancelledBeforeItsStartItIsFinishedWithoutExecuting() async {
    let operation = WorkOperation { _ in 1 }
    operation.cancel()
    _ = await finish(operation)
    #expect(
      operation.changes.all == [
        "will isFinished: executing false, finished false",
        "did isFinished: executing false, finished true",
      ])
  }

  @Test func theResultIsThereForDependentsAndTheCompletionBlock() async {
    let operation = WorkOperation { _ in 7 }
    let seen = Changes()
    let dependent = BlockOperation { seen.add("dependent \(operation.value)") }
    dependent.addDependency(operation)
    operation.completionBlock = { seen.add("completion \(operation.value)") }
    let queue = OperationQueue()
    await withCheckedContinuation { continuation in
      queue.addOperations([dependent, operation], waitUntilFinished: false)
      queue.addBarrierBlock { continuation.resume() }
    }
    while seen.all.count < 2 { await Task.yield() }
    #expect(Set(seen.all) == ["dependent 7", "completion 7"])
  }

  @Test func cancelledBeforeItsStartNeverPerforms() async {
    let performed = Counter()
    let operation = WorkOperation { _ in
      performed.increment()
      return 1
    }
    operation.cancel()
    let result = await finish(operation)
    #expect(throws: SyncError.self) { try result.get() }
    #expect(operation.error?.code == .cancelled)
    #expect(performed.value == 0)
  }

  @Test func startedTwicePerformsOnce() async {
    let performed = Counter()
    let operation = WorkOperation { _ in
      performed.increment()
      return 1
    }
    let result = await withCheckedContinuation { continuation in
      operation.whenFinished { continuation.resume(returning: $0) }
      operation.start()
      operation.start()
    }
    operation.start()
    #expect(throws: Never.self) { try result.get() }
    #expect(performed.value == 1)
  }

  @Test(arguments: 0..<6)
  func cancelledAtAnyStepFinishesOnceWithThatError(step: Int) async {
    let completions = Counter()
    let operation = WorkOperation { operation in
      for current in 0..<5 {
        if current == step { operation.cancel() }
        try operation.checkCancellation()
        _ = try await operation.blocking { current }
      }
      return 5
    }
    operation.whenFinished { _ in completions.increment() }
    _ = await finish(operation)
    operation.cancel()
    #expect(completions.value == 1)
    #expect(operation.error?.code == (step < 5 ? .cancelled : nil))
  }

  @Test func cancellationRacingTheEndFinishesOnce() async {
    for _ in 0..<200 {
      let completions = Counter()
      let operation = WorkOperation { operation in
        try operation.checkCancellation()
        return 1
      }
      operation.whenFinished { _ in completions.increment() }
      async let result = finish(operation)
      operation.cancel()
      _ = await result
      #expect(completions.value == 1)
      #expect(operation.isFinished)
    }
  }

  @Test func queueGoesOnAfterOperationsThatFinishLater() async {
    let queue = OperationQueue()
    queue.maxConcurrentOperationCount = 1
    for value in 0..<3 {
      let result = await finish(
        WorkOperation { operation in
          // Returns to the queue's thread before it goes on.
          await Task.yield()
          return try await operation.blocking { value }
        }, in: queue)
      #expect(throws: Never.self) { try result.get() }
    }
    await withCheckedContinuation { continuation in
      queue.addBarrierBlock { continuation.resume() }
    }
    #expect(queue.operationCount <= 1)
  }

  @Test func hundredsInOneQueueAllFinish() async {
    let queue = OperationQueue()
    queue.maxConcurrentOperationCount = 4
    let finished = Counter()
    let cancelled = Counter()
    await withTaskGroup(of: Void.self) { group in
      for value in 0..<400 {
        group.addTask {
          let operation = WorkOperation { operation in
            try operation.checkCancellation()
            return try await operation.blocking { value }
          }
          if value % 3 == 0 { operation.cancel() }
          switch await finish(operation, in: queue) {
          case .success: finished.increment()
          case .failure: cancelled.increment()
          }
        }
      }
    }
    #expect(finished.value == 266)
    #expect(cancelled.value == 134)
  }

  @Test func dependentRunsAfterWhatItDependsOn() async throws {
    let queue = OperationQueue()
    let order = Counter()
    let first = WorkOperation { _ in
      order.increment()
      return order.value
    }
    let second = WorkOperation { _ in
      order.increment()
      return order.value
    }
    second.addDependency(first)
    async let late = finish(second, in: queue)
    _ = await finish(first, in: queue)
    let result = await late
    #expect(try result.get() == 2)
  }

  @Test func progressIsToldAndEndsWithFinished() async {
    let operation = WorkOperation { operation in
      operation.begin(.downloading, count: 2, bytes: 10)
      operation.report {
        $0.completedCount = 1
        $0.completedBytes = 5
      }
      return 1
    }
    let seen = Seen()
    operation.observe { seen.add($0) }
    _ = await finish(operation)
    #expect(seen.all.map(\.phase) == [.downloading, .downloading, .finished])
    #expect(seen.all[1].fraction == 0.5)
    #expect(operation.progress.totalUnitCount == 10)
    #expect(operation.progress.completedUnitCount == 5)
  }

  @Test func cancellingTheProgressCancelsTheOperation() async {
    let operation = WorkOperation { operation in
      operation.progress.cancel()
      // Foundation tells the handler from a thread of its own.
      while !operation.isCancelled { await Task.yield() }
      try operation.checkCancellation()
      return 1
    }
    _ = await finish(operation)
    #expect(operation.error?.code == .cancelled)
  }
}

private final class Seen: @unchecked Sendable {
  private let lock = NSLock()
  private var snapshots: [SyncProgress] = []

  func add(_ snapshot: SyncProgress) { lock.withLock { snapshots.append(snapshot) } }
  var all: [SyncProgress] { lock.withLock { snapshots } }
}
