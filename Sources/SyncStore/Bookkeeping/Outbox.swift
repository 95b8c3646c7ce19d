/// Change sets that this client made, and unpublished ones that it made as another client
/// (`docsync_outbox`).
struct Outbox {
  static let definition = TableDefinition(
    "docsync_outbox", .device(.changeSets),
    columns: [
      .integer("client", "", .client), .integer("number", "", .number), .blob("hash", "NOT NULL"),
      .integer("size", "NOT NULL"), .integer("changes", "NOT NULL"),
      .integer("published", "NOT NULL"), .blob("bytes", "NOT NULL"),
    ], constraint: "PRIMARY KEY (client, number)")
}
