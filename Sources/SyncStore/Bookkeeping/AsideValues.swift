/// Values that stay on this device, of rows that were gone when content was exchanged and that may
/// come back (`docsync_aside`).
struct AsideValues {
  static let definition = TableDefinition(
    "docsync_aside", .device(.store), version: 2,
    columns: [.text("wire"), .blob("identity"), .text("col"), .any("value")],
    constraint: "PRIMARY KEY (wire, identity, col)", isWithoutRowID: true)
}
