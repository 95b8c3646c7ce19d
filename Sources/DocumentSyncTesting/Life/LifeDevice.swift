import DocumentSync
import Foundation
import SyncModel
import SyncStore

/// One store in the life of a document, and who uses it.
final class LifeDevice {
  /// What is put aside of a store.
  struct Backup {
    var content: Data
    var token: (client: String, content: Data?)
    var log: [Int]
    var sealed: Int
    var localTokens: [String]
  }

  let number: Int
  let directory: LateDirectory
  var path: String
  var machine: Int
  var manager: DocumentSyncManager
  /// Names the rows that are this device's own.
  var lineage: String
  /// The edits that the store contains and that were made in it or in those
  /// that it is a copy of.
  var log: [Int] = []
  /// How many of these were in the store when it was synchronized last.
  var sealed = 0
  /// How many were in the store when it was copied last.
  var copied = 0
  /// What is in the table that stays on the device.
  var localTokens: [String] = []
  var backup: Backup?
  /// Edits that it has published as a client that was removed, before it knew
  /// that. They come with its own store and nobody else: if the whole machine
  /// is rolled back, nothing is left that could bring them.
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

  /// What every store is made of, beside what a history makes up.
  ///
  /// No key is used again on its device: what is deleted and inserted again
  /// within one sealing under one key is one row, so that whoever deletes it
  /// elsewhere, later, deletes what was inserted. That it is in the conflict
  /// journal then is what ``Fleet`` checks.
  static let schema = [
    "CREATE TABLE note (id TEXT PRIMARY KEY, body TEXT, shared TEXT)",
    """
    CREATE TABLE item (id INTEGER PRIMARY KEY AUTOINCREMENT, note TEXT NOT NULL REFERENCES note (id) \
    ON DELETE CASCADE, token TEXT NOT NULL UNIQUE)
    """,
    "CREATE TABLE tally (name TEXT PRIMARY KEY, n INTEGER NOT NULL)",
    "CREATE TABLE local (token TEXT)",
    "INSERT INTO note VALUES ('first', 'first', NULL)",
    "INSERT INTO tally VALUES ('all', 0)",
  ]

  /// How a store is put under sync.
  static func configuration(_ schema: FleetSchema) -> StoreConfiguration {
    var configuration = schema.configuration
    configuration.excludedTables.insert("local")
    configuration.columnMergeTypes["tally"] = ["n": .counter]
    return configuration
  }

  // MARK: Editing

  /// The store as a program sees it that knows nothing of syncing.
  private func program(_ clock: FleetClock) throws -> FleetSQLite {
    let program = try FleetSQLite(path)
    clock.time += 1
    try program.override("julianday") { .real(clock.julianDay) }
    try program.override("randomblob") { .blob(clock.bytes(16)) }
    return program
  }

  /// Edits the tables that were made up. Gives how many statements were
  /// accepted.
  func work(_ statements: [String], hasForeignKeys: Bool, clock: FleetClock) throws -> Int {
    let edit = FleetEdit(
      statements: statements, hasForeignKeys: hasForeignKeys, time: clock.time, salt: 0)
    return try program(clock).edit(edit).accepted.count
  }

  /// Edits the store as a program does that knows nothing of syncing.
  func edit(
    _ edit: LifeStep.Edit, salt: UInt64, _ ledger: LifeLedger, clock: FleetClock
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
      try program.run("INSERT INTO note VALUES ('n-\(token)', '\(token)', NULL)")
      made.subject = .row(token: token, note: "n-\(token)")
    case .child:
      guard let note = try pickNote("id NOT LIKE 'own-%'") else { return }
      try program.run("INSERT INTO item (note, token) VALUES ('\(note)', '\(token)')")
      made.subject = .row(token: token, note: note)
    case .own:
      try program.run(
        """
        INSERT INTO note VALUES ('own-\(lineage)', '\(token)', NULL) \
        ON CONFLICT (id) DO UPDATE SET body = excluded.body
        """)
      made.subject = .own("own-\(lineage)")
    case .shared:
      guard let note = try pickNote("id NOT LIKE 'own-%'") else { return }
      try program.run("UPDATE note SET shared = '\(token)' WHERE id = '\(note)'")
      made.subject = .shared(note)
    case .delete:
      guard let note = try pickNote("id NOT LIKE 'own-%' AND id <> 'first'") else { return }
      try program.run("DELETE FROM note WHERE id = '\(note)'")
      ledger.noteDeletion(ofNote: note)
      made.subject = .deletion(note)
      made.isUnknownToCopy = hasCopiedUnsealed(note, ledger)
    case .increment:
      made.amount = Int64(salt % 5) + 1
      try program.run("UPDATE tally SET n = n + \(made.amount) WHERE name = 'all'")
    case .local:
      try program.run("INSERT INTO local VALUES ('\(token)')")
      localTokens.append(token)
      return
    }
    log.append(ledger.note(made))
  }

  /// Whether a note was inserted since the last synchronization, and the store
  /// copied after that.
  private func hasCopiedUnsealed(_ note: String, _ ledger: LifeLedger) -> Bool {
    let edits = ledger.edits
    return log.prefix(copied).dropFirst(sealed).contains { index in
      guard case .row(let token, note) = edits[index].subject else { return false }
      return note == "n-" + token
    }
  }

  /// Whether the counter was edited since the last synchronization.
  func hasUnsealedTally(_ ledger: LifeLedger) -> Bool {
    let edits = ledger.edits
    return log.dropFirst(sealed).contains { edits[$0].subject == .tally }
  }
}
