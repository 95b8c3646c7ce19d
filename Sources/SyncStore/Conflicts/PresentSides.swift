import SyncModel

/// The comparison of the sides of conflicts with what the store shows now.
struct PresentSides {
  let session: StoreSession
  private let shown: ShownRows

  init(session: StoreSession) {
    self.session = session
    shown = ShownRows(session: session)
  }

  /// Returns what is shown now in place of the two sides of an entry; `nil` if its table or its
  /// column is not synchronized any more.
  func present(_ entry: ConflictJournal.Entry) throws -> Conflict.Present? {
    guard session.schema.contains(entry.row.table) else { return nil }
    let access = try session.access(entry.row.table)
    let state = try access.stamps.state(of: access.fingerprint(entry.row.identity))
    let kept = state?.isKept == true ? try session.keptRows.row(entry.row) : nil
    let isShown =
      switch kept?.reason {
      // Its table shows another row under its identity, or it under another identity.
      case .borrowed: false
      case .elsewhere: true
      default: try access.shown(entry.row.identity) != nil
      }
    guard let column = entry.column else {
      return Conflict.Present(isShown: isShown, outcome: outcome(of: entry, isShown: isShown))
    }
    guard column < access.table.columns.count else { return nil }
    let elsewhere = kept?.reason == .elsewhere ? kept?.cells.first { $0.column == column } : nil
    guard isShown,
      let current = try elsewhere?.value
        ?? shown.cell(CellKey(row: entry.row, column: column))?.value
    else { return Conflict.Present(isShown: false, outcome: nil) }
    // Of a counter only the sum counts.
    func has(_ side: [ConflictJournal.Entry.Cell]?) -> Bool {
      guard let value = side?.first?.value else { return false }
      let column = access.table.columns[column]
      return value == current
        || column.domain == .counter && column.number(value) == column.number(current)
    }
    let definition = access.table.columns[column]
    return Conflict.Present(
      isShown: true,
      outcome: has(entry.local) ? .local : has(entry.remote) ? .remote : .other,
      value: definition.domain == .counter ? definition.number(current) : current)
  }

  /// Returns which side of a conflict about a whole row is shown: a row that is not shown is as the
  /// side without cells has it.
  private func outcome(of entry: ConflictJournal.Entry, isShown: Bool) -> Conflict.Outcome {
    if isShown, entry.kind != .existence || entry.outcome == .both { return .both }
    return isShown == (entry.local != nil) ? .local : .remote
  }

  /// Returns whether a later edit has replaced the outcome of the rule that settled a conflict.
  func isSuperseded(_ entry: ConflictJournal.Entry, by present: Conflict.Present) throws -> Bool {
    guard entry.status == .settled else { return false }
    // An edit that is not sealed yet has no stamp.
    let isOther = present.outcome.map { $0 != entry.outcome } ?? false
    switch entry.rule {
    case .latestWins, .deleteWins, .editWins, .uniqueValue, .reference, .condition:
      return try isOther || isLater(than: entry)
    default:
      // The decision was an edit itself, which is later than both sides.
      return isOther && entry.outcome != .other
    }
  }

  /// Returns whether the present stamp is above those of both sides.
  private func isLater(than entry: ConflictJournal.Entry) throws -> Bool {
    let sides = [entry.localStamp, entry.remoteStamp].compactMap(\.self)
    let access = try session.access(entry.row.table)
    guard !sides.isEmpty,
      let state = try access.stamps.state(of: access.fingerprint(entry.row.identity))
    else { return false }
    let present = entry.column.map(state.stamp) ?? state.existenceStamp
    return sides.allSatisfy { session.clients.precedes($0, present) }
  }
}
