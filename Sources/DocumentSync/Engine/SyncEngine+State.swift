import Foundation
import SyncStore

extension SyncEngine {
  /// What an engine is doing, at one moment.
  public struct State: Sendable {
    /// What the engine does with a document.
    public enum Phase: Hashable, Sendable {
      /// Nothing is to be done, or something is scheduled.
      case idle
      /// A synchronization runs, or waits for its turn.
      case synchronizing
      /// It waits until the shared directory is there.
      case directoryAway
      /// It waits for a decision.
      case paused
      /// It waits after a failure that may pass.
      case waitingToRetry
      /// It applies the changes of others, and cannot send: the directory is full, or cannot be written.
      case cannotSend
      /// It does nothing until ``SyncEngine/synchronize(_:)`` is called: another attempt would fail again. If the
      /// file of the store is the reason, it also goes on when that file has changed.
      case failed
    }

    /// What the engine does with a document, and how the last synchronization went.
    public struct Document: Sendable, Identifiable {
      /// The path of the store.
      public var path: String
      /// The path of the store.
      public var id: String { path }
      /// What the engine does with it.
      public var phase: Phase
      /// The reasons for the next synchronization.
      public var reasons: Set<SyncEngine.SyncReason>
      /// After which time the next synchronization begins if nothing happens; `nil` if none is scheduled.
      public var nextAttempt: Duration?
      /// The error of the last synchronization; `nil` if it succeeded, or there was none.
      public var lastError: SyncError?
      /// The report of the last synchronization that succeeded; `nil` if there was none.
      public var lastReport: SyncReport?
      /// How many edits no other device can have, when the engine last looked: it does so when it hears that a
      /// program has edited the store, and after it has synchronized, fetched or sent. `nil` while the store is
      /// not open.
      public var pending: StoreStatus.PendingCount?
      /// Whether the engine holds back the edits of this device: see ``SyncEngine/holdChanges(_:)``.
      public var holdsChanges: Bool
      /// The failures since the last success.
      public var failures: Int
      /// Whether the engine hears of edits of the store; otherwise it looks for them.
      public var isStoreWatched: Bool
      /// Whether the engine hears of changes in the directory; otherwise it looks for them.
      public var isDirectoryWatched: Bool
    }

    /// The documents, in the order in which they were added.
    public var documents: [Document]
  }
}
