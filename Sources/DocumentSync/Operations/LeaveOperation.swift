import SyncDirectory
import SyncModel
import SyncStore

/// Takes a store out of sync: it becomes an ordinary database again, with the
/// schema and the rows that it shows.
///
/// The operation first publishes unpublished edits, and tells the other devices
/// to stop waiting for this client. Then it removes the bookkeeping in one
/// transaction. If it is interrupted before that, the store stays under sync,
/// and the next call completes it.
public final class LeaveOperation: DocumentOperation<LeaveReport>, @unchecked Sendable {
  /// How often the operation tries again if the store is edited meanwhile.
  private static let attempts = 5

  private let abandons: Bool
  private let isConfirmed: Bool

  /// Creates an operation that takes a store out of sync.
  ///
  /// - Parameters:
  ///   - abandons: Whether to leave without publishing and without telling the
  ///     other devices, as when the directory is away or the document was
  ///     deleted.
  ///   - isConfirmed: Whether the user has agreed to the loss of rows that no
  ///     table shows, and of open questions. Otherwise the operation refuses
  ///     (`confirmationNeeded`) before it tells the other devices.
  package init(
    store: LocalStore, directory: any SharedDirectory, turns: SyncTurns, abandons: Bool = false,
    isConfirmed: Bool = false, environment: SyncEnvironment = SyncEnvironment()
  ) {
    self.abandons = abandons
    self.isConfirmed = isConfirmed
    super.init(
      "leave the document", store: store, directory: directory, turns: turns,
      environment: environment)
  }

  /// Leaves the document. Afterwards, the store can only be closed.
  override func perform() async throws -> LeaveReport {
    try await holdingStore(needsSetUp: !abandons) { [self] files in
      begin(.listing)
      // What was edited cannot be published; the user may abandon it.
      if !abandons { try store.checkTables() }
      var report = LeaveReport(
        binding: store.binding, synchronization: nil, loss: RemovalLoss(), hasToldOthers: false)
      try confirm(try store.removalLoss())
      var attempt = 1
      while true {
        do {
          if !abandons { try sayFarewell(files, &report) }
          try checkCancellation()
          try store.removeBookkeeping { loss in
            try confirm(loss)
            if !abandons, loss.hasUnpublishedEdits { throw unpublished }
            report.loss = loss
          }
          return report
        } catch let error as SyncError
          where error.code == .unpublishedEdits && attempt < Self.attempts
        {
          attempt += 1
        }
      }
    }
  }

  /// Publishes unpublished edits, and tells the other devices.
  private func sayFarewell(_ files: SharedFiles, _ report: inout LeaveReport) throws {
    try directory.check(for: .writing)
    let session = SyncSession(files: files, store: store)
    let pass = SyncPass(session: session, turns: turns, scansFormerGenerations: true)
    let commands = CommandSteps(session: session)
    if try commands.state().hasLeft {
      // An earlier attempt has announced that the client leaves, and was then
      // interrupted.
      try pass.tellWithoutFetching()
      guard try store.removalLoss().hasUnpublishedEdits else {
        return try describe(files, &report)
      }
      // The other devices take no more change sets from a client that has left.
      try store.beginIncarnation(.retired) { $0.isPublished ? .common : .known }
    }
    let synchronization = try pass.run()
    // The changes that have arrived may have added data that only the
    // bookkeeping contains.
    try confirm(try store.removalLoss())
    report.synchronization = synchronization
    // If an earlier attempt has enqueued the farewell, this pass has sent it.
    if try !commands.state().hasLeft {
      // The next synchronization sends whatever is enqueued from here on.
      try files.confirmRoot()
      try CommandSteps.enqueueFarewell(of: store)
      report.synchronization?.sent += try pass.run().sent
    }
    try describe(files, &report)
  }

  private func describe(_ files: SharedFiles, _ report: inout LeaveReport) throws {
    let binding = store.binding
    try ApplicationSteps(files).describe(
      binding.client, as: binding.clientDescription, ancestor: binding.ancestor,
      document: binding.document, hasLeft: true)
    report.hasToldOthers = true
  }

  private func confirm(_ loss: RemovalLoss) throws {
    guard loss.needsConfirmation, !isConfirmed else { return }
    throw SyncError(
      .confirmationNeeded, operation: verb, path: store.path,
      message: "Leaving would lose data that only the bookkeeping holds: "
        + "\(loss.sentence).",
      remedy: "Look at it first, and confirm that it may go.")
  }

  private var unpublished: SyncError {
    SyncError(
      .unpublishedEdits, operation: verb, path: store.path,
      message: "The database is edited all the time, so there is always something to publish.",
      remedy: "Close the programs that edit it, then try again.")
  }
}

extension RemovalLoss {
  /// The lost data as a list of nouns.
  var sentence: String {
    func counted(_ count: Int, _ noun: String) -> String {
      "\(count) \(noun)\(count == 1 ? "" : "s")"
    }
    var parts: [String] = []
    let tables = Dictionary(grouping: parked, by: \.table).mapValues(\.count)
    for (table, count) in tables.sorted(by: <) {
      parts.append("\(counted(count, "row")) of “\(table)” that cannot be shown")
    }
    for (name, count) in unknownRows.sorted(by: <) {
      parts.append(
        "\(counted(count, name.text.utf8.contains(UInt8(ascii: ".")) ? "value" : "row")) of “\(name)”, which only other devices have"
      )
    }
    if waitingChangeSets > 0 {
      parts.append(counted(waitingChangeSets, "change set") + " that could not be applied yet")
    }
    if openConflicts > 0 { parts.append(counted(openConflicts, "open question")) }
    return parts.joined(separator: ", ")
  }
}
