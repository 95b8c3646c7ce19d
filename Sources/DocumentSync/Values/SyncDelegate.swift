import SyncModel

/// Decides for the application about the document, about conflicts, and about
/// values.
///
/// Each function has a default, which also applies without a delegate.
public protocol SyncDelegate: Sendable {
  /// Answers a question about the document with one of its
  /// ``SyncQuestion/possibleDecisions``. Any other answer counts as
  /// ``SyncQuestion/Decision/stop``.
  ///
  /// The function may ask a person and take its time: nothing is changed before
  /// it returns, and the store may be edited meanwhile. The default is
  /// ``SyncQuestion/usualDecision``.
  func decide(_ question: SyncQuestion) async -> SyncQuestion.Decision

  /// Answers an open conflict whose policy is `ask`; `nil` leaves it open. The
  /// delegate is asked again only if another change concerns the same cell.
  ///
  /// The function may ask a person: the synchronization waits for it, at most
  /// for ``SyncEnvironment/decisionTimeLimit``, and cancels it if the
  /// synchronization is cancelled. If it throws an error, the question stays
  /// open, and the report has a warning. The default is `nil`.
  func answer(_ conflict: Conflict) async throws -> Conflict.Answer?

  /// Returns the value for a cell whose policy is `resolve:NAME`; `nil` if the
  /// application has no such function. Then a function of the library with that
  /// name decides, such as ``ConflictPolicy/mergeText``.
  ///
  /// The function is called within the transaction that merges, and must not
  /// use the store. If there is no function, or if it throws an error or returns a
  /// value that the column refuses, the conflict stays open and the synchronization
  /// continues. The default is `nil`.
  func resolve(_ values: Conflict.Values, by name: String) throws -> Value?

  /// Hears of the rows that a transaction changes, before its commit: until then, other connections
  /// still see the former rows. ``SyncEvent/rowsChanged(_:)`` follows after the commit, unless that fails.
  ///
  /// The function is called within the transaction, and must not use the store; a read of the database on
  /// a connection of the application gets the former rows. The default does nothing.
  func willCommit(_ changes: RowChanges)
}

extension SyncDelegate {
  /// Returns the usual decision.
  public func decide(_ question: SyncQuestion) async -> SyncQuestion.Decision {
    question.usualDecision
  }

  /// Leaves the conflict open.
  public func answer(_ conflict: Conflict) async throws -> Conflict.Answer? { nil }

  /// Returns `nil`: the application has no such function.
  public func resolve(_ values: Conflict.Values, by name: String) throws -> Value? { nil }

  /// Does nothing.
  public func willCommit(_ changes: RowChanges) {}
}

/// A question to the delegate about the document.
public enum SyncQuestion: Hashable, Sendable {
  /// The directory holds no application yet. Create it there?
  case applicationMissing(application: String, directory: String)
  /// The document is not in the directory. Create it from the database on this
  /// device?
  case documentMissing(identifier: String, others: [String])
  /// The document was deleted. Create it again from the store on this device? A
  /// store under sync can also leave the document.
  case documentDeleted(identifier: String, DocumentDescription.Deletion, isUnderSync: Bool)
  /// The document is in the directory, and this device has another database at
  /// the path for it. Merge or replace that database?
  case databaseInTheWay(identifier: String, path: String)
  /// The document of the store was deleted and created again under the same
  /// name. Merge the rows of this store into the new one?
  case documentReplaced(identifier: String, by: DocumentDescription)
  /// This client was removed from the document. Continue as a new client?
  case clientRemoved(identifier: String)

  /// The possible answers, the usual one first.
  public var possibleDecisions: [Decision] {
    switch self {
    case .applicationMissing, .documentMissing: [.create, .stop]
    case .documentDeleted(_, _, let isUnderSync):
      isUnderSync ? [.stop, .create, .leave] : [.stop, .create]
    case .databaseInTheWay: [.stop, .merge, .replace]
    case .documentReplaced: [.stop, .merge, .leave]
    case .clientRemoved: [.stop, .rejoin, .leave]
    }
  }

  /// The decision without a delegate: create what was asked for, never discard
  /// what exists.
  public var usualDecision: Decision { possibleDecisions[0] }
}

extension SyncQuestion {
  /// The delegate's answer to a question.
  public enum Decision: String, Hashable, Sendable, CaseIterable {
    /// Do nothing: the call throws the error that the question is about, and
    /// the next call asks again.
    case stop
    /// Create the application or the document from the database on this device.
    case create
    /// Take over the document, and merge the rows of this device into it.
    case merge
    /// Take over the document, and keep a copy of the database as a backup.
    case replace
    /// Continue as a new client.
    case rejoin
    /// Take the store out of sync; it becomes an ordinary database with all its
    /// rows.
    case leave
  }
}
