import Foundation

/// The check that a thread makes while it waits for a directory.
///
/// The check belongs to a thread and not to a task: calls on a directory block, so they run on
/// threads without a task. (If Swift 6.3 optimizes such a call on Linux, binding a task-local value
/// on that thread ends the process.)
package enum DirectoryPatience {
  /// A closure that the waiting thread calls about twenty times a second. To cancel the operation,
  /// the closure throws, which ends the wait.
  package typealias Check = @Sendable () throws -> Void

  /// The check of the current thread.
  package static var check: Check? {
    (Thread.current.threadDictionary[key] as? Holder)?.check
  }

  /// Runs `body` with a check for the current thread, then restores the thread's earlier check.
  /// Returns the result or error of `body`.
  package static func result<Value>(
    with check: @escaping Check, of body: () throws -> Value
  ) -> Result<Value, any Error> {
    let values = Thread.current.threadDictionary
    let former = values[key]
    values[key] = Holder(check)
    defer {
      if let former { values[key] = former } else { values.removeObject(forKey: key) }
    }
    return Result { try body() }
  }

  private static let key = "DocumentSync.DirectoryPatience"

  private final class Holder {
    let check: Check

    init(_ check: @escaping Check) { self.check = check }
  }
}
