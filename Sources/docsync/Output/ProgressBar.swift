import DocumentSync
import Foundation
import Synchronization

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// One line on standard error that tells how far an operation has come; only
/// where that is a terminal.
final class ProgressBar: Sendable {
  private static let width = 24
  private static let interval = Duration.milliseconds(100)

  private struct State {
    var isShown = false
    var next: ContinuousClock.Instant
  }

  private let state: Mutex<State>
  private let isTerminal: Bool

  init() {
    // What takes no time needs no bar.
    state = Mutex(State(next: .now + Self.interval))
    isTerminal = isatty(STDERR_FILENO) == 1
  }

  /// What to give to an operation; `nil` where nobody would see it.
  var handler: SyncProgressHandler? {
    guard isTerminal else { return nil }
    return { [self] in show($0) }
  }

  private func show(_ progress: SyncProgress) {
    state.withLock { state in
      let now = ContinuousClock.now
      guard progress.phase != .finished, now >= state.next else { return }
      state.next = now + Self.interval
      state.isShown = true
      draw("\r" + Self.line(progress) + "\u{1B}[K")
    }
  }

  /// Takes the line away again.
  func clear() {
    state.withLock { state in
      if state.isShown { draw("\r\u{1B}[K") }
      state.isShown = false
    }
  }

  /// The line for a state: phase, bar, and bytes or files.
  static func line(_ progress: SyncProgress) -> String {
    var parts = [progress.phase.rawValue.padding(toLength: 11, withPad: " ", startingAt: 0)]
    if let fraction = progress.fraction {
      let filled = Int(fraction * Double(width))
      parts.append(
        "[" + String(repeating: "#", count: filled)
          + String(repeating: ".", count: width - filled) + "]")
      parts.append("\(Int(fraction * 100))%".leftPadded(to: 4))
    }
    if progress.totalBytes > 0 {
      parts.append(
        "\(byteText(progress.completedBytes)) of \(byteText(progress.totalBytes))")
    } else if progress.totalCount > 0 {
      parts.append("\(progress.completedCount) of \(progress.totalCount)")
    }
    return parts.joined(separator: " ")
  }

  private func draw(_ text: String) {
    // A bar that cannot be drawn is no reason to stop.
    _ = text.withCString { write(STDERR_FILENO, $0, strlen($0)) }
  }
}
