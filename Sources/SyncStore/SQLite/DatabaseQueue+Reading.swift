import GRDB

extension DatabaseQueue {
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
      let result: Result
      do {
        result = try queue.read(body)
      } catch {
        try queue.close()
        throw error
      }
      try queue.close()
      return result
    }
  }
}
