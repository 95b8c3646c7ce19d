import Foundation
import GRDB
import SyncModel

/// The verification of one store, within one transaction that reads.
///
/// It first checks the data that later checks need. If these data are broken, it leaves the rest
/// out, and reports that.
final class StoreVerifier {
  let database: Database
  let path: String
  let options: StoreOptions
  private let findsReferences: Bool
  let checkCancellation: () throws -> Void
  private let onProgress: (Int, Int) -> Void
  private var steps = (done: 0, total: 8)

  var result = StoreVerification()

  init(
    database: Database, path: String, options: StoreOptions, findsReferences: Bool,
    checkCancellation: @escaping () throws -> Void, onProgress: @escaping (Int, Int) -> Void
  ) {
    self.database = database
    self.path = path
    self.options = options
    self.findsReferences = findsReferences
    self.checkCancellation = checkCancellation
    self.onProgress = onProgress
  }

  /// Checks the store at `path`. Throws if it cannot be examined.
  static func verify(
    _ path: String, _ options: StoreOptions, findsReferences: Bool,
    _ checkCancellation: @escaping () throws -> Void, _ onProgress: @escaping (Int, Int) -> Void
  ) throws -> StoreVerification {
    try StoreError.checkFile(path)
    return try StoreError.mapping(path) {
      let opened: ReadOnlyDatabase
      do {
        opened = try ReadOnlyDatabase(path: path, busyTimeout: options.busyTimeout)
      } catch let error as CocoaError {
        throw StoreError(reading: path, error)
      }
      do {
        let result = try opened.queue.writeWithoutTransaction { database in
          try QueryCancellation.run(database, checkCancellation) {
            try database.transaction(.deferred, .rollback) {
              try StoreVerifier(
                database: database, path: path, options: options,
                findsReferences: findsReferences, checkCancellation: checkCancellation,
                onProgress: onProgress
              ).run()
            }
          }
        }
        try opened.finish()
        return result
      } catch {
        try opened.finish()
        throw error
      }
    }
  }

  /// Runs all checks. Throws `notUnderSync`.
  func run() throws -> StoreVerification {
    guard try Bookkeeping.exists(in: database) else {
      throw StoreError(notUnderSync: path)
    }
    let isSound = try checkIntegrity()
    try step()
    try checkForeignKeys()
    try step()
    guard isSound else {
      leaveOut("the bookkeeping, since the database is damaged.")
      return finished()
    }
    guard try checkBookkeeping(), let session = try session() else {
      leaveOut("the rows, since the bookkeeping is damaged.")
      return finished()
    }
    excuseExcludedTables(session.schema)
    noteUnsuitableTables(session.schema)
    try guarded("docsync_meta") { try noteHeldEdits(session) }
    try step()
    try guarded("docsync_table") { try checkConditions(session.schema) }
    try guarded("docsync_outbox", .outboxDamaged) { try checkOutbox(session) }
    try guarded("docsync_command", .outboxDamaged) { try checkCommands(session) }
    try guarded("docsync_inbox", .inboxDamaged) { try checkInbox(session) }
    try step()
    try guarded("docsync_conflict", .journalDamaged) { try checkJournal(session) }
    try step()
    try checkPlace()
    guard session.schema.suspended.isEmpty else {
      leaveOut("the rows, since a table that was synchronized cannot be at present.")
      return finished()
    }
    guard try checkTriggers(session.schema) else {
      leaveOut("the rows, since the triggers are out of date.")
      return finished()
    }
    try checkRows(session)
    if findsReferences { try findReferences(session.schema) }
    return finished()
  }

  private func finished() -> StoreVerification {
    onProgress(steps.total, steps.total)
    result.report.sort()
    return result
  }

  // MARK: - Helpers

  func note(
    _ kind: VerifyReport.Finding.Kind, _ table: SQLName? = nil, _ message: String,
    detail: String? = nil, remedy: Remedy? = nil
  ) {
    result.report.findings.append(
      VerifyReport.Finding(kind, table: table, message, detail: detail, remedy: remedy))
  }

  func leaveOut(_ sentence: String) { result.report.leftOut.append(sentence) }

  /// Counts one more step as done.
  func step() throws {
    try checkCancellation()
    steps.done += 1
    onProgress(steps.done, steps.total)
  }

  /// Adds steps to the total.
  func expect(steps count: Int) { steps.total += count }

