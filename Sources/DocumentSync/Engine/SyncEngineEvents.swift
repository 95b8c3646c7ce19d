import Synchronization

/// Something that an engine did or met. Documents are named by the paths of their stores.
public enum SyncEngineEvent: Sendable {
  /// A synchronization begins.
  case willSynchronize(document: String, reasons: Set<SyncReason>)
  /// A synchronization has ended.
  case didSynchronize(document: String, SyncReport)
  /// A synchronization has failed; `retry` says when the engine tries again.
  case failed(document: String, SyncError, retry: SyncError.Retry)
  /// The shared directory is away: the engine waits until it is there.
  case directoryAway(document: String)
  /// The shared directory is there again.
  case directoryReturned(document: String)
  /// The document needs a decision. The engine goes on when ``SyncEngine/synchronize(_:)`` is called, or
  /// when the decision was made in another process.
  case paused(document: String, SyncError)
  /// The engine no longer notices changes of the directory by itself, and looks at it now and then.
  case polling(document: String)
  /// This observer was too slow, and has missed events. ``SyncEngine/state`` has the present state.
  case missed(Int)
}

/// The events of an engine, for any number of observers, none of which slows the engine down.
///
/// Each iteration is an observer of its own, which gets every event, in order, from the moment when its
/// iterator was made. While ``capacity`` events wait for an observer, it gets no further ones; the next
/// event afterwards is ``SyncEngineEvent/missed(_:)``. The sequence ends when the engine is closed.
public final class SyncEngineEvents: AsyncSequence, Sendable {
  /// The elements of the sequence.
  public typealias Element = SyncEngineEvent

  /// The number of events that the sequence holds for an observer that does not keep up.
  public static let capacity = 1_000

  private struct Observer {
    var continuation: AsyncStream<SyncEngineEvent>.Continuation
    /// How many events wait for it.
    var waiting = 0
    /// How many events it has missed without having been told so.
    var missed = 0

    /// Adds the note of what was missed, if anything was.
    mutating func tellMissed() {
      guard missed > 0 else { return }
      continuation.yield(.missed(missed))
      waiting += 1
      missed = 0
    }
  }

  private struct State {
    var observers: [UInt64: Observer] = [:]
    var next: UInt64 = 0
    var isFinished = false
  }

  private let state = Mutex(State())
  private let capacity: Int

  init(capacity: Int = SyncEngineEvents.capacity) { self.capacity = capacity }

  /// The iterator of one observer.
  public struct AsyncIterator: AsyncIteratorProtocol {
    fileprivate var base: AsyncStream<SyncEngineEvent>.Iterator
    fileprivate let taken: @Sendable () -> Void

    /// Returns the next event; `nil` after the last one, and if the task is cancelled.
    public mutating func next() async -> SyncEngineEvent? {
      let event = await base.next()
      if event != nil { taken() }
      return event
    }
  }

  /// Makes an iterator over the events from now on.
  public func makeAsyncIterator() -> AsyncIterator {
    let (stream, continuation) = AsyncStream.makeStream(of: SyncEngineEvent.self)
    let number: UInt64? = state.withLock { state in
      guard !state.isFinished else { return nil }
      state.next += 1
      state.observers[state.next] = Observer(continuation: continuation)
      return state.next
    }
    guard let number else {
      continuation.finish()
      return AsyncIterator(base: stream.makeAsyncIterator()) {}
    }
    continuation.onTermination = { [weak self] _ in
      _ = self?.state.withLock { $0.observers.removeValue(forKey: number) }
    }
    return AsyncIterator(base: stream.makeAsyncIterator()) { [weak self] in
      self?.state.withLock { $0.observers[number]?.waiting -= 1 }
    }
  }

  /// Sends an event to all observers.
  func send(_ event: SyncEngineEvent) {
    state.withLock { state in
      for number in state.observers.keys {
        guard var observer = state.observers[number] else { continue }
        if observer.waiting < capacity {
          observer.tellMissed()
          observer.continuation.yield(event)
          observer.waiting += 1
        } else {
          observer.missed += 1
        }
        state.observers[number] = observer
      }
    }
  }

  /// Ends the sequences of all observers, and of those to come.
  func finish() {
    // Outside the lock: ending a sequence takes it.
    let continuations = state.withLock { state in
      state.isFinished = true
      for number in state.observers.keys { state.observers[number]?.tellMissed() }
      defer { state.observers = [:] }
      return state.observers.values.map(\.continuation)
    }
    for continuation in continuations { continuation.finish() }
  }
}
