/// Small values for the layer above (`docsync_record`).
struct DeviceRecords {
  static let definition = TableDefinition(
    "docsync_record", .device(.store), columns: [.text("key", "PRIMARY KEY"), .blob("value")],
    isWithoutRowID: true)
}
