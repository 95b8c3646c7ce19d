import SyncModel
import SyncStore

/// Leaving the document, and removing and describing its clients.
extension DocumentSyncManager {
  /// Takes the store out of sync: it becomes an ordinary database again, with
  /// all rows that it shows. Afterwards, the manager can only be closed.
  ///
  /// The call first publishes unpublished edits, and tells the other devices to
  /// stop waiting for this client. Errors, with nothing changed:
  /// `directoryAway` and others of a missing directory, unless `abandoning`;
  /// `confirmationNeeded` if leaving would lose data that only the bookkeeping
  /// contains, which ``removalLoss()`` lists.
  ///
  /// - Parameters:
  ///   - abandoning: Whether to leave without publishing and without telling
  ///     the other devices.
  ///   - isConfirmed: Whether the user has agreed to the loss.
  ///   - onProgress: Called with the progress, on the thread of the operation.
  @discardableResult
  public func leave(
    abandoning: Bool = false, isConfirmed: Bool = false,
    onProgress: SyncProgress.Handler? = nil
  ) async throws -> LeaveReport {
    let report = try await run(
      makeLeaveOperation(abandoning: abandoning, isConfirmed: isConfirmed), onProgress: onProgress)
    events.enter(.left)
    return report
  }

  /// Removes another client from the document, so that the other members stop
  /// waiting for it. Everything that it has published stays; if it returns, its
  /// delegate decides whether it continues as a new client. Errors:
  /// `clientMissing`.
  @discardableResult
  public func removeClient(
    _ client: ClientIdentifier, onProgress: SyncProgress.Handler? = nil
  ) async throws -> ClientDescription {
    try await asking {
      try await run(makeRemoveClientOperation(client), onProgress: onProgress)
    }
  }

  /// Changes this client's name or the notes about it. A part that is `nil`
  /// stays as it is.
  public func describeClient(
    _ description: String? = nil, userInfo: SyncUserInfo? = nil,
    onProgress: SyncProgress.Handler? = nil
  ) async throws {
    try await run(
      makeDescribeClientOperation(description, userInfo: userInfo), onProgress: onProgress)
  }
}
