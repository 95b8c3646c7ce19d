import SyncDirectory
import SyncModel
import SyncStore

/// The steps of the second half.
extension SyncPass {
  /// Records the waits of this client, for its marker.
  func noteWaits(_ fetched: inout Fetched) throws {
    if half == .sending {
      // It has not looked whether they are there by now.
      let waits = try records.waits()
      session.report.waiting = waits.reported ?? []
      (fetched.waiting, fetched.awaited) = (session.report.waiting, waits.lasting ?? [])
      return
    }
    let awaited = AwaitedFiles(session: session)
    fetched.waiting = try awaited.worthSaying(session.report.waiting, fetched.listing)
    fetched.awaited = try awaited.note(fetched.waiting)
  }

  /// Tells the others what is new here. Returns whether that needed a new
  /// marker.
  func tell(_ fetched: Fetched, isForced: Bool = false) throws -> Bool {
    let state = try CommandSteps(session: session).state()
    return try MarkerSteps(session: session).publishIfNeeded(
      fetched.listing,
      MarkerSteps.Statement(
        changeHead: fetched.head, applied: try store.appliedVector(), commands: state.commands,
        retired: try MemberSteps(session: session).retired(fetched.members),
        waiting: fetched.waiting, awaited: fetched.awaited),
      isForced: isForced)
  }

  /// Vacuums, compacts and uploads whole stores, if the caller wants it, it is
  /// due, or devices that join need it.
  func keepHouse(_ fetched: Fetched) throws {
    let housekeeping = Housekeeping(
      session: session, listing: fetched.listing, members: fetched.members,
      commands: try CommandSteps(session: session).state(), head: fetched.head,
      tell: { try tell(fetched) })
    // The check reads new markers, so it runs only from time to time.
    guard
      try clearsAway || housekeeping.isDue(context.environment.thresholds)
        || (fetched.turn.own != nil && housekeeping.isJoinImpossible())
    else { return }
    session.report.housekeeping = try housekeeping.run(isThorough: clearsAway)
  }

  /// The most rows with edits that are too large that a report names.
  private static let namedHeldEdits = 20

  private func heldEditWarnings() throws -> [SyncWarning] {
    let edits = try store.heldEdits()
    var warnings = edits.prefix(Self.namedHeldEdits).map { edit in
      var warning = SyncWarning(
        .editTooLarge, table: edit.table, message: "\(edit.message) \(edit.remedy)")
      warning.row = edit.row
      warning.names = edit.columns
      return warning
    }
    if edits.count > warnings.count {
      var rest = SyncWarning(
        .editTooLarge, message: "Further edits are too large to be sent and stay on this device.")
      rest.count = edits.count - warnings.count
      warnings.append(rest)
    }
    return warnings
  }

  /// Completes the report at the end of the pass, and notes that it contains
  /// the exchange of content.
  func completeReport() throws {
    session.report.warnings += try store.unsuitableTables().map { table in
      SyncWarning(
        .tableUnsuitable, table: table.name,
        message: (table.reason == .missingExclusion
          ? "an excluded table is missing. " : "a table stays on this device. ")
          + "\(table.explanation) \(table.remedy)")
    }
    session.report.warnings += try heldEditWarnings()
    session.report.warnings += try store.settleConflictArchive()
    session.report.openConflicts = try store.openConflictCount()
    session.report.parkedRows = try store.parkedCount()
    if session.report.conflicts > 0 { session.report.conflictPlaces = try store.conflictPlaces() }
    session.report.pendingCommands = try store.pendingEvents().count
    if session.report.rebootstrap != nil {
      try records.keep(nil as SyncReport.Rebootstrap?)
    }
    let hint = files.directory.hint
    if binding.directory != hint { try store.setDirectory(hint) }
    let counts = files.counts
    session.report.listings = counts.listings
    session.report.bytesReceived = counts.bytesRead
    session.report.bytesSent = counts.bytesPublished
  }
}
