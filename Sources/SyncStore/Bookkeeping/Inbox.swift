/// Change sets that have arrived and have to wait (`docsync_inbox`).
struct Inbox {
  static let definition = TableDefinition(
    "docsync_inbox", .device(.changeSets),
    columns: [.blob("client"), .integer("number", "", .number), .blob("hash"), .blob("bytes")],
    constraint: "PRIMARY KEY (client, number)")
}
