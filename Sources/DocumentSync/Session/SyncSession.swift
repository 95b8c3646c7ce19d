import SyncDirectory
import SyncModel
import SyncStore

/// The store and the directory of one synchronization, and what it has read of the store.
///
/// Every step gets it, and hands it on.
struct SyncSession: Sendable {
  let files: SharedFiles
  let store: LocalStore
  /// What was read of the store.
  let held = HeldValues()
}

extension SyncSession: StoreSteps {
  var session: SyncSession { self }
}
