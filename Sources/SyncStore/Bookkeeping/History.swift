/// The change sets that were sealed and applied, in order (`docsync_history`).
struct History {
  static let definition = TableDefinition(
    "docsync_history", .device(.generation),
    columns: [
      .integer("seq", "PRIMARY KEY"), .integer("client", "NOT NULL", .client),
      .integer("number", "NOT NULL", .number), .blob("hash", "NOT NULL"),
      .integer("changes", "NOT NULL"), .integer("size", "NOT NULL"), .integer("at", "NOT NULL"),
    ])
}
