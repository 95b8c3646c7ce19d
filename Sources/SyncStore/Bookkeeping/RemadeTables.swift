import Foundation
import GRDB
import SyncModel

/// The tables that a program has remade, and whose rows the store has not yet compared with their
/// former state.
///
/// Dropping a table drops its triggers, and nothing reports that. The store no longer contains the
/// former rows, so ``RemakeComparison`` looks them up in the document.
struct RemadeTables: Codable, Equatable {
  /// The last change set that this store had sealed at some time.
  struct Sealed: Codable, Equatable {
    /// The store's client at that time.
    var client: ClientIdentifier
    /// The number of the last change set; 0 for none.
    var number: UInt64
  }

  /// When the remake of each table was noticed, in milliseconds since 1970, by the table's number.
  var noticed: [Int: Int64] = [:]
  /// The last change set before each remake was noticed; a program's edits after the remake follow
  /// it. Absent in stores of earlier builds.
  var sealed: [Int: Sealed]?
  /// The key of a deleted row that a row of such a table contains in its own key.
  struct HeldKey: Codable, Equatable {
    var table: Int
    var key: Int64
    /// The identity of the deleted row.
    var identity: [UInt8]
  }

  /// The keys that stand for the deleted rows that had them, until the tables are compared. Absent
  /// in stores of earlier builds.
  var heldKeys: [HeldKey]?
  /// A cell that was sealed as a reference to a row of such a table.
  struct Reference: Codable, Hashable {
    var table: Int
    var identity: [UInt8]
    /// The name of the cell's column in change sets.
    var column: SQLName
    /// The identity of the row that it refers to.
    var parent: [UInt8]
  }

  /// Cells that were sealed as references to rows that the comparison of the tables will seal;
  /// recorded if other cells may contain the same keys as plain values. Absent in stores of earlier
  /// builds.
  var references: Set<Reference>?
  /// Whether tables were compared, and the store has not decided since which rows are shown. Absent
  /// in stores of earlier builds.
  var isSettlingDue: Bool?

  static func read(_ database: Database) throws -> RemadeTables {
    try MetaTable.value(.remade, database) ?? RemadeTables()
  }

  func write(_ database: Database) throws {
    guard self != RemadeTables() else {
      return try MetaTable.remove(.remade, database)
    }
    try MetaTable.write(.remade, to: Array(JSONEncoder().encode(self)), database)
  }

  /// Makes the next sealing decide again which rows are shown.
  static func noteSettlingDue(_ database: Database) throws {
    var remade = try read(database)
    remade.isSettlingDue = true
    try remade.write(database)
  }
}

extension RemadeTables: StoredValue {
  /// Times and numbers of change sets; the keys of the application may be any integers.
  func checkNumbers() throws {
    for time in noticed.values { try StoredNumbers.check("noticed", milliseconds: time) }
    for sealed in (sealed ?? [:]).values { try StoredNumbers.check("number", sealed.number) }
    for key in heldKeys ?? [] { try StoredNumbers.check("table", count: key.table, from: 1) }
    for reference in references ?? [] {
      try StoredNumbers.check("table", count: reference.table, from: 1)
    }
  }
}
