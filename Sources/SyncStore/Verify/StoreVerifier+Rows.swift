import GRDB
import SyncModel

extension StoreVerifier {
  /// Compares the rows of all tables with the bookkeeping about them.
  func checkRows(_ session: StoreSession) throws {
    expect(steps: session.schema.tables.count)
    let before = result.report.findings.count
    try checkKeptRows(session)
    try guarded("docsync_foreign", .keptRowDamaged) { try checkForeignRows(session) }
    let edited = try session.tablesWithEdits()
    let renamed = session.schema.tablesNamed(after: Set(edited.map(\.id)))
    for table in session.schema.tables {
      try step()
      if table.identity == .surrogate { try checkIdentities(of: table, session) }
      // Sealing finds such rows under their former names.
      if renamed.contains(table.id) { continue }
      try guarded(SQLName(table.stampsName), .stampsDamaged) {
        try RowComparison(self, table, session).run()
      }
    }
    if !edited.isEmpty {
      leaveOut(
        "the rows, since some edits are not sent yet. Verify again after the next synchronization.")
    } else if try isToBeDecidedAgain(session) {
      leaveOut(
        "the rows, since the next synchronization decides again which are shown. Verify again after it."
      )
    } else if result.report.findings.count > before {
      leaveOut("the rows, since the bookkeeping is damaged.")
    } else {
      try guarded("docsync_kept", .keptRowDamaged) { try checkShown(session) }
    }
    for table in session.schema.tables {
      let count = try session.rowsWithoutKey(table)
      guard count > 0 else { continue }
      note(
        .rowWithoutKey, table.name,
        count == 1
          ? "1 row has NULL in its key, so that no other device has it."
          : "\(count) rows have NULL in their key, so that no other device has them.")
    }
  }

  /// Returns whether the next synchronization decides again which rows are shown: an earlier
  /// version with other rules has decided it, or there is another reason.
  private func isToBeDecidedAgain(_ session: StoreSession) throws -> Bool {
    let format = try Bookkeeping.format(of: database) ?? 0
    return try format < Bookkeeping.fourthFormat || session.isSettlingDue()
  }

  // MARK: - Kept rows

  /// Checks that all rows of ``KeptRows`` can be read, and that claims and references are noted for
  /// these rows only.
  private func checkKeptRows(_ session: StoreSession) throws {
    let columns = Dictionary(
      uniqueKeysWithValues: session.schema.tables.map { ($0.id, $0.columns.count) })
    let reading = try KeptRows.reading(database)
    while try reading.step() {
      try checkCancellation()
      if session.schema.passesOver(Int(reading.integer(at: 0))) { continue }
      let identity = RowIdentity(bytes: reading.bytes(at: 3))
      func damaged(_ message: String, _ detail: String? = nil) {
        note(
          .keptRowDamaged, "docsync_kept", message,
          detail: "row \(identity.hexadecimal)" + (detail.map { ": \($0)" } ?? ""))
      }
      guard let count = columns[Int(reading.integer(at: 0))] else {
        damaged("A hidden row belongs to a table that does not exist.")
        continue
      }
      if KeptRow.Reason(rawValue: reading.text(at: 1)) == nil {
        damaged("A hidden row has no reason.", reading.text(at: 1))
      }
      do {
        let cells = try KeptCells.decode(reading.bytes(at: 2))
        if cells.contains(where: { $0.column >= count }) {
          damaged("A hidden row has cells of columns that do not exist.")
        }
      } catch let error as DatabaseError {
        damaged("The cells of a hidden row cannot be read.", error.message)
      }
    }
    for table in [KeptRows.claims, KeptRows.references] {
      let count = try KeptRows.strayCount(in: table, database)
      guard count > 0 else { continue }
      note(
        .keptRowInconsistent, SQLName(table.name), "\(count) entries belong to no hidden row.")
    }
  }

