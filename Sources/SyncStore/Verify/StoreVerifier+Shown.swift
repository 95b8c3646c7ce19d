import GRDB
import SyncModel

extension StoreVerifier {
  /// The number of rows that are decided at once.
  private static let rowsPerBatch = 5_000

  /// Decides again which rows are shown, with which values, and compares that with the tables.
  ///
  /// Decides all rows for which bookkeeping has an entry (``KeptRow``), and the rows of tables with
  /// references, unique values or counters. For other rows there is nothing to decide.
  func checkShown(_ session: StoreSession) throws {
    let materialized = session.schema.tables.filter {
      !$0.foreignKeys.isEmpty || !$0.uniqueIndexes.isEmpty || !$0.counters.isEmpty
        || !session.schema.inbound(to: $0).isEmpty
    }
    expect(steps: materialized.count + 1)
    let comparison = ShownComparison(self, session)
    let kept = try KeptRows.reading(database)
    while try kept.step() {
      if session.schema.passesOver(Int(kept.integer(at: 0))) { continue }
      let identity = RowIdentity(bytes: kept.bytes(at: 3))
      try comparison.add(RowKey(table: Int(kept.integer(at: 0)), identity: identity))
      if comparison.count >= Self.rowsPerBatch { try comparison.run() }
    }
    try comparison.run()
    try step()
    for table in materialized {
      let access = try session.access(table.id)
      let reading = try SQLStatement(
        "SELECT \(table.keyColumns.map(quoted).joined(separator: ", ")) FROM \(table.quotedName)",
        on: database)
      while try reading.step() {
        let key = table.keyColumns.indices.map { reading.value(at: $0) }
        if key.contains(.null) { continue }
        try comparison.add(RowKey(table: table.id, identity: try access.identity(ofKey: key)))
        if comparison.count >= Self.rowsPerBatch { try comparison.run() }
      }
      try comparison.run()
      try step()
    }
  }
}

/// The decision about a batch of rows, as applying would make it. It writes nothing.
private final class ShownComparison {
  private let verifier: StoreVerifier
  private let session: StoreSession
  private let set: WorkingSet
  private let writer: RowWriter

  init(_ verifier: StoreVerifier, _ session: StoreSession) {
    self.verifier = verifier
    self.session = session
    set = WorkingSet(session: session)
    writer = RowWriter(set: set)
  }

  var count: Int { self.set.count }

  func add(_ key: RowKey) throws {
    try verifier.checkCancellation()
    try set.row(key)
  }

  /// Decides the rows that were added, notes where they differ from the tables, and forgets them.
  func run() throws {
    guard set.count > 0 else { return }
    try decide()
    for row in set.rows { try compare(row) }
    set.removeAll()
  }

  private func decide() throws {
    // A materializer remembers the rows that it has looked for, so each batch has its own.
    let materializer = Materializer(set: set)
    var isSettled = false
    while !isSettled {
      try verifier.checkCancellation()
      try materializer.decide()
      isSettled = true
      // The table has accepted the rows that are in it.
      for row in set.rows where row.isVisible && row.shown == nil && row.failure == nil {
        guard let failure = try set.refusal(of: row) else { continue }
        (row.borrower ?? row).failure = failure
        isSettled = false
      }
    }
  }

  private func compare(_ row: WorkingRow) throws {
    let table = session.schema[row.key.table]
    func note(_ kind: VerifyReport.Finding.Kind, _ message: String, _ detail: String = "") {
      verifier.note(
        kind, table.name, message, detail: "row \(row.key.identity.hexadecimal)" + detail)
    }
    // The comparison of the remade table decides about it.
    if try session.mayHaveComeUnseen(row.key) { return }
    guard row.isVisible == (row.shown != nil) else {
      // A condition of the table may read values that stay on this device.
      if row.isVisible, try isRefusedForItself(row) { return }
      return note(
        .shownDiffers,
        row.isVisible
          ? "A row should be shown, and is hidden." : "A row should be hidden, and is shown.")
    }
    if let shown = row.shown {
      for (position, column) in table.columns.enumerated() {
        guard let value = row.shownValue(position),
          try !column.shows(
            value,
            set.local(value, column).converted(to: column.affinity),
            as: shown.values[position])
        else { continue }
        note(
          .shownDiffers, "A row shows a wrong value.", ", column \(column.name)")
      }
    }
    let kept = try writer.kept(row, table)
    guard (kept != nil) == row.wasKept else {
      return note(.keptRowInconsistent, "The stored cells of a hidden row are wrong.")
    }
    guard kept != nil else { return }
    let references = try writer.references(of: row, table)
    if !references.isSubset(of: try session.keptRows.references(of: row.key)) {
      note(.keptRowInconsistent, "A hidden row is missing in the index of references.")
    }
    // The value of an expression over a key depends on whether the key's row has one.
    let claims = writer.claimsToFind(row).filter {
      $0.index == ClaimKey.identityIndex || table.uniqueIndexes[$0.index].isPlain
    }
    if !Set(claims).isSubset(of: try session.keptRows.claims(of: row.key)) {
      note(.keptRowInconsistent, "A hidden row is missing in the index of unique values.")
    }
  }

  private func isRefusedForItself(_ row: WorkingRow) throws -> Bool {
    switch try session.keptRows.row(row.key)?.reason {
    case .parked(.check)?, .parked(.notNull)?: true
    default: false
    }
  }
}
