import Foundation

/// What an engine is doing, at one moment.
public struct SyncEngineState: Sendable {
  /// What the engine does with a document.
  public enum Phase: Hashable, Sendable {
    /// Nothing is to be done, or something is scheduled.
    case idle
    /// It synchronizes.
    case synchronizing
    /// It waits until the shared directory is there.
    case directoryAway
    /// It waits for a decision.
    case paused
    /// It waits after a failure that may pass.
    case waitingToRetry
    /// It does nothing until ``SyncEngine/synchronize(_:)`` is called: another attempt would fail again.
    case failed
  }

  /// One document.
  public struct Document: Sendable, Identifiable {
    /// The path of the store.
    public var path: String
    /// The path of the store.
    public var id: String { path }
    /// What the engine does with it.
    public var phase: Phase
    /// The reasons for the next synchronization.
    public var reasons: Set<SyncReason>
    /// After which time the next synchronization begins if nothing happens; `nil` if none is scheduled.
    public var nextAttempt: Duration?
    /// The error of the last synchronization; `nil` if it succeeded, or there was none.
    public var lastError: SyncError?
    /// The report of the last synchronization that succeeded; `nil` if there was none.
    public var lastReport: SyncReport?
    /// The failures since the last success.
    public var failures: Int
    /// Whether the engine hears of changes in the directory; otherwise it looks for them.
    public var isDirectoryWatched: Bool
  }

  /// The documents, in the order in which they were added.
  public var documents: [Document]
}
