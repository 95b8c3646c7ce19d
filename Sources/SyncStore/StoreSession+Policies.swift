import Foundation
import GRDB
import SyncModel

/// The policies for the registers of one table.
struct TablePolicies {
  var existence: ConflictPolicy
  /// By position of the column.
  var columns: [ConflictPolicy]
}

extension SyncPolicies {
  /// The record that keeps them.
  static let record = "conflictPolicies"

  /// The policies of the store.
  static func read(_ database: Database) throws -> SyncPolicies {
    let stored = try Data.fetchOne(
      database, sql: "SELECT value FROM docsync_record WHERE key = ?", arguments: [record])
    guard let stored else { return SyncPolicies() }
    do {
      return try JSONDecoder().decode(SyncPolicies.self, from: stored)
    } catch is DecodingError {
      throw DatabaseError(resultCode: .SQLITE_CORRUPT, message: "the policies are damaged")
    }
  }

  func policies(of table: TableSchema) -> TablePolicies {
    TablePolicies(
      existence: policy(table: table.name, column: nil),
      columns: table.columns.map { policy(table: table.name, column: $0.name) })
  }
}

/// What deciding conflicts needs from the store, read when it is first asked.
final class PolicyCache {
  fileprivate var policies: SyncPolicies?
  fileprivate var tables: [Int: TablePolicies] = [:]
  fileprivate var unpublished: [ClosedRange<UInt64>]?
  /// The functions that the application registered, by name.
  var resolvers: [String: ConflictResolver] = [:]
}

extension StoreSession {
  /// The policies for a table.
  func policies(of id: Int) throws -> TablePolicies {
    if let known = policyCache.tables[id] { return known }
    let all = try policyCache.policies ?? SyncPolicies.read(database)
    policyCache.policies = all
    let found = all.policies(of: schema[id])
    policyCache.tables[id] = found
    return found
  }

  /// Whether something was said by this client in a change set that is not
  /// published yet.
  func isUnpublished(_ stamp: LocalStamp) throws -> Bool {
    guard stamp.client == own else { return false }
    let ranges = try policyCache.unpublished ?? unpublishedRanges()
    policyCache.unpublished = ranges
    return ranges.contains { $0.contains(stamp.time) }
  }

  /// Has what is unpublished read anew, after a sealing.
  func forgetUnpublished() { policyCache.unpublished = nil }

  /// The value of a cell before the edits that are not published; `nil` if it
  /// is not known.
  func base(of column: Int, _ row: WorkingRow) throws -> Value? { nil }
}
