import Foundation
import GRDB
import SyncModel

/// The tables that a program has made anew, and whose rows have not been
/// compared yet with what they were: kept until they are.
///
/// A table that is dropped takes its triggers along, and nobody is told. What
/// its rows were is not in the store any more. So it is looked up in the
/// document: see ``RemakeComparison``.
struct RemadeTables: Codable, Equatable {
  /// When each was noticed, in milliseconds since 1970, by its number.
  var noticed: [Int: Int64] = [:]

  /// Where they are kept among what bookkeeping knows of the device.
  static let key = "remade"

  static func read(_ database: Database) throws -> RemadeTables {
    guard let bytes = try Bookkeeping.meta(key, database) else { return RemadeTables() }
    return try JSONDecoder().decode(RemadeTables.self, from: Data(bytes))
  }

  func write(_ database: Database) throws {
    guard !noticed.isEmpty else {
      return try database.execute(
        sql: "DELETE FROM docsync_meta WHERE key = ?", arguments: [Self.key])
    }
    try Bookkeeping.setMeta(Self.key, to: Array(JSONEncoder().encode(self)), database)
  }

  /// Notes tables that were made anew.
  static func note(_ tables: [Int], _ session: StoreSession) throws {
    guard !tables.isEmpty else { return }
    var remade = try read(session.database)
    for table in tables { remade.noticed[table] = session.now }
    try remade.write(session.database)
  }
}

extension StoreSession {
  /// The tables that were made anew and are still there, and when that was
  /// noticed.
  func remadeTables() throws -> [(table: TableSchema, noticed: Int64)] {
    let remade = try RemadeTables.read(database).noticed
    return schema.tables.compactMap { table in remade[table.id].map { (table, $0) } }
  }

  /// Notes that all tables are compared.
  func forgetRemadeTables() throws { try RemadeTables().write(database) }

  /// Logs all rows of tables that were made anew, where nothing tells what
  /// they were: as of 1970, since any edit that was captured is worth more.
  func logRemadeTables() throws {
    let remade = try remadeTables()
    guard !remade.isEmpty else { return }
    for (table, _) in remade { try SchemaArrival(session: self).logRows(of: table.id) }
    try forgetRemadeTables()
  }
}

extension LocalStore {
  /// The tables that a program has made anew, and whose rows have to be
  /// compared with what they were before anything is applied.
  public func remadeTables() throws -> [SQLName] {
    try read { try $0.remadeTables().map(\.table.name) }
  }

  /// Compares the rows of ``remadeTables()`` with those of another store of
  /// the document, and logs what is different: as an edit at the time when it
  /// was noticed that the tables were made anew. The next sealing seals it.
  ///
  /// - Parameter base: A store of the document that has applied what this one
  ///   has applied and sealed, and nothing else, as far as that can be had.
  ///   What others have said that is not here yet counts for more than what
  ///   is different; where it has less, that is left as it is. `nil` for none:
  ///   then all rows are logged as of 1970.
  public func compareRemadeTables(
    with base: LocalStore?, checkCancellation: @escaping () throws -> Void = {}
  ) throws {
    guard let base else { return try write { try $0.logRemadeTables() } }
    try base.read { former in
      try write { session in
        let isExact = try former.clients.vector().matches(session.clients.vector())
        for (table, noticed) in try session.remadeTables() {
          try checkCancellation()
          guard
            let comparison = try RemakeComparison(
              table, session: session, former: former, noticed: noticed, isExact: isExact,
              checkCancellation: checkCancellation)
          else {
            try SchemaArrival(session: session).logRows(of: table.id)
            continue
          }
          try comparison.run()
        }
        try session.forgetRemadeTables()
      }
    }
  }
}

extension VersionVector {
  /// Whether both contain the same.
  fileprivate func matches(_ other: VersionVector) -> Bool {
    contains(other) && other.contains(self)
  }
}
