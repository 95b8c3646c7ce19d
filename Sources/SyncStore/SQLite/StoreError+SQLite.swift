import Foundation
import GRDB
import SyncModel

extension StoreError {
  /// Runs `body` and turns errors of SQLite into those of a store.
  static func mapping<Result>(_ path: String, _ body: () throws -> Result) throws -> Result {
    do {
      return try body()
    } catch let error as DatabaseError {
      throw StoreError(error, path: path)
    } catch let ended as TransactionEnded {
      throw StoreError(ended, path: path)
    } catch let error as RowDecodingError {
      // A query of one column found a value of another type than it asked for.
      throw StoreError(damagedIn: "\(error)", path: path, "\(error)")
    } catch let error as DecodingError {
      throw StoreError(damagedTable: "docsync_meta", path: path, "\(error)")
    } catch let error as CodecError {
      // Change sets of other devices were checked before: this is the store's own data.
      throw StoreError(damagedTable: "docsync_*", path: path, "\(error)")
    } catch var error as StoreError where error.path.isEmpty {
      error.path = path
      throw error
    }
  }

  /// Creates the error of a transaction that SQLite has ended. It describes the state of the
  /// transaction beside the failure.
  init(_ ended: TransactionEnded, path: String) {
    self.init(ended.cause, path: path)
    if code == .sqlite {
      message = "SQLite has rolled back the transaction: \(ended.cause.message ?? "no detail")."
      remedy =
        "Look for ROLLBACK in the application’s schema, or check the database with "
        + "“PRAGMA integrity_check”, and try again."
    }
    detail = [detail, "The transaction is rolled back: the store is as it was."]
      .compactMap(\.self).joined(separator: " ")
  }

  /// Creates the error that a store reports for an error of SQLite.
  package init(_ error: DatabaseError, path: String) {
    let detail = error.description
    switch error.resultCode {
    case .SQLITE_BUSY, .SQLITE_LOCKED:
      self.init(
        .busy, path: path, message: "The database is locked by another program.",
        remedy: "Close that program or wait until it has finished, then try again.", detail: detail)
    case .SQLITE_MISUSE:
      // The only misuse of SQLite that occurs: the connection is closed.
      self.init(
        .closed, path: path, message: "The store is closed.", remedy: "Open it again.",
        detail: detail)
    case .SQLITE_NOTADB:
      self.init(
        .notADatabase, path: path, message: "The file is not an SQLite database.",
        remedy: "Name a database file; an encrypted one has to be decrypted first.",
        detail: detail)
    case .SQLITE_CORRUPT where error.sql == nil && error.message?.contains("docsync_") ?? false:
      self.init(damagedIn: error.message ?? "", path: path, detail)
    case .SQLITE_CORRUPT:
      self.init(
        .damaged, path: path, message: "The database is damaged.",
        remedy: "Check it with “PRAGMA integrity_check” and restore it from a backup.",
        detail: detail)
    case .SQLITE_READONLY, .SQLITE_CANTOPEN, .SQLITE_PERM, .SQLITE_AUTH:
      self.init(
        .notWritable, path: path, message: "The database cannot be opened for writing.",
        remedy: "Check the permissions of the file and of its folder.", detail: detail)
    case .SQLITE_FULL:
      self.init(
        .noSpace, path: path, message: "There is no space left for the database.",
        remedy: "Free some space on its disk and try again.", detail: detail)
    case .SQLITE_ERROR where Self.lacksBookkeeping(error.message):
      self.init(
        .damaged, path: path, message: "A table of the store's bookkeeping is missing.",
        remedy: "See what is wrong with \(.verify). Restore the file from a backup, or fetch "
          + "the document again with \(.joinReplacing), which keeps this file beside it, and "
          + "copy over what was edited here.", detail: detail)
    default:
      self.init(
        .sqlite, path: path, message: "SQLite reported an error.",
        remedy: "Check the database with “PRAGMA integrity_check”.", detail: detail)
    }
  }

  /// Returns whether a message of SQLite reports that a table of bookkeeping is missing.
  private static func lacksBookkeeping(_ message: String?) -> Bool {
    guard let message, message.hasPrefix("no such table: ") else { return false }
    let name = message.dropFirst("no such table: ".count).split(separator: ".").last ?? ""
    return name.hasPrefix("docsync_")
  }

  /// Creates the error of a database file that the file system does not let this user read, or has
  /// no space to copy.
  init(reading path: String, _ error: CocoaError) {
    let isFull = error.code == .fileWriteOutOfSpace
    self.init(
      isFull ? .noSpace : .notReadable, path: path,
      message: isFull
        ? "There is no space left for a temporary copy of the database."
        : "The database cannot be read.",
      remedy: isFull
        ? "Free some space where temporary files are, and try again."
        : "Check that this user may read the file and the files beside it with the same name (-wal, -journal).",
      detail: error.localizedDescription)
  }
}

extension DatabaseError {
  /// Whether SQLite returns the error because of values, not because of the state of the store.
  var concernsValues: Bool {
    let codes: [ResultCode] = [
      .SQLITE_ERROR, .SQLITE_CONSTRAINT, .SQLITE_MISMATCH, .SQLITE_TOOBIG, .SQLITE_RANGE,
    ]
    return codes.contains(resultCode)
  }
}
