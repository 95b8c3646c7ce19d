import Foundation
import GRDB
import SyncModel

/// The findings of verifying a store, and the store's records of itself.
public struct StoreVerification: Sendable {
  /// The findings.
  public var report = VerifyReport()
  /// The binding of the store; `nil` if it cannot be read.
  public var binding: StoreBinding?
  /// The change sets of all clients, this one included, that have been applied; `nil` if that
  /// cannot be read.
  public var vector: VersionVector?
  /// The change sets that the store has made, as far as it remembers them,
  /// those that it made as another client included, in order.
  public var sealed: [SealedChangeSet] = []
  /// The commands that the store has made and sealed, in order.
  public var commands: [QueuedCommand] = []
  /// The state that commands have led to, as the layer above has written it.
  public var commandState: [UInt8]?
  /// The small values of the layer above, by key.
  public var records: [String: [UInt8]] = [:]
}

extension LocalStore {
  /// Checks the store at `path` against every rule, and changes nothing in it
  /// or beside it.
  ///
  /// The result contains the findings. An error is thrown if the store cannot be examined:
  /// `missing`, `notADatabase`, `notReadable`, `notUnderSync`, `busy`. In rollback journal mode
  /// other programs cannot commit meanwhile.
  ///
  /// - Parameters:
  ///   - checkCancellation: Called often; its errors are thrown.
  ///   - onProgress: Told how many steps are done, and how many there are.
  public static func verify(
    at path: String, options: Options = Options(),
    checkCancellation: @escaping () throws -> Void = {},
    onProgress: @escaping (Int, Int) -> Void = { _, _ in }
  ) throws -> StoreVerification {
    try checkFile(path)
    return try StoreError.mapping(path) {
      let opened: ReadOnlyDatabase
      do {
        opened = try ReadOnlyDatabase(path: path, busyTimeout: options.busyTimeout)
      } catch let error as CocoaError {
        throw StoreError(reading: path, error)
      }
      do {
        let result = try opened.queue.writeWithoutTransaction { database in
          try QueryCancellation.run(database, checkCancellation) {
            var result: StoreVerification?
            try database.inTransaction(.deferred) {
              let verifier = StoreVerifier(
                database: database, path: path, options: options,
                checkCancellation: checkCancellation, onProgress: onProgress)
              result = try verifier.run()
              return .rollback
            }
            guard let result else {
              throw DatabaseError(resultCode: .SQLITE_INTERNAL, message: "no result")
            }
            return result
          }
        }
        try opened.finish()
        return result
      } catch {
        try opened.finish()
        throw error
      }
    }
  }
}
