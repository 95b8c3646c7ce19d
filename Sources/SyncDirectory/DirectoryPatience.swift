import Foundation

/// The check that a thread makes while it waits for a directory.
///
/// The check belongs to a thread and not to a task: calls on a directory block, so that
/// they are made on threads that run no task. (A task-local value, bound on such a
/// thread, ends the process if Swift 6.3 has optimized the call on Linux.)
package enum DirectoryPatience {
  /// The waiting thread calls it about twenty times a second. If it throws, the
  /// waiting ends: this is how an operation is cancelled.
  package typealias Check = @Sendable () throws -> Void

  /// The check of the current thread.
  package static var check: Check? {
    (Thread.current.threadDictionary[key] as? Holder)?.check
  }

  /// Runs `body` with a check for the current thread, and returns its result or error.
  /// Afterwards the thread has the check that it had before.
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
