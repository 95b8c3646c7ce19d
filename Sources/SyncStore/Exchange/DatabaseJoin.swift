import GRDB
import SyncModel

/// The merge of another database into a store, in one transaction: its rows
/// (``DatabaseMerge``), its tables that the document does not have, and its data that stays on the
/// device.
struct DatabaseJoin {
  let store: OpenStore
  let former: FormerDatabase
  /// The path of the other database.
  let path: String
  let prefer: MergedRows.Preference
  /// Whether the database is a copy of the store as it was before it took over the document, so
  /// that the data that stays on the device is here.
  let isInPlace: Bool
  /// The data that stays on the device and refers to rows that the store had, if it is in place.
  var referrers = ReplacedReferrers()
  let work: WorkCount
  let checkCancellation: () throws -> Void

  /// Merges, in a transaction of its own.
  func run() throws -> MergedRows {
    do {
      return try store.write { session in
        work.begin(try former.rowCount(of: session.schema))
        let merged = try run(session)
        work.finish()
        return merged
      }
    } catch {
      store.forgetSchema()
      throw error
    }
  }

  /// Merges. The caller cannot use `session` afterwards.
  func run(_ session: StoreSession) throws -> MergedRows {
    let database = session.database
    let local = dataOnDevice(database, session.schema)
    try local.check(path: path, SchemaObjects(database))
    let sequences = try AutoincrementSequences(database, and: former.database)
    let names = local.newTables.map(\.name)
    var session = session
    if !names.isEmpty {
      try local.makeNewTables()
      try session.conflicts.journal.finish()
      session = try store.renewedSession(database, continuing: session)
    }
    let objects = try joinSchemas(&session, newTables: names)
    let merge = try DatabaseMerge(
      session: session, former: former, prefer: prefer, random: store.options.random, work: work,
      checkCancellation: checkCancellation)
    try merge.run()
    try referrers.follow(deletionOf: merge.deletedRows, session)
    var report = merge.report
    // Some of the new tables may be unsuitable.
    let staying = dataOnDevice(database, session.schema)
    report.localTables =
      isInPlace ? try staying.follow(merge) : try staying.takeAlong(merge)
    let localTables = Set(report.localTables.map { $0.folded })
    report.newTables = names.filter { !localTables.contains($0.folded) }
    try objects.makeRest()
    try sequences.raise()
    try merge.end()
    // Later, nothing would distinguish these from references.
    if session.hasWrittenPlainValues {
      try store.seal(session, comparesRemade: false, checkCancellation: checkCancellation)
    }
    try UnreportedWarnings.add(session.conflicts.takeWarnings(), to: session.records)
    try session.conflicts.journal.finish()
    return report
  }

  private func dataOnDevice(_ database: Database, _ schema: StoreSchema) -> LocalTables {
    LocalTables(
      database: database, former: former, schema: schema, checkCancellation: checkCancellation)
  }

  /// Gives the store the version and the migrations of both, and what these have added to tables of
  /// the document. Throws `schemasDiffer` if the store cannot have all that they stand for.
  private func joinSchemas(
    _ session: inout StoreSession, newTables names: [SQLName]
  ) throws -> JoinedObjects {
    let newTables = Set(names.map { $0.folded })
    let versions = JoinedVersions(
      database: session.database, former: former, schema: session.schema, newTables: newTables)
    let objects = try JoinedObjects(
      database: session.database, former: former, schema: session.schema, newTables: newTables,
      newer: versions.compare(), isInPlace: isInPlace, path: path)
    try objects.check()
    if try objects.makeIndexes() {
      try session.conflicts.journal.finish()
      do {
        session = try store.renewedSession(session.database, continuing: session)
      } catch let error as StoreError
        where [.unsupportedSchema, .badConfiguration].contains(error.code)
      {
        var differences = SchemaDifferences()
        differences.add(error.message)
        try objects.refuse(differences)
      }
    }
    try objects.refuse(versions.join())
    return objects
  }
}
