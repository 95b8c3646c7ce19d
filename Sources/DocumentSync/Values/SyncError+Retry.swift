extension SyncError {
  /// When a synchronization that failed may succeed.
  public enum Retry: Hashable, Sendable, CaseIterable {
    /// Soon, without anybody's help: other work is in the way, a disk is full, a network fails.
    case later
    /// When the shared directory is there again.
    case whenDirectoryReturns
    /// When the delegate or a person has decided something, such as whether to create a deleted document again.
    case afterDecision
    /// Not before the application, the store or the call is another one.
    case never
  }
}

extension SyncError.Code {
  /// When a synchronization that failed with this code may succeed. Codes that are not known count as
  /// `later`: trying again does no harm.
  public var retry: SyncError.Retry {
    switch self {
    // Another directory at the path, or a file: the right one may have its place again later.
    case .directoryAway, .applicationMissing, .rootMissing, .generationMissing, .notADirectory,
      .otherRoot, .otherApplication:
      .whenDirectoryReturns
    case .documentDeleted, .documentReplaced, .clientRemoved, .confirmationNeeded, .documentMissing,
      .documentExists, .documentAmbiguous, .setUpUnfinished, .fileExists, .clientUnknown,
      .decisionUnsuitable:
      .afterDecision
    case .internalFault, .notADatabase, .storeDamaged, .alreadyUnderSync,
      .notUnderSync, .storeInDirectory, .storeUnsuitable, .notAFile,
      .changeSetUnavailable,
      .noSuchConflict, .conflictNotOpen, .editRefused, .nameUnsuitable, .commandTooLarge,
      .policyUnsuitable,
      .newerVersionNeeded, .clientMissing, .cancelled, .schemaUnsuitable, .calledWithin:
      .never
    default: .later
    }
  }

  /// Whether a synchronization that failed with this code may succeed when the store's file has
  /// changed: while a backup is restored, the file is incomplete for a while.
  var mayPassWithFile: Bool {
    [.notADatabase, .storeDamaged, .notUnderSync].contains(self) || mayPassWithSchema
  }

  /// Whether a synchronization that failed with this code may succeed when a program has changed a table.
  var mayPassWithSchema: Bool { self == .schemaUnsuitable || self == .storeUnsuitable }

  /// Whether a synchronization that failed with this code has applied the changes of others before, and only
  /// could not send.
  var letsReceive: Bool { self == .directoryNotWritable || self == .noSharedSpace }
}
