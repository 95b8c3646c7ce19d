import Foundation
import GRDB
import SyncModel

/// Values of excluded columns, of rows that are hidden, or were gone after the store exchanged its
/// content (`docsync_aside`). If such a row returns, the store puts its values back.
struct AsideValues {
  static let definition = TableDefinition(
    "docsync_aside", .device(.store), version: 2,
    columns: [.text("wire"), .blob("identity"), .text("col"), .any("value")],
    constraint: "PRIMARY KEY (wire, identity, col)", isWithoutRowID: true)

  /// A value that was set aside.
  struct Entry {
    var column: SQLName
    /// The value; of a reference by a number, the identity of the row to which it leads.
    var value: Value
    /// The name in change sets of the table to which a reference by a number leads; `nil` for other
    /// values.
    var parent: SQLName?
    /// Whether the row is in its table again, and the reference waits only for the other row.
    var isWaiting = false

    init(column: SQLName, value: Value, parent: SQLName? = nil) {
      (self.column, self.value, self.parent) = (column, value, parent)
    }

    /// No name contains a zero byte.
    fileprivate init(storedColumn: String, value: Value) {
      let parts = storedColumn.utf8.split(
        separator: 0, maxSplits: 2, omittingEmptySubsequences: false
      ).map { SQLName(Substring($0)) }
      column = parts[0]
      parent = parts.count > 1 ? parts[1] : nil
      isWaiting = parts.count > 2
      self.value = value
    }

    /// The identity of the row to which a reference leads.
    var referred: RowIdentity? {
      guard parent != nil, case .blob(let bytes) = value else { return nil }
      return RowIdentity(bytes: bytes)
    }

    fileprivate var storedColumn: String {
      guard let parent else { return column.text }
      return column.text + "\0" + parent.text + (isWaiting ? "\0" : "")
    }
  }

  let statements: StatementCache

  /// Returns the values stored for a row.
  ///
  /// - Parameter wireName: The name of the row's table in change sets.
  func values(of identity: RowIdentity, in wireName: SQLName) throws -> [Entry] {
    let reading = try statements.statement(
      "SELECT col, value FROM docsync_aside WHERE wire = ? AND identity = ?")
    reading.bind(.text(wireName.text), at: 1)
    reading.bind(blob: identity.bytes, at: 2)
    var entries: [Entry] = []
    while try reading.step() {
      entries.append(Entry(storedColumn: reading.text(at: 0), value: reading.value(at: 1)))
    }
    return entries
  }

  /// A reference by a number, with its row.
  struct Reference {
    var wireName: SQLName
    var row: RowIdentity
    var entry: Entry
  }

  /// Returns the references by numbers.
  func references() throws -> [Reference] {
    let reading = try statements.statement(
      "SELECT wire, identity, col, value FROM docsync_aside WHERE instr(col, char(0)) > 0")
    var references: [Reference] = []
    while try reading.step() {
      references.append(
        Reference(
          wireName: SQLName(reading.text(at: 0)), row: RowIdentity(bytes: reading.bytes(at: 1)),
          entry: Entry(storedColumn: reading.text(at: 2), value: reading.value(at: 3))))
    }
    return references
  }

  func remove(_ entry: Entry, of identity: RowIdentity, in wireName: SQLName) throws {
    let removal = try statements.statement(
      "DELETE FROM docsync_aside WHERE wire = ? AND identity = ? AND col = ?")
    removal.bind(.text(wireName.text), at: 1)
    removal.bind(blob: identity.bytes, at: 2)
    removal.bind(.text(entry.storedColumn), at: 3)
    try removal.run()
  }

  func store(_ entry: Entry, of identity: RowIdentity, in wireName: SQLName) throws {
    let insertion = try statements.statement(
      "INSERT OR REPLACE INTO docsync_aside (wire, identity, col, value) VALUES (?, ?, ?, ?)")
    insertion.bind(.text(wireName.text), at: 1)
    insertion.bind(blob: identity.bytes, at: 2)
    insertion.bind(.text(entry.storedColumn), at: 3)
    insertion.bind(entry.value, at: 4)
    try insertion.run()
  }

