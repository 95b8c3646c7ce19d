import SyncModel
import SyncStore

/// Who takes part in the document.
extension DocumentSyncManager {
  /// Takes the store out of sync: it becomes an ordinary database again, with
  /// all rows that it shows. The manager can only be closed afterwards.
  ///
  /// What was not published is published first, and the others are told, so
  /// that nobody waits for this client. Errors: `directoryAway` and others of
  /// a directory that is not there, unless it is abandoned;
  /// `confirmationNeeded` if something would be gone that only bookkeeping
  /// holds, which ``LocalStore/removalLoss()`` names. Nothing is changed then.
  ///
  /// - Parameters:
  ///   - abandoning: Whether to go without publishing and without a word.
  ///   - isConfirmed: Whether somebody has agreed to the loss.
  @discardableResult
  public func leave(
    abandoning: Bool = false, isConfirmed: Bool = false,
    onProgress: SyncProgressHandler? = nil
  ) async throws -> LeaveReport {
    let report = try await run(
      LeaveOperation(
        store: store, directory: directory, turns: turns, abandons: abandoning,
        isConfirmed: isConfirmed, environment: environment),
      onProgress: onProgress)
    events.enter(.left)
    return report
  }

  /// Removes another client from the document, so that nobody waits for it
  /// any more. What it has published stays; should it return, it goes on as a
  /// new client. Errors: `clientMissing`.
  @discardableResult
  public func removeClient(
    _ client: ClientIdentifier, onProgress: SyncProgressHandler? = nil
  ) async throws -> ClientDescription {
    try await asking {
      try await run(
        RemoveClientOperation(
          store: store, directory: directory, turns: turns, client: client,
          environment: environment),
        onProgress: onProgress)
    }
  }

  /// Says something else about this client: what it is called, or what is
  /// noted of it. What is `nil` stays.
  public func describeClient(
    _ description: String? = nil, userInfo: SyncUserInfo? = nil,
    onProgress: SyncProgressHandler? = nil
  ) async throws {
    try await run(
      DescribeClientOperation(
        store: store, directory: directory,
        descriptions: SyncDescriptions(client: description, clientInfo: userInfo),
        environment: environment),
      onProgress: onProgress)
  }
}
