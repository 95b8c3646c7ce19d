/// The values of cells before unpublished edits, where a policy needs them (`docsync_base`).
struct BaseValues {
  static let definition = TableDefinition(
    "docsync_base", .device(.changeSets),
    columns: [
      .integer("tbl", "", .table), .blob("identity"), .integer("col", "", .column),
      .blob("value", "NOT NULL", .cells),
    ], constraint: "PRIMARY KEY (tbl, identity, col)", isWithoutRowID: true)
}
