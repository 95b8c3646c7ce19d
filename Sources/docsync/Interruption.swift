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

/// The reaction to signals that ask the process to stop. The first one calls a function, so that
/// the command stops in a state from which the next run continues; a second one ends the process at
/// once.
final class Interruption {
  private static let signals = [SIGINT, SIGTERM, SIGHUP]

  /// The first received signal, shared with the handlers.
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

  /// Returns when the process receives the signals.
  init(_ stop: @escaping @Sendable () -> Void) {
    let registered = DispatchSemaphore(value: 0)
    for number in Self.signals where !Self.isIgnored(number) {
      signal(number, SIG_IGN)
      let source = DispatchSource.makeSignalSource(signal: number, queue: .global())
      source.setEventHandler { [received] in
        if received.note(number) { stop() } else { Self.end(by: number) }
      }
      source.setRegistrationHandler { registered.signal() }
      source.resume()
      sources.append(source)
    }
    // Dispatch installs a source on another thread; until then a signal would be lost.
    for _ in sources { registered.wait() }
  }

  /// Returns whether the process ignores a signal because the program that started it, such as
  /// `nohup`, wants it to.
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

  /// Ends the process by the received signal, as shells expect from an interrupted command. Returns
  /// if it has received none.
  func endProcess() {
    if let number = received.number { Self.end(by: number) }
  }

  private static func end(by number: Int32) {
    signal(number, SIG_DFL)
    // The dispatch source blocks the signal and receives it in another way.
    var set = sigset_t()
    sigemptyset(&set)
    sigaddset(&set, number)
    pthread_sigmask(SIG_UNBLOCK, &set, nil)
    raise(number)
  }
}
