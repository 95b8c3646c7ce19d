import SyncModel
import SyncStore
import Synchronization

/// Something that happened to a document or an application.
public enum SyncEvent: Sendable {
  /// An operation has begun.
  case activityBegan(Activity)
  /// An operation has ended; `error` is why it failed, or `nil`. The event
  /// comes exactly once for each activity that began.
  case activityEnded(Activity, error: SyncError?)
  /// The document's state has changed.
  case stateChanged(DocumentSyncState)
  /// A store was put under sync, or was under sync already.
  case registered(StoreBinding)
  /// The store continues as a new client.
  case newIncarnation(client: ClientIdentifier, ancestor: ClientIdentifier)
  /// The store's content was exchanged for that of a whole store.
  case rebootstrapped(SyncReport.Rebootstrap)
  /// A command retires a client, which is no longer a member of the document.
  case retired(ClientIdentifier, reason: RetirementSelection.Reason)
  /// The document was deleted.
  case documentDeleted(identifier: String, DocumentDescription.Deletion)
  /// Rows of the application's tables have changed: edits of other devices were applied, or a call of the
  /// library has changed rows. The event comes after the commit, in the order of commits; see also
  /// ``SyncDelegate/willCommit(_:)``.
  case rowsChanged(RowChanges)
  /// A command for the application has arrived. It waits in
  /// ``DocumentSyncManager/pendingCommands()`` until it is acknowledged.
  case commandReceived(CommandEvent)
  /// A whole store was uploaded.
  case wholeStoreUploaded(WholeStoreDescription)
  /// Files that no device needs any more were removed.
  case vacuumed(VacuumReport)
}

extension SyncEvent {
  /// One run of an operation.
  public struct Activity: Hashable, Sendable, Identifiable {
    /// The activity's number, different for every run in this process.
    public let id: UInt64
    /// The operation: a verb phrase, such as “synchronize”.
    public let verb: String

    private static let last = Mutex<UInt64>(0)

    /// Creates the next activity.
    init(verb: String) {
      id = Self.last.withLock { last in
        last += 1
        return last
      }
      self.verb = verb
    }
  }
}
