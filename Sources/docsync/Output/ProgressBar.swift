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
  private static let interval = DispatchTimeInterval.milliseconds(100)

  /// The latest progress, and the progress on the screen.
  private final class State: Sendable {
    private struct Values {
      var whole = WholeProgress()
      var latest: (progress: SyncProgress, fraction: Double)?
      var shown: SyncProgress?
    }

    private let values = Mutex(Values())

    func note(_ progress: SyncProgress) {
      values.withLock { $0.latest = (progress, $0.whole.fraction(progress)) }
    }

    /// Draws the line if the progress has changed since the last call.
    func draw() {
      values.withLock { values in
        guard let (progress, fraction) = values.latest, progress != values.shown,
          progress.phase != .finished
        else { return }
        values.shown = progress
        let line = ProgressBar.line(progress, whole: fraction, columns: ProgressBar.columns())
        ProgressBar.write("\r" + line + "\u{1B}[K")
      }
    }

    /// Begins a new line below the drawn one.
    func leaveLine() {
      values.withLock { values in
        if values.shown != nil { ProgressBar.write("\n") }
        values.shown = nil
      }
    }

    /// Removes the line and draws no other until the next progress.
    func clear() {
      values.withLock { values in
        if values.shown != nil { ProgressBar.write("\r\u{1B}[K") }
        values = Values()
      }
    }
  }

  /// The bar that is drawn at the moment.
  private static let current = Mutex<State?>(nil)

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
    Self.current.withLock { $0 = state }
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
    Self.current.withLock { if $0 === state { $0 = nil } }
  }

  /// Begins a new line if a bar is drawn, for a note to stand on.
  static func leaveLine() { current.withLock(\.self)?.leaveLine() }

  /// Returns the line for a state: a bar for the whole operation, what it is doing, and how many
  /// bytes or files of that are done. It is shorter than the terminal is wide, so that the next
  /// line takes its place.
  ///
  /// - Parameter whole: The part of the whole operation that is done, from 0 to 1.
  static func line(_ progress: SyncProgress, whole: Double, columns: Int) -> String {
    let percent = "\(Int(whole * 100))%".leftPadded(to: 4)
    var text = progress.phase.text
    let amount = amount(progress)
    if !amount.isEmpty { text += ", " + amount }
    let width = [24, 12, 6].first { $0 + 3 + percent.count + 1 + text.count < columns }
    guard let width else {
      let line = "\(percent) \(progress.phase.text)"
      return String(line.prefix(max(0, columns - 1)))
    }
    let filled = Int(whole * Double(width))
    let bar = String(repeating: "#", count: filled) + String(repeating: ".", count: width - filled)
    return "[\(bar)] \(percent) \(text)"
  }

  private static func amount(_ progress: SyncProgress) -> String {
    if progress.totalBytes > 0 {
      return "\(byteText(progress.completedBytes)) of \(byteText(progress.totalBytes))"
    }
    guard progress.totalCount > 0 else { return "" }
    let count = "\(progress.completedCount) of \(progress.totalCount)"
    // The total number of bytes is not known.
    return progress.completedBytes > 0 ? "\(count) (\(byteText(progress.completedBytes)))" : count
  }

  /// The width of the terminal; 80 if it does not say.
  private static func columns() -> Int {
    var size = winsize()
    guard ioctl(STDERR_FILENO, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else { return 80 }
    return Int(size.ws_col)
  }

  private static func write(_ text: String) {
    do {
      try FileHandle.standardError.write(contentsOf: Data(text.utf8))
    } catch {
      // A bar that cannot be drawn is no reason to stop.
    }
  }
}

/// The part of a whole operation that is done. It never goes back.
///
/// An operation does not know beforehand which phases it will have: most depend on what it finds.
/// So a phase takes a fixed share of what remains, and a phase that begins again is a new one.
struct WholeProgress {
  private var phase: SyncProgress.Phase?
  private var done = 0.0
  private var begin = 0.0
  private var share = 0.0
  private var last = 0.0

  /// Returns the part that is done, from 0 to 1.
  mutating func fraction(_ progress: SyncProgress) -> Double {
    let fraction = progress.fraction ?? 0
    if progress.phase != phase || fraction < last {
      phase = progress.phase
      begin = done
      share = (1 - done) * progress.phase.share
    }
    last = fraction
    done = max(done, progress.phase == .finished ? 1 : begin + share * fraction)
    return done
  }
}

extension SyncProgress.Phase {
  /// What an operation is doing, in words.
  fileprivate var text: String {
    switch self {
    case .waiting: "waiting"
    case .listing: "looking at the folder"
    case .snapshot: "copying the database"
    case .compressing: "compressing"
    case .downloading: "receiving"
    case .applying: "applying edits"
    case .deciding: "waiting for an answer"
    case .sealing: "collecting edits"
    case .uploading: "sending"
    case .verifying: "checking"
    case .compacting: "joining files"
    case .measuring: "measuring"
    case .removing: "removing"
    case .finished: "done"
    }
  }

  /// The share of what remains that the phase takes.
  fileprivate var share: Double {
    switch self {
    case .waiting, .listing, .deciding, .measuring: 0.05
    case .snapshot, .compressing, .compacting, .verifying: 0.4
    case .downloading, .applying, .sealing, .uploading, .removing: 0.6
    case .finished: 1
    }
  }
}
