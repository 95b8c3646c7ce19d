import SyncDirectory
import SyncModel

extension SyncOperation {
  /// Runs `body` while it holds the lock of a store.
  func holdingLock<Value>(of store: String, _ body: () throws -> Value) throws -> Value {
    let lock = try waitingForOthers { try StoreLock(store: store, operation: verb) }
    defer { lock.unlock() }
    return try body()
  }

  /// Returns the result of `take`, which takes a lock; repeats it if another process holds the lock,
  /// until ``SyncEnvironment/storeInUseTimeLimit`` is over.
  func waitingForOthers<Lock>(_ take: () throws -> Lock) throws -> Lock {
    let start = ContinuousClock.now
    while true {
      do {
        return try take()
      } catch let error as SyncError where error.code == .storeInUse {
        let waited = ContinuousClock.now - start
        guard waited < environment.storeInUseTimeLimit else {
          throw waited < .seconds(1) ? error : error.waited(waited)
        }
        try checkCancellation()
        RetryingDirectory.sleepOnThread(.milliseconds(50))
      }
    }
  }
}

extension SyncError {
  /// The error with the time for which the operation waited.
  fileprivate func waited(_ duration: Duration) -> SyncError {
    var error = self
    error.message += " (Waited for \(duration.components.seconds) s.)"
    return error
  }
}