  /// Runs a check, and turns errors of SQLite and of decoding into findings.
  func guarded(
    _ table: SQLName, _ kind: VerifyReport.Finding.Kind = .bookkeepingDamaged,
    _ body: () throws -> Void
  ) throws {
    do {
      try body()
    } catch let error as DatabaseError where error.resultCode != .SQLITE_INTERRUPT {
      note(kind, table, "It cannot be read.", detail: error.message ?? "\(error)")
    } catch let error as StoreError where error.code == .damaged {
      note(kind, table, error.message, detail: error.detail)
    } catch let error as RowDecodingError {
      note(kind, table, "It cannot be read.", detail: "\(error)")
    } catch let error as CodecError {
      note(kind, table, "It cannot be read.", detail: "\(error)")
    } catch let error as DecodingError {
      note(kind, table, "It cannot be read.", detail: "\(error)")
    }
  }

  // MARK: - The database

  /// Runs SQLite's own check. Returns whether SQLite finds no damage in the database.
  private func checkIntegrity() throws -> Bool {
    var isSound = true
    do {
      for line in try integrityLines()
      where line != "ok" && !line.hasPrefix("CHECK constraint failed in ") {
        if line.hasPrefix("NULL value in ") {
          note(.constraintsBroken, nil, "Rows break a condition of their table.", detail: line)
        } else {
          isSound = false
          note(.databaseDamaged, nil, "SQLite finds the database damaged.", detail: line)
        }
      }
    } catch let error as DatabaseError where error.resultCode != .SQLITE_INTERRUPT {
      isSound = false
      note(
        .databaseDamaged, nil, "SQLite finds the database damaged.",
        detail: error.message ?? "\(error)")
    }
    return isSound
  }

  /// Returns the result of SQLite's own check. If it needs functions or collations of the
  /// application, checks the other tables one by one.
  private func integrityLines() throws -> [String] {
    do {
      return try String.fetchAll(database, sql: "PRAGMA main.integrity_check(100)")
    } catch let error as DatabaseError where ProgramDefinitions.missing(in: error) != nil {
      var lines: [String] = []
      for table in try ProgramDefinitions.tables(database) {
        if let missing = try ProgramDefinitions.missing(for: table, database) {
          leaveOut("the table “\(table)”, since it needs “\(missing)” of its program.")
        } else {
          lines += try String.fetchAll(
            database, sql: "PRAGMA main.integrity_check(\(quoted(table)))")
        }
      }
      return lines
    }
  }

  /// Checks that the rows of synchronized tables satisfy the tables' conditions.
  ///
  /// SQLite does not read CHECK constraints of a database that it cannot write to, so
  /// `integrity_check` does not check them.
  private func checkConditions(_ schema: StoreSchema) throws {
    for table in schema.tables where !table.checks.isEmpty {
      let count =
        try Int.fetchOne(
          database,
          sql: "SELECT count(*) FROM \(table.quotedName) "
            + "WHERE \(table.brokenChecks.balanced(by: "OR"))")
        ?? 0
      guard count > 0 else { continue }
      note(
        .constraintsBroken, table.name, "\(count) rows break a condition of their table.")
    }
  }

  /// Looks for columns that seem to be references, in tables that are newer than the document, for
  /// example.
  private func findReferences(_ schema: StoreSchema) throws {
    let configuration = try MetaTable.value(.configuration, as: StoreConfiguration.self, database)
    let plain = configuration?.plainColumns ?? [:]
    do {
      for found in try LikelyReferences(database, schema, plainColumns: plain).found() {
        note(
          .referenceUndeclared, found.table,
          "The column “\(found.column)” looks like a reference to “\(found.parent)”, and is not "
            + "declared as one.",
          detail: found.valueCount == 0
            ? nil : "\(found.matchCount) of \(found.valueCount) values are keys of it")
      }
    } catch let error as DatabaseError where error.resultCode != .SQLITE_INTERRUPT {
      leaveOut(
        "undeclared references, since a table cannot be read: \(error.message ?? "\(error)").")
    }
  }

