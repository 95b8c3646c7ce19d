import Foundation
import GRDB
import SyncModel

/// The tables that hold what syncing has to remember, in the store itself.
enum Bookkeeping {
  /// The version of the tables' layout.
  static let format = versions.count

  /// The tables, without their prefix, that describe the document: a store that
  /// takes over another store's content takes over these. The other tables are
  /// the device's own. Tables that belong to a single synchronized table are
  /// not listed.
  static let documentTables = [
    "table", "column", "foreign_table", "foreign_column", "foreign", "lost", "client", "kept",
    "kept_reference", "claim", "range", "early", "plain",
  ]

  /// The keys of `docsync_meta` that describe the document likewise.
  static let documentMeta = ["fingerprintKey", "configuration", OriginalKeys.key]

  /// Statements that make the tables that every store of a version has.
  static func creation(upTo version: Int = format) -> [String] {
    versions.prefix(version).flatMap(\.self)
  }

  /// The statements that each version of the layout adds to the one before it.
  private static let versions = [first, second, third, fourth]

  private static let first = [
    // One row per key: format, binding, configuration.
    "CREATE TABLE docsync_meta (key TEXT PRIMARY KEY, value BLOB) WITHOUT ROWID",
    // The synchronized tables, with their names in change sets and how their
    // rows are identified.
    """
    CREATE TABLE docsync_table (id INTEGER PRIMARY KEY, name TEXT NOT NULL, \
    wire TEXT NOT NULL, identity TEXT NOT NULL, unstamped INTEGER NOT NULL, \
    origin INTEGER NOT NULL)
    """,
    // Their columns by bit, with the table whose keys a column holds.
    """
    CREATE TABLE docsync_column (tbl INTEGER, bit INTEGER, name TEXT NOT NULL, \
    wire TEXT NOT NULL, refers INTEGER, PRIMARY KEY (tbl, bit)) WITHOUT ROWID
    """,
    // Tables and columns that other devices' change sets name and that this
    // store does not have, and the rows that it keeps of them.
    """
    CREATE TABLE docsync_foreign_table (id INTEGER PRIMARY KEY, wire TEXT NOT NULL, \
    kind INTEGER NOT NULL, keys TEXT NOT NULL, UNIQUE (wire, kind, keys))
    """,
    """
    CREATE TABLE docsync_foreign_column (tbl INTEGER, col INTEGER, wire TEXT NOT NULL, \
    PRIMARY KEY (tbl, col)) WITHOUT ROWID
    """,
    """
    CREATE TABLE docsync_foreign (tbl INTEGER, identity BLOB, content BLOB NOT NULL, \
    PRIMARY KEY (tbl, identity)) WITHOUT ROWID
    """,
    // Tables and columns that this store has lost, with their values.
    """
    CREATE TABLE docsync_lost (wire TEXT, col TEXT, PRIMARY KEY (wire, col)) WITHOUT ROWID
    """,
    // Clients by a short number, each with its last change set that was applied.
    """
    CREATE TABLE docsync_client (id INTEGER PRIMARY KEY, client BLOB NOT NULL UNIQUE, \
    number INTEGER NOT NULL DEFAULT 0, hash BLOB)
    """,
    // Change sets that this client made, and unpublished ones that it made as
    // another client.
    """
    CREATE TABLE docsync_outbox (client INTEGER, number INTEGER, hash BLOB NOT NULL, \
    size INTEGER NOT NULL, changes INTEGER NOT NULL, published INTEGER NOT NULL, \
    bytes BLOB NOT NULL, PRIMARY KEY (client, number))
    """,
    // Change sets that have arrived and have to wait.
    """
    CREATE TABLE docsync_inbox (client BLOB, number INTEGER, hash BLOB, bytes BLOB, \
    PRIMARY KEY (client, number))
    """,
    // The change sets that were sealed and applied, in order.
    """
    CREATE TABLE docsync_history (seq INTEGER PRIMARY KEY, client INTEGER NOT NULL, \
    number INTEGER NOT NULL, hash BLOB NOT NULL, changes INTEGER NOT NULL, \
    size INTEGER NOT NULL, at INTEGER NOT NULL)
    """,
    // Small values for the layer above.
    "CREATE TABLE docsync_record (key TEXT PRIMARY KEY, value BLOB) WITHOUT ROWID",
    // Rows about which more is known than their tables show, with their cells.
    """
    CREATE TABLE docsync_kept (tbl INTEGER, identity BLOB, reason TEXT NOT NULL, \
    moved BLOB, cells BLOB NOT NULL, PRIMARY KEY (tbl, identity)) WITHOUT ROWID
    """,
    // The references of these rows, found by the row that they refer to.
    """
    CREATE TABLE docsync_kept_reference (parent INTEGER, columns TEXT, key BLOB, \
    tbl INTEGER, identity BLOB, PRIMARY KEY (parent, columns, key, tbl, identity)) WITHOUT ROWID
    """,
    "CREATE INDEX docsync_kept_reference_row ON docsync_kept_reference (tbl, identity)",
    // Rows that are shown although they are deleted.
    "CREATE INDEX docsync_kept_rescued ON docsync_kept (tbl) WHERE reason = 'rescued'",
    // The unique values that parked rows claim.
    """
    CREATE TABLE docsync_claim (tbl INTEGER, ix INTEGER, key BLOB, identity BLOB, \
    PRIMARY KEY (tbl, ix, key, identity)) WITHOUT ROWID
    """,
    "CREATE INDEX docsync_claim_row ON docsync_claim (tbl, identity)",
    // The least and the greatest time of change sets; an empty range for none.
    // Mixed ones have stamps of clients other than their author.
    """
    CREATE TABLE docsync_range (client INTEGER, last INTEGER, first INTEGER NOT NULL, \
    least INTEGER NOT NULL, greatest INTEGER NOT NULL, mixed INTEGER NOT NULL DEFAULT 0, \
    PRIMARY KEY (client, last)) WITHOUT ROWID
    """,
    // The values of cells before unpublished edits, where a policy needs them.
    """
    CREATE TABLE docsync_base (tbl INTEGER, identity BLOB, col INTEGER, value BLOB NOT NULL, \
    PRIMARY KEY (tbl, identity, col)) WITHOUT ROWID
    """,
    ConflictTable.creation[0], ConflictTable.creation[1], ConflictTable.creation[2],
    CommandTables.creation[0], CommandTables.creation[1],
  ]