  /// Removes the values of a row.
  func removeAll(of identity: RowIdentity, in wireName: SQLName) throws {
    let removal = try statements.statement(
      "DELETE FROM docsync_aside WHERE wire = ? AND identity = ?")
    removal.bind(.text(wireName.text), at: 1)
    removal.bind(blob: identity.bytes, at: 2)
    try removal.run()
  }

  /// Gives the values of a row that wait for another one to another identity of the row.
  func moveWaiting(
    from former: RowIdentity, to present: RowIdentity, in wireName: SQLName
  ) throws {
    for entry in try values(of: former, in: wireName) where entry.isWaiting {
      try remove(entry, of: former, in: wireName)
      try store(entry, of: present, in: wireName)
    }
  }

  /// Removes the values of a row that do not wait for another one.
  func removeIfNotWaiting(of identity: RowIdentity, in wireName: SQLName) throws {
    for entry in try values(of: identity, in: wireName) where !entry.isWaiting {
      try remove(entry, of: identity, in: wireName)
    }
  }

  /// Gives the values of a row to another identity, and removes those that it had.
  func rename(
    _ former: RowIdentity, to present: RowIdentity, in wireName: SQLName
  ) throws {
    try Self.rename(former, to: present, in: wireName, statements.database)
  }

  /// Stores the values of a column, with the identities of their rows. The caller gives both as SQL
  /// terms over `source`.
  static func store(
    _ column: SQLName, in wireName: SQLName, identity: String, value: String, from source: String,
    _ database: Database
  ) throws {
    try database.execute(
      sql: "INSERT OR REPLACE INTO main.docsync_aside (wire, identity, col, value) "
        + "SELECT ?, \(identity), ?, \(value) FROM \(source)",
      arguments: [wireName, column])
  }

  /// Returns the rows of a table for which values are stored.
  static func identities(in wireName: SQLName, _ database: Database) throws -> [RowIdentity] {
    let statement = try SQLStatement(
      "SELECT DISTINCT identity FROM docsync_aside WHERE wire = ?", on: database)
    statement.bind(.text(wireName.text), at: 1)
    return try statement.identities()
  }

  /// Gives the values of a row to another identity.
  static func rename(
    _ former: RowIdentity, to present: RowIdentity, in wireName: SQLName, _ database: Database
  ) throws {
    try database.execute(
      sql: "UPDATE OR REPLACE docsync_aside SET identity = ? WHERE wire = ? AND identity = ?",
      arguments: [Data(present.bytes), wireName, Data(former.bytes)])
  }

  /// Gives other identities to rows of a table to which references lead.
  ///
  /// - Parameters:
  ///   - present: The present identities by the former ones.
  ///   - wireName: The name of the table in change sets.
  func renameReferred(
    _ present: [RowIdentity: RowIdentity], in wireName: SQLName
  ) throws {
    for var reference in try references() where reference.entry.parent == wireName {
      guard let former = reference.entry.referred, let identity = present[former] else { continue }
      reference.entry.value = .blob(identity.bytes)
      try store(reference.entry, of: reference.row, in: reference.wireName)
    }
  }

  /// Removes the values in columns that are no longer excluded, or no longer exist.
  static func removeAll(
    in wireName: SQLName, except excluded: [SQLName], _ database: Database
  ) throws {
    let reading = try SQLStatement(
      "SELECT DISTINCT col FROM docsync_aside WHERE wire = ?", on: database)
    reading.bind(.text(wireName.text), at: 1)
    var needless: [String] = []
    while try reading.step() {
      let stored = reading.text(at: 0)
      let column = Entry(storedColumn: stored, value: .null).column
      if !excluded.contains(column) { needless.append(stored) }
    }
    let removal = try SQLStatement(
      "DELETE FROM docsync_aside WHERE wire = ? AND col = ?", on: database)
    for stored in needless {
      removal.bind(.text(wireName.text), at: 1)
      removal.bind(.text(stored), at: 2)
      try removal.run()
    }
  }
}
