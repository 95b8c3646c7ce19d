/// Additions to counters that arrived before the value to which the counter was set
/// (`docsync_early`).
struct EarlyAdditions {
  static let definition = TableDefinition(
    "docsync_early", .document, version: 2,
    columns: [
      .integer("tbl", "", .table), .blob("identity"), .integer("col", "", .column),
      .integer("since"), .integer("setter", "", .client), .integer("client", "", .client),
      .blob("sum", "NOT NULL", .cells), .integer("at", "NOT NULL"),
    ], constraint: "PRIMARY KEY (tbl, identity, col, since, setter, client)", isWithoutRowID: true)
}
