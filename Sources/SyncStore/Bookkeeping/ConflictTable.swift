/// The table of the conflict journal (`docsync_conflict`).
enum ConflictTable {
  static let definition = TableDefinition(
    "docsync_conflict", .device(.store),
    columns: [
      .integer("number", "PRIMARY KEY"), .integer("at", "NOT NULL"), .integer("size", "NOT NULL"),
      .text("status", "NOT NULL"), .text("kind", "NOT NULL"),
      .integer("tbl", "NOT NULL", .journalTable), .blob("identity", "NOT NULL"),
      .integer("col", "", .column, isOptional: true), .text("rule", "NOT NULL"),
      .text("outcome", "NOT NULL"), .integer("local_time", isOptional: true),
      .integer("local_client", "", .client, isOptional: true),
      .integer("remote_time", isOptional: true),
      .integer("remote_client", "", .client, isOptional: true), .text("message", isOptional: true),
      .blob("key", "", .cells, isOptional: true), .blob("base", "", .cells, isOptional: true),
      .blob("local", "", .cells, isOptional: true), .blob("remote", "", .cells, isOptional: true),
    ],
    indexes: [
      TableDefinition.Index(name: "docsync_conflict_row", columns: "tbl, identity"),
      TableDefinition.Index(
        name: "docsync_conflict_open", columns: "status", condition: "status = 'open'"),
    ])

  /// Stands for the local key, which is no synchronized column, in the key of an entry.
  static let localKeyPosition = 1 << 20
}