  /// Checks that the rows that are stored for unknown tables can be read.
  private func checkForeignRows(_ session: StoreSession) throws {
    for table in try session.foreign.all() {
      var last: RowIdentity?
      while true {
        try checkCancellation()
        let rows = try session.foreign.rows(of: table, after: last, limit: 1_000)
        guard let final = rows.last else { break }
        last = final.identity
      }
    }
  }

  // MARK: - Identities

  /// Checks that each integer key has one identity and each identity one key.
  private func checkIdentities(of table: TableSchema, _ session: StoreSession) throws {
    let access = try session.access(table.id)
    let name = table.identityName
    let wrong =
      try Int.fetchOne(
        database,
        sql: "SELECT count(*) FROM \(name) WHERE typeof(identity) <> 'blob' "
          + "OR length(identity) <> 16") ?? 0
    if wrong > 0 {
      note(.identityAmbiguous, table.name, "\(wrong) identities of rows are invalid.")
    }
    let twice = try SQLStatement(
      "SELECT identity, count(*) FROM \(name) GROUP BY identity HAVING count(*) > 1", on: database)
    while try twice.step() {
      note(
        .identityAmbiguous, table.name, "Two keys have the identity of one row.",
        detail: "row \(RowIdentity(bytes: twice.bytes(at: 0)).hexadecimal)")
    }
    for stray in try session.goneKeys.strayEntries(in: table.id, isNeedless: true)
    where stray.identity.bytes.count == 16 {
      let state = try access.stamps.state(of: access.fingerprint(stray.identity))
      guard state?.isKept != true else { continue }
      let row = RowKey(table: table.id, identity: stray.identity)
      if try session.goneKeys.isHeld(stray.key, of: row) { continue }
      note(
        .identityOrphaned, table.name, "An identity belongs to a row that does not exist.",
        detail: "key \(stray.key), row \(stray.identity.hexadecimal)")
    }
  }
}

/// A comparison of the rows that a table shows with those that bookkeeping knows. It reads both in
/// order of fingerprint, so that memory does not grow with the number of rows.
private struct RowComparison {
  private enum Place: Int64 {
    case shown = 0
    case kept = 1
    case pending = 2
  }

  /// The places in which one row was found.
  private struct Found {
    var fingerprint: RowFingerprint
    var shown = 0
    var kept: KeptRow.Reason?
    var isPending = false
    var identity: RowIdentity
  }

  private let verifier: StoreVerifier
  private let table: TableSchema
  private let session: StoreSession
  private let access: TableAccess
  private let sorted: SQLStatement

  init(_ verifier: StoreVerifier, _ table: TableSchema, _ session: StoreSession) throws {
    self.verifier = verifier
    self.table = table
    self.session = session
    access = try session.access(table.id)
    // `temp` is not part of the store.
    try session.database.execute(
      sql: "CREATE TEMP TABLE IF NOT EXISTS docsync_verify "
        + "(high INTEGER, low INTEGER, place INTEGER, identity BLOB, reason TEXT); "
        + "DELETE FROM temp.docsync_verify")
    sorted = try SQLStatement(
      "SELECT high, low, place, identity, reason FROM temp.docsync_verify ORDER BY high, low",
      on: session.database)
  }

  func run() throws {
    try collect(.shown, "SELECT \(keys("")) FROM \(table.quotedName)")
    try collect(
      .pending,
      "SELECT DISTINCT \(table.keyColumns.indices.map { "k\($0)" }.joined(separator: ", ")) "
        + "FROM \(table.logName)")
    try collectKept()
    var next = try sorted.step() ? try group() : nil
    try access.stamps.forEach { fingerprint, state in
      try verifier.checkCancellation()
      while let found = next, found.fingerprint < fingerprint {
        judge(found, nil)
        next = try following()
      }
      if let found = next, found.fingerprint == fingerprint {
        judge(found, state)
        next = try following()
      } else if state.existence == .inserted {
        verifier.note(
          .rowMissing, table.name, "A row was inserted, and is not in its table.",
          detail: state.localKey.map { "key \($0)" })
      }
    }
    while let found = next {
      judge(found, nil)
      next = try following()
    }
  }

