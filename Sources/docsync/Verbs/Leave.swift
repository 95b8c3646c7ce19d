import ArgumentParser
import DocumentSync
import SyncDirectory
import SyncStore

/// `docsync leave`
struct Leave: StoreVerb {
  static let configuration = CommandConfiguration(
    abstract: "Take a database out of sync: it becomes an ordinary SQLite file again.",
    discussion: """
      Sends the edits that are not sent yet, tells the other devices not to wait for this one, \
      and removes all tables (docsync_…) and triggers of DocumentSync from the database. Your \
      tables and rows stay as they are; the space is given back by VACUUM.

      Hidden rows, rows of tables that only other devices have, and the conflict journal are \
      removed with the bookkeeping. The command lists them before it asks.
      """ + examples("docsync leave notes.db", "docsync leave notes.db --abandon"))

  @OptionGroup var arguments: StoreArguments

  @Flag(
    help: ArgumentHelp(
      "Send nothing, and tell no other device: for a directory that is gone for good.",
      discussion:
        "It also ends a set-up that is not complete, and works if docsync's tables in the "
        + "database are damaged."))
  var abandon = false

  @OptionGroup var confirmation: ConfirmationOptions
  @OptionGroup var output: OutputOptions

  /// The output with `--json`.
  struct Result: Encodable, Sendable {
    var store: String
    /// Whether the store was under sync before.
    var hasLeft: Bool
    var document: String?
    var directory: String?
    var client: String?
    var report: SyncReportJSON?
    var hasToldOthers = false
    var lost: Loss?
  }

  /// The data that leaving removes with the bookkeeping.
  struct Loss: Encodable, Sendable {
    var parked: [ParkedRowJSON]
    var unknownRows: NamedValues<Int>
    var waitingChangeSets: Int
    var openConflicts: Int
    var conflictCount: Int
    var unsentEdits: Int
    var unsentChangeSets: Int
    var heldEdits: Int

    init(_ loss: RemovalLoss) {
      parked = loss.parked.map(ParkedRowJSON.init)
      unknownRows = NamedValues(loss.unknownRows)
      waitingChangeSets = loss.waitingChangeSets
      openConflicts = loss.openConflicts
      conflictCount = loss.conflicts
      unsentEdits = loss.unsealedEdits
      unsentChangeSets = loss.unpublishedChangeSets
      heldEdits = loss.heldEdits
    }
  }

  func perform(_ console: Console) async throws -> Outcome {
    do {
      return try await leave(console)
    } catch let error as SyncError where abandon && Self.canAbandon(error) {
      return try await end(after: error, console)
    }
  }

  /// Whether the bookkeeping can be removed although the store cannot be opened.
  private static func canAbandon(_ error: SyncError) -> Bool {
    [.setUpUnfinished, .storeDamaged, .storeUnsuitable, .storeFailed].contains(error.code)
  }

  /// Takes the store out of sync although it cannot be opened.
  private func end(after error: SyncError, _ console: Console) async throws -> Outcome {
    let isUnfinished = error.code == .setUpUnfinished
    try await confirmation.ask(
      isUnfinished
        ? "This ends the set-up of \(arguments.store), which is not complete."
        : "This takes \(arguments.store) out of sync, although docsync cannot read all of its own "
          + "tables in it: \(error.message)",
      isUnfinished
        ? ["none of your data will be removed"]
        : [
          "hidden rows, edits that are not sent and the conflict journal cannot be listed; what "
            + "only docsync's tables contain will be removed", "the rows of your tables stay",
        ],
      path: arguments.store, console)
    let state = isUnfinished ? try SetUpState.read(storeAt: arguments.store) : nil
    let isClean = try await DocumentSyncManager.abandon(
      storeAt: arguments.store, directory: arguments.place.directory)
    var lines = ["\(arguments.store) is an ordinary database again."]
    if !isClean, let binding = state?.binding {
      let place = arguments.place.directory ?? FolderDirectory(root: binding.directory)
      let directory = "--directory " + shellWord(place.root)
      lines += [
        Self.isThere(place)
          ? "The document “\(binding.documentIdentifier)” stays in \(place.root), and other devices "
            + "may use it. See which do:"
          : "Files of the document “\(binding.documentIdentifier)” may still be in \(place.root). "
            + "When the directory is there, see whether other devices use it:",
        "  docsync documents \(directory)", "To delete it for all devices:",
        "  docsync delete-document \(shellWord(binding.documentIdentifier)) \(directory)",
      ]
    }
    return Outcome(
      json: Result(
        store: arguments.store, hasLeft: true, document: state?.binding.documentIdentifier,
        directory: state?.binding.directory, client: state?.binding.client.description),
      lines: lines)
  }

