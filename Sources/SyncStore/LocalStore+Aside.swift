import GRDB
import SyncModel

extension LocalStore {
  /// Puts back what stays on this device into rows that have come back since
  /// the store's content was exchanged. Does nothing where nothing waits.
  public func putBackAside() throws {
    guard try read({ try $0.hasAside() }) else { return }
    try write { try $0.putBackAside() }
  }
}

extension StoreSession {
  func hasAside() throws -> Bool {
    try Bool.fetchOne(database, sql: "SELECT EXISTS (SELECT 1 FROM docsync_aside)") ?? false
  }

  /// Puts back the values of excluded columns that wait for their rows.
  func putBackAside() throws {
    guard try hasAside() else { return }
    let reading = try SQLStatement(
      "SELECT wire, identity, col, value FROM docsync_aside ORDER BY wire, identity, col",
      on: database)
    var waiting: [(wire: String, identity: RowIdentity, column: String, value: Value)] = []
    while try reading.step() {
      guard case .text(let wire) = reading.value(at: 0),
        case .text(let column) = reading.value(at: 2)
      else { continue }
      waiting.append(
        (
          String(decoding: wire, as: UTF8.self), RowIdentity(bytes: reading.bytes(at: 1)),
          String(decoding: column, as: UTF8.self), reading.value(at: 3)
        ))
    }
    let removal = try SQLStatement(
      "DELETE FROM docsync_aside WHERE wire = ? AND identity = ? AND col = ?", on: database)
    for item in waiting {
      guard let table = schema.table(wireName: item.wire),
        table.excludedColumns.contains(item.column)
      else { continue }
      let access = try access(table.id)
      let state = try access.stamps.state(of: access.fingerprint(item.identity))
      if let key = try access.key(of: item.identity) {
        let terms = table.keyColumns.map { "\(quoted($0)) = ?" }
        let statement = try SQLStatement(
          "UPDATE main.\(table.quotedName) SET \(quoted(item.column)) = ? "
            + "WHERE \(terms.joined(separator: " AND "))", on: database)
        statement.bind(item.value, at: 1)
        for (index, value) in key.enumerated() { statement.bind(value, at: index + 2) }
        try write(statement)
        guard database.changesCount > 0 || state?.existence == .deleted else { continue }
      } else if state?.existence != .deleted {
        continue
      }
      removal.bind(.text(Array(item.wire.utf8)), at: 1)
      removal.bind(blob: item.identity.bytes, at: 2)
      removal.bind(.text(Array(item.column.utf8)), at: 3)
      try removal.run()
    }
  }
}
