import Foundation
import Synchronization

/// A question that runs on a thread of its own.
final class Question<Answer: Sendable>: Sendable {
  private let result = Mutex<Result<Answer, any Error>?>(nil)
  private let done = DispatchSemaphore(value: 0)

  init(_ ask: @escaping @Sendable () throws -> Answer) {
    Thread { [self] in
      let answer = Result { try ask() }
      result.withLock { $0 = answer }
      done.signal()
    }.start()
  }

  /// Returns the answer if it comes in time.
  func answer(within seconds: Double = 10) throws -> Answer? {
    guard done.wait(timeout: .now() + seconds) == .success else { return nil }
    done.signal()
    return try result.withLock { try $0?.get() }
  }
}

/// Stops the question that runs next, on a connection that only reads, until it is released.
final class Halt: Sendable {
  private let isWanted = Mutex(true)
  let reached = DispatchSemaphore(value: 0)
  let released = DispatchSemaphore(value: 0)

  func pass() {
    let stops = isWanted.withLock { wanted in
      defer { wanted = false }
      return wanted
    }
    guard stops else { return }
    reached.signal()
    released.wait()
  }
}
