import GRDB

/// Looks whether what bookkeeping holds is of the types that are read from it:
/// SQLite keeps what it is given, and conversions would fail.
struct BookkeepingTypes {
  let database: Database
  /// The version of the layout.
  let format: Int

  private static let first: [(table: String, columns: [String: String])] = [
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
    (
      "docsync_range",
      [
        "client": "'integer'", "last": "'integer'", "first": "'integer'", "least": "'integer'",
        "greatest": "'integer'", "mixed": "'integer'",
      ]
    ),
    ("docsync_foreign_column", ["tbl": "'integer'", "col": "'integer'", "wire": "'text'"]),
    ("docsync_lost", ["wire": "'text'", "col": "'text'"]),
  ]

  private static let second: [(table: String, columns: [String: String])] = [
    (
      "docsync_early",
      [
        "tbl": "'integer'", "identity": "'blob'", "col": "'integer'", "since": "'integer'",
        "setter": "'integer'", "client": "'integer'", "sum": "'blob'", "at": "'integer'",
      ]
    )
  ]

  /// What is of another type, a sentence each, by table.
  func run() throws -> [(name: String, message: String)] {
    let wanted = Self.first + (format >= 2 ? Self.second : [])
    return try wanted.compactMap { table, columns in
      var terms = columns.sorted { $0.key < $1.key }.map {
        "typeof(\(quoted($0.key))) NOT IN (\($0.value))"
      }
      if table == "docsync_client" { terms.append("number > 0 AND hash IS NULL") }
      let count =
        try Int.fetchOne(
          database,
          sql: "SELECT count(*) FROM main.\(table) WHERE \(terms.joined(separator: " OR "))") ?? 0
      return count == 0
        ? nil : (table, "\(count) rows hold values of other types than they should.")
    }
  }
}
