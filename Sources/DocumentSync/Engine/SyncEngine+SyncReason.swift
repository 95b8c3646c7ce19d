extension SyncEngine {
  /// Why an engine synchronizes a document.
  public enum SyncReason: String, Hashable, Sendable, CaseIterable {
    /// The engine has begun, or the document was added to it.
    case launch
    /// A program has changed the store.
    case localChange
    /// Files in the shared directory have changed.
    case directoryChange
    /// The application has said that something has changed: ``SyncEngine/noteExternalChange(in:)``.
    case externalChange
    /// It is time to look, since changes of the directory or the store may go unnoticed.
    case timer
    /// The shared directory was away, and has returned.
    case directoryReturned
    /// The synchronization before it failed, and may succeed now.
    case retry
    /// The application has asked for it.
    case request
  }
}
