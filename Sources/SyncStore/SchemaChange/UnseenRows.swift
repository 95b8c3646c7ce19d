import GRDB
import SyncModel

/// Rows that were inserted unseen into remade tables.
struct UnseenRows {
  let session: StoreSession

  /// Returns the numbers of the rows that were inserted unseen into a remade table. They get the identities
  /// that the comparison will give them, since rows that refer to them are sealed before it.
  ///
  /// In a table with rows from before syncing, the numbers tell which rows are not new. A row whose
  /// number triggers have seen come and go may be the one that they saw, or another one.
  func keys(in id: Int) throws -> Set<Int64> {
    let table = session.schema[id]
    guard table.identity == .surrogate else { return [] }
    let access = try session.access(id)
    let key = quoted(table.keyColumns[0])
    let reading = try SQLStatement(
      "SELECT \(key) FROM \(table.quotedName) "
        + "WHERE \(key) NOT IN (SELECT key FROM \(table.identityName)) "
        + "AND (\(key) NOT IN (SELECT k0 FROM \(table.logName)) "
        + "OR \(key) IN (\(StoreSession.numbersOfTransientRows(table))))", on: session.database)
    var found: [Int64] = []
    while try reading.step() { found.append(reading.integer(at: 0)) }
    var keys: Set<Int64> = []
    for number in found {
      if table.hasUnstampedRows, try session.originalKeys().mayContain(number, of: table),
        try !access.hasOriginalMoved(from: number),
        try !session.isGone(try access.originalIdentity(of: number), access)
      {
        continue
      }
      keys.insert(number)
    }
    return keys
  }

  /// Logs all rows of remade tables whose former rows are unknown. The entries are of 1970, so that
  /// any captured edit takes precedence, but those for rows with a known deletion are of the time
  /// at which the remake was noticed.
  func logRemadeTables() throws {
    let remade = try session.remadeTables()
    guard !remade.isEmpty else { return }
    try session.goneKeys.freeThoseOfHiddenRows(onlyTaken: true)
    for (table, noticed) in remade {
      try SchemaArrival(session: session).logRows(of: table.id, noticed: noticed)
    }
    // What is remembered of keys in the log is out of date.
    session.forgetGoneKeys()
    try session.forgetRemadeTables(remade.map(\.table.id))
  }
}
