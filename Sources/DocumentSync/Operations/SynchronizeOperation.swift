import SyncDirectory
import SyncModel
import SyncStore

/// Sends the edits of this device and applies those of other devices.
///
/// The operation checks the binding, lists, reads, checks and applies new
/// change sets, seals and publishes local edits, and tells the other devices;
/// see ``SyncReport``. Only one runs on a store at a time (`storeInUse`). If it
/// is interrupted at any point, the next one continues.
public final class SynchronizeOperation: DocumentOperation<SyncReport>, @unchecked Sendable {
  /// What a synchronization does.
  public enum Extent: Sendable {
    /// It sends the edits of this device and applies those of others.
    case all
    /// It applies the edits of others, and sends none.
    case fetching
    /// It sends the edits of this device, and applies none.
    case sending

    fileprivate var half: SyncHalf {
      switch self {
      case .all: .both
      case .fetching: .fetching
      case .sending: .sending
      }
    }

    fileprivate var verb: String {
      switch self {
      case .all: "synchronize"
      case .fetching: "fetch changes"
      case .sending: "send changes"
      }
    }
  }

  private let extent: Extent
  private let checksOwnFiles: Bool
  private let allowsDeletions: Bool
  private let delegate: (any SyncDelegate)?

  /// Creates an operation that synchronizes a store.
  ///
  /// - Parameters:
  ///   - turns: The turns that synchronizations of the store share.
  ///   - extent: Whether to leave one half out.
  ///   - checksOwnFiles: Whether to read every file of this client in the
  ///     directory, and restore damaged ones.
  ///   - allowsDeletions: Whether to apply change sets that delete more rows
  ///     than ``SyncEnvironment/deletionLimit`` allows.
  ///   - delegate: The delegate that answers conflicts if a policy requires it.
  ///     The operation pauses for it before it publishes anything, at most for
  ///     ``SyncEnvironment/decisionTimeLimit`` in all. Without a delegate or an
  ///     answer, the question stays open.
  package init(
    store: LocalStore, directory: any SharedDirectory, turns: SyncTurns, extent: Extent = .all,
    checksOwnFiles: Bool = false, allowsDeletions: Bool = false,
    delegate: (any SyncDelegate)? = nil,
    environment: SyncEnvironment = SyncEnvironment()
  ) {
    self.delegate = delegate
    self.checksOwnFiles = checksOwnFiles
    self.allowsDeletions = allowsDeletions
    self.extent = extent
    super.init(
      extent.verb, store: store, directory: directory, turns: turns,
      environment: environment)
  }

  override func perform() async throws -> SyncReport {
    let lock = try await blocking { [self] in
      try waitingForOthers { try StoreLock(store: store.path, operation: verb) }
    }
    defer { lock.unlock() }
    let context = OperationContext(self)
    let pass = SyncPass(
      session: SyncSession(files: SharedFiles(directory, context: context), store: store),
      turns: turns, half: extent.half, checksOwnFiles: checksOwnFiles,
      allowsDeletions: allowsDeletions)
    let fetched = try await blocking { [self] in
      try store.renewIdentity()
      guard try StoreRecords(store).isSetUp() else {
        throw SetUpState.unfinished(store.binding, path: store.path, operation: verb)
      }
      return try pass.fetch()
    }
    try await ask(pass.session, context)
    let report = try await blocking { try pass.send(fetched) }
    if !report.questions.isEmpty { try await noteReported() }
    if extent == .all, !lock.noteSynchronization(at: environment.now()) {
      environment.logger.notice("\(verb): \(StoreLock.path(for: store.path)) cannot be written")
    }
    return report
  }

  /// Asks the questions that the first half has left undecided, and those of synchronizations that failed
  /// before they asked. The journal contains them durably before.
  private func ask(_ session: SyncSession, _ context: OperationContext) async throws {
    let questions = try await blocking { [self] in try store.unreportedQuestions() }
    session.report.questions = questions.all
    guard let delegate, !questions.unasked.isEmpty else { return }
    context.begin(.deciding, count: questions.unasked.count)
    let warnings = try await ConflictQuestions(
      numbers: questions.unasked, delegate: delegate, context: context,
      conflict: { [self] number in
        try await blocking { [self] in try store.conflict(number) }
      },
      resolve: { [self] number, answer in
        _ = try await blocking { [self] in try store.resolveConflict(number, by: answer) }
      }
    ).ask()
    session.report.warnings += warnings
    // If sending fails, the next synchronization does not ask again.
    try await blocking { [self] in try store.noteQuestionsAsked() }
  }

  /// Notes that the report tells the questions. If the store is busy, the next report tells them once more.
  private func noteReported() async throws {
    try await blocking { [self] in
      do {
        try store.noteQuestionsReported()
      } catch let error as StoreError {
        environment.logger.notice("\(verb): \(error)")
      }
    }
  }
}
