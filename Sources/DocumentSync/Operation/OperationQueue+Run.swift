import Foundation

extension OperationQueue {
  /// Runs an operation and waits for its result without blocking a thread.
  /// Cancelling the task cancels the operation.
  func run<Output>(
    _ operation: SyncOperation<Output>, events: SyncEvents? = nil,
    onProgress: SyncProgress.Handler? = nil
  ) async throws -> Output {
    operation.events = events
    if let onProgress { operation.observe(onProgress) }
    return try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        operation.whenFinished { continuation.resume(with: $0) }
        addOperation(operation)
      }
    } onCancel: {
      operation.cancel()
    }
  }
}
