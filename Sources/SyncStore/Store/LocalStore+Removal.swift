import Foundation
import GRDB
import SyncModel

extension LocalStore {
  /// What would be lost if the store were taken out of sync.
  package func removalLoss() throws -> RemovalLoss { try read { try $0.removalLoss() } }

  /// Takes the database out of sync, in one transaction: removes the capture
  /// triggers and all bookkeeping, and leaves the rest as it is. Only
  /// ``close()`` may be called afterwards.
  ///
  /// - Parameter check: Called with what will be lost, in the same transaction. If it throws,
  ///   nothing is changed and the error is passed on.
  package func removeBookkeeping(_ check: (RemovalLoss) throws -> Void) throws {
    try write { session in
      try check(try session.removalLoss())
      try Bookkeeping.remove(session.database)
    }
    _ = try options.places?.keep([], of: binding.client.description)
  }

  /// Like ``removeBookkeeping(_:)``, but changes nothing and returns `false` if there are rows or
  /// change sets that bookkeeping alone holds.
  package func removeBookkeeping() throws -> Bool {
    struct Refusal: Error {}
    do {
      try removeBookkeeping { loss in
        if loss.holdsRows { throw Refusal() }
      }
      return true
    } catch is Refusal {
      return false
    }
  }
}

extension Bookkeeping {
  /// Removes what ``creation(upTo:)``, ``creation(for:)`` and capture have made, and nothing that
  /// the application has under a name with the same beginning.
  fileprivate static func remove(_ database: Database) throws {
    func names(_ type: SQLName) throws -> [SQLName] {
      try SQLName.fetchAll(
        database,
        sql: "SELECT name FROM main.sqlite_schema WHERE type = ? AND name GLOB 'docsync_*'",
        arguments: [type])
    }
    for name in try names("trigger") where isTrigger(name) {
      try database.execute(sql: "DROP TRIGGER main.\(quoted(name))")
    }
    let fixed = Set(creation().compactMap(tableName))
    for name in try names("table") where fixed.contains(name) || isOfOneTable(name) {
      try database.execute(sql: "DROP TABLE main.\(quoted(name))")
    }
  }

  /// The table that a statement of ``creation(upTo:)`` makes.
  private static func tableName(_ statement: String) -> SQLName? {
    let tokens = SQLTokens(statement).tokens
    guard tokens.count > 2, tokens[1].isWord("TABLE") else { return nil }
    return tokens.first { $0.name.begins(with: "docsync_") }?.name
  }

  /// Whether a name is one of a table's capture triggers: a number and two letters.
  private static func isTrigger(_ name: SQLName) -> Bool {
    let parts = name.text.split(separator: "_", omittingEmptySubsequences: false)
    guard parts.count == 3, Int(parts[1]) != nil, parts[2].count == 2 else { return false }
    return parts[2].allSatisfy { $0.isASCII && $0.isLowercase }
  }

  /// Whether a name is that of a bookkeeping table for one table.
  private static func isOfOneTable(_ name: SQLName) -> Bool {
    ["docsync_log_", "docsync_id_", "docsync_stamps_"].contains { prefix in
      name.begins(with: SQLName(prefix)) && Int(name.text.dropFirst(prefix.count)) != nil
    }
  }
}
