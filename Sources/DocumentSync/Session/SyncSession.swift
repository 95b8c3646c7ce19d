import SyncDirectory
import SyncModel
import SyncStore

/// The store and the directory of one synchronization, what it has read of the store, and what it
/// reports.
///
/// Every step gets it, and hands it on.
final class SyncSession: Sendable {
  let files: SharedFiles
  let store: LocalStore
  /// What was read of the store.
  let held = HeldValues()
  /// What the steps have done so far. One step runs at a time, and the threads that read files for
  /// it do not touch the report.
  nonisolated(unsafe) var report = SyncReport()

  init(files: SharedFiles, store: LocalStore) {
    self.files = files
    self.store = store
    files.publications.keep(in: store)
  }
}

extension SyncSession: StoreSteps {
  var session: SyncSession { self }
}
