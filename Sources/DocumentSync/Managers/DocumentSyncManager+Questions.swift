import SyncModel

/// The questions that the manager asks the delegate if the document was deleted
/// or replaced, or this client was removed.
extension DocumentSyncManager {
  /// Runs `body`. If it fails with an error that a question is about, asks the
  /// delegate, and runs `body` once more if the decision allows that.
  func asking<Output>(_ body: () async throws -> Output) async throws -> Output {
    do {
      let output = try await body()
      events.enter(.registered)
      return output
    } catch let error as SyncError {
      // The delegate calls while it is asked: it would wait for its own answer.
      if questions.isHeld { throw error }
      do {
        try await questions.take { try await answer(error) }
      } catch is CancellationError {
        throw SyncError.cancelled(error.operation)
      }
      let output = try await body()
      events.enter(.registered)
      return output
    }
  }

  /// Returns what became of the document, without asking the delegate or
  /// changing anything. Errors: those of a missing directory or document.
  public func findStanding(
    onProgress: SyncProgress.Handler? = nil
  ) async throws -> DocumentDescription.Standing {
    try await run(makeFindStandingOperation(), onProgress: onProgress)
  }

  /// Checks the document, and asks the delegate if it was deleted or replaced.
  func askAfterDocument() async throws {
    try await asking {
      try await run(
        CheckDocumentOperation(
          store: store, directory: directory, environment: environment))
    }
  }

  /// Returns if the caller should try again; otherwise throws the error for the
  /// application.
  private func answer(_ error: SyncError) async throws {
    switch error.code {
    case .documentDeleted, .documentReplaced:
      try await answer(error, about: try await findStanding())
    case .clientRemoved:
      events.enter(.removed)
      try await answer(error, to: .clientRemoved(identifier: binding.documentIdentifier))
    case .setUpUnfinished:
      // An interruption stopped the last decision before it was carried out.
      try await createAgain()
    default: throw error
    }
  }

  private func answer(_ error: SyncError, about standing: DocumentDescription.Standing) async throws
  {
    let identifier = binding.documentIdentifier
    switch standing {
    case .current:
      // Another call has asked the question meanwhile, and carried out the
      // decision.
      return
    case .deleted(let deletion):
      if events.state != .deleted(deletion) {
        events.enter(.deleted(deletion))
        events.send(.documentDeleted(identifier: identifier, deletion))
      }
      try await answer(
        error, to: .documentDeleted(identifier: identifier, deletion, isUnderSync: true))
    case .createdAgain(let document):
      events.enter(.replaced)
      try await answer(
        error, to: .documentReplaced(identifier: identifier, by: document),
        about: document.generation)
    case .outnumbered: throw error
    }
  }

  /// - Parameter generation: The generation that has replaced the store's, if
  ///   there is one.
  private func answer(
    _ error: SyncError, to question: SyncQuestion, about generation: IntegrityKey? = nil
  ) async throws {
    let before = events.state
    let decision = await events.decision(
      of: delegate.withLock(\.self), on: question, before: before)
    if Task.isCancelled { throw SyncError.cancelled(error.operation) }
    switch decision {
    case .create: try await createAgain()
    case .leave:
      try await leave(abandoning: true)
      throw SyncError(
        .notUnderSync, operation: error.operation, path: store.path,
        message: "The store has left the document, as was decided.",
        remedy: "Use it as the ordinary database that it is now.", underlying: error)
    case .rejoin:
      try await use("go on as a new device") { try StoreRecords($0).noteRejoins() }
    case .merge:
      guard let generation else { throw error }
      // The next synchronization merges, and reports it.
      try await use("merge into the other document") {
        try StoreRecords($0).noteMerging(into: generation)
      }
    case .stop, .replace: throw error
    }
  }

  private func createAgain() async throws {
    _ = try await run(makeRecreateDocumentOperation())
  }
}

extension SyncEvents {
  /// Asks the delegate; without a delegate, returns the usual decision. An
  /// impossible decision counts as ``SyncQuestion/Decision/stop``.
  func decision(
    of delegate: (any SyncDelegate)?, on question: SyncQuestion, before: DocumentSyncState
  ) async -> SyncQuestion.Decision {
    guard let delegate else { return question.usualDecision }
    enter(.waitingForDecision(question))
    defer { enter(before) }
    let decision = await delegate.decide(question)
    return question.possibleDecisions.contains(decision) ? decision : .stop
  }
}
