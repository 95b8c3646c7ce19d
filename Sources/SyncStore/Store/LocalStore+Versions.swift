import CSQLite

/// What this build can read, and with what.
extension LocalStore {
  /// The version of the layout of bookkeeping that this build writes.
  package static var format: Int { Bookkeeping.format }

  /// The version of SQLite, such as “3.46.1”.
  package static var sqliteVersion: String { String(cString: sqlite3_libversion()) }
}