  private static let second = [
    // Additions to counters that arrived before the value to which the counter
    // was set.
    """
    CREATE TABLE IF NOT EXISTS docsync_early (tbl INTEGER, identity BLOB, col INTEGER, \
    since INTEGER, setter INTEGER, client INTEGER, sum BLOB NOT NULL, at INTEGER NOT NULL, \
    PRIMARY KEY (tbl, identity, col, since, setter, client)) WITHOUT ROWID
    """,
    // Values that stay on this device, of rows that were gone when content was
    // exchanged and that may come back.
    """
    CREATE TABLE IF NOT EXISTS docsync_aside (wire TEXT, identity BLOB, col TEXT, value, \
    PRIMARY KEY (wire, identity, col)) WITHOUT ROWID
    """,
  ]

  private static let third = [
    // Values that refer to no row, in columns that hold the keys of a table.
    """
    CREATE TABLE IF NOT EXISTS docsync_plain (tbl INTEGER, key INTEGER, \
    PRIMARY KEY (tbl, key)) WITHOUT ROWID
    """
  ]

  /// The first version that shows rows with the stand-ins of the rows that
  /// their identities contain.
  static let fourthFormat = 4

  private static let fourth = [
    // Rows under whose identity another row is shown.
    "CREATE INDEX IF NOT EXISTS docsync_kept_borrowed ON docsync_kept (tbl) "
      + "WHERE reason = 'borrowed'"
  ]

  /// Statements that make what one synchronized table needs.
  static func creation(for table: TableSchema) -> [String] {
    var statements = CaptureTriggers(table: table).creation
    statements.append(
      "CREATE TABLE IF NOT EXISTS \(table.stampsName) (first INTEGER PRIMARY KEY, block BLOB)")
    if table.identity == .surrogate {
      statements.append(
        "CREATE TABLE IF NOT EXISTS \(table.identityName) "
          + "(key INTEGER PRIMARY KEY, identity BLOB NOT NULL)")
    }
    return statements
  }

  /// The version of the layout of a store, or of an attached one; `nil` if the
  /// store records none.
  static func format(of database: Database, in schema: String = "main") throws -> Int? {
    guard let value = try meta("format", database, in: schema),
      let number = Int(String(decoding: value, as: UTF8.self)), number > 0
    else { return nil }
    return number
  }

  /// Brings a store of an earlier version to this one, within a transaction.
  /// Idempotent. An earlier version of the library cannot open it afterwards.
  static func upgrade(_ database: Database) throws {
    guard let known = try format(of: database), known < format else { return }
    for statement in versions.dropFirst(known).joined() {
      try database.execute(sql: statement)
    }
    if known < fourthFormat { try RemadeTables.noteSettlingDue(database) }
    try setFormat(database)
  }

  static func setFormat(_ database: Database) throws {
    try setMeta("format", to: Array("\(format)".utf8), database)
  }

  static func meta(
    _ key: String, _ database: Database, in schema: String = "main"
  ) throws -> [UInt8]? {
    try StoredRow.fetchOne(
      database.cachedStatement(sql: "SELECT value FROM \(schema).docsync_meta WHERE key = ?"),
      arguments: [key]
    ).map { (try $0["value"] as Data?).map(Array.init) ?? [] }
  }

  static func setMeta(_ key: String, to value: [UInt8], _ database: Database) throws {
    try database.execute(
      sql: "INSERT OR REPLACE INTO docsync_meta (key, value) VALUES (?, ?)",
      arguments: [key, Data(value)])
  }
}
