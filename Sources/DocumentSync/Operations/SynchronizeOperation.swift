import SyncDirectory
import SyncModel
import SyncStore

/// Sends what was edited here and applies what was edited elsewhere.
///
/// Checks the binding, lists, reads, checks and applies what is new, seals and
/// publishes local edits, and tells the others; see ``SyncReport``. Only one
/// runs on a store at a time (`storeInUse`). If it is interrupted at any point,
/// the next one continues.
public final class SynchronizeOperation: DocumentOperation<SyncReport>, @unchecked Sendable {
  private let checksOwnFiles: Bool
  private let delegate: (any SyncDelegate)?

  /// Names the store and the directory.
  ///
  /// - Parameters:
  ///   - turns: Kept from one synchronization of the store to the next.
  ///   - checksOwnFiles: Whether to read every file of this client in the
  ///     directory, and put back those that are damaged.
  ///   - delegate: The delegate that answers conflicts if a policy requires it.
  ///     The operation pauses meanwhile, before anything is published, for no
  ///     longer than ``SyncEnvironment/decisionTimeLimit`` in all. Without one,
  ///     or without an answer, the question stays open.
  package init(
    store: LocalStore, directory: any SharedDirectory, turns: SyncTurns,
    checksOwnFiles: Bool = false, delegate: (any SyncDelegate)? = nil,
    environment: SyncEnvironment = SyncEnvironment()
  ) {
    self.delegate = delegate
    self.checksOwnFiles = checksOwnFiles
    super.init(
      "synchronize", store: store, directory: directory, turns: turns,
      environment: environment)
  }

  /// Synchronizes.
  override func perform() async throws -> SyncReport {
    let lock = try await blocking { [self] in
      try StoreLock(store: store.path, operation: verb)
    }
    defer { lock.unlock() }
    let context = OperationContext(self)
    let pass = SyncPass(
      session: SyncSession(files: SharedFiles(directory, context: context), store: store),
      turns: turns, checksOwnFiles: checksOwnFiles)
    let fetched = try await blocking { [self] in
      guard try StoreRecords(store).isSetUp() else {
        throw SetUpState.unfinished(store.binding, path: store.path, operation: verb)
      }
      return try pass.fetch()
    }
    try await ask(pass.session, context)
    return try await blocking { try pass.send(fetched) }
  }

  /// Asks the questions that the first half has left to be decided. The journal
  /// contains them durably before.
  private func ask(_ session: SyncSession, _ context: OperationContext) async throws {
    let questions = session.report.questions
    guard let delegate, !questions.isEmpty else { return }
    context.begin(.deciding, count: questions.count)
    let warnings = try await ConflictQuestions(
      numbers: questions, delegate: delegate, context: context,
      conflict: { [self] number in
        try await blocking { [self] in try store.conflict(number) }
      },
      resolve: { [self] number, answer in
        try await blocking { [self] in try store.resolveConflict(number, by: answer) }
      }
    ).ask()
    session.report.warnings += warnings
  }
}
