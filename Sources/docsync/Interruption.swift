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

/// Turns the signals that ask a process to stop into a call, so that the command
/// stops in a state from which the next run continues. A second
/// signal ends the process at once.
final class Interruption {
  private static let signals = [SIGINT, SIGTERM, SIGHUP]

  /// The signal that was received, shared with the handlers.
  private final class Received: Sendable {
    private let first = Mutex<Int32?>(nil)

    var number: Int32? { first.withLock { $0 } }

    /// Records a signal; returns whether it is the first.
    func note(_ number: Int32) -> Bool {
      first.withLock { first in
        if first != nil { return false }
        first = number
        return true
      }
    }
  }

  private let received = Received()
  private var sources: [any DispatchSourceSignal] = []

  init(_ stop: @escaping @Sendable () -> Void) {
    for number in Self.signals where !Self.isIgnored(number) {
      signal(number, SIG_IGN)
      let source = DispatchSource.makeSignalSource(signal: number, queue: .global())
      source.setEventHandler { [received] in
        if received.note(number) { stop() } else { Self.end(by: number) }
      }
      source.resume()
      sources.append(source)
    }
  }

  /// Whether the program that started the process wants it to ignore a signal, as
  /// `nohup` does.
  private static func isIgnored(_ number: Int32) -> Bool {
    var action = sigaction()
    guard sigaction(number, nil, &action) == 0 else { return false }
    #if canImport(Darwin)
      let handler = action.__sigaction_u.__sa_handler
    #else
      let handler = action.__sigaction_handler.sa_handler
    #endif
    return unsafeBitCast(handler, to: Int.self) == unsafeBitCast(SIG_IGN, to: Int.self)
  }

  /// Ends the process by the signal that was received, as shells expect from
  /// an interrupted command; returns if there was none.
  func endProcess() {
    if let number = received.number { Self.end(by: number) }
  }

  private static func end(by number: Int32) {
    signal(number, SIG_DFL)
    // The dispatch source has blocked the signal, to receive it in its own way.
    var set = sigset_t()
    sigemptyset(&set)
    sigaddset(&set, number)
    pthread_sigmask(SIG_UNBLOCK, &set, nil)
    raise(number)
  }
}
