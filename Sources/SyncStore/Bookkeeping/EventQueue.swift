/// The commands that wait for the application (`docsync_event`).
struct EventQueue {
  static let definition = TableDefinition(
    "docsync_event", .device(.store),
    columns: [
      .integer("id", "PRIMARY KEY"), .blob("client", "NOT NULL"), .integer("number", "NOT NULL"),
      .text("name", "NOT NULL"), .blob("payload", "NOT NULL"),
    ], constraint: "UNIQUE (client, number)", damage: nil)
}