  private func judge(_ found: Found, _ state: RowState?) {
    verifier.result.report.rowCount += found.shown
    guard !found.isPending else { return }
    func note(_ kind: VerifyReport.Finding.Kind, _ message: String) {
      verifier.note(kind, table.name, message, detail: "row \(found.identity.hexadecimal)")
    }
    if found.shown > 1 { note(.identityAmbiguous, "Two rows have one identity.") }
    if (state?.isKept ?? false) != (found.kept != nil) {
      note(
        .keptRowInconsistent,
        "The stored cells of a hidden row are missing, or belong to no hidden row.")
      return
    }
    switch found.kept?.isShown {
    case true?:
      if found.shown == 0 { note(.rowMissing, "A row should be shown, and is not in its table.") }
    case false?:
      if found.shown > 0 { note(.rowDeleted, "A row should be hidden, and is in its table.") }
    case nil:
      guard let state else {
        if !table.hasUnstampedRows {
          note(.rowUnknown, "A row was written and not captured.")
        }
        return
      }
      if found.shown > 0, state.existence == .deleted, !session.isRevived(state, table) {
        note(.rowDeleted, "A row was deleted, and is in its table.")
      }
    }
  }

  // MARK: - Collecting

  private func keys(_ prefix: String) -> String {
    table.keyColumns.map { prefix + quoted($0) }.joined(separator: ", ")
  }

  private func collect(_ place: Place, _ sql: String) throws {
    let reading = try SQLStatement(sql, on: session.database)
    let adding = try self.adding()
    while try reading.step() {
      let key = table.keyColumns.indices.map { reading.value(at: $0) }
      if key.contains(.null) { continue }
      try add(try access.identity(ofKey: key), place, nil, adding)
    }
  }

  private func collectKept() throws {
    let reading = try KeptRows.reading(of: table.id, session.database)
    let adding = try self.adding()
    while try reading.step() {
      try add(RowIdentity(bytes: reading.bytes(at: 0)), .kept, reading.text(at: 3), adding)
    }
  }

  private func adding() throws -> SQLStatement {
    try SQLStatement(
      "INSERT INTO temp.docsync_verify VALUES (?, ?, ?, ?, ?)", on: session.database)
  }

  private func add(
    _ identity: RowIdentity, _ place: Place, _ reason: String?, _ adding: SQLStatement
  ) throws {
    try verifier.checkCancellation()
    let fingerprint = access.fingerprint(identity)
    adding.bind(Int64(fingerprint.high), at: 1)
    adding.bind(Int64(fingerprint.low), at: 2)
    adding.bind(place.rawValue, at: 3)
    adding.bind(blob: identity.bytes, at: 4)
    if let reason { adding.bind(reason, at: 5) } else { adding.bind(null: 5) }
    try adding.run()
  }

  // MARK: - Reading in order

  private func following() throws -> Found? { isAtEnd.value ? nil : try group() }

  private final class End { var value = false }
  private let isAtEnd = End()

  /// Returns everything with the fingerprint of the statement's current row.
  private func group() throws -> Found {
    func fingerprint() -> RowFingerprint {
      RowFingerprint(
        high: UInt64(sorted.integer(at: 0)), low: UInt16(truncatingIfNeeded: sorted.integer(at: 1)))
    }
    var found = Found(
      fingerprint: fingerprint(), identity: RowIdentity(bytes: sorted.bytes(at: 3)))
    repeat {
      guard fingerprint() == found.fingerprint else { return found }
      switch Place(rawValue: sorted.integer(at: 2)) {
      case .shown?: found.shown += 1
      case .kept?: found.kept = KeptRow.Reason(rawValue: sorted.text(at: 4))
      case .pending?, nil: found.isPending = true
      }
    } while try sorted.step()
    isAtEnd.value = true
    return found
  }
}

extension RowIdentity {
  /// The bytes as hexadecimal digits.
  var hexadecimal: String {
    bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
  }
}
