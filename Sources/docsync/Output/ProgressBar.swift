import Dispatch
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

/// One line on standard error that shows the progress of an operation. It is drawn only on a
/// terminal, and never with `--json`, whose output may go to the same terminal.
final class ProgressBar {
  private static let width = 24
  private static let interval = DispatchTimeInterval.milliseconds(100)

  /// The latest progress, and the progress on the screen.
  private final class State: Sendable {
    private let values = Mutex<(latest: SyncProgress?, shown: SyncProgress?)>((nil, nil))

    func note(_ progress: SyncProgress) { values.withLock { $0.latest = progress } }

    /// Draws the line if the progress has changed since the last call.
    func draw() {
      values.withLock { values in
        guard let latest = values.latest, latest != values.shown, latest.phase != .finished else {
          return
        }
        values.shown = latest
        ProgressBar.write("\r" + ProgressBar.line(latest) + "\u{1B}[K")
      }
    }

    /// Removes the line and draws no other until the next progress.
    func clear() {
      values.withLock { values in
        if values.shown != nil { ProgressBar.write("\r\u{1B}[K") }
        values = (nil, nil)
      }
    }
  }

  private let state = State()
  private var timer: (any DispatchSourceTimer)?

  init(on console: Console) {
    guard !console.isJSON, isatty(STDERR_FILENO) == 1 else { return }
    let timer = DispatchSource.makeTimerSource(queue: .global())
    // A short operation needs no bar.
    timer.schedule(deadline: .now() + Self.interval, repeating: Self.interval)
    timer.setEventHandler { [state] in state.draw() }
    timer.resume()
    self.timer = timer
  }

  deinit { timer?.cancel() }

  /// The progress handler for an operation; `nil` if there is no bar.
  var handler: SyncProgress.Handler? {
    guard timer != nil else { return nil }
    return { [state] in state.note($0) }
  }

  /// Removes the line after the operation.
  func clear() {
    timer?.cancel()
    state.clear()
  }

  /// Returns the line for a state: phase, bar, and bytes or files.
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
      // The total number of bytes is not known.
      if progress.completedBytes > 0 { parts.append("(\(byteText(progress.completedBytes)))") }
    }
    return parts.joined(separator: " ")
  }

  private static func write(_ text: String) {
    do {
      try FileHandle.standardError.write(contentsOf: Data(text.utf8))
    } catch {
      // A bar that cannot be drawn is no reason to stop.
    }
  }
}
