import Foundation
import GRDB
import SyncModel

/// The keys of the rows with surrogate identities that existed when syncing began: bookkeeping
/// records nothing else about these rows until they are edited.
///
/// If a program remakes a table and inserts rows before triggers see it, these keys tell which rows
/// are new. They are the same on every device of a document.
struct OriginalKeys: Codable, Equatable {
  /// The ranges of keys in ascending order, by the names of tables in change sets.
  private var ranges: [SQLName: [ClosedRange<Int64>]] = [:]

  /// The most ranges of a table; a table with more gaps has its last ranges stored as one.
  static let greatestCount = 1_000

  /// Reads the keys. If they are absent, nothing is known of any table.
  static func read(_ database: Database) throws -> OriginalKeys {
    try MetaTable.value(.originalKeys, database) ?? OriginalKeys()
  }

  func write(_ database: Database) throws {
    try MetaTable.write(.originalKeys, to: Array(JSONEncoder().encode(self)), database)
  }

  /// Records the keys that a table has now.
  mutating func note(_ table: TableSchema, _ database: Database) throws {
    guard table.identity == .surrogate else { return }
    let key = quoted(table.keyColumns[0])
    let reading = try SQLStatement(
      "SELECT \(key) FROM \(table.quotedName) ORDER BY \(key)", on: database)
    var found: [ClosedRange<Int64>] = []
    while try reading.step() {
      let number = reading.integer(at: 0)
      if let last = found.last,
        last.upperBound == number - 1 || found.count == Self.greatestCount
      {
        found[found.count - 1] = last.lowerBound...number
      } else {
        found.append(number...number)
      }
    }
    ranges[table.wireName] = found
  }

  /// Returns whether a row of a table is known to have had a key when syncing began.
  func contains(_ number: Int64, of table: TableSchema) -> Bool {
    guard let ranges = ranges[table.wireName], ranges.count < Self.greatestCount else {
      return false
    }
    return ranges.contains { $0.contains(number) }
  }

  /// Returns whether a row of a table may have had a key when syncing began; true if nothing is
  /// known of the table.
  func mayContain(_ number: Int64, of table: TableSchema) -> Bool {
    guard let ranges = ranges[table.wireName] else { return true }
    return ranges.contains { $0.contains(number) }
  }
}

extension OriginalKeys: StoredValue {
  /// A key of the application may be any integer, and is only compared.
  func checkNumbers() throws {}
}
