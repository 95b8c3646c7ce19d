import GRDB
import SyncModel

extension StoreError {
  /// The error of a database that is not under sync.
  init(notUnderSync path: String) {
    self.init(
      .notUnderSync, path: path, message: "The database is not under sync.",
      remedy: "Put it under sync with \(.create), or fetch the document with \(.join).")
  }
}

/// The opening of a store that is under sync.
struct StoreOpening {
  let path: String
  let options: StoreOptions

  /// Connects to the store, upgrades it, makes it a new client if it is a copy or older than it was,
  /// and brings it in line with its schema.
  func run() throws -> OpenStore {
    let isUnderSync = try DatabaseQueue.reading(path, busyTimeout: options.busyTimeout) {
      try Bookkeeping.exists(in: $0)
    }
    guard isUnderSync else {
      throw StoreError(notUnderSync: path)
    }
    return try StoreError.mapping(path) {
      let connection = try StoreConnection(
        path: path, busyTimeout: options.busyTimeout, onStatement: options.onStatement)
      return try connection.queue.closingOnFailure {
        let stored = try connection.queue.read { try StoreIdentity.read($0, path) }
        // This comes before anything is sealed.
        let binding = try connection.use { database in
          try ifWritable {
            try upgrade(database)
            return try StoreIdentity(database: database, path: path, options: options)
              .check(stored.binding)?.binding
          }
        }
        let store = OpenStore(
          connection: connection, options: options, binding: binding ?? stored.binding,
          configuration: stored.configuration)
        let isUpgraded = try connection.queue.read { try EarlierPlainValues.isSettlingDue($0) }
        if isUpgraded { try store.write { _ in } } else { try store.read { _ in } }
        return store
      }
    }
  }

  /// Runs `body`, or returns `nil` if the store cannot be written to: such a store can seal nothing
  /// either, and stays as it is.
  private func ifWritable<Result>(_ body: () throws -> Result?) throws -> Result? {
    do {
      return try body()
    } catch let error as DatabaseError
      where [.SQLITE_READONLY, .SQLITE_CANTOPEN, .SQLITE_PERM].contains(error.resultCode)
    {
      return nil
    }
  }

  private func upgrade(_ database: Database) throws {
    guard let format = try Bookkeeping.format(of: database), format < Bookkeeping.format else {
      return
    }
    try database.transaction(.immediate) { try Bookkeeping.upgrade(database) }
  }
}
