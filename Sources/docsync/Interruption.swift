import Dispatch
import Foundation
import Synchronization

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// Turns the signals that ask a process to stop into a call: what was begun
/// is then left in a state from which the next run continues. A second
/// signal ends the process at once.
final class Interruption {
  /// The signal that was received, where the handlers can reach it.
  private final class Received: Sendable {
    let number = Mutex<Int32?>(nil)
  }

  private static let signals = [SIGINT, SIGTERM, SIGHUP]
  private let received = Received()
  private let sources: [any DispatchSourceSignal]

  init(_ stop: @escaping @Sendable () -> Void) {
    sources = Self.signals.map { number in
      signal(number, SIG_IGN)
      return DispatchSource.makeSignalSource(signal: number, queue: .global())
    }
    for (number, source) in zip(Self.signals, sources) {
      source.setEventHandler { [received] in
        received.number.withLock { $0 = number }
        signal(number, SIG_DFL)
        stop()
      }
      source.resume()
    }
  }

  /// Ends the process by the signal that was received, as shells expect it
  /// of a command that was interrupted; returns if there was none.
  func endProcess() {
    guard let number = received.number.withLock({ $0 }) else { return }
    signal(number, SIG_DFL)
    raise(number)
  }
}
