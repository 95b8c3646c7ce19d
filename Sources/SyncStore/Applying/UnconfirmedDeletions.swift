import Foundation
import GRDB
import SyncModel

/// The change sets in the inbox that a ``DeletionBrake`` has stopped. They wait until a
/// synchronization without a brake.
struct UnconfirmedDeletions: Codable {
  /// A stopped change set.
  struct ChangeSet: Codable {
    /// The hash of its file.
    var hash: String
    /// The tables with too many deletions, by name.
    var tables: [StoreStatus.WaitingChangeSet.Deletions]
  }

  var changeSets: [ChangeSet] = []

  /// The deletions of a change set; none if it was not stopped.
  func deletions(of hash: ContentHash) -> [StoreStatus.WaitingChangeSet.Deletions] {
    guard !changeSets.isEmpty else { return [] }
    let text = hash.description
    return changeSets.first { $0.hash == text }?.tables ?? []
  }

  func contains(_ hash: ContentHash) -> Bool { !deletions(of: hash).isEmpty }
}

extension UnconfirmedDeletions: StoredValue {
  func checkNumbers() throws {
    for deletions in changeSets.flatMap(\.tables) { try deletions.checkNumbers() }
  }
}

extension StoreStatus.WaitingChangeSet.Deletions {
  /// Throws unless the counts are counts of rows.
  package func checkNumbers() throws {
    try StoredNumbers.check("deletedCount", count: deletedCount, from: 1)
    try StoredNumbers.check("rowCount", count: rowCount, from: 1)
  }
}

extension UnconfirmedDeletions {
  static func read(_ database: Database) throws -> UnconfirmedDeletions {
    try MetaTable.value(.unconfirmedDeletions, database) ?? UnconfirmedDeletions()
  }

  func write(_ database: Database) throws {
    if changeSets.isEmpty { return try MetaTable.remove(.unconfirmedDeletions, database) }
    try MetaTable.write(
      .unconfirmedDeletions, to: Array(JSONEncoder().encode(self)), database)
  }
}
