import DocumentSync
import SyncModel

/// The report of a synchronization, as printed.
struct SyncReportJSON: Encodable, Sendable {
  /// A change set that the device has sent, received, applied or put back.
  struct ChangeSet: Encodable, Sendable {
    var client: String
    var number: UInt64
    var hash: String
    var rowCount: Int
    var byteCount: Int?

    init(_ set: SyncReport.ChangeSet) {
      client = set.client.description
      number = set.number
      hash = set.hash.description
      rowCount = set.rowCount
      byteCount = set.byteCount
    }
  }

  var sent: [ChangeSet]
  var received: [ChangeSet]
  var applied: [ChangeSet]
  var restored: [ChangeSet]
  var restoredFiles: [String]
  var removedFiles: [String]
  var damagedFiles: [String]
  var waiting: [WaitJSON]
  var sentCommands: Int
  var processedCommands: Int
  var pendingCommands: Int
  var insertedRows: Int
  var updatedRows: Int
  var deletedRows: Int
  var conflictCount: Int
  var conflictPlaces: ConflictPlacesJSON?
  var questions: [Int64]
  var openConflicts: Int
  var warnings: [WarningJSON]
  var parkedCount: Int
  var unknownNames: [SQLName]
  var bytesSent: Int
  var bytesReceived: Int
  var listings: Int
  var publishedMarker: Bool
  var uploadedWholeStore: Bool
  var incarnations: [IncarnationJSON]
  var vacuum: VacuumJSON?
  var rebootstrap: RebootstrapJSON?

  init(_ report: SyncReport) {
    sent = report.sent.map(ChangeSet.init)
    received = report.received.map(ChangeSet.init)
    applied = report.applied.map(ChangeSet.init)
    restored = report.restored.map(ChangeSet.init)
    restoredFiles = report.restoredFiles
    removedFiles = report.removedFiles
    damagedFiles = report.damagedFiles
    waiting = report.waiting.map { WaitJSON($0) }
    sentCommands = report.sentCommands
    processedCommands = report.processedCommands
    pendingCommands = report.pendingCommands
    insertedRows = report.insertedRows
    updatedRows = report.updatedRows
    deletedRows = report.deletedRows
    conflictCount = report.conflicts
    conflictPlaces = report.conflictPlaces.map(ConflictPlacesJSON.init)
    questions = report.questions
    openConflicts = report.openConflicts
    warnings = report.warnings.map(WarningJSON.init)
    parkedCount = report.parkedRows
    unknownNames = report.unknownNames.sorted()
    bytesSent = report.bytesSent
    bytesReceived = report.bytesReceived
    listings = report.listings
    publishedMarker = report.publishedMarker
    uploadedWholeStore = report.uploadedWholeStore
    incarnations = report.incarnations.map(IncarnationJSON.init)
    vacuum = report.housekeeping.map(VacuumJSON.init)
    rebootstrap = report.rebootstrap.map(RebootstrapJSON.init)
  }
}
