import Foundation
import GRDB
import SyncModel

extension StoreVerifier {
  /// Checks the tables that every store has, and reads data that the other checks need. Returns
  /// whether the other checks are possible.
  func checkBookkeeping() throws -> Bool {
    guard let format = try Bookkeeping.format(of: database) else {
      note(.bookkeepingDamaged, "docsync_meta", "The format number is missing.")
      return false
    }
    guard format <= Bookkeeping.format else {
      note(
        .bookkeepingNewer, "docsync_meta",
        "The store was put under sync by a newer version (format \(format)).")
      return false
    }
    let damage = try BookkeepingCheck(database: database, format: format).run()
    for (name, message) in damage { note(.bookkeepingDamaged, name, message) }
    guard damage.isEmpty else { return false }
    let types = try BookkeepingTypes(database: database, format: format).run()
    for (name, message) in types { note(.bookkeepingDamaged, name, message) }
    guard types.isEmpty else { return false }
    try guarded("docsync_record", .recordDamaged) { try readRecords() }
    try guarded("docsync_meta") { try readValues() }
    return true
  }

  /// Reads the values of `docsync_meta` that no other check reads.
  private func readValues() throws {
    for key in MetaTable.Key.allCases where key.isJSON {
      let type: any StoredValue.Type
      switch key {
      case .originalKeys: type = OriginalKeys.self
      case .keyForms: type = KeyForms.self
      case .excludedNames: type = ExcludedNames.self
      case .formerNames: type = FormerNames.self
      case .remade: type = RemadeTables.self
      case .heldEdits: type = HeldEdits.self
      case .unconfirmedDeletions: type = UnconfirmedDeletions.self
      case .incarnations: type = [Incarnation].self
      // Other checks read the rest.
      default: continue
      }
      _ = try MetaTable.value(key, as: type, database)
    }
  }

  private func readRecords() throws {
    let records = DeviceRecords(database: database)
    for (key, value) in try records.all() { result.records[key] = value }
    _ = try SyncPolicies.read(database)
    _ = try UnreportedWarnings.read(records)
    _ = try UnreportedQuestions.read(records)
  }

  /// Returns the session that the other checks work with; `nil` if it cannot be made.
  func session() throws -> StoreSession? {
    var session: StoreSession?
    try guarded("docsync_meta") {
      guard let binding = try MetaTable.value(.binding, as: StoreBinding.self, database),
        let configuration = try MetaTable.value(
          .configuration, as: StoreConfiguration.self, database)
      else {
        note(
          .bookkeepingDamaged, "docsync_meta",
          "The name of the document, or the list of synchronized tables, is missing.")
        return
      }
      result.binding = binding
      let clients = try ClientRegistry(database)
      result.vector = try clients.vector()
      guard clients.isKnown(binding.client) else {
        note(.bookkeepingDamaged, "docsync_client", "The identifier of this device is missing.")
        return
      }
      let schema = try RecordedSchema.read(
        from: database, configuration: configuration, path: path)
      session = try StoreSession(
        database: database, schema: schema, client: binding.client, now: options.now())
    }
    return session
  }

  // MARK: - Triggers

  /// Checks that the triggers are those that the schema needs, or those of an earlier build, which
  /// capture edits as well. Returns whether they are.
  func checkTriggers(_ schema: StoreSchema) throws -> Bool {
    var isRight = true
    var earlier: Set<Int> = []
    let named = try NamesTrigger.contents(database)
    for table in schema.tables {
      let capture = CaptureTriggers(table: table)
      let wanted = Set(capture.triggers.map(SQLText.init))
      let rows = try StoredRow.fetchAll(
        database,
        sql: "SELECT name, sql FROM main.sqlite_schema WHERE type = 'trigger' AND name GLOB ?",
        arguments: ["docsync_\(table.id)_*"])
      let found = Set(try rows.map { try $0["sql"] as SQLText })
      guard found != wanted else { continue }
      let byName = Dictionary(
        try rows.map { (try $0["name"] as SQLName, try $0["sql"] as SQLText) },
        uniquingKeysWith: { first, _ in first })
      if named[table.id]?.isOfEarlierBuild ?? false, capture.areAlike(byName) {
        earlier.insert(table.id)
        continue
      }
      isRight = false
      let strange = try rows.filter { !wanted.contains(try $0["sql"]) }.map {
        try $0["name"] as SQLName
      }
      note(
        .triggersOutOfDate, table.name,
        "Triggers that capture edits are missing or out of date.",
        detail: "\(wanted.subtracting(found).count) are not as they should be"
          + (strange.isEmpty ? "" : ": " + strange.sorted().joined(separator: ", ")))
    }
    guard isRight else { return false }
    for table in schema.tables {
      let names =
        [table.logName, table.stampsName]
        + (table.identity == .surrogate ? [table.identityName] : [])
      for name in names where try !database.tableExists(name) {
        isRight = false
        note(.bookkeepingDamaged, SQLName(name), "\(name) is missing.")
      }
    }
    let renewal = SchemaRenewal(schema: schema, path: path)
    guard isRight, try renewal.isNeeded(database, exceptTriggersOf: earlier) else { return isRight }
    note(
      .triggersOutOfDate, nil, "The application has changed its schema since the last sync.")
    return false
  }
}
