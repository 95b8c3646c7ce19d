import DocumentSync
import GRDB
import Synchronization

/// Tells the observations of a GRDB database what synchronizations change.
///
/// A synchronization writes on a connection of its own, and GRDB does not notice what other connections
/// write. While ``run()`` runs, `ValueObservation`, `DatabaseRegionObservation` and other transaction
/// observers of `database` hear of each table that a synchronization of this process has changed, after
/// the commit. Changes of several commits that follow one another at once may be told together; none is
/// lost. An observation that begins later sees the changes anyway, since it reads the database.
///
/// ```swift
/// let notifier = DatabaseChangeNotifier(events: manager.events, database: pool)
/// let notifying = Task { try await notifier.run() }
/// ```
public final class DatabaseChangeNotifier: Sendable {
  private struct Pending {
    var tables: Set<String> = []
    /// Whether further tables may have changed as well.
    var isWhole = false
  }

  private let database: any DatabaseWriter
  private let pending = Mutex(Pending())
  private let signals: AsyncStream<Void>

  /// Creates a notifier. Changes count from now on, also those before ``run()`` is called.
  ///
  /// - Parameters:
  ///   - events: The events of the document: ``DocumentSyncManager/events``, or those in the options of a
  ///     document of a ``SyncEngine``.
  ///   - database: The application's queue or pool with the store.
  public init(events: SyncEvents, database: any DatabaseWriter) {
    self.database = database
    let (signals, continuation) = AsyncStream.makeStream(
      of: Void.self, bufferingPolicy: .bufferingNewest(1))
    self.signals = signals
    events.relay { [weak self] event in
      guard let event else { return continuation.finish() }
      guard case .rowsChanged(let changes) = event, let self else { return }
      pending.withLock { pending in
        pending.tables.formUnion(changes.tables.map(\.name.text))
        if changes.mayConcernOtherTables { pending.isWhole = true }
      }
      continuation.yield()
    }
  }

  /// Notifies the database until the task is cancelled or the document's manager is closed. An engine closes
  /// it when the engine is closed, and when the document is removed from it. Throws the error of the database if it cannot be notified, for example because it
  /// was closed. Call it once.
  public func run() async throws {
    for await _ in signals {
      while let changed = take() {
        do {
          try await notify(changed)
        } catch {
          putBack(changed)
          if error is CancellationError { return }
          guard let pause = Self.pause(after: error) else { throw error }
          do { try await Task.sleep(for: pause) } catch { return }
        }
      }
    }
  }

  /// Returns how long to wait before the database is notified again; `nil` after an error that does not pass.
  private static func pause(after error: any Error) -> Duration? {
    switch (error as? DatabaseError)?.resultCode {
    // The synchronization writes already what comes next, or the application has interrupted its queries.
    case .SQLITE_BUSY?, .SQLITE_LOCKED?, .SQLITE_INTERRUPT?: .milliseconds(20)
    // The database is suspended.
    case .SQLITE_ABORT?: .milliseconds(500)
    default: nil
    }
  }

  private func take() -> Pending? {
    pending.withLock { pending in
      defer { pending = Pending() }
      return pending.tables.isEmpty ? nil : pending
    }
  }

  private func putBack(_ changed: Pending) {
    pending.withLock { pending in
      pending.tables.formUnion(changed.tables)
      pending.isWhole = pending.isWhole || changed.isWhole
    }
  }

  private func notify(_ changed: Pending) async throws {
    try await database.writeWithoutTransaction { database in
      // Nothing is written; the schema may be read.
      try database.inTransaction(.deferred) {
        if changed.isWhole {
          try database.notifyChanges(in: .fullDatabase)
        } else {
          for table in changed.tables where try database.tableExists(table) {
            try database.notifyChanges(in: Table(table))
          }
        }
        return .commit
      }
    }
  }
}
