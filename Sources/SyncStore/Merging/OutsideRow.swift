/// How a row outside a working set takes part in decisions on the rows in it.
enum OutsideRow {
  /// Its table shows it, or did until a program made the table again.
  case shown
  /// It is not shown, and bookkeeping has an entry for it (``KeptRow``).
  case kept
  /// It is not shown, and bookkeeping has no such entry.
  case absent
}

extension StoreSession {
  /// How a row takes part in decisions. A row that awaits a comparison counts as absent from its
  /// table, as where it is loaded, unless nothing is known of it: it may be as old as its table.
  func outsideRow(_ row: RowKey) throws -> OutsideRow {
    let access = try access(row.table)
    let isInTable = try access.shown(row.identity) != nil
    let state =
      try isInTable && tablesToCompare().isEmpty
      ? nil : access.stamps.state(of: access.fingerprint(row.identity))
    if isInTable, try state == nil || !isUncompared(row, state) { return .shown }
    if state?.isKept == true { return .kept }
    return try wentUnseen(row, state) ? .shown : .absent
  }
}
