import SyncModel

/// Decides what only an application can decide: about the document, about
/// conflicts, about values.
///
/// Each function has a default, which counts without a delegate as well.
public protocol SyncDelegate: Sendable {
  /// Answers a question about the document with one of its
  /// ``SyncQuestion/possibleDecisions``. Anything else counts as
  /// ``SyncQuestion/Decision/stop``.
  ///
  /// It may ask a person and take its time. Nothing is changed before it is
  /// called or meanwhile, and the store may be edited. The default is
  /// ``SyncQuestion/usualDecision``.
  func decide(_ question: SyncQuestion) async -> SyncQuestion.Decision

  /// Answers an open conflict, where the policy is `ask`; `nil` leaves it open.
  /// It is asked again only if another change concerns the same cell.
  ///
  /// It may ask a person and take its time: the synchronization waits for it,
  /// no longer than ``SyncEnvironment/decisionTimeLimit``, and cancels it if the
  /// synchronization is cancelled. If it throws an error, the question stays
  /// open, and there is a warning. The default is `nil`.
  func answer(_ conflict: Conflict) async throws -> Conflict.Answer?

  /// The value for a cell, where the policy is `resolve:NAME`; `nil` if the
  /// application knows no such function.
  ///
  /// It is called within the transaction that merges, and must not use the
  /// store. If it returns `nil`, throws an error, or returns a value that the
  /// column refuses, the conflict stays open and the synchronization continues.
  /// The default is `nil`.
  func resolve(_ values: Conflict.Values, by name: String) throws -> Value?
}

extension SyncDelegate {
  /// The usual decision.
  public func decide(_ question: SyncQuestion) async -> SyncQuestion.Decision {
    question.usualDecision
  }

  /// Leaves the conflict open.
  public func answer(_ conflict: Conflict) async throws -> Conflict.Answer? { nil }

  /// Knows no function.
  public func resolve(_ values: Conflict.Values, by name: String) throws -> Value? { nil }
}

/// What a delegate is asked.
public enum SyncQuestion: Hashable, Sendable {
  /// The directory holds no application yet: is it to become the shared
  /// directory of this one?
  case applicationMissing(application: String, directory: String)
  /// There is no such document: is it to be created from the database that
  /// is here?
  case documentMissing(identifier: String, others: [String])
  /// The document was deleted: is it to be created again, from the store that
  /// is here? For a store under sync it can be left as well.
  case documentDeleted(identifier: String, DocumentDescription.Deletion, isUnderSync: Bool)
  /// The document is in the directory, and another database of this device is
  /// at the path where it is to be.
  case databaseInTheWay(identifier: String, path: String)
  /// The document that the store belongs to was deleted and created again
  /// under the same name: are the rows that are here to be merged into it?
  case documentReplaced(identifier: String, by: DocumentDescription)
  /// This client was removed from the document.
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
  /// What a delegate answers.
  public enum Decision: String, Hashable, Sendable, CaseIterable {
    /// Do nothing: the call throws the error that the question is about, and the
    /// next call asks again.
    case stop
    /// Create the application or the document from what is on this device.
    case create
    /// Take over the document, and merge the rows of this device into it.
    case merge
    /// Take over the document; the file that is there is kept as a backup.
    case replace
    /// Continue as a new client.
    case rejoin
    /// Take the store out of sync; it stays as an ordinary database, with all
    /// rows.
    case leave
  }
}