  private func checkForeignKeys() throws {
    do {
      let tables = try ProgramDefinitions.tables(database)
      for row in try foreignKeyRows() {
        let (table, parent): (SQLName, SQLName) = (row["table"], row["parent"])
        let count: Int = row["count"]
        let rows = count == 1 ? "1 row refers to" : "\(count) rows refer to"
        guard tables.contains(where: parent.isSame(as:)) else {
          // No device has such a row, and the references are values like others.
          result.report.findings.append(
            VerifyReport.Finding(
              .foreignKeysBroken, table: table, "\(rows) “\(parent)”, which does not exist.",
              severity: .note,
              remedy: "Create the table, or remove the foreign key from the definition."))
          continue
        }
        note(
          .foreignKeysBroken, table,
          "\(rows) \(count == 1 ? "a row" : "rows") of “\(parent)” that "
            + "\(count == 1 ? "is" : "are") not there.")
      }
    } catch let error as DatabaseError where error.resultCode != .SQLITE_INTERRUPT {
      note(
        .foreignKeysBroken, nil, "The foreign keys cannot be checked.",
        detail: error.message ?? "\(error)")
    }
  }

  /// Returns the tables with rows that refer to no row, the tables to which they refer, and the
  /// number of rows. If SQLite cannot check all tables, notes those that it cannot check.
  private func foreignKeyRows() throws -> [Row] {
    func rows(_ source: String) throws -> [Row] {
      try Row.fetchAll(
        database,
        sql: "SELECT \"table\", parent, count(*) AS count FROM \(source) GROUP BY 1, 2")
    }
    do {
      return try rows("pragma_foreign_key_check")
    } catch let error as DatabaseError where error.resultCode != .SQLITE_INTERRUPT {
      return try ProgramDefinitions.tables(database).flatMap { table in
        do {
          return try rows("pragma_foreign_key_check(\(literal(table.text)))")
        } catch let error as DatabaseError where error.resultCode != .SQLITE_INTERRUPT {
          note(
            .foreignKeysBroken, table, "The foreign keys cannot be checked.",
            detail: error.message ?? "\(error)")
          return []
        }
      }
    }
  }

  /// Says of excluded tables that nothing puts their references to deleted rows in line.
  private func excuseExcludedTables(_ schema: StoreSchema) {
    let excluded = schema.leftOut.filter { $0.value == .excluded }.keys
    result.report.findings = result.report.findings.map { finding in
      guard finding.kind == .foreignKeysBroken, let table = finding.table,
        excluded.contains(where: table.isSame(as:))
      else { return finding }
      var finding = finding
      finding.severity = .note
      finding.remedy =
        "The table stays on this device, and so do its references to rows that another device has "
        + "deleted. Delete its rows, or let them refer to others: a new row may get such a number."
      return finding
    }
  }

  /// Notes the tables that stay on the device since they cannot be synchronized.
  private func noteUnsuitableTables(_ schema: StoreSchema) {
    // SQLite enforces the references of such a table no better than its other definitions.
    result.report.findings.removeAll { finding in
      finding.kind == .foreignKeysBroken
        && schema.problems.keys.contains { finding.table?.isSame(as: $0) ?? false }
    }
    for table in schema.unsuitableTables {
      result.report.findings.append(
        VerifyReport.Finding(
          .schemaUnsuitable, table: table.name,
          table.wasSynchronized || table.reason == .missingExclusion
            ? table.explanation : "This table stays on the device. \(table.message)",
          severity: table.wasSynchronized ? .error : .note, remedy: Remedy(table.remedy)))
    }
  }

  /// Notes the edits that stay on the device since no change set can carry them.
  private func noteHeldEdits(_ session: StoreSession) throws {
    let edits = try session.heldEdits().reports(session)
    for edit in edits.prefix(20) {
      result.report.findings.append(
        VerifyReport.Finding(
          .editTooLarge, table: edit.table, edit.message, severity: .note,
          remedy: Remedy(edit.remedy)))
    }
    guard edits.count > 20 else { return }
    result.report.findings.append(
      VerifyReport.Finding(
        .editTooLarge,
        "\(edits.count - 20) further edits are too large to be sent and stay on this device.",
        severity: .note))
  }

  // MARK: - The place

  private func checkPlace() throws {
    guard let places = options.places, let client = result.binding?.client else { return }
    try guarded("docsync_meta") {
      guard let recorded = try MetaTable.value(.place, as: PlaceRecord.self, database) else {
        return
      }
      let place = try places.place(of: path)
      let tokens = try places.tokens(of: client.description)
      if !recorded.place.isSame(as: place) {
        note(
          .storeMoved, "docsync_meta", "The store was copied or moved since it was last used.",
          detail: "it was at \(recorded.place.path)")
      } else if recorded.isOlder(than: tokens, in: places.folder) {
        note(
          .storeMoved, "docsync_meta",
          "The store is an older state of itself, such as one from a backup.")
      }
    }
  }
}
