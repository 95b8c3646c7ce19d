import DocumentSync
import Foundation
import SyncModel
import SyncStore

/// A store in the life of a document, and the program that edits it.
final class LifeDevice {
  struct Backup {
    var content: Data
    var token: (client: String, content: Data?)
    var log: [Int]
    var sealed: Int
    var localTokens: [String]
    var heldNotes: [String: String]
  }

  let number: Int
  let directory: LateDirectory
  var path: String
  var machine: Int
  var manager: DocumentSyncManager
  /// The name of this device in the row that only it edits.
  var lineage: String
  /// The edits in the store that programs made in it or in the stores of which it is a copy, by
  /// index in the ledger.
  var log: [Int] = []
  /// The number of these edits that the store had at its last synchronization.
  var sealed = 0
  /// The number of these edits that the store had when it was last copied or backed up.
  var copied = 0
  /// The content of the table that stays on the device, and of the notes with NULL in their key.
  var localTokens: [String] = []
  /// The notes that no change set could carry when a program inserted them, with their tokens. The
  /// store has them, whether or not they are small by now.
  var heldNotes: [String: String] = [:]
  var backup: Backup?
  /// The edits that the device has published as a removed client, before it knew of the removal.
  /// Only its own store can publish them again; if the whole machine is rolled back, no store has
  /// them.
  var unaware: Set<Int> = []
  private var edits = 0

  init(
    number: Int, directory: LateDirectory, path: String, machine: Int,
    manager: DocumentSyncManager
  ) {
    self.number = number
    self.directory = directory
    self.path = path
    self.machine = machine
    self.manager = manager
    lineage = "\(number)"
  }

  /// The tables that every store has in addition to the random tables of a history.
  ///
  /// No device reuses a key: a row that is deleted and inserted under the same key before the next
  /// sealing is one row, so a later deletion on another device deletes the inserted row, too.
  /// ``Fleet`` checks that such a row is then in the conflict journal.
  static let schema = [
    "CREATE TABLE note (id TEXT PRIMARY KEY, body TEXT, shared TEXT)",
    """
    CREATE TABLE item (id INTEGER PRIMARY KEY AUTOINCREMENT, note TEXT NOT NULL REFERENCES note (id) \
    ON DELETE CASCADE, token TEXT NOT NULL UNIQUE)
    """,
    "CREATE TABLE tally (name TEXT PRIMARY KEY, n INTEGER NOT NULL)",
    "CREATE TABLE local (token TEXT)",
    "CREATE TABLE schema_migrations (version INTEGER PRIMARY KEY)",
    "INSERT INTO note VALUES ('first', 'first', NULL)",
    "INSERT INTO tally VALUES ('all', 0)",
  ]

  /// Synchronizes, or makes one half.
  func run(
    _ extent: SynchronizeOperation.Extent, allowingDeletions: Bool
  ) async throws -> SyncReport {
    switch extent {
    case .all: try await manager.synchronize(allowingDeletions: allowingDeletions)
    case .fetching: try await manager.fetchChanges()
    case .sending: try await manager.sendChanges()
    }
  }

  // MARK: Updating

  /// Runs the first of the application's migrations that the database does not record, or all of
  /// them. Returns whether there was one.
  func update(to version: Int, inOneStep: Bool, clock: FleetClock) throws -> Bool {
    try Self.update(try program(clock), to: version, inOneStep: inOneStep)
  }

  /// Runs migrations in a database. Each adds a column, or a table if its number is even.
  static func update(_ program: FleetSQLite, to version: Int, inOneStep: Bool) throws -> Bool {
    let recorded = try migrations(program)
    let missing = (1..<(version + 1)).filter { !recorded.contains($0) }
    for number in missing.prefix(inOneStep ? version : 1) {
      let name = "added\(number)"
      let change =
        number % 2 == 0
        ? "CREATE TABLE \(name) (k TEXT PRIMARY KEY); INSERT INTO \(name) VALUES ('first')"
        : "ALTER TABLE note ADD COLUMN \(name) TEXT; UPDATE note SET \(name) = id"
      try program.run(
        "BEGIN; \(change); INSERT INTO schema_migrations VALUES (\(number)); COMMIT")
    }
    return !missing.isEmpty
  }

  private static func migrations(_ program: FleetSQLite) throws -> Set<Int> {
    Set(
      try program.rows("SELECT version FROM schema_migrations").compactMap { row in
        if case .integer(let version) = row[0] { Int(version) } else { nil }
      })
  }

  /// Throws if the database has not just what the migrations add that it records.
  func checkMigrations(_ program: FleetSQLite) throws {
    let added = Set(
      try program.rows(
        "SELECT name FROM pragma_table_info('note') WHERE name LIKE 'added%' UNION ALL "
          + "SELECT name FROM sqlite_schema WHERE type = 'table' AND name LIKE 'added%'"
      ).map { $0[0] })
    let recorded = try Self.migrations(program)
    guard added == Set(recorded.map { .text(Array("added\($0)".utf8)) }) else {
      throw FleetFailure(
        .unexplained,
        "device \(number) records the migrations \(recorded.sorted()), and has "
          + added.map(\.sqlDescription).sorted().joined(separator: ", "))
    }
  }

