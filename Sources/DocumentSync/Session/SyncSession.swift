import SyncDirectory
import SyncModel
import SyncStore

/// The store and the directory of one synchronization, the values that it has
/// read from the store, and its report.
///
/// Every step gets the session, and passes it on.
final class SyncSession: Sendable {
  let files: SharedFiles
  let store: LocalStore
  /// The values that were read from the store.
  let held = HeldValues()
  /// The report so far. One step runs at a time, and the threads that read
  /// files for it do not touch the report.
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
