/// Values that refer to no row, in columns that hold the keys of a table (`docsync_plain`).
struct PlainKeys {
  static let definition = TableDefinition(
    "docsync_plain", .document, version: 3,
    columns: [.integer("tbl", "", .table), .integer("key")], constraint: "PRIMARY KEY (tbl, key)",
    isWithoutRowID: true)
}
