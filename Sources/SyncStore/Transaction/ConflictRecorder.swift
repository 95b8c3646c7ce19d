import GRDB
import SyncModel

/// The recorder of the conflicts of one transaction. It writes the conflicts that are found while
/// changes are merged into the journal, and gathers those that policies decide afterwards.
final class ConflictRecorder {
  /// This client's short number.
  private let own: Int32
  /// The time at which the transaction began, in milliseconds since 1970.
  private let now: Int64
  let journal: ConflictJournal
  /// The number of the last entry before the transaction.
  var lastBefore: Int64 = .max
  /// The rows for which this transaction has entered a conflict about the whole row.
  var noted: Set<RowKey> = []

  /// The number of cells and rows for which two sides had concurrent changes.
  var count = 0
  /// Open questions that are new, or have a new side.
  var questions: Set<Int64> = []
  /// Cells that a policy decides when all changes are merged, in order.
  var decisions: [CellDecision] = []
  var decisionIndex: [CellKey: Int] = [:]
  /// The rows that a policy brings back when all changes are merged, each with the changes that bring it back.
  var rebirths: [RowKey: [Rebirth]] = [:]
  private var warnings = WarningCounter()
  /// What is to be said of rows that one side has deleted, unless they are shown in the end.
  private var deletions: [RowKey: Deletions] = [:]

  private struct Deletions {
    var count = 0
    var warnings: [SyncWarning] = []
  }
  /// This device's former client while its old change sets are republished.
  var previousClient: Int32?

  /// A cell of which this device had an unpublished value.
  struct CellDecision {
    var cell: CellKey
    var policy: ConflictPolicy
    /// Its entry in the journal.
    var number: Int64
    var base: Value?
    var local: Value
    /// The newest value that has arrived and is in conflict.
    var remote: (value: Value, stamp: LocalStamp)
    /// What this device had in the other columns of the register. A later change may give them
    /// values that are in no conflict, since an earlier one has taken over what was here.
    var others: [(column: Int, value: Value)] = []
  }

  /// A change because of which a policy brings a row back.
  struct Rebirth {
    var policy: ConflictPolicy
    var number: Int64
    /// The stamp of the change that arrived.
    var stamp: LocalStamp
    /// Its cells as far as they are known, and what the edit changes.
    var cells: [(column: Int, value: Value, stamp: LocalStamp)]
  }

  init(journal: ConflictJournal, own: Int32, now: Int64) {
    self.journal = journal
    self.own = own
    self.now = now
  }

  /// Forgets the decisions and rebirths that have been carried out.
  func removeDecisions() {
    decisions = []
    decisionIndex = [:]
    rebirths = [:]
  }

  func warn(_ warning: SyncWarning) { warnings.add(warning) }

  /// Warns of a row that one side has deleted and the other one has edited, unless it is shown in the end.
  func warn(_ warning: SyncWarning, ofDeleted row: RowKey) {
    deletions[row, default: Deletions()].warnings.append(warning)
  }

  /// Counts an entry about a row that one side has deleted and the other one has edited.
  func countDeletion(of row: RowKey) {
    count += 1
    deletions[row, default: Deletions()].count += 1
  }

  /// Notes that such a row is shown: there is nothing to warn of.
  ///
  /// - Parameter isRescued: Whether it is shown although it is deleted. Then the entries about it are gone, too.
  func noteShown(_ row: RowKey, isRescued: Bool) {
    guard let deletions = deletions.removeValue(forKey: row) else { return }
    if isRescued { count -= deletions.count }
  }

  /// Returns the warnings so far, and forgets them: the caller reports them.
  func takeWarnings() -> [SyncWarning] {
    defer { warnings = WarningCounter() }
    let left = deletions.values.flatMap(\.warnings).sorted {
      ($0.code.rawValue, $0.table?.text ?? "", $0.names.map(\.text).joined())
        < ($1.code.rawValue, $1.table?.text ?? "", $1.names.map(\.text).joined())
    }
    left.forEach { warnings.add($0) }
    for row in deletions.keys { deletions[row]?.warnings = [] }
    return warnings.all
  }

  func ask(_ number: Int64) { questions.insert(number) }

  func add(_ entry: ConflictJournal.Entry) throws -> Int64 {
    if lastBefore == .max { lastBefore = try journal.summary().last }
    if entry.column == nil { noted.insert(entry.row) }
    return try journal.add(entry)
  }

  /// Adds an entry about a cell that is decided; there may be many of these.
  func addSettled(_ entry: ConflictJournal.Entry) throws {
    if lastBefore == .max { lastBefore = try journal.summary().last }
    try journal.addSettled(entry)
  }

  /// Returns whether the change is this device's own, applied again: it is the local side all the
  /// same.
  func isReturning(_ local: LocalStamp?, _ remote: LocalStamp?) -> Bool {
    isOwn(remote?.client) && !isOwn(local?.client)
  }

  func isOwn(_ client: Int32?) -> Bool {
    client.map { $0 == own || $0 == previousClient } ?? false
  }

  /// Gives the new values to an open question about the cell or the row, and enters the question's
  /// former version in the journal. Returns false if there is no such question.
  func supersede(_ entry: ConflictJournal.Entry) throws -> Bool {
    guard var open = try journal.openEntry(entry.row, column: entry.column) else { return false }
    if entry.column == nil, entry.local == nil, open.local != nil, open.remote == nil,
      !isOwn(entry.localStamp?.client)
    {
      // One more edit of a row whose deletion the question contains. Otherwise no answer would keep it deleted.
      _ = try add(entry)
      questions.insert(open.number)
      return true
    }
    var history = open
    history.status = .superseded
    _ = try add(history)
    let isFromRemote = (entry.local ?? []).elementsEqual(open.remote ?? [], by: ==)
    if isOwn(entry.localStamp?.client) {
      open.local = entry.local
      open.localStamp = entry.localStamp
    } else if !isFromRemote {
      // A later value of another device, which the question does not contain.
      _ = try add(entry)
    }
    open.remote = entry.remote
    open.remoteStamp = entry.remoteStamp
    open.outcome = entry.outcome
    open.at = now
    try journal.write(open)
    questions.insert(open.number)
    return true
  }
}