  /// Returns the configuration with which a store is put under sync.
  static func configuration(_ schema: FleetSchema) -> StoreConfiguration {
    var configuration = schema.configuration
    configuration.excludedTables.insert("local")
    configuration.columnMergeTypes["tally"] = ["n": .counter]
    return configuration
  }

  // MARK: Editing

  /// Opens a connection to the store, as a program that does not know about syncing would.
  private func program(_ clock: FleetClock) throws -> FleetSQLite {
    let program = try FleetSQLite(path)
    clock.time += 1
    try program.override("julianday") { .real(clock.julianDay) }
    try program.override("randomblob") { .blob(clock.bytes(16)) }
    return program
  }

  /// Edits the random tables; returns the number of accepted statements.
  func work(_ statements: [String], hasForeignKeys: Bool, clock: FleetClock) throws -> Int {
    let edit = FleetEdit(
      statements: statements, hasForeignKeys: hasForeignKeys, time: clock.time, salt: 0)
    return try program(clock).edit(edit).accepted.count
  }

  /// Edits the store as a program that does not know about syncing would.
  ///
  /// - Parameter plan: The history, which says which rows stay on the device.
  func edit(
    _ edit: LifeStep.Edit, salt: UInt64, _ plan: LifePlan, _ ledger: LifeLedger, clock: FleetClock
  ) throws {
    let program = try program(clock)
    try program.run("PRAGMA foreign_keys = ON")
    edits += 1
    let token = "\(lineage).\(edits).\(salt % 1000)"
    func pickNote(_ condition: String) throws -> String? {
      let ids = try program.rows("SELECT id FROM note WHERE \(condition) ORDER BY id")
      guard !ids.isEmpty, case .text(let id) = ids[Int(salt % UInt64(ids.count))][0] else {
        return nil
      }
      return String(decoding: id, as: UTF8.self)
    }
    var made = LifeLedger.Edit(subject: .tally, token: token)
    switch edit {
    case .insert:
      try program.run("INSERT INTO note (id, body, shared) VALUES ('n-\(token)', '\(token)', NULL)")
      made.subject = .row(token: token, note: "n-\(token)")
    case .child:
      guard let note = try pickNote("id NOT LIKE 'own-%' AND id NOT LIKE 'n-large%'") else {
        return
      }
      try program.run("INSERT INTO item (note, token) VALUES ('\(note)', '\(token)')")
      made.subject = .row(token: token, note: note)
    case .own:
      try program.run(
        """
        INSERT INTO note (id, body, shared) VALUES ('own-\(lineage)', '\(token)', NULL) \
        ON CONFLICT (id) DO UPDATE SET body = excluded.body
        """)
      made.subject = .own("own-\(lineage)")
    case .shared:
      guard let note = try pickNote("id NOT LIKE 'own-%' AND id NOT LIKE 'n-large%'") else {
        return
      }
      try program.run("UPDATE note SET shared = '\(token)' WHERE id = '\(note)'")
      made.subject = .shared(note)
    case .delete:
      guard
        let note = try pickNote(
          "id NOT LIKE 'own-%' AND id NOT LIKE 'n-large%' AND id <> 'first'")
      else { return }
      try program.run("DELETE FROM note WHERE id = '\(note)'")
      ledger.noteDeletion(ofNote: note)
      made.subject = .deletion(note)
      made.isUnknownToCopy = try hasCopiedUnsealed(note, ledger) && !knowsOfCopy(program)
    case .increment:
      made.amount = Int64(salt % 5) + 1
      try program.run("UPDATE tally SET n = n + \(made.amount) WHERE name = 'all'")
    case .local:
      if plan.hasLooseTables && salt / 2 % 2 == 0 {
        try Self.addLooseRow(token, program)
      } else if plan.losesKeys && salt % 2 == 0 {
        try program.run("INSERT INTO note (id, body, shared) VALUES (NULL, '\(token)', NULL)")
      } else {
        try program.run("INSERT INTO local VALUES ('\(token)')")
      }
      localTokens.append(token)
      return
    case .large:
      let large = "'large\(token)' || printf('%.*c', 9000, '~')"
      if salt % 3 == 0, let note = try pickNote("id NOT LIKE 'own-%' AND id NOT LIKE 'n-large%'") {
        try program.run("UPDATE note SET shared = \(large) WHERE id = '\(note)'")
      } else {
        let note = "n-large\(token)"
        try program.run("INSERT INTO note (id, body, shared) VALUES ('\(note)', \(large), NULL)")
        heldNotes[note] = "large\(token)"
      }
      return
    case .shorten:
      guard let note = try pickNote(Self.isLarge) else { return }
      if salt % 4 == 0, heldNotes.removeValue(forKey: note) != nil {
        try program.run("DELETE FROM note WHERE id = '\(note)'")
        // A copy of the store may still have it, and send it.
        ledger.noteDeletion(ofNote: note)
      } else {
        try shorten(note, program, ledger)
      }
      return
    }
    log.append(ledger.note(made))
  }

