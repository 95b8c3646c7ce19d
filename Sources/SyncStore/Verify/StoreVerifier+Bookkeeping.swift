import Foundation
import GRDB
import SyncModel

extension StoreVerifier {
  /// Checks the tables that every store has, and reads what else depends on;
  /// whether that can be done.
  func checkBookkeeping() throws -> Bool {
    guard let format = try Bookkeeping.format(of: database) else {
      note(.bookkeepingDamaged, "docsync_meta", "It does not say which format the store has.")
      return false
    }
    guard format <= Bookkeeping.format else {
      note(
        .bookkeepingNewer, "docsync_meta",
        "The store was put under sync by a newer version (format \(format)).")
      return false
    }
    let damage = try BookkeepingCheck(database: database, format: format).run()
    for (name, message) in damage { note(.bookkeepingDamaged, name, message) }
    guard damage.isEmpty, try checkTypes() else { return false }
    try guarded("docsync_record", .recordDamaged) { try readRecords() }
    return true
  }

  /// What has to be of a type, or conversions would fail.
  private func checkTypes() throws -> Bool {
    let wanted: [(table: String, columns: [String: String])] = [
      ("docsync_meta", ["key": "'text'", "value": "'blob'"]),
      (
        "docsync_table",
        [
          "name": "'text'", "wire": "'text'", "identity": "'text'", "unstamped": "'integer'",
          "origin": "'integer'",
        ]
      ),
      (
        "docsync_column",
        [
          "tbl": "'integer'", "bit": "'integer'", "name": "'text'", "wire": "'text'",
          "refers": "'integer', 'null'",
        ]
      ),
      ("docsync_client", ["client": "'blob'", "number": "'integer'", "hash": "'blob', 'null'"]),
      (
        "docsync_outbox",
        [
          "client": "'integer'", "number": "'integer'", "hash": "'blob'", "size": "'integer'",
          "changes": "'integer'", "published": "'integer'", "bytes": "'blob'",
        ]
      ),
      (
        "docsync_inbox",
        ["client": "'blob'", "number": "'integer'", "hash": "'blob'", "bytes": "'blob'"]
      ),
      ("docsync_record", ["key": "'text'", "value": "'blob'"]),
      (
        "docsync_kept",
        [
          "tbl": "'integer'", "identity": "'blob'", "reason": "'text'", "moved": "'blob', 'null'",
          "cells": "'blob'",
        ]
      ),
      (
        "docsync_claim",
        ["tbl": "'integer'", "ix": "'integer'", "key": "'blob'", "identity": "'blob'"]
      ),
      (
        "docsync_kept_reference",
        [
          "parent": "'integer'", "columns": "'text'", "key": "'blob'", "tbl": "'integer'",
          "identity": "'blob'",
        ]
      ),
      (
        "docsync_conflict",
        [
          "at": "'integer'", "size": "'integer'", "status": "'text'", "kind": "'text'",
          "tbl": "'integer'", "identity": "'blob'", "col": "'integer', 'null'", "rule": "'text'",
          "outcome": "'text'", "local_time": "'integer', 'null'",
          "local_client": "'integer', 'null'", "remote_time": "'integer', 'null'",
          "remote_client": "'integer', 'null'", "message": "'text', 'null'",
          "key": "'blob', 'null'", "base": "'blob', 'null'", "local": "'blob', 'null'",
          "remote": "'blob', 'null'",
        ]
      ),
      (
        "docsync_foreign_table", ["wire": "'text'", "kind": "'integer'", "keys": "'text'"]
      ),
      ("docsync_foreign", ["tbl": "'integer'", "identity": "'blob'", "content": "'blob'"]),
    ]
    var isRight = true
    for (table, columns) in wanted {
      let terms = columns.sorted { $0.key < $1.key }.map {
        "typeof(\(quoted($0.key))) NOT IN (\($0.value))"
      }
      let count =
        try Int.fetchOne(
          database,
          sql: "SELECT count(*) FROM main.\(table) WHERE \(terms.joined(separator: " OR "))") ?? 0
      guard count > 0 else { continue }
      isRight = false
      note(.bookkeepingDamaged, table, "\(count) rows hold values of other types than they should.")
    }
    return isRight
  }

  private func readRecords() throws {
    for row in try Row.fetchAll(database, sql: "SELECT key, value FROM docsync_record") {
      result.records[row["key"]] = Array(row["value"] as Data)
    }
    _ = try SyncPolicies.read(database)
  }

  /// What the rest works with; `nil` if it cannot be made.
  func session() throws -> StoreSession? {
    var session: StoreSession?
    try guarded("docsync_meta") {
      guard let stored = try Bookkeeping.meta("binding", database),
        let configuration = try Bookkeeping.meta("configuration", database)
      else {
        note(
          .bookkeepingDamaged, "docsync_meta",
          "What the store is bound to, or what is synchronized, is missing.")
        return
      }
      let binding = try JSONDecoder().decode(StoreBinding.self, from: Data(stored))
      result.binding = binding
      result.vector = try ClientRegistry(database).vector()
      let isKnown = try Bool.fetchOne(
        database, sql: "SELECT EXISTS (SELECT 1 FROM docsync_client WHERE client = ?)",
        arguments: [Data(binding.client.bits.bytes)])
      guard isKnown ?? false else {
        note(.bookkeepingDamaged, "docsync_client", "The store's own client is missing.")
        return
      }
      do {
        let schema = try LocalStore.schema(
          of: database,
          configuration: try JSONDecoder().decode(
            StoreConfiguration.self, from: Data(configuration)),
          path: path)
        session = try StoreSession(
          database: database, schema: schema, client: binding.client, now: options.now())
      } catch let error as StoreError {
        note(
          .schemaUnsuitable, nil, error.message, detail: error.detail, remedy: error.remedy)
      }
    }
    return session
  }

  // MARK: - Triggers

  /// Whether the triggers are those that the schema needs.
  func checkTriggers(_ schema: StoreSchema) throws -> Bool {
    var isRight = true
    for table in schema.tables {
      let wanted = Set(CaptureTriggers(table: table).triggers)
      let rows = try Row.fetchAll(
        database,
        sql: "SELECT name, sql FROM main.sqlite_schema WHERE type = 'trigger' AND name GLOB ?",
        arguments: ["docsync_\(table.id)_*"])
      let found = Set(rows.map { $0["sql"] as String })
      guard found != wanted else { continue }
      isRight = false
      let strange = rows.filter { !wanted.contains($0["sql"]) }.map { $0["name"] as String }
      note(
        .triggersOutOfDate, table.name,
        "Triggers that capture edits are missing or out of date.",
        detail: "\(wanted.subtracting(found).count) are not as they should be"
          + (strange.isEmpty ? "" : ": " + strange.sorted().joined(separator: ", ")))
    }
    guard isRight else { return false }
    for table in schema.tables {
      let names =
        [table.logName, table.stampsName]
        + (table.identity == .surrogate ? [table.identityName] : [])
      for name in names where try !database.tableExists(name) {
        isRight = false
        note(.bookkeepingDamaged, name, "\(name) is missing.")
      }
    }
    guard isRight, try SchemaRenewal(schema: schema, path: path).isNeeded(database) else {
      return isRight
    }
    note(
      .triggersOutOfDate, nil, "The application has changed its schema since the last sync.")
    return false
  }
}
