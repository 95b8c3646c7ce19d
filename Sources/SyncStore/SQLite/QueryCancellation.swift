import CSQLite
import GRDB

/// The cancellation of long statements of SQLite, such as `integrity_check`, while they run.
final class QueryCancellation {
  private let check: () throws -> Void
  private var reason: (any Error)?

  /// The approximate number of SQLite's instructions between two checks.
  private static let interval: Int32 = 20_000

  private init(_ check: @escaping () throws -> Void) { self.check = check }

  /// Runs `body`. If `check` throws meanwhile, ends the statement and throws that error.
  static func run<Result>(
    _ database: Database, _ check: @escaping () throws -> Void, _ body: () throws -> Result
  ) throws -> Result {
    try check()
    let cancellation = QueryCancellation(check)
    return try withExtendedLifetime(cancellation) {
      sqlite3_progress_handler(
        database.sqliteConnection, interval,
        { context in
          guard let context else { return 0 }
          let cancellation = Unmanaged<QueryCancellation>.fromOpaque(context)
            .takeUnretainedValue()
          return cancellation.isCancelled ? 1 : 0
        }, Unmanaged.passUnretained(cancellation).toOpaque())
      defer { sqlite3_progress_handler(database.sqliteConnection, 0, nil, nil) }
      do {
        return try body()
      } catch {
        // The interrupted code may have thrown an error of its own.
        throw cancellation.reason ?? error
      }
    }
  }

  private var isCancelled: Bool {
    do {
      try check()
      return false
    } catch {
      reason = error
      return true
    }
  }
}
