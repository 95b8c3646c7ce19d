import ArgumentParser
import Foundation
import Synchronization

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// The confirmation of commands that destroy something.
struct ConfirmationOptions: ParsableArguments {
  @Flag(help: "Do not ask. Needed without a terminal, and with --json.")
  var yes = false

  /// Asks the user. Returns if the user agrees, and throws otherwise; the caller then changes
  /// nothing.
  ///
  /// - Parameters:
  ///   - question: What the command will do, as a sentence.
  ///   - lines: What exactly it will remove, and what stays.
  ///   - path: The file or folder concerned.
  func ask(
    _ question: String, _ lines: [String], path: String?, _ console: Console
  ) async throws {
    guard !yes else { return }
    guard Self.canAsk(console) else {
      throw Failure(
        code: Self.code, messageLines: [question] + lines, path: path,
        remedy: "Nothing was changed. To confirm, add --yes.", status: .refused)
    }
    console.ask([question] + lines.map { "  " + $0 } + ["Type “yes” to go on: "])
    guard try await Self.line() == "yes" else {
      throw Failure(
        code: Self.code, message: "Nothing was changed.", path: path,
        remedy: "Type the whole word “yes” to confirm.", status: .refused)
    }
  }

  private static let code = "confirmationNeeded"

  /// Returns whether there is a terminal on which the user can answer a question.
  static func canAsk(_ console: Console) -> Bool {
    !console.isJSON && isatty(STDIN_FILENO) == 1 && isatty(STDERR_FILENO) == 1
  }

  /// Returns the next line that the user types; `nil` at the end of the input. Cancelling the task
  /// ends the wait.
  static func line() async throws -> String? {
    let reader = LineReader()
    return try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { reader.read($0) }
    } onCancel: {
      reader.cancel()
    }
  }
}

/// A reader of one line, on a thread of its own.
private final class LineReader: Sendable {
  private enum State {
    case idle
    case reading(CheckedContinuation<String?, any Error>)
    case over
  }

  private let state = Mutex(State.idle)

  func read(_ continuation: CheckedContinuation<String?, any Error>) {
    let begins = state.withLock { state in
      guard case .idle = state else { return false }
      state = .reading(continuation)
      return true
    }
    guard begins else { return continuation.resume(throwing: CancellationError()) }
    Thread.detachNewThread { self.finish(.success(readLine())) }
  }

  func cancel() { finish(.failure(CancellationError())) }

  private func finish(_ result: Result<String?, any Error>) {
    let continuation: CheckedContinuation<String?, any Error>? = state.withLock { state in
      defer { state = .over }
      if case .reading(let continuation) = state { return continuation }
      return nil
    }
    continuation?.resume(with: result)
  }
}
