import SyncDirectory
import SyncModel
import SyncStore

/// Undoes one change set in a store.
final class UndoOperation: DocumentOperation<AppliedChangeSet.Undo>, @unchecked Sendable {
  private let author: ClientIdentifier
  private let number: UInt64
  private let isRehearsal: Bool

  /// Creates an operation that undoes a change set, or finds out what that would do.
  init(
    _ number: UInt64, of author: ClientIdentifier, isRehearsal: Bool, store: LocalStore,
    directory: any SharedDirectory, turns: SyncTurns, environment: SyncEnvironment
  ) {
    self.author = author
    self.number = number
    self.isRehearsal = isRehearsal
    super.init(
      "undo a change set", store: store, directory: directory, turns: turns,
      environment: environment)
  }

  override func perform() async throws -> AppliedChangeSet.Undo {
    try await holdingStore { [self] files in
      try UndoSteps(
        session: SyncSession(files: files, store: store), author: author, number: number
      ).run(isRehearsal: isRehearsal)
    }
  }
}
