/// The rows about which more is known than their tables show (`docsync_kept`), with their
/// references (`docsync_kept_reference`) and the unique values that they claim (`docsync_claim`).
struct KeptRows {
  static let definition = TableDefinition(
    "docsync_kept", .document,
    columns: [
      .integer("tbl", "", .table), .blob("identity"), .text("reason", "NOT NULL"),
      .blob("moved", isOptional: true), .blob("cells", "NOT NULL", .cells),
    ], constraint: "PRIMARY KEY (tbl, identity)", isWithoutRowID: true,
    indexes: [
      // Rows that are shown although they are deleted.
      TableDefinition.Index(
        name: "docsync_kept_rescued", columns: "tbl", condition: "reason = 'rescued'",
        isLate: true),
      // Rows under whose identity another row is shown.
      TableDefinition.Index(
        name: "docsync_kept_borrowed", columns: "tbl", condition: "reason = 'borrowed'", version: 4),
    ])

  /// The references of these rows are found by the row that they refer to.
  static let references = TableDefinition(
    "docsync_kept_reference", .document,
    columns: [
      .integer("parent", "", .parent), .text("columns"), .blob("key"), .integer("tbl", "", .table),
      .blob("identity"),
    ], constraint: "PRIMARY KEY (parent, columns, key, tbl, identity)", isWithoutRowID: true,
    indexes: [TableDefinition.Index(name: "docsync_kept_reference_row", columns: "tbl, identity")])

  static let claims = TableDefinition(
    "docsync_claim", .document,
    columns: [
      .integer("tbl", "", .table), .integer("ix"), .blob("key"), .blob("identity"),
    ], constraint: "PRIMARY KEY (tbl, ix, key, identity)", isWithoutRowID: true,
    indexes: [TableDefinition.Index(name: "docsync_claim_row", columns: "tbl, identity")])
}