  private static let isLarge = "length(body) > 2000 OR length(shared) > 2000"

  /// Makes the large values of a note small.
  private func shorten(_ note: String, _ program: FleetSQLite, _ ledger: LifeLedger) throws {
    for column in ["body", "shared"] {
      let rows = try program.rows(
        "SELECT substr(\(column), 1, instr(\(column), '~') - 1) FROM note WHERE id = '\(note)' "
          + "AND length(\(column)) > 2000")
      guard case .text(let bytes)? = rows.first?.first else { continue }
      let token = String(decoding: bytes, as: UTF8.self)
      try program.run("UPDATE note SET \(column) = '\(token)' WHERE id = '\(note)'")
      let subject: LifeLedger.Edit.Subject =
        column == "body" ? .row(token: token, note: note) : .shared(note)
      log.append(ledger.note(LifeLedger.Edit(subject: subject, token: token)))
    }
  }

  /// Makes all large values small. Returns whether there were any.
  func shortenAll(_ ledger: LifeLedger, clock: FleetClock) throws -> Bool {
    let program = try program(clock)
    let notes = try program.rows("SELECT id FROM note WHERE \(Self.isLarge) ORDER BY id")
    for row in notes {
      guard case .text(let id) = row[0] else { continue }
      try shorten(String(decoding: id, as: UTF8.self), program, ledger)
    }
    return !notes.isEmpty
  }

  /// The notes of the device, without those that have NULL in their key.
  func notes() throws -> Set<[Value]> {
    Set(try FleetSQLite(path).rows("SELECT id FROM note WHERE id IS NOT NULL"))
  }

  /// Throws if a synchronization that was not allowed to has deleted more notes than it may. Notes that
  /// it inserted make up for as many.
  func checkDeletions(since former: Set<[Value]>, _ limit: DeletionLimit) throws {
    let now = try notes()
    let deleted = former.subtracting(now).count
    let inserted = now.subtracting(former).count
    guard former.count >= limit.leastRows else { return }
    let most = limit.share * Double(former.count + inserted) + Double(inserted)
    guard Double(deleted) <= most else {
      throw FleetFailure(
        .lost, "device \(number) has deleted \(deleted) of \(former.count) notes unasked")
    }
  }

  /// Throws if a note is gone, or has another text, that no change set could carry.
  func checkHeld(_ ledger: LifeLedger) throws {
    let program = try FleetSQLite(path)
    for (note, token) in heldNotes.sorted(by: { $0.key < $1.key })
    where !ledger.deletedNotes.contains(note) {
      let isThere = try !program.rows(
        "SELECT 1 FROM note WHERE id = '\(note)' AND (body = '\(token)' OR body LIKE '\(token)~%')"
      ).isEmpty
      guard isThere else {
        throw FleetFailure(
          .lost, "device \(number): \(note), which was too large to be sent, is gone")
      }
    }
  }

  /// Inserts a row into a table that has no primary key, and creates the table if it is missing.
  static func addLooseRow(_ token: String, _ program: FleetSQLite) throws {
    try program.run(
      "CREATE TABLE IF NOT EXISTS loose (token TEXT); INSERT INTO loose VALUES ('\(token)')")
  }

  /// Returns a query for the rows that stay on the device.
  static func localRows(_ program: FleetSQLite) throws -> String {
    let isThere = try !program.rows("SELECT 1 FROM sqlite_schema WHERE name = 'loose'").isEmpty
    return "SELECT token FROM local UNION ALL SELECT body FROM note WHERE id IS NULL"
      + (isThere ? " UNION ALL SELECT token FROM loose" : "")
  }

  /// Returns whether the store knows that another state of it has its unsealed edits, too.
  private func knowsOfCopy(_ program: FleetSQLite) throws -> Bool {
    try !program.rows("SELECT 1 FROM docsync_meta WHERE key = 'sharedLog'").isEmpty
  }

  /// Returns whether a note was inserted after the last synchronization and before a later copy or
  /// backup of the store.
  private func hasCopiedUnsealed(_ note: String, _ ledger: LifeLedger) -> Bool {
    let edits = ledger.edits
    return log.prefix(copied).dropFirst(sealed).contains { index in
      guard case .row(let token, note) = edits[index].subject else { return false }
      return note == "n-" + token
    }
  }

  /// Returns whether the counter was edited since the last synchronization.
  func hasUnsealedTally(_ ledger: LifeLedger) -> Bool {
    let edits = ledger.edits
    return log.dropFirst(sealed).contains { edits[$0].subject == .tally }
  }
}
