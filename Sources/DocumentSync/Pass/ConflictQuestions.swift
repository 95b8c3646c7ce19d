import Foundation
import SyncModel
import SyncStore

/// Asks the delegate the questions of one synchronization, one after the other.
struct ConflictQuestions {
  let numbers: [Int64]
  let delegate: any SyncDelegate
  let context: OperationContext
  /// Reads an entry of the journal.
  let conflict: (Int64) async throws -> Conflict
  /// Answers a question in the store.
  let resolve: (Int64, Conflict.Answer) async throws -> Void

  /// Asks until all questions are answered or the time limit is reached;
  /// returns the warnings.
  func ask() async throws -> [SyncWarning] {
    let deadline = Deadline(environment: context.environment)
    defer { deadline.cancel() }
    var warnings: [SyncWarning] = []
    for number in numbers {
      let conflict = try await conflict(number)
      guard conflict.status == .open else { continue }
      let reply = await deadline.reply(from: delegate, to: conflict)
      switch reply {
      case .answer(let answer?):
        do {
          try await resolve(number, answer)
        } catch let error as StoreError where error.code == .conflictNotOpen {
          // Another answer was faster.
        } catch let error as StoreError where error.code == .editRefused {
          warnings.append(Self.warning(conflict, error.message))
        }
      case .answer(nil): break
      case .failure(let error):
        warnings.append(Self.warning(conflict, "The resolver failed: \(error)"))
      case .timeOver: return warnings
      case .cancelled: break
      }
      try context.checkCancellation()
      context.report { $0.completedCount += 1 }
    }
    return warnings
  }

  private static func warning(_ conflict: Conflict, _ message: String) -> SyncWarning {
    var warning = SyncWarning(.policyFailed, table: conflict.table, message: message)
    warning.conflict = conflict.number
    return warning
  }

  fileprivate enum Reply {
    case answer(Conflict.Answer?)
    case failure(any Error)
    case timeOver
    case cancelled
  }
}

/// Waits for one reply at a time, until the time limit is reached.
private final class Deadline: Sendable {
  private let lock = NSLock()
  nonisolated(unsafe) private var isOver = false
  nonisolated(unsafe) private var waiting: CheckedContinuation<ConflictQuestions.Reply, Never>?
  /// A reply that came before ``reply(from:to:)`` waited for it.
  nonisolated(unsafe) private var early: ConflictQuestions.Reply?
  nonisolated(unsafe) private var timer: Task<Void, Never>?

  init(environment: SyncEnvironment) {
    guard let limit = environment.decisionTimeLimit else { return }
    let task = Task { [weak self] in
      do {
        try await environment.sleep(limit)
        self?.end(with: .timeOver)
      } catch {
        // The timer was cancelled: no reply is awaited any more.
      }
    }
    lock.withLock { timer = task }
  }

  func cancel() { lock.withLock { timer }?.cancel() }

  func reply(
    from delegate: any SyncDelegate, to conflict: Conflict
  ) async -> ConflictQuestions.Reply {
    let task = Task {
      do {
        self.resume(with: .answer(try await delegate.answer(conflict)))
      } catch {
        self.resume(with: .failure(error))
      }
    }
    defer { task.cancel() }
    return await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let early: ConflictQuestions.Reply? = lock.withLock {
          defer { self.early = nil }
          if let early = self.early { return early }
          if isOver { return .timeOver }
          if Task.isCancelled { return .cancelled }
          waiting = continuation
          return nil
        }
        if let early { continuation.resume(returning: early) }
      }
    } onCancel: {
      end(with: .cancelled)
    }
  }

  private func end(with reply: ConflictQuestions.Reply) {
    lock.withLock { isOver = true }
    resume(with: reply)
  }

  private func resume(with reply: ConflictQuestions.Reply) {
    let continuation: CheckedContinuation<ConflictQuestions.Reply, Never>? = lock.withLock {
      defer { waiting = nil }
      if waiting == nil { early = reply }
      return waiting
    }
    continuation?.resume(returning: reply)
  }
}
