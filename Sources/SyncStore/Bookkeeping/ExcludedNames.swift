import Foundation
import GRDB
import SyncModel

/// The names of excluded columns that were renamed on this device.
///
/// ``NamesTrigger`` names them, too, but that trigger is lost when a program remakes its table, and
/// the columns must stay on this device all the same.
struct ExcludedNames: Codable, Equatable {
  /// The columns, by the name of their table in change sets.
  var columns: [SQLName: [SQLName]] = [:]

  static func read(_ database: Database) throws -> ExcludedNames {
    try MetaTable.value(.excludedNames, database) ?? ExcludedNames()
  }

  /// Records the names in a table; an empty array removes them.
  static func note(_ names: [SQLName], of table: SQLName, _ database: Database) throws {
    var known = try read(database)
    guard known.columns[table] ?? [] != names else { return }
    known.columns[table] = names.isEmpty ? nil : names
    guard !known.columns.isEmpty else {
      return try MetaTable.remove(.excludedNames, database)
    }
    try MetaTable.write(.excludedNames, to: Array(JSONEncoder().encode(known)), database)
  }
}

extension ExcludedNames: StoredValue {
  /// There are none.
  func checkNumbers() throws {}
}

extension TableSchema {
  /// The excluded columns whose names differ from the configuration's.
  var renamedExclusions: [SQLName] { excludedColumns.subtracting(excludedNames).sorted() }
}
