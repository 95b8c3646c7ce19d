/// The status of a row outside a working set, in decisions on the rows of the set.
enum OutsideRow {
  /// Its table shows it, or showed it until a program remade the table.
  case shown
  /// It is not shown, and bookkeeping has an entry for it (``KeptRow``).
  case kept
  /// It is not shown, and bookkeeping has no such entry.
  case absent
}

extension StoreSession {
  /// Returns the status of a row. A row that awaits a comparison counts as absent from its table,
  /// as it does when it is loaded, unless bookkeeping has no state of it: it may be as old as its
  /// table.
  func outsideRow(_ row: RowKey) throws -> OutsideRow {
    let access = try access(row.table)
    let isInTable = try access.shown(row.identity) != nil
    let state =
      try isInTable && tablesToCompare().isEmpty
      ? nil : access.stamps.state(of: access.fingerprint(row.identity))
    if isInTable, try !countsAsAbsent(row, state) { return .shown }
    if state?.isKept == true { return .kept }
    return try wentUnseen(row, state) ? .shown : .absent
  }
}
