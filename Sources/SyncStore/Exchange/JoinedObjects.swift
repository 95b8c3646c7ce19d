import GRDB
import SyncModel

/// The indexes, the triggers and the form of tables that a store has after a database with rows
/// became a store of a document.
///
/// As a rule, the document decides about the tables that it has. But if the database has a newer
/// version, or a migration that the document lacks (``JoinedVersions``), everything that this made
/// must be there: indexes and triggers that only the database has come along, and everything else
/// must be defined in the same way. If the document has a newer version, the tables that stay on the
/// device must be defined as the document has them.
///
/// Triggers that read or write what only this device has stay in any case: whole stores do not have
/// them.
struct JoinedObjects {
  let database: Database
  let former: FormerDatabase
  /// The document's schema, with the tables that come with the rows.
  let schema: StoreSchema
  /// The names of these tables, in lower case.
  let newTables: Set<SQLName>
  let newer: JoinedVersions.Newer
  /// Whether the data that stays on the device is in place.
  let isInPlace: Bool
  /// The path of the other database.
  let path: String
  /// The objects that there are before any is made here.
  private let present: SchemaObjects
  /// The objects of the document.
  private let document: SchemaObjects

  init(
    database: Database, former: FormerDatabase, schema: StoreSchema, newTables: Set<SQLName>,
    newer: JoinedVersions.Newer, isInPlace: Bool, path: String
  ) throws {
    self.database = database
    self.former = former
    self.schema = schema
    self.newTables = newTables
    self.newer = newer
    self.isInPlace = isInPlace
    self.path = path
    present = try SchemaObjects(database)
    document = isInPlace ? try SchemaObjects(database, in: KeyMapping.attached) : present
  }

  private func isShared(_ table: SQLName) -> Bool { schema.table(named: table) != nil }

  // MARK: - Checks

  /// Throws `schemasDiffer` if the store would lack something that its version stands for, or a
  /// trigger without which what it fills would be wrong.
  func check() throws {
    var differences = SchemaDifferences()
    if newer.isDatabase { addDifferences(&differences) }
    try differences.check(
      path: path,
      "The database has a newer schema version than the document, and these differ",
      remedy: "Bring the other devices to that version of the application and run "
        + "\(elsewhere: .upload) on one of them, then try again; or join without the rows with "
        + "\(.joinReplacing).")
    addObjectsOfOneSide(&differences)
    try differences.check(
      path: path,
      "The database and the document have different versions in "
        + newer.states.joined(separator: ", ")
        + ", nothing tells which is newer, and these differ",
      remedy: "Bring the database and the devices of the document to the same version of the "
        + "application, run \(elsewhere: .upload) on one of these devices, and try again; or join "
        + "without the rows with \(.joinReplacing).")
    if newer.isDocument { addDifferencesOfLocalTables(&differences) }
    try differences.check(
      path: path,
      "The document has a newer schema version than the database, and these differ",
      remedy: "Bring the database to that version of the application first, then try again; or "
        + "join without the rows with \(.joinReplacing).")
    addTakenTriggers(&differences)
    addVirtualTables(&differences)
    try differences.check(
      path: path,
      "The document does not have what the database needs",
      remedy: "Bring the other devices to the version of the application that the database has, "
        + "and run \(elsewhere: .upload) on one of them; or drop these in the database. Then try "
        + "again. Or join without the rows with \(.joinReplacing).")
  }

  /// Adds what both have in different forms, and the indexes and triggers that the newer version may
  /// have dropped.
  private func addDifferences(_ differences: inout SchemaDifferences) {
    for object in former.objects.objects
    where object.kind != .virtualTablePart && !isTakenAlong(object) {
      guard let other = present.namesake(of: object), !other.isSame(as: object) else { continue }
      differences.add("\(object.label) is defined in another way")
    }
    for object in present.objects where object.isPart && isShared(object.table) {
      guard former.table(named: object.table) != nil, former.objects.namesake(of: object) == nil
      else { continue }
      differences.add("\(object.label) exists only in the document")
    }
  }

