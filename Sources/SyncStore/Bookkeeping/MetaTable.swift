import Foundation
import GRDB
import SyncModel

/// Single values about the store, by key (`docsync_meta`).
enum MetaTable {
  static let definition = TableDefinition(
    "docsync_meta", .mixed, columns: [.text("key", "PRIMARY KEY"), .blob("value")],
    isWithoutRowID: true)

  enum Key: String, CaseIterable {
    /// The version of the layout of bookkeeping.
    case format
    /// The document's secret key, which gives rows their fingerprints.
    case fingerprintKey
    /// See ``StoreConfiguration``.
    case configuration
    /// See ``OriginalKeys``.
    case originalKeys
    /// See ``StoreBinding``.
    case binding
    /// See ``ConflictJournal/Summary``.
    case conflictJournal
    /// See ``PlaceRecord``.
    case place
    /// The incarnations that are not announced yet: see ``Incarnation``.
    case incarnations
    /// See ``FormerNames``.
    case formerNames
    /// See ``ExcludedNames``.
    case excludedNames
    /// See ``RemadeTables``.
    case remade
    /// Set if the log has edits of an earlier client.
    case sharedLog
    /// Set if rows had NULL in their key when the document began, until a sealing warns of them.
    case keyMissing
    /// See ``HeldEdits``.
    case heldEdits
    /// See ``UnconfirmedDeletions``.
    case unconfirmedDeletions
    /// The result of all commands that the store has processed; the layer above joins those of two
    /// stores.
    case commandState
    /// The journal mode of the store of which a snapshot was made.
    case journalMode
    /// The version of the rules by which plain values are recorded: see ``EarlierPlainValues``.
    case plainValues
    /// See ``KeyForms``.
    case keyForms

    /// Whether the value describes the document, the device, or neither.
    var scope: TableDefinition.Scope {
      switch self {
      case .fingerprintKey, .configuration, .originalKeys, .keyForms: .document
      case .binding, .conflictJournal, .place, .incarnations, .formerNames, .excludedNames,
        .remade, .sharedLog, .keyMissing, .heldEdits, .unconfirmedDeletions:
        .device(.store)
      case .format, .commandState, .journalMode, .plainValues: .mixed
      }
    }

    /// Whether the value is kept as JSON.
    var isJSON: Bool {
      switch self {
      case .binding, .configuration, .originalKeys, .conflictJournal, .place, .incarnations,
        .formerNames, .excludedNames, .remade, .commandState, .heldEdits, .unconfirmedDeletions,
        .keyForms:
        true
      case .format, .fingerprintKey, .sharedLog, .keyMissing, .journalMode, .plainValues: false
      }
    }

    /// The keys whose values are the device's own.
    static var deviceOwn: [Key] { allCases.filter { $0.scope == .device(.store) } }
  }

  /// The query for the binding and the configuration, as they are stored.
  static let identity = """
    SELECT value FROM main.docsync_meta WHERE key IN \
    ('\(Key.binding.rawValue)', '\(Key.configuration.rawValue)') ORDER BY key
    """

  /// Returns whether a database has the table, which marks it as a store.
  static func exists(in database: Database) throws -> Bool {
    try definition.exists(in: database)
  }

  /// Returns a value of a store, or of an attached one; `nil` if there is none.
  static func read(
    _ key: Key, _ database: Database, in schema: String = "main"
  ) throws -> [UInt8]? {
    try StoredRow.fetchOne(
      database, sql: "SELECT value FROM \(schema).docsync_meta WHERE key = ?",
      arguments: [key.rawValue]
    ).map { (try $0["value"] as Data?).map(Array.init) ?? [] }
  }

  /// A value of a store that is kept as JSON; `nil` if there is none. Throws
  /// ``StoreError/Code/damaged`` if it cannot be read, or holds numbers that make no sense.
  static func value<Value: StoredValue>(
    _ key: Key, as type: Value.Type = Value.self, _ database: Database, path: String = ""
  ) throws -> Value? {
    try read(key, database).map {
      try StoredJSON.read(type, from: $0, of: definition.name, key: key.rawValue, path: path)
    }
  }

  static func write(_ key: Key, to value: [UInt8], _ database: Database) throws {
    try database.execute(
      sql: "INSERT OR REPLACE INTO docsync_meta (key, value) VALUES (?, ?)",
      arguments: [key.rawValue, Data(value)])
  }

  static func remove(_ key: Key, _ database: Database) throws {
    try database.execute(
      sql: "DELETE FROM main.docsync_meta WHERE key = ?", arguments: [key.rawValue])
  }

  /// Copies a value from an attached store, or removes it if that store has none.
  static func copy(_ key: Key, from schema: String, _ database: Database) throws {
    try remove(key, database)
    try database.execute(
      sql: "INSERT INTO main.docsync_meta (key, value) "
        + "SELECT key, value FROM \(schema).docsync_meta WHERE key = ?",
      arguments: [key.rawValue])
  }
}
