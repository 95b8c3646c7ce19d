import DocumentSync

/// The replacement of a store's content by a whole store, as printed.
struct RebootstrapJSON: Encodable, Sendable {
  var reason: String
  /// The path of the backup of the former file.
  var backup: String
  var wholeStore: WholeStoreJSON
  var reappliedChangeSets: Int
  var returningChangeSets: Int
  var changedSchema: Bool
  var conflictCount: Int
  var merged: MergedRowsJSON?
  var warnings: [WarningJSON]

  init(_ rebootstrap: SyncReport.Rebootstrap) {
    reason = rebootstrap.reason.rawValue
    backup = rebootstrap.backup
    wholeStore = WholeStoreJSON(rebootstrap.wholeStore)
    reappliedChangeSets = rebootstrap.reappliedChangeSets
    returningChangeSets = rebootstrap.returningChangeSets
    changedSchema = rebootstrap.changedSchema
    conflictCount = rebootstrap.conflicts
    merged = rebootstrap.merged.map(MergedRowsJSON.init)
    warnings = rebootstrap.warnings.map(WarningJSON.init)
  }
}
