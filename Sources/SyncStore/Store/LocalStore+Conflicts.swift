import SyncModel

/// The conflict journal, and the decisions on conflicts.
///
/// Each method is one transaction of SQLite. Each may run during a synchronization: another process
/// may give an answer while the synchronization waits for it.
extension LocalStore {
  /// Returns the open conflicts that synchronizations have left undecided and that no report has told yet
  /// (``noteQuestionsReported()``), and those of them about which the delegate was not asked
  /// (``noteQuestionsAsked()``), by their numbers, in ascending order.
  package func unreportedQuestions() throws -> (all: [Int64], unasked: [Int64]) {
    guard let bytes = try record(UnreportedQuestions.key) else { return ([], []) }
    let questions = try UnreportedQuestions(bytes)
    let open = try read { try ConflictTable.openNumbers($0.database) }
    let all = questions.numbers.intersection(open)
    return (all.sorted(), all.subtracting(questions.asked).sorted())
  }

  /// Notes that the delegate was asked about all of them. Idempotent.
  package func noteQuestionsAsked() throws {
    try write { try UnreportedQuestions.noteAsked($0.records) }
  }

  /// Notes that a report has told all of them. Idempotent.
  package func noteQuestionsReported() throws {
    try setRecordAlone(UnreportedQuestions.key, to: nil)
  }

  /// Returns the entries of the journal that are in the store, the newest first. Older ones are in the
  /// file beside it: see ``conflicts(before:limit:)``.
  ///
  /// - Parameter onlyOpen: Whether to leave out conflicts that are decided.
  package func conflicts(onlyOpen: Bool = false) throws -> [Conflict] {
    try read { session in
      try ConflictNames(session: session).conflicts(
        session.conflicts.journal.entries(onlyOpen ? "WHERE status = 'open'" : "", []))
    }
  }

  /// Returns a part of the entries in the store and in the file beside it, the newest first. Leaves
  /// out what cannot be read: see ``conflictPlaces()``.
  ///
  /// - Parameters:
  ///   - number: The number before which the page begins; `nil` for the first one.
  ///   - limit: The most entries of the page; never more than ``Conflict/Page/greatestLimit``.
  package func conflicts(before number: Int64?, limit: Int) throws -> Conflict.Page {
    let limit = min(max(limit, 0), Conflict.Page.greatestLimit)
    let number = number.map { max($0, 1) }
    return try read { session in
      let journal = session.conflicts.journal
      let names = ConflictNames(session: session)
      let numbers = try journal.numbers(before: number ?? .max, limit: limit)
      let stored = try numbers.filter { $0.block == nil }.compactMap {
        try journal.entry($0.number)
      }
      let found =
        try names.conflicts(stored) + names.conflicts(journal.archivedEntries(numbers))
      return Conflict.Page(
        conflicts: found.sorted { $0.number > $1.number },
        next: numbers.count < limit ? nil : numbers.last?.number)
    }
  }

  /// Returns one entry of the journal, also if it is in the file beside the store. Throws
  /// `noSuchConflict`, and `notReadable` if it may be in the file and that cannot be read.
  package func conflict(_ number: Int64) throws -> Conflict {
    try read { session in
      let journal = session.conflicts.journal
      let names = ConflictNames(session: session)
      if try journal.entry(number) == nil, let archived = try journal.archivedEntry(number) {
        return try names.conflicts([archived.entry])[0]
      }
      return try names.conflicts([ConflictAnswers(session: session, path: path).entry(number)])[0]
    }
  }

  /// Returns the number of open questions.
  package func openConflictCount() throws -> Int {
    try read { try $0.conflicts.journal.openCount }
  }

  /// The end of the name of the file beside a store that has its older conflicts.
  package static let archiveSuffix = ConflictArchive.suffix

  /// Copies the file with the older conflicts of a store, to be that of a copy of the store.
  package static func copyArchive(from path: String, to other: String) throws {
    try ConflictArchive.copy(from: path, to: other)
  }

  /// Removes the file beside the store if it is that of a store which this one has replaced. The backup
  /// of that one has a copy.
  package func removeFormerArchive() throws {
    try write { session in
      try ConflictArchive.removeFormer(
        beside: path, unlessOf: session.conflicts.journal.archiveMarks())
    }
  }

  /// Returns the path of the file with the older conflicts of a store.
  package static func archivePath(beside path: String) -> String {
    ConflictArchive.path(beside: path)
  }

  /// Moves the file with the older conflicts of a store that is about to be moved. If something has
  /// the new name already, that is moved aside.
  package static func moveArchive(from path: String, to other: String) throws {
    try ConflictArchive.move(from: path, to: other)
  }