  /// Adds what only one side has, if the two have different versions and nothing tells which is newer.
  /// The store would have the version of the document together with tables that another version has
  /// made, and the application would make them again.
  private func addObjectsOfOneSide(_ differences: inout SchemaDifferences) {
    guard !newer.states.isEmpty else { return }
    for object in former.objects.objects where isOfApplication(object) {
      guard newTables.contains(object.table.folded) || document.namesake(of: object) == nil
      else { continue }
      differences.add("\(object.label) exists only in the database")
    }
    for object in document.objects where isOfApplication(object) {
      guard !newTables.contains(object.table.folded), former.objects.namesake(of: object) == nil
      else { continue }
      differences.add("\(object.label) exists only in the document")
    }
  }

  /// Returns whether an object is not of a table that describes the version itself.
  private func isOfApplication(_ object: SchemaObjects.Object) -> Bool {
    object.kind != .virtualTablePart
      && schema.leftOut.first { $0.key.isSame(as: object.table) }?.value != .schema
  }

  /// Returns whether an object comes in the form that it has in the database, or is of a table that
  /// describes the version itself.
  private func isTakenAlong(_ object: SchemaObjects.Object) -> Bool {
    let reason = schema.leftOut.first { $0.key.isSame(as: object.table) }?.value
    guard let reason else { return false }
    return reason == .schema || (!isInPlace && (reason == .excluded || reason.isProblem))
  }

  /// Adds the tables that stay on the device and have the older form.
  private func addDifferencesOfLocalTables(_ differences: inout SchemaDifferences) {
    // In place, they have the document's form by now.
    guard !isInPlace else { return }
    for name in schema.localTables {
      guard let object = former.objects.object(named: name),
        let other = present.object(named: name), !other.isSame(as: object)
      else { continue }
      differences.add("\(object.label) is defined in another way")
    }
  }

  /// Adds triggers that have to stay, and whose names the document uses for others.
  private func addTakenTriggers(_ differences: inout SchemaDifferences) {
    let own = namesOnDevice(withExcluded: false)
    for trigger in former.objects.objects
    where trigger.kind == .trigger && isShared(trigger.table) && trigger.names(oneOf: own) {
      guard let other = present.namesake(of: trigger), !other.isSame(as: trigger) else { continue }
      differences.add("\(trigger.label) is defined in another way")
    }
  }

  /// Adds triggers that fill a virtual table with rows of the document from now on, if nothing could
  /// fill it with those that are there.
  private func addVirtualTables(_ differences: inout SchemaDifferences) {
    let triggers = comingTriggers.filter { !newTables.contains($0.table.folded) }
    for table in former.objects.objects where table.kind == .virtualTable {
      if let content = PrivateData.contentTable(table.sql), content != "" { continue }
      for trigger in triggers where trigger.writes(to: table.name) {
        differences.add(
          "\(trigger.label), which fills \(table.name), exists only in the database")
      }
    }
  }

  // MARK: - Triggers

  /// The triggers of tables of the document that the store gets from the database.
  private var comingTriggers: [SchemaObjects.Object] {
    let own = namesOnDevice(withExcluded: !newer.isDocument)
    return former.objects.objects.filter { trigger in
      trigger.kind == .trigger && isShared(trigger.table) && present.namesake(of: trigger) == nil
        && (newer.isDatabase || trigger.names(oneOf: own))
    }
  }

  /// Returns the tables that only this device has: those that cannot be synchronized, virtual tables
  /// that the document does not have, and views that read them.
  ///
  /// - Parameter withExcluded: Whether excluded tables count, of which the document has the form, and
  ///   may have triggers.
  private func namesOnDevice(withExcluded: Bool) -> [SQLName] {
    let reasons = schema.leftOut.filter {
      $0.value.isProblem || (withExcluded && $0.value == .excluded)
    }
    var names = reasons.keys.filter { former.table(named: $0) != nil }
    names += former.objects.objects.filter {
      $0.kind == .virtualTable && document.object(named: $0.name) == nil
    }.map(\.name)
    var views = former.objects.objects.filter {
      $0.kind == .view && document.object(named: $0.name) == nil
    }
    while let position = views.firstIndex(where: { $0.names(oneOf: names) }) {
      names.append(views.remove(at: position).name)
    }
    return names
  }

