import Foundation
import GRDB
import SyncModel

/// The names of tables and columns that no longer exist and that the conflict journal still
/// mentions.
struct FormerNames: Codable {
  struct Column: Codable {
    var name: SQLName
    var wireName: SQLName
  }

  struct Table: Codable {
    var name: SQLName
    var wireName: SQLName
    var identity: SQLText
    /// By their numbers in the journal.
    var columns: [Int: Column]
  }

  /// By the negative numbers that stand for them in the journal.
  var tables: [Int: Table] = [:]
  /// The columns that existing tables have lost, by their numbers in the journal.
  var columns: [Int: [Int: Column]] = [:]

  /// The first number for columns that no longer exist, below the position of the local key.
  private static let firstColumn = ConflictTable.localKeyPosition >> 1

  /// Returns whether a column's number in the journal stands for a column that no longer exists.
  static func isFormer(column: Int) -> Bool {
    (firstColumn..<ConflictTable.localKeyPosition).contains(column)
  }

  /// Records columns that a table has lost. Returns the numbers that stand for them from now on, by
  /// their former positions.
  mutating func note(_ gone: [Int: Column], of table: Int) -> [Int: Int] {
    var known = columns[table] ?? [:]
    var numbers: [Int: Int] = [:]
    for (position, column) in gone.sorted(by: { $0.key < $1.key }) {
      let number =
        known.first { $0.value.wireName == column.wireName }?.key ?? Self.firstColumn + known.count
      known[number] = column
      numbers[position] = number
    }
    columns[table] = known
    return numbers
  }

  /// Records a table that no longer exists. Returns the number that stands for it from now on.
  mutating func note(_ gone: Table) -> Int {
    let number = (tables.keys.min() ?? 0) - 1
    tables[number] = gone
    return number
  }

  static func read(_ database: Database) throws -> FormerNames {
    try MetaTable.value(.formerNames, database) ?? FormerNames()
  }

  func write(_ database: Database) throws {
    guard !tables.isEmpty || !columns.isEmpty else {
      return try MetaTable.remove(.formerNames, database)
    }
    try MetaTable.write(.formerNames, to: Array(JSONEncoder().encode(self)), database)
  }
}

extension FormerNames: StoredValue {
  /// The numbers of tables and columns are counted on from.
  func checkNumbers() throws {
    for number in tables.keys { try StoredNumbers.check("table", negative: number) }
    for number in tables.values.flatMap(\.columns.keys) + columns.values.flatMap(\.keys) {
      try StoredNumbers.check("column", count: number)
    }
  }
}
