/// The tables of commands: those of this client, and the queue for the application.
enum CommandTables {
  /// Statements that create the tables.
  static let creation = [
    """
    CREATE TABLE docsync_command (seq INTEGER PRIMARY KEY, content BLOB NOT NULL, \
    number INTEGER UNIQUE, hash BLOB, bytes BLOB, published INTEGER NOT NULL DEFAULT 0)
    """,
    """
    CREATE TABLE docsync_event (id INTEGER PRIMARY KEY, client BLOB NOT NULL, \
    number INTEGER NOT NULL, name TEXT NOT NULL, payload BLOB NOT NULL, UNIQUE (client, number))
    """,
  ]

  /// The key of the command state in `docsync_meta`.
  static let stateKey = "commandState"
}
