import SyncStore
import Synchronization

extension SyncEngine {
  /// Something that an engine did or met. Documents are named by the paths of their stores.
  public enum Event: Sendable {
    /// A synchronization begins.
    case willSynchronize(document: String, reasons: Set<SyncEngine.SyncReason>)
    /// A synchronization has ended.
    case didSynchronize(document: String, SyncReport)
    /// ``SyncEngine/fetchChanges(_:)`` begins.
    case willFetchChanges(document: String)
    /// ``SyncEngine/fetchChanges(_:)`` has ended.
    case didFetchChanges(document: String, SyncReport)
    /// ``SyncEngine/sendChanges(_:)`` begins.
    case willSendChanges(document: String)
    /// ``SyncEngine/sendChanges(_:)`` has ended.
    case didSendChanges(document: String, SyncReport)
    /// A synchronization goes on: each new phase, and otherwise at most ten times a second. An observer that
    /// does not keep up gets fewer of these events, which do not count as missed.
    case progress(document: String, SyncProgress)
    /// A synchronization had a warning. It comes before the event with the report, which has it as well.
    case warning(document: String, SyncWarning)
    /// A synchronization has recorded conflicts: `count` cells and rows that two sides had changed, and
    /// `questions`, the numbers of those that are undecided. It comes before the event with the report.
    case conflicts(document: String, count: Int, questions: [Int64])
    /// An event of the document, such as rows that have changed. It comes before the event with the
    /// report.
    case documentEvent(document: String, SyncEvent)
    /// The number of the edits that no other device can have, or where they wait, has changed:
    /// ``SyncEngine/State/Document/pending``. It comes before the event with the report.
    case pendingCountChanged(document: String, StoreStatus.PendingCount)
    /// A synchronization, ``SyncEngine/fetchChanges(_:)``, ``SyncEngine/sendChanges(_:)`` or closing the store
    /// has failed; `retry` says when another attempt may succeed. The engine repeats synchronizations only.
    case failed(document: String, SyncError, retry: SyncError.Retry)
    /// The shared directory is away: the engine waits until it is there.
    case directoryAway(document: String)
    /// The shared directory is there again.
    case directoryReturned(document: String)
    /// A synchronization, ``SyncEngine/fetchChanges(_:)`` or ``SyncEngine/sendChanges(_:)`` was cancelled.
    case cancelled(document: String)
    /// The document needs a decision. The engine goes on when ``SyncEngine/synchronize(_:)`` is called, or
    /// when the decision was made in another process.
    case paused(document: String, SyncError)
    /// The decision was made, or is not needed any more.
    case resumed(document: String)
    /// The system does not report changes of the store or of the directory: the engine looks at them now and
    /// then.
    case polling(document: String)
    /// This observer was too slow, and has missed events. ``SyncEngine/state`` has the present state.
    case missed(Int)
  }

  /// The events of an engine, for any number of observers, none of which slows the engine down.
  ///
  /// Each iteration is an observer of its own, which gets every event, in order, from the moment when its
  /// iterator was made. While ``capacity`` events wait for an observer, it gets no further ones; the next
  /// event afterwards is ``SyncEngine/Event/missed(_:)``. The sequence ends when the engine is closed.
  public final class Events: AsyncSequence, Sendable {
    /// The elements of the sequence.
    public typealias Element = SyncEngine.Event

    /// The number of events that the sequence holds for an observer that does not keep up.
    public static let capacity = 1_000

    private struct Observer {
      var continuation: AsyncStream<SyncEngine.Event>.Continuation
      /// How many events wait for it.
      var waiting = 0
      /// How many events it has missed without having been told so.
      var missed = 0

      /// Notes that the observer has taken an event. One that has taken all hears what it has missed.
      mutating func take() {
        waiting -= 1
        if waiting == 0 { tellMissed() }
      }

      /// Adds the note of what was missed, if anything was.
      mutating func tellMissed() {
        guard missed > 0 else { return }
        continuation.yield(.missed(missed))
        waiting += 1
        missed = 0
      }
    }

    private struct Observers {
      var byNumber: [UInt64: Observer] = [:]
      var next: UInt64 = 0
      var isFinished = false
    }

    private let observers = Mutex(Observers())
    private let capacity: Int

    init(capacity: Int = Events.capacity) { self.capacity = capacity }

    /// The iterator of one observer.
    public struct AsyncIterator: AsyncIteratorProtocol {
      fileprivate var base: AsyncStream<SyncEngine.Event>.Iterator
      fileprivate let taken: @Sendable () -> Void

      /// Returns the next event; `nil` after the last one, and if the task is cancelled.
      public mutating func next() async -> SyncEngine.Event? {
        let event = await base.next()
        if event != nil { taken() }
        return event
      }
    }

    /// Makes an iterator over the events from now on.
    public func makeAsyncIterator() -> AsyncIterator {
      let (stream, continuation) = AsyncStream.makeStream(of: SyncEngine.Event.self)
      let number: UInt64? = observers.withLock { observers in
        guard !observers.isFinished else { return nil }
        observers.next += 1
        observers.byNumber[observers.next] = Observer(continuation: continuation)
        return observers.next
      }
      guard let number else {
        continuation.finish()
        return AsyncIterator(base: stream.makeAsyncIterator()) {}
      }
      continuation.onTermination = { [weak self] _ in
        _ = self?.observers.withLock { $0.byNumber.removeValue(forKey: number) }
      }
      return AsyncIterator(base: stream.makeAsyncIterator()) { [weak self] in
        self?.observers.withLock { $0.byNumber[number]?.take() }
      }
    }

    /// Sends an event to all observers.
    ///
    /// - Parameter isDispensable: Whether observers for whom many events wait do not get this one.
    func send(_ event: SyncEngine.Event, isDispensable: Bool = false) {
      observers.withLock { observers in
        for number in observers.byNumber.keys {
          guard var observer = observers.byNumber[number],
            !isDispensable || observer.waiting < capacity / 10
          else { continue }
          if observer.waiting < capacity {
            observer.tellMissed()
            observer.continuation.yield(event)
            observer.waiting += 1
          } else {
            observer.missed += 1
          }
          observers.byNumber[number] = observer
        }
      }
    }

    /// Ends the sequences of all observers, and of those to come.
    func finish() {
      // Outside the lock: ending a sequence takes it.
      let continuations = observers.withLock { observers in
        observers.isFinished = true
        for number in observers.byNumber.keys { observers.byNumber[number]?.tellMissed() }
        defer { observers.byNumber = [:] }
        return observers.byNumber.values.map(\.continuation)
      }
      for continuation in continuations { continuation.finish() }
    }
  }
}
