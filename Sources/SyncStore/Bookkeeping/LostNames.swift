/// Tables and columns that this store has lost, with their values (`docsync_lost`).
enum LostNames {
  static let definition = TableDefinition(
    "docsync_lost", .document, columns: [.text("wire"), .text("col")],
    constraint: "PRIMARY KEY (wire, col)", isWithoutRowID: true)
}
