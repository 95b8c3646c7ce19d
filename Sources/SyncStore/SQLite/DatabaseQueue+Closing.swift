import GRDB

extension DatabaseQueue {
  /// Runs `body`, and closes the connection if `body` throws.
  func closingOnFailure<Result>(_ body: () throws -> Result) throws -> Result {
    do {
      return try body()
    } catch {
      try close()
      throw error
    }
  }

  /// Runs `body`, and closes the connection.
  func closing<Result>(_ body: () throws -> Result) throws -> Result {
    let result = try closingOnFailure(body)
    try close()
    return result
  }

  /// Runs `body` on a single state of a database, on a connection that cannot write. Throws
  /// ``StoreError``.
  static func reading<Result>(
    _ path: String, busyTimeout: Double, _ body: (Database) throws -> Result
  ) throws -> Result {
    try StoreError.checkFile(path)
    return try StoreError.mapping(path) {
      var configuration = Configuration()
      configuration.busyMode = .timeout(busyTimeout)
      configuration.foreignKeysEnabled = false
      configuration.prepareDatabase { try $0.execute(sql: "PRAGMA query_only = ON") }
      let queue = try DatabaseQueue(path: path, configuration: configuration)
      return try queue.closing { try queue.read(body) }
    }
  }
}