  /// Returns how many entries are in the store, and how many in the file beside it.
  package func conflictPlaces() throws -> Conflict.Places {
    try read { try $0.conflicts.journal.places() }
  }

  /// Returns a summary of the conflicts that the journal does not have any more.
  package func droppedConflicts() throws -> Conflict.Dropped { try conflictPlaces().dropped }

  /// Tries once more to move older conflicts to the file beside the store if that could not be
  /// written. Returns the warnings about the file. If there are none, reads one value only.
  package func settleConflictArchive() throws -> [SyncWarning] {
    do {
      guard try read({ try $0.conflicts.journal.isArchiveUnsettled }) else { return [] }
      return try write { try $0.conflicts.journal.settleArchive() }
    } catch let error as StoreError where error.code == .damaged {
      // The journal must not stop a synchronization; verifying finds the damage.
      return []
    }
  }

  // MARK: - Policies

  /// Returns the policies of this store.
  package func policies() throws -> SyncPolicies {
    try read { try SyncPolicies.read($0.database) }
  }

  /// Changes the policies, durably. Throws `badPolicy`, and changes
  /// nothing, if they name tables or columns that are not synchronized.
  package func setPolicies(_ change: (inout SyncPolicies) throws -> Void) throws {
    try write { session in
      // The log does not contain the values that earlier edits replaced.
      try store.seal(session, comparesRemade: false, checkCancellation: {})
      var policies = try SyncPolicies.read(session.database)
      try change(&policies)
      try policies.check(session.schema, path)
      try policies.write(to: session.records)
    }
    store.forgetSchema()
    // Renews the triggers: policies determine what they log.
    try write { _ in }
  }

  // MARK: - Deciding

  /// Answers an open question by an ordinary edit, unless the chosen value is shown already. If
  /// columns belong together and the answer is one of the two sides, it answers the questions about
  /// the other columns too.
  ///
  /// Throws `noSuchConflict`, `conflictNotOpen` if it was decided before, and `editRefused`, with
  /// nothing changed, if a constraint refuses the edit. If the question is about a cell of a row that
  /// does not exist any more, any answer closes it.
  ///
  /// Returns the same as ``restoreConflict(_:side:)``.
  @discardableResult
  package func resolveConflict(_ number: Int64, by answer: Conflict.Answer) throws -> [SQLName] {
    try editing(number) { $1 ? [] : try $0.answer(number, by: answer) }
  }

  /// Restores the side that is not shown now, by an ordinary edit: the value of a cell, with those of the
  /// columns that belong to it, or a row with all cells that are known.
  ///
  /// - Parameter side: The side to restore; `nil` for the one that is not shown now. Required if
  ///   neither is shown.
  ///
  /// Throws `noSuchConflict`, `conflictNotOpen` if it is an open question or was restored, and
  /// `editRefused`, with nothing changed, if a constraint refuses the edit or nothing can be
  /// restored.
  ///
  /// Returns the columns of a row that has come back that have their defaults, since this store does not
  /// know their values.
  @discardableResult
  package func restoreConflict(
    _ number: Int64, side: Conflict.Outcome? = nil
  ) throws -> [SQLName] {
    try editing(number) { answers, _ in try answers.restore(number, side: side) }
  }

  /// Edits. Seals local edits first if one of them may have given the number of a row that is gone to another row.
  ///
  /// Then it seals what it has edited if that contains plain values that are keys of rows here, since nothing would
  /// distinguish these from references later, or if a row has got another number, which no state names until then.
  ///
  /// - Parameter edit: Gets whether the sealing has closed the question, since its row is gone.
  private func editing(
    _ number: Int64, _ edit: (ConflictAnswers, _ isClosed: Bool) throws -> [SQLName]
  ) throws -> [SQLName] {
    try store.passingOverTriggers {
      try write { session in
        let journal = session.conflicts.journal
        let wasOpen = try journal.entry(number)?.status == .open
        if try session.mayHavePassedOnKeys() {
          try store.seal(session, comparesRemade: false, checkCancellation: {})
        }
        let isClosed = try wasOpen && journal.entry(number)?.status == .superseded
        let unknown = try edit(ConflictAnswers(session: session, path: path), isClosed)
        if let row = try session.conflicts.journal.entry(number)?.row {
          try GoneQuestions(session: session).close(of: row)
        }
        if session.hasWrittenPlainValues || session.hasAssignedKeys {
          try store.seal(session, comparesRemade: false, checkCancellation: {})
        }
        return unknown
      }
    }
  }
}
