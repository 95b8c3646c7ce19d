import SyncModel

/// What the edits of a table have done to its counters, batch by batch.
struct ExportedCounters {
  /// The edits of one counter in one batch.
  struct Edit {
    var row: RowIdentity
    var fingerprint: RowFingerprint
    var column: Int
    /// The value before the edits, in the table; `nil` if the log has none.
    var base: Value?
    /// The value that the table shows.
    var now: Value
    /// The stored counter; `nil` if bookkeeping has none.
    var known: Value?
    /// The stamp of the value to which the additions belong.
    var since: Stamp
    var time: HybridTime
    /// Whether no later batch has edits of the table.
    var isLast: Bool
  }

  /// What an edit has done to a counter.
  enum Outcome {
    /// Nothing that is not sent already.
    case nothing
    /// It has added to the counter.
    case added(CounterValue, HybridTime)
    /// It has set the counter.
    case set
  }

  private let client: ClientIdentifier
  private let waitingSums: WaitingSums
  /// The counters of the current row to which something was added.
  private(set) var toKeep: [(column: Int, value: Value)] = []
  /// The rows whose insertion was exported, if a later batch may contain additions to their
  /// counters: the insertion includes the additions, since it has the values of the table.
  private var inserted: Set<RowFingerprint> = []
  /// The counters that an exported update has set, if a later batch may contain additions to them:
  /// the update includes the additions, too.
  private var set: [RowFingerprint: ColumnSet] = [:]
  /// The counters to which the edits of a batch have added, if a later batch may contain additions to
  /// them: their sum includes these, too, also if it is 0 and was not exported.
  private var summed: [RowFingerprint: ColumnSet] = [:]

  init(of access: TableAccess, _ session: StoreSession) throws {
    client = session.ownClient
    waitingSums = try WaitingSums(of: access, session)
  }

  mutating func beginRow() { toKeep.removeAll() }

  /// Notes that the insertion of a row was exported, and that a later batch may contain edits of it.
  mutating func noteInsertion(of row: RowFingerprint) { inserted.insert(row) }

  /// Returns what an update has done to a counter, and notes it for the later batches.
  mutating func export(_ edit: Edit) -> Outcome {
    if inserted.contains(edit.fingerprint) || isAddedToSetCounter(edit) { return .nothing }
    guard let (counter, before) = counter(after: edit) else {
      if !edit.isLast {
        set[edit.fingerprint, default: ColumnSet()].formUnion(ColumnSet(edit.column))
      }
      return .set
    }
    guard let sum = counter.sums[client], counter != before else { return .nothing }
    let added = CounterValue.added(
      sum: sum.value, before: before.sums[client], since: edit.since)
    return .added(added, sum.time)
  }

  /// Returns the counter with the additions since the last sealing, and as it was before them; `nil`
  /// if it was set to or from something other than a number.
  private mutating func counter(after edit: Edit) -> (counter: Counter, before: Counter)? {
    let before =
      edit.known.flatMap { CounterValue($0)?.counter } ?? edit.base.flatMap { Counter(base: $0) }
    guard var before else { return nil }
    let isSummed = summed[edit.fingerprint]?.contains(edit.column) ?? false
    let shown = isSummed ? edit.now : before.total
    if edit.now != shown, !waitingSums.isEmpty,
      let waiting = waitingSums.sum(of: edit.row, column: edit.column, since: edit.since)
    {
      before.merge(waiting, of: client)
    }
    var counter = before
    guard counter.add(from: shown, to: edit.now, by: client, at: edit.time) else { return nil }
    if !edit.isLast {
      summed[edit.fingerprint, default: ColumnSet()].formUnion(ColumnSet(edit.column))
    }
    if !counter.sums.isEmpty {
      toKeep.append((edit.column, CounterValue.counter(counter).encoded))
    }
    return (counter, before)
  }

  /// Returns whether an update adds to a counter that an earlier batch has set.
  private func isAddedToSetCounter(_ edit: Edit) -> Bool {
    guard set[edit.fingerprint]?.contains(edit.column) == true, let base = edit.base else {
      return false
    }
    return Counter(base: base) != nil && Counter(base: edit.now) != nil
  }
}
