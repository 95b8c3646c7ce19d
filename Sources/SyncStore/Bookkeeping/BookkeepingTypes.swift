import GRDB
import SyncModel

/// Checks whether the values in bookkeeping have the types, and are in the ranges, that its
/// readers expect: SQLite stores values of any type, and conversions would fail.
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
    (
      "docsync_history",
      [
        "client": "'integer'", "number": "'integer'", "hash": "'blob'", "changes": "'integer'",
        "size": "'integer'", "at": "'integer'",
      ]
    ),
    (
      "docsync_base",
      ["tbl": "'integer'", "identity": "'blob'", "col": "'integer'", "value": "'blob'"]
    ),
  ]

  private static let second: [(table: String, columns: [String: String])] = [
    (
      "docsync_early",
      [
        "tbl": "'integer'", "identity": "'blob'", "col": "'integer'", "since": "'integer'",
        "setter": "'integer'", "client": "'integer'", "sum": "'blob'", "at": "'integer'",
      ]
    ),
    ("docsync_aside", ["wire": "'text'", "identity": "'blob'", "col": "'text'"]),
  ]

  private static let third: [(table: String, columns: [String: String])] = [
    ("docsync_plain", ["tbl": "'integer'", "key": "'integer'"])
  ]

  /// A sentence for each table that has values of other types or out of range.
  func run() throws -> [(name: SQLName, message: String)] {
    let wanted =
      Self.first + (format >= 2 ? Self.second : []) + (format >= 3 ? Self.third : [])
    return try wanted.compactMap { table, columns in
      var terms = columns.sorted { $0.key < $1.key }.map {
        "typeof(\(quoted(SQLName($0.key)))) NOT IN (\($0.value))"
      }
      terms += Self.ranges(of: table, columns.keys.sorted())
      let count =
        try Int.fetchOne(
          database,
          sql: "SELECT count(*) FROM main.\(table) WHERE \(terms.joined(separator: " OR "))") ?? 0
      return count == 0
        ? nil
        : (
          SQLName(table), "\(count) rows hold values that they should not, by their types or sizes."
        )
    }
  }

  /// SQL terms that are true for values out of range.
  private static func ranges(of table: String, _ columns: [String]) -> [String] {
    let clients = ["client", "setter", "local_client", "remote_client"]
    let numbers = ["number", "first", "last"]
    var terms: [String] = []
    for column in columns {
      let name = quoted(SQLName(column))
      if clients.contains(column), !["docsync_client", "docsync_inbox"].contains(table) {
        terms.append("\(name) NOT BETWEEN 0 AND \(Int32.max)")
      } else if numbers.contains(column) {
        terms.append("\(name) NOT BETWEEN 0 AND \(Int64.max >> 1)")
      } else if ["bit", "col"].contains(column), table != "docsync_lost", table != "docsync_aside" {
        terms.append("\(name) NOT BETWEEN 0 AND \(ConflictTable.localKeyPosition)")
      }
    }
    switch table {
    case "docsync_client":
      terms += ["number > 0 AND hash IS NULL", "id NOT BETWEEN 1 AND \(Int32.max)"]
      terms.append("length(client) <> 16")
    case "docsync_kept", "docsync_claim", "docsync_kept_reference", "docsync_early", "docsync_base",
      "docsync_plain":
      terms.append("tbl NOT IN (SELECT id FROM main.docsync_table)")
    default: break
    }
    return terms
  }
}
