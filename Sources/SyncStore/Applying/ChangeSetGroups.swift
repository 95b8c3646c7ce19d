import SyncModel

/// The change sets that are to be applied, in groups: each group is one transaction.
struct ChangeSetGroups {
  private var pending: PendingChangeSets
  private var rowsPerTransaction: Int
  private let transactionTime: Duration?
  private let binding: StoreBinding
  private let clockTolerance: Int64
  private let checkCancellation: () throws -> Void
  /// Whether no change set is left that can be applied.
  private(set) var isDone = false

  init(
    _ pending: PendingChangeSets, _ binding: StoreBinding, _ options: StoreOptions,
    _ checkCancellation: @escaping () throws -> Void
  ) {
    self.pending = pending
    self.binding = binding
    self.checkCancellation = checkCancellation
    rowsPerTransaction = options.rowsPerTransaction
    transactionTime = options.transactionTime
    clockTolerance = options.clockTolerance
  }

  /// Runs `body`, which is to apply one group, and adds what it reports if it succeeds. If a change
  /// set cannot be applied because of its content, refuses it, or applies the group one by one to
  /// find out which one it is.
  mutating func attempt(
    _ report: inout ApplyReport, _ body: (inout Self, inout ApplyReport) throws -> Void
  ) throws {
    let before = self
    var attempted = report
    do {
      try body(&self, &attempted)
      report = attempted
    } catch let fault as ChangeSetFault {
      // Nothing of the group was applied.
      self = before
      if fault.isAlone {
        pending.refuse(fault.item)
        report.refused.append(fault.refusal)
      } else {
        rowsPerTransaction = 0
      }
    }
  }

  /// Prepares the transaction of a group.
  func begin(_ session: StoreSession, _ report: ApplyReport) throws {
    for refused in report.refused {
      // They come again from the directory.
      try session.inbox.remove(of: refused.client, after: refused.number - 1)
    }
  }

  /// Applies at least one change set, and more until none is left that can be applied or the
  /// transaction has its full number of rows or its full time. Adds those to the report.
  mutating func apply(
    _ session: StoreSession, _ report: inout ApplyReport,
    _ onApplied: (AppliedChangeSet) -> Void
  ) throws {
    try session.setCache(pending.isLarge ? .applyingLarge : .applying)
    let apply = ChangeApply(
      session: session, clockTolerance: clockTolerance, checkCancellation: checkCancellation)
    var rows = 0
    var count = 0
    var last: PendingChangeSets.Item?
    let deadline = transactionTime.map { ContinuousClock.now + $0 }
    do {
      while count == 0
        || rows < rowsPerTransaction && deadline.map({ ContinuousClock.now < $0 }) ?? true
      {
        guard let next = try pending.takeNext(session, binding) else {
          isDone = true
          break
        }
        last = next
        count += 1
        try checkCancellation()
        try next.check(session, binding)
        onApplied(
          try apply.apply(
            try next.changeSet(session), hash: next.hash, byteCount: next.byteCount))
        rows += next.rowCount
        try session.inbox.remove(of: next.header.client, through: next.header.number)
        if next.header.client == session.ownClient { try session.completeOwn() }
      }
      if pending.rest.isEmpty { isDone = true }
      try apply.finish()
    } catch {
      guard let last, let fault = ChangeSetFault(error, in: last, isAlone: count == 1) else {
        throw error
      }
      throw fault
    }
    if !apply.report.unknownNames.isEmpty {
      var warning = SyncWarning(
        .schemaAhead,
        message: "another device has tables or columns that this device does not have yet")
      warning.names = apply.report.unknownNames.sorted()
      session.conflicts.warn(warning)
    }
    report.add(apply.report)
  }

  /// Ends the transaction of a group: stores the rest in the inbox after the last group.
  func end(_ session: StoreSession, _ report: inout ApplyReport) throws {
    if isDone {
      for received in pending.rest.compactMap(\.received) { try session.inbox.add(received) }
      report.waiting = try pending.waiting(session)
      report.openConflicts = try session.conflicts.journal.openCount
      report.parkedRows = try session.keptRows.parkedCount()
    }
    try UnreportedQuestions.add(session.conflicts.questions, to: session.records)
    report.add(session.conflicts)
  }
}

extension ApplyReport {
  fileprivate mutating func add(_ other: ApplyReport) {
    applied += other.applied
    insertedRows += other.insertedRows
    updatedRows += other.updatedRows
    deletedRows += other.deletedRows
    unknownNames.formUnion(other.unknownNames)
  }

  fileprivate mutating func add(_ recorder: ConflictRecorder) {
    conflicts += recorder.count
    questions += recorder.questions.sorted().filter { !questions.contains($0) }
    warnings = SyncWarning.joining(warnings + recorder.takeWarnings())
  }
}
