/// The least and the greatest time of change sets (`docsync_range`); an empty range for none. Mixed
/// ones have stamps of clients other than their author.
struct StampRanges {
  static let definition = TableDefinition(
    "docsync_range", .document,
    columns: [
      .integer("client", "", .client), .integer("last", "", .number),
      .integer("first", "NOT NULL", .number), .integer("least", "NOT NULL"),
      .integer("greatest", "NOT NULL"), .integer("mixed", "NOT NULL DEFAULT 0"),
    ], constraint: "PRIMARY KEY (client, last)", isWithoutRowID: true)
}
