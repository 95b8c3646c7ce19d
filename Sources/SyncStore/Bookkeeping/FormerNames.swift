import Foundation
import GRDB
import SyncModel

/// The names of tables and columns that the store has no more and that the
/// conflict journal still mentions.
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
  /// The columns that are gone from existing tables, by their numbers in the journal.
  var columns: [Int: [Int: Column]] = [:]

  /// Numbers of columns that are gone begin here, below that of the key.
  private static let firstColumn = ConflictTable.localKeyPosition >> 1

  /// Whether the number of a column of the journal stands for one that is
  /// gone.
  static func isFormer(column: Int) -> Bool {
    (firstColumn..<ConflictTable.localKeyPosition).contains(column)
  }

  /// Notes columns of a table that have gone; returns the numbers that stand
  /// for them from now on.
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

  /// Notes a table that has gone; returns the number that stands for it from
  /// now on.
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
    // Those of tables are negative.
    for number in tables.keys { try StoredNumbers.check("table", count: 0 &- number) }
    for number in tables.values.flatMap(\.columns.keys) + columns.values.flatMap(\.keys) {
      try StoredNumbers.check("column", count: number)
    }
  }
}
