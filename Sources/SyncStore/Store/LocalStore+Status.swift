import Foundation
import GRDB
import SyncModel

extension LocalStore {
  /// The state of the store: what waits, what is parked, what was applied.
  package func status() throws -> StoreStatus {
    let waiting = try waiting()
    return try read { session in
      let database = session.database
      var vector = try session.clients.vector()
      let head = try session.ownHead()?.number ?? 0
      vector[binding.client] = nil
      var status = StoreStatus(
        unsealedEdits: try session.schema.tables.reduce(0) { sum, table in
          sum + (try Int.fetchOne(database, sql: "SELECT count(*) FROM \(table.logName)") ?? 0)
        },
        unpublishedChangeSets: try Int.fetchOne(
          database, sql: "SELECT count(*) FROM docsync_outbox WHERE published = 0") ?? 0,
        head: head, vector: vector, waiting: waiting, parked: try session.parkedRows(),
        tables: session.schema.tables.map { $0.status(configuration) },
        leftOut: session.schema.leftOut)
      status.unknownNames = try session.foreign.unknownNames(session.schema)
      status.incompleteNames = try incompleteNames(session)
      for table in session.schema.tables {
        let count = try session.rowsWithoutKey(table)
        if count > 0 { status.rowsWithoutKey[table.name] = count }
      }
      return status
    }
  }

  /// The rows that are kept and not shown.
  package func parkedRows() throws -> [ParkedRow] { try read { try $0.parkedRows() } }

  private func incompleteNames(_ session: StoreSession) throws -> [SQLName] {
    try StoredRow.fetchAll(session.database, sql: "SELECT wire, col FROM docsync_lost").compactMap {
      row -> SQLName? in
      let column: SQLName = try row["col"]
      guard let table = session.schema.table(wireName: try row["wire"]) else { return nil }
      if column == "" { return table.name }
      return table.columns.first { $0.wireName == column }.map {
        "\(table.name).\($0.name)" as SQLName
      }
    }
  }

  /// The last change sets that were sealed or applied here, newest first.
  package func history(limit: Int) throws -> [AppliedChangeSet] {
    try read { session in
      let rows = try StoredRow.fetchAll(
        session.database,
        sql: "SELECT client, number, hash, changes, at FROM docsync_history "
          + "ORDER BY seq DESC LIMIT ?",
        arguments: [limit])
      return try rows.map { row in
        AppliedChangeSet(
          client: session.clients.client(try row["client"]),
          number: try row["number"], hash: try Self.hash(try row["hash"]),
          rowCount: try row["changes"], milliseconds: try row["at"])
      }
    }
  }

  /// The length of the files of the change sets beyond a vector, as far as the
  /// history goes back.
  package func historyByteCount(beyond vector: VersionVector) throws -> Int {
    try read { session in
      try StoredRow.fetchAll(
        session.database, sql: "SELECT client, number, size FROM docsync_history"
      ).reduce(0) { sum, row in
        let client = session.clients.client(try row["client"])
        return try (row["number"] as UInt64) > vector.number(of: client)
          ? sum + (try row["size"] as Int) : sum
      }
    }
  }

  /// A value that the layer above keeps in the store; `nil` if unset.
  package func record(_ key: String) throws -> [UInt8]? {
    try StoreError.mapping(path) {
      // The schema does not matter here.
      try connection.queue.writeWithoutTransaction { database in
        try Data.fetchOne(
          database.cachedStatement(sql: "SELECT value FROM docsync_record WHERE key = ?"),
          arguments: [key]
        ).map(Array.init)
      }
    }
  }

  /// Keeps a value for the layer above, durably; `nil` removes it.
  package func setRecord(_ key: String, to value: [UInt8]?) throws {
    try write { session in try Self.set([key: value], session.database) }
  }

  /// Keeps values within a transaction; `nil` removes one.
  static func set(_ records: [String: [UInt8]?], _ database: Database) throws {
    for (key, value) in records {
      try database.execute(sql: "DELETE FROM docsync_record WHERE key = ?", arguments: [key])
      guard let value else { continue }
      try database.execute(
        sql: "INSERT INTO docsync_record (key, value) VALUES (?, ?)",
        arguments: [key, Data(value)])
    }
  }

  /// The digest of what the store shows and of the state beneath.
  ///
  /// The first includes edits that are not sealed yet; the second does not.
  package func digest() throws -> StoreDigest {
    try read { try StoreDigester(session: $0).run() }
  }
}
