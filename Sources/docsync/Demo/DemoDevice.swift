import DocumentSync
import Foundation
import GRDB
import SyncDirectory
import SyncStore

/// One device of the demo: a database and a program that edits it.
struct DemoDevice {
  /// The name of the device.
  let name: String
  /// The database file.
  let store: String

  /// Runs SQL as any program would: on a plain connection without code for syncing.
  func run(_ statements: [String]) throws {
    try withConnection { queue in
      try queue.writeWithoutTransaction { database in
        for statement in statements { try database.execute(sql: statement) }
      }
    }
  }

  /// Returns the rows of a query, with values as text.
  func rows(_ query: String) throws -> [[String]] {
    try withConnection { queue in
      try queue.read { database in
        try Row.fetchAll(database, sql: query).map { row in
          row.databaseValues.map { value in
            switch value.storage {
            case .null: "NULL"
            case .int64(let integer): "\(integer)"
            case .double(let real): "\(real)"
            case .string(let text): text
            case .blob(let data): hexadecimal(data)
            }
          }
        }
      }
    }
  }

  /// Synchronizes once.
  func synchronize() async throws -> SyncReport {
    try await withManager(store, directory: nil) { try await $0.synchronize() }
  }

  /// Returns the digest of the device's store.
  func digest() async throws -> StoreDigest {
    try await withManager(store, directory: nil) { try await $0.digest() }
  }

  private func withConnection<Result>(_ body: (DatabaseQueue) throws -> Result) throws -> Result {
    var configuration = Configuration()
    // Off, as in the sqlite3 shell by default.
    configuration.foreignKeysEnabled = false
    let queue = try DatabaseQueue(path: store, configuration: configuration)
    let result: Result
    do {
      result = try body(queue)
    } catch {
      try queue.close()
      throw error
    }
    try queue.close()
    return result
  }
}
