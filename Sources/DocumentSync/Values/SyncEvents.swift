import Synchronization

/// The events of a manager, for any number of observers.
///
/// Each iteration is an observer of its own, which gets every event, in order,
/// from the moment when its iterator was made. An observer that does not keep
/// up loses its oldest events beyond ``capacity``. The sequence ends when the
/// manager is closed.
public final class SyncEvents: AsyncSequence, Sendable {
  /// The elements of the sequence.
  public typealias Element = SyncEvent
  /// The iterator of one observer.
  public typealias AsyncIterator = AsyncStream<SyncEvent>.Iterator

  /// The number of events that the sequence holds for an observer that does not
  /// keep up.
  public static let capacity = 1_000

  fileprivate struct Shared {
    var events = Observers<SyncEvent>()
    var states = Observers<DocumentSyncState>()
    var state = DocumentSyncState.unregistered
    /// What is called with each event, before the next one.
    var relays: [@Sendable (SyncEvent?) -> Void] = []

    func send(_ event: SyncEvent) {
      events.send(event)
      for relay in relays { relay(event) }
    }
  }

  private let shared = Mutex(Shared())

  /// Creates a sequence without observers.
  public init() {}

  /// The state of the document. That of an application manager never changes.
  public var state: DocumentSyncState { shared.withLock { $0.state } }

  /// Makes an iterator over the events from now on.
  public func makeAsyncIterator() -> AsyncIterator { stream().makeAsyncIterator() }

  /// Returns the events from now on, as a stream for one observer.
  public func stream() -> AsyncStream<SyncEvent> { observe(\.events) { _ in nil } }

  /// Returns the document's state, and each state that it takes from now on, as
  /// a stream for one observer.
  public func states() -> AsyncStream<DocumentSyncState> {
    observe(\.states) { $0.state }
  }

  /// Sends an event to all observers.
  func send(_ event: SyncEvent) { shared.withLock { $0.send(event) } }

  /// Calls a function with each event from now on, in order, before the sender goes on, and with `nil` at
  /// the end. It must not use this sequence.
  package func relay(to receive: @escaping @Sendable (SyncEvent?) -> Void) {
    shared.withLock { $0.relays.append(receive) }
  }

  /// Sets the document's state, and tells all observers if it has changed.
  func enter(_ state: DocumentSyncState) {
    shared.withLock { shared in
      guard shared.state != state else { return }
      shared.state = state
      shared.states.send(state)
      shared.send(.stateChanged(state))
    }
  }

  /// Ends the sequences of all observers, and of those to come.
  func finish() {
    // Outside the lock: ending an observer's sequence takes it.
    let (ends, relays) = shared.withLock { shared in
      defer { shared.relays = [] }
      return ([shared.events.close(), shared.states.close()], shared.relays)
    }
    for end in ends { end() }
    for relay in relays { relay(nil) }
  }

  /// - Parameter first: Returns the element that the observer gets at once, if
  ///   any.
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

/// The observers of one kind of element.
fileprivate struct Observers<Element: Sendable> {
  private var continuations: [UInt64: AsyncStream<Element>.Continuation] = [:]
  private var next: UInt64 = 0
  private var isClosed = false

  func send(_ element: Element) {
    for continuation in continuations.values { continuation.yield(element) }
  }

  /// Adds an observer and returns its number; `nil` if the sequence has ended.
  mutating func add(_ continuation: AsyncStream<Element>.Continuation) -> UInt64? {
    guard !isClosed else { return nil }
    next += 1
    continuations[next] = continuation
    return next
  }

  mutating func remove(_ number: UInt64) { continuations[number] = nil }

  /// Refuses further observers; the returned function ends the sequences of the
  /// present ones.
  mutating func close() -> @Sendable () -> Void {
    isClosed = true
    defer { continuations = [:] }
    return { [continuations] in
      for continuation in continuations.values { continuation.finish() }
    }
  }
}
