import Foundation
import GRDB
import SyncModel

/// The forms in which tables have the values of their keys: bookkeeping finds rows by these.
///
/// A program can make a table again with another affinity or collation of a key column. Then each
/// identity has another form, and ``KeyFormChange`` rewrites bookkeeping.
struct KeyForms: Codable, Equatable {
  /// The forms of the columns of a key, in their order, by the number of the table. Tables whose
  /// rows have random identities are absent.
  private(set) var present: [Int: [KeyForm]] = [:]
  /// The former ones, the latest first.
  private var former: [Int: [[KeyForm]]] = [:]

  /// The most former forms of a table that are recorded.
  private static let greatestCount = 8

  /// Reads what is recorded; `nil` if an earlier build made the store.
  static func read(_ database: Database) throws -> KeyForms? {
    try MetaTable.value(.keyForms, database)
  }

  /// Returns the former forms of a table's key, the latest first.
  func formerForms(of table: Int) -> [[KeyForm]] {
    Array((former[table] ?? []).prefix(Self.greatestCount))
  }

  func write(_ database: Database) throws {
    try MetaTable.write(.keyForms, to: Array(JSONEncoder().encode(self)), database)
  }

  /// Records the present forms of a store that an earlier build made.
  static func noteIfAbsent(_ schema: StoreSchema, _ database: Database) throws {
    guard try MetaTable.read(.keyForms, database) == nil else { return }
    var forms = KeyForms()
    forms.update(schema.tables)
    try forms.write(database)
  }

  /// Records the present forms, and returns the former ones of the tables whose forms have changed.
  @discardableResult
  mutating func update(_ tables: [TableSchema]) -> [Int: [KeyForm]] {
    var changed: [Int: [KeyForm]] = [:]
    var forms: [Int: [KeyForm]] = [:]
    for table in tables where table.identity != .surrogate {
      let now = KeyForm.ofKey(of: table)
      forms[table.id] = now
      guard let before = present[table.id], before != now, before.count == now.count else {
        continue
      }
      changed[table.id] = before
      former[table.id] = Array(
        ([before] + (former[table.id] ?? []).filter { $0 != before && $0 != now })
          .prefix(Self.greatestCount))
    }
    present = forms
    former = former.filter { forms[$0.key] != nil }
    return changed
  }
}

extension KeyForms: StoredValue {
  func checkNumbers() throws {
    for table in Array(present.keys) + Array(former.keys) {
      try StoredNumbers.check("table", count: table, from: 1)
    }
  }
}
