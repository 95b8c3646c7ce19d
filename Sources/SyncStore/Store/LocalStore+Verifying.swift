import Foundation
import GRDB
import SyncModel

extension LocalStore {
  /// Checks the store at `path` against every rule, and changes nothing in it or beside it.
  ///
  /// The result contains the findings. Throws only if the store cannot be examined: `missing`,
  /// `notADatabase`, `notReadable`, `notUnderSync`, `busy`. In rollback journal mode other programs
  /// cannot commit meanwhile.
  ///
  /// - Parameters:
  ///   - checkCancellation: Called often; its errors are thrown.
  ///   - onProgress: Called with the number of steps that are done, and the number of all steps.
  package static func verify(
    at path: String, options: StoreOptions = StoreOptions(),
    checkCancellation: @escaping () throws -> Void = {},
    onProgress: @escaping (Int, Int) -> Void = { _, _ in }
  ) throws -> StoreVerification {
    try StoreError.checkFile(path)
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
