import Foundation
import GRDB
import SyncModel

/// The move of a store to an unrelated document, with its rows.
extension Replacing {
  /// Throws `schemasDiffer` unless the rows can be merged without sharing data that stays on this
  /// device.
  func checkMerging(
    _ former: FormerDatabase, _ path: String, _ schema: StoreSchema, _ session: StoreSession
  ) throws {
    try LocalTables(
      database: session.database, former: former, schema: schema,
      checkCancellation: checkCancellation
    ).check(path: path, SchemaObjects(session.database, in: KeyMapping.attached))
    func names(_ names: some Sequence<SQLName>) -> Set<SQLName> {
      Set(names.map { $0.folded })
    }
    let leftOut = names(schema.leftOut.keys)
    var shared: [SQLName] = []
    for (table, reason) in session.schema.leftOut
    where [.excluded, .renamedExclusion].contains(reason) {
      if former.table(named: table) != nil, !leftOut.contains(table.folded) {
        shared.append(table)
      }
    }
    for table in session.schema.tables {
      guard let other = schema.table(named: table.name) else { continue }
      let missing = names(table.excludedColumns).subtracting(names(other.excludedColumns))
      shared += missing.map { "\(table.name).\($0)" }
    }
    guard !shared.isEmpty else { return }
    throw StoreError(
      .schemasDiffer, path: path,
      message: "These columns stay on this device, and would be shared in the other document: "
        + shared.sorted().joined(separator: ", ") + ".",
      remedy: "Have this store leave its document, and join the other one from it once what is "
        + "to stay here is elsewhere.")
  }

  /// Adds entries for parked rows to the conflict journal: no table has them, so they are not among
  /// the rows that are merged.
  func enterParked(_ session: StoreSession) throws {
    for (parked, table) in try session.keptRows.parked()
    where parked.reason != .deleted && session.schema.contains(table) {
      let row = RowKey(table: table, identity: parked.identity)
      guard let kept = try session.keptRows.row(row) else { continue }
      let (kind, rule): (Conflict.Kind, Conflict.Rule) =
        switch parked.reason {
        case .uniqueValueTaken: (.uniqueValue, .uniqueValue)
        case .check, .notNull: (.condition, .condition)
        case .parentMissing, .parentDeleted, .deleted, .rowMissing: (.reference, .reference)
        }
      try session.conflicts.journal.addSettled(
        ConflictJournal.Entry(
          kind: kind, row: row, rule: rule, outcome: .remote, message: parked.reason.rawValue,
          local: kept.cells))
    }
    try session.conflicts.journal.finish()
  }

  /// Merges the rows, as edits of a new client.
  ///
  /// - Parameter referrers: What stays on this device and refers to rows that were removed.
  func merge(
    _ former: FormerDatabase, _ path: String, _ referrers: ReplacedReferrers,
    _ session: StoreSession
  ) throws -> MergedRows {
    let database = session.database
    // The change sets and their history belong to a document that the store has left.
    try Bookkeeping.clear([.changeSets, .generation], database)
    let began = try store.identity(database).begin(
      .begunAgain, after: binding, isAncestorGone: false, ClientRegistry(database))
    store.setIdentity(began.binding, snapshot.configuration)
    return try DatabaseJoin(
      store: store, former: former, path: path, prefer: .document, isInPlace: true,
      referrers: referrers, work: work, checkCancellation: checkCancellation
    ).run(store.renewedSession(database, continuing: session))
  }
}
