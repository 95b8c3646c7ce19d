import GRDB
import SyncModel

/// The keys that merged rows have in the document. Temporary tables hold them, since there may be
/// many.
///
/// For tables outside of circles of references, it records only rows that have another key now, or
/// none. Keys that are one in the document may be two in the other database, so they are compared as
/// they are spelled.
final class MergedKeys {
  /// Where a row is.
  enum Place: Equatable {
    /// Under the key that it had.
    case same
    /// Under another key.
    case moved(to: [Value])
    /// Not in the document; the journal has it under an identity.
    case nowhere(RowIdentity)
  }

  private let database: Database
  private var writing: [Int: SQLStatement] = [:]
  private var reading: [Int: SQLStatement] = [:]
  /// The tables for which anything is recorded.
  private var isUsed: Set<Int> = []

  init(_ database: Database) { self.database = database }

  private func name(_ id: Int) -> String { "temp.docsync_merged_\(id)" }

  /// Returns the columns that identify rows: the local key, or the identity's.
  static func keyColumns(_ table: TableSchema) -> [SQLName] {
    table.localKey.map { [$0] } ?? table.keyColumns
  }

  func begin(_ table: TableSchema) throws {
    let count = Self.keyColumns(table).count
    let places = (0..<count).map { "n\($0)" }
    let names = (0..<count).map { "k\($0)" }
    try database.execute(
      sql: "DROP TABLE IF EXISTS \(name(table.id)); CREATE TABLE \(name(table.id)) "
        + "(\((names + ["state INTEGER"] + places).joined(separator: ", ")), "
        + "PRIMARY KEY (\(names.joined(separator: ", "))))")
    writing[table.id] = try SQLStatement(
      "INSERT OR REPLACE INTO \(name(table.id)) VALUES "
        + "(\(Array(repeating: "?", count: 2 * count + 1).joined(separator: ", ")))", on: database)
    reading[table.id] = try SQLStatement(
      "SELECT state, \(places.joined(separator: ", ")) FROM \(name(table.id)) WHERE "
        + names.map { "\($0) = ?" }.joined(separator: " AND "), on: database)
  }

  /// Removes the temporary tables.
  func end() throws {
    let ids = Array(writing.keys)
    writing = [:]
    reading = [:]
    for id in ids { try database.execute(sql: "DROP TABLE \(name(id))") }
  }

  func note(_ place: Place, of key: [Value], in table: TableSchema) throws {
    guard let statement = writing[table.id] else { return }
    isUsed.insert(table.id)
    for (index, value) in key.enumerated() { statement.bind(value, at: index + 1) }
    let places: [Value]
    switch place {
    case .same:
      statement.bind(0, at: key.count + 1)
      places = key
    case .moved(let new):
      statement.bind(1, at: key.count + 1)
      places = new
    case .nowhere(let identity):
      statement.bind(2, at: key.count + 1)
      places = [.blob(identity.bytes)] + key.dropFirst()
    }
    for (index, value) in places.enumerated() { statement.bind(value, at: key.count + 2 + index) }
    try statement.run()
  }

  /// Returns where a row is, or `nil` if nothing is recorded for its key.
  func place(of key: [Value], in table: TableSchema) throws -> Place? {
    guard isUsed.contains(table.id), let statement = reading[table.id] else { return nil }
    for (index, value) in key.enumerated() { statement.bind(value, at: index + 1) }
    guard try statement.step() else { return nil }
    defer { statement.reset() }
    switch statement.integer(at: 0) {
    case 0: return .same
    case 1: return .moved(to: key.indices.map { statement.value(at: $0 + 1) })
    default: return .nowhere(RowIdentity(bytes: statement.bytes(at: 1)))
    }
  }
}
