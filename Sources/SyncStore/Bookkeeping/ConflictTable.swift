/// The table of the conflict journal.
enum ConflictTable {
  /// Statements that create it.
  static let creation = [
    """
    CREATE TABLE docsync_conflict (number INTEGER PRIMARY KEY, at INTEGER NOT NULL, \
    size INTEGER NOT NULL, status TEXT NOT NULL, kind TEXT NOT NULL, tbl INTEGER NOT NULL, \
    identity BLOB NOT NULL, col INTEGER, rule TEXT NOT NULL, outcome TEXT NOT NULL, \
    local_time INTEGER, local_client INTEGER, remote_time INTEGER, remote_client INTEGER, \
    message TEXT, key BLOB, base BLOB, local BLOB, remote BLOB)
    """,
    "CREATE INDEX docsync_conflict_row ON docsync_conflict (tbl, identity)",
    "CREATE INDEX docsync_conflict_open ON docsync_conflict (status) WHERE status = 'open'",
  ]

  /// Stands for the local key, which is no synchronized column, in the key of an entry.
  static let localKeyPosition = 1 << 20
}
