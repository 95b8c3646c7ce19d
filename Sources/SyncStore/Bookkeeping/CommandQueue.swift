/// The commands of this client (`docsync_command`).
struct CommandQueue {
  static let definition = TableDefinition(
    "docsync_command", .device(.generation),
    columns: [
      .integer("seq", "PRIMARY KEY"), .blob("content", "NOT NULL"), .integer("number", "UNIQUE"),
      .blob("hash"), .blob("bytes"), .integer("published", "NOT NULL DEFAULT 0"),
    ], damage: nil)
}
