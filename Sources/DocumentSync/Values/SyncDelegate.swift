/// Decides what only an application can decide.
///
/// One function, awaited: it may ask a person and take its time. Nothing is
/// changed before it is called or meanwhile, and the store may be edited.
/// Without a delegate, ``SyncQuestion/usualDecision`` counts.
public protocol SyncDelegate: Sendable {
  /// Answers a question with one of its ``SyncQuestion/possibleDecisions``.
  /// Anything else counts as ``SyncDecision/stop``.
  func decide(_ question: SyncQuestion) async -> SyncDecision
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
  case documentDeleted(identifier: String, DocumentDeletion, isUnderSync: Bool)
  /// The document is in the directory, and another database of this device is
  /// at the path where it is to be.
  case databaseInTheWay(identifier: String, path: String)
  /// The document that the store belongs to was deleted and created again
  /// under the same name: are the rows that are here to be merged into it?
  case documentReplaced(identifier: String, by: DocumentDescription)
  /// This client was removed from the document.
  case clientRemoved(identifier: String)

  /// The possible answers, the usual one first.
  public var possibleDecisions: [SyncDecision] {
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
  public var usualDecision: SyncDecision { possibleDecisions[0] }
}

/// What a delegate answers.
public enum SyncDecision: String, Hashable, Sendable, CaseIterable {
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
