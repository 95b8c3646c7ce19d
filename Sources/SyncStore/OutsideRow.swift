/// How a row that is not in a working set takes part in what is decided of the others.
enum OutsideRow {
  /// Its table shows it, or did until a program made the table again.
  case shown
  /// It is not shown, and more is known of it.
  case kept
  /// It is not shown, and no more is known of it.
  case absent
}

extension StoreSession {
  /// How a row takes part in what is decided. One that awaits a comparison counts as absent from
  /// its table, as where it is loaded, unless nothing is known of it: it may be as old as its table.
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