  // MARK: - Making them

  /// Makes the indexes that the newer version has added to tables of the document. Returns whether
  /// there are any.
  ///
  /// Rows are matched by unique ones, so this comes before the merge.
  func makeIndexes() throws -> Bool {
    guard newer.isDatabase else { return false }
    let missing = former.objects.objects.filter {
      $0.kind == .index && isShared($0.table) && present.namesake(of: $0) == nil
    }
    try make(missing)
    return !missing.isEmpty
  }

  /// Makes the other objects that the document does not have, once the rows are merged: its triggers
  /// must not run for them, since what these fill comes along.
  func makeRest() throws {
    let now = try SchemaObjects(database)
    func isMissing(_ object: SchemaObjects.Object) -> Bool {
      now.namesake(of: object) == nil
        && (object.kind == .view || object.isPart && now.object(named: object.table) != nil)
    }
    let triggers = comingTriggers.filter(isMissing)
    let rest = newer.isDatabase ? former.objects.objects.filter(isMissing) : triggers
    try make(rest)
    if newer.isDocument, !isInPlace {
      let local = Set(schema.localTables.map { $0.folded })
      try make(present.objects.filter { local.contains($0.table.folded) && isMissing($0) })
    }
    try rebuild(triggers)
  }

  /// Rebuilds the full-text tables that are in place and index the rows of a table, and that triggers
  /// maintain from now on: the rows were exchanged without them.
  private func rebuild(_ triggers: [SchemaObjects.Object]) throws {
    for table in former.objects.objects
    where table.kind == .virtualTable && present.object(named: table.name) != nil {
      guard let content = PrivateData.contentTable(table.sql), content != "",
        triggers.contains(where: { $0.writes(to: table.name) })
      else { continue }
      try database.execute(
        sql: "INSERT INTO main.\(quoted(table.name)) (\(quoted(table.name))) VALUES ('rebuild')")
    }
  }

  private func make(_ objects: [SchemaObjects.Object]) throws {
    var differences = SchemaDifferences()
    for object in objects {
      do {
        try database.execute(sql: object.sql)
      } catch let error as DatabaseError
        where [.SQLITE_CONSTRAINT, .SQLITE_ERROR].contains(error.resultCode)
      {
        differences.add("\(object.label): \(error.message ?? "\(error)")")
      }
    }
    try refuse(differences)
  }

  /// Throws `schemasDiffer` since the document does not allow what the newer version has added.
  func refuse(_ differences: SchemaDifferences) throws {
    try differences.check(
      path: path,
      "The database and the document have different schema versions, and this does not fit both",
      remedy: "Bring the devices of the document and the database to the same version of the "
        + "application and run \(elsewhere: .upload) on a device of the document, then try again; "
        + "or join without the rows with \(.joinReplacing).")
  }
}

extension SchemaObjects.Object {
  /// The object, for messages.
  fileprivate var label: String {
    switch kind {
    case .table, .virtualTablePart: "table \(name)"
    case .virtualTable: "virtual table \(name)"
    case .view: "view \(name)"
    case .index: "index \(name) of \(table)"
    case .trigger: "trigger \(name) of \(table)"
    }
  }

  /// Returns whether its text names one of these tables or views.
  fileprivate func names(oneOf names: [SQLName]) -> Bool {
    let tokens = SQLTokens(sql)
    return names.contains(where: tokens.namesTable)
  }

  /// Returns whether it is a trigger that writes to a table.
  fileprivate func writes(to table: SQLName) -> Bool {
    AppTrigger(sql).map { !$0.statements(writingTo: table).isEmpty } ?? false
  }
}