  private static func isThere(_ directory: FolderDirectory) -> Bool {
    do {
      try directory.check(for: .reading)
      return true
    } catch {
      return false
    }
  }

  private func leave(_ console: Console) async throws -> Outcome {
    guard try DocumentSyncManager.isUnderSync(storeAt: arguments.store) else {
      return Outcome(
        json: Result(store: arguments.store, hasLeft: false),
        lines: ["\(arguments.store) is not under sync."])
    }
    return try await arguments.withManager { manager in
      if !abandon { try await Self.checkStanding(manager) }
      let loss = try await manager.removalLoss()
      try await confirmation.ask(
        "This takes \(arguments.store) out of sync with the document "
          + "“\(printable(manager.binding.documentIdentifier))” in "
          + "\(printable(manager.directory.location)).",
        Self.lines(loss, abandons: abandon), path: arguments.store, console)
      let bar = ProgressBar(on: console)
      defer { bar.clear() }
      let report = try await manager.leave(
        abandoning: abandon, isConfirmed: loss.needsConfirmation, onProgress: bar.handler)
      bar.clear()
      let result = Result(
        store: arguments.store, hasLeft: true, document: report.binding.documentIdentifier,
        directory: manager.directory.location, client: report.binding.client.description,
        report: report.synchronization.map(SyncReportJSON.init),
        hasToldOthers: report.hasToldOthers,
        lost: Loss(report.loss))
      var text = "\(arguments.store) is an ordinary database again."
      if let sent = report.synchronization?.sent, !sent.isEmpty {
        text += " Sent before: \(counted(sent.count, "change set"))."
      }
      return Outcome(json: result, lines: [text])
    }
  }

  /// Throws the error of synchronizing if the document was deleted, before the user is asked.
  private static func checkStanding(_ manager: DocumentSyncManager) async throws {
    switch try await manager.findStanding() {
    case .current, .outnumbered: break
    case .deleted, .createdAgain: try await manager.synchronize()
    }
  }

  /// Returns lines about the data that the command will remove and the edits that it will send.
  private static func lines(_ loss: RemovalLoss, abandons: Bool) -> [String] {
    var lines: [String] = []
    if loss.unsealedEdits > 0 || loss.unpublishedChangeSets > 0 {
      let parts = [
        loss.unsealedEdits > 0 ? counted(loss.unsealedEdits, "edit") : nil,
        loss.unpublishedChangeSets > 0
          ? counted(loss.unpublishedChangeSets, "change set") : nil,
      ].compactMap(\.self)
      lines.append(
        parts.joined(separator: " and ")
          + (abandons
            ? " will not be sent; the rows stay here" : " will be sent before"))
    }
    if loss.heldEdits > 0 {
      lines.append(
        "\(counted(loss.heldEdits, "edit")) too large to be sent will never reach other devices; "
          + "the rows stay here")
    }
    if !loss.parked.isEmpty {
      lines.append("these hidden rows will be removed:")
      lines += parkedLines(loss.parked, indent: 2)
    }
    for (name, count) in loss.unknownRows.sorted(by: { $0.key < $1.key }) {
      let noun = name.text.utf8.contains(UInt8(ascii: ".")) ? "value" : "row"
      lines.append(
        "\(counted(count, noun)) of \(printable(name)), which only other devices have, will be removed"
      )
    }
    if loss.waitingChangeSets > 0 {
      lines.append(
        "\(counted(loss.waitingChangeSets, "change set")) of other devices, not applied yet, "
          + "will be removed")
    }
    if loss.conflicts > 0 {
      lines.append(
        "the journal with \(counted(loss.conflicts, "conflict")), \(loss.openConflicts) of them "
          + "open, will be removed")
    }
    return lines.isEmpty ? ["none of your data will be removed"] : lines
  }
}
