import Synchronization

/// Tells any number of observers what happens.
///
/// Each iteration is an observer of its own, which gets every event from the
/// moment when its iterator was made, in order. One that does not keep up
/// loses the oldest beyond ``capacity``. The sequence ends when the manager
/// is closed.
public final class SyncEvents: AsyncSequence, Sendable {
  /// What it is a sequence of.
  public typealias Element = SyncEvent
  /// What an observer takes the events from.
  public typealias AsyncIterator = AsyncStream<SyncEvent>.Iterator

  /// How many events are kept for an observer that does not keep up.
  public static let capacity = 1_000

  fileprivate struct Shared {
    var events = Observers<SyncEvent>()
    var states = Observers<DocumentSyncState>()
    var state = DocumentSyncState.unregistered
  }

  private let shared = Mutex(Shared())

  /// Nobody observes yet.
  public init() {}

  /// Where the document stands; that of an application never changes.
  public var state: DocumentSyncState { shared.withLock { $0.state } }

  /// The events from now on.
  public func makeAsyncIterator() -> AsyncIterator { stream().makeAsyncIterator() }

  /// The events from now on, as a stream for one observer.
  public func stream() -> AsyncStream<SyncEvent> { observe(\.events) { _ in nil } }

  /// The document's state, and each one that it takes from now on.
  public func states() -> AsyncStream<DocumentSyncState> {
    observe(\.states) { $0.state }
  }

  /// Tells everybody.
  func send(_ event: SyncEvent) { shared.withLock { $0.events.send(event) } }

  /// Notes the document's state, and tells everybody if it is another.
  func enter(_ state: DocumentSyncState) {
    shared.withLock { shared in
      guard shared.state != state else { return }
      shared.state = state
      shared.states.send(state)
      shared.events.send(.stateChanged(state))
    }
  }

  /// Ends every observer's sequence, and those to come.
  func finish() {
    // Outside the lock, which the observers' ends take.
    let ends = shared.withLock { [$0.events.close(), $0.states.close()] }
    for end in ends { end() }
  }

  /// - Parameter first: What the observer is told at once.
  private func observe<Element: Sendable>(
    _ list: WritableKeyPath<Shared, Observers<Element>> & Sendable,
    _ first: (Shared) -> Element?
  ) -> AsyncStream<Element> {
    let (stream, continuation) = AsyncStream.makeStream(
      of: Element.self, bufferingPolicy: .bufferingNewest(Self.capacity))
    let number: UInt64? = shared.withLock { shared in
      if let element = first(shared) { continuation.yield(element) }
      return shared[keyPath: list].add(continuation)
    }
    guard let number else {
      continuation.finish()
      return stream
    }
    continuation.onTermination = { [weak self] _ in
      self?.shared.withLock { $0[keyPath: list].remove(number) }
    }
    return stream
  }
}

/// Those who are told of one kind of thing.
fileprivate struct Observers<Element: Sendable> {
  private var continuations: [UInt64: AsyncStream<Element>.Continuation] = [:]
  private var next: UInt64 = 0
  private var isClosed = false

  func send(_ element: Element) {
    for continuation in continuations.values { continuation.yield(element) }
  }

  /// Adds an observer; `nil` if there will be nothing to be told.
  mutating func add(_ continuation: AsyncStream<Element>.Continuation) -> UInt64? {
    guard !isClosed else { return nil }
    next += 1
    continuations[next] = continuation
    return next
  }

  mutating func remove(_ number: UInt64) { continuations[number] = nil }

  /// Takes no more observers; what is returned ends those that there are.
  mutating func close() -> @Sendable () -> Void {
    isClosed = true
    defer { continuations = [:] }
    return { [continuations] in
      for continuation in continuations.values { continuation.finish() }
    }
  }
}
