import ArgumentParser
import DocumentSync
import SyncModel
import SyncStore

/// `docsync sync`
struct Sync: Verb {
  static let configuration = CommandConfiguration(
    abstract: "Send the edits of this device, and apply those of other devices.",
    discussion: "If one of several databases fails, the others are synchronized all the same."
      + examples("docsync sync notes.db", "docsync sync notes.db shop.db --quiet --wait 60"))

  @Argument(help: "The database files.", completion: .file())
  var stores: [String]

  @OptionGroup var place: MovedDirectory

  @OptionGroup var patience: Patience

  @OptionGroup var deletions: DeletionOptions

  @Flag(
    help: ArgumentHelp(
      "Check every file of this device in the shared directory, byte for byte, and repair it.",
      discussion:
        "Missing and damaged files are written again, also those of the application and of "
        + "the document's generation. If a change set cannot be written again, the whole database "
        + "is uploaded. Damaged files are then removed."))
  var thorough = false

  @Flag(help: "If the document was deleted, create it again from this database.")
  var recreate = false

  @Flag(
    help: ArgumentHelp(
      "If the document was deleted and another was created under its name, merge this database "
        + "into that one."))
  var merge = false

  @Flag(help: "If this device was removed from the document, go on as a new device.")
  var rejoin = false

  @Flag(
    name: [.short, .long],
    help: "Print nothing about a database unless it failed or something waits or needs a decision.")
  var quiet = false

  @OptionGroup var output: OutputOptions

  /// The output with `--json`.
  struct Result: Encodable, Sendable {
    var stores: [Store] = []
    /// The first failure, if any.
    var error: Failure?
  }

  /// The result of one store.
  struct Store: Encodable, Sendable {
    var store: String
    var document: String?
    var directory: String?
    var report: SyncReportJSON?
    /// Whether the command created the document again from this store.
    var isRecreated = false
    var parked: [ParkedRowJSON] = []
    var error: Failure?
  }

  func validate() throws {
    guard !stores.isEmpty else { throw ValidationError("Name at least one database file.") }
    guard !(thorough && deletions.allowDeletions) else {
      throw ValidationError("--thorough and --allow-deletions need two calls.")
    }
  }

  func perform(_ console: Console) async throws -> Outcome {
    var result = Result()
    var statuses: [ExitStatus] = []
    let width = stores.map(\.columns).max() ?? 0
    for store in stores {
      do {
        let (done, status, lines) = try await synchronize(store, width: width, console)
        result.stores.append(done)
        statuses.append(status)
        if !quiet || status != .done { console.say(lines) }
      } catch {
        let failure = Failure(error).at(place.commandPlace(of: store))
        // An interruption stops all stores.
        guard stores.count > 1, failure.code != SyncError.Code.cancelled.rawValue else {
          throw failure
        }
        result.stores.append(Store(store: store, error: failure))
        result.error = result.error ?? failure
        statuses.append(failure.status)
        console.note(failure.lines)
      }
    }
    return Outcome(json: result, lines: [], status: .worst(statuses))
  }

  private func synchronize(
    _ store: String, width: Int, _ console: Console
  ) async throws -> (Store, ExitStatus, [String]) {
    try await withManager(
      store, directory: place.directory, environment: patience.environment
    ) { manager in
      let bar = ProgressBar(on: console)
      defer { bar.clear() }
      manager.setDelegate(Answers(recreates: recreate, merges: merge, rejoins: rejoin))
      let ordinal = manager.binding.generationOrdinal
      var report =
        thorough
        ? try await manager.synchronizeThoroughly(onProgress: bar.handler)
        : try await manager.synchronize(
          allowingDeletions: deletions.allowDeletions, onProgress: bar.handler)
      bar.clear()
      let names = report.namesDevices ? await ClientNames(manager) : ClientNames()
      if try await deletions.ask(report.waiting, store: store, names, console) {
        console.say(Self.lines(report, store: store, names))
        report = try await manager.synchronize(allowingDeletions: true, onProgress: bar.handler)
        bar.clear()
      }
      let parked = try await manager.parkedRows()
      // If the store has not taken over a generation, the new one is its own.
      let isRecreated =
        recreate && manager.binding.generationOrdinal > ordinal && report.rebootstrap == nil
      let done = Store(
        store: store, document: manager.binding.documentIdentifier,
        directory: manager.directory.location, report: SyncReportJSON(report),
        isRecreated: isRecreated,
        parked: parked.map(ParkedRowJSON.init))
      let unsettled = Unsettled(report, parked)
      let lines = Self.lines(
        store, report, unsettled, names, width: width,
        recreated: isRecreated ? manager.binding.documentIdentifier : nil)
      return (done, unsettled.status, lines)
    }
  }

  private static func lines(
    _ store: String, _ report: SyncReport, _ unsettled: Unsettled, _ names: ClientNames,
    width: Int, recreated: String?
  ) -> [String] {
    var lines = lines(report, store: store, names)
    if let recreated {
      let said = "created the document “\(printable(recreated))” again from this database"
      lines = [said] + lines.filter { $0 != Self.upToDate }
    }
    if report.pendingCommands > 0 {
      lines.append("\(counted(report.pendingCommands, "command")) waiting for the application")
    }
    lines += unsettled.lines(store: store, names)
    return lines.enumerated().map { index, line in
      let name = index == 0 ? store : ""
      return name + String(repeating: " ", count: max(width - name.columns, 0) + 2) + line
    }
  }

  private static let upToDate = "up to date"

  /// Returns the results of a synchronization, one line or more for each kind of result.
  static func lines(
    _ report: SyncReport, store: String, _ names: ClientNames
  ) -> [String] {
    var lines: [String] = []
    lines += report.incarnations.map(text)
    if let rebootstrap = report.rebootstrap {
      lines += text(rebootstrap, store: store, names)
    }
    if !report.sent.isEmpty { lines.append("sent \(text(report.sent))") }
    if !report.applied.isEmpty {
      let rows = [
        report.insertedRows > 0 ? "\(report.insertedRows) inserted" : nil,
        report.updatedRows > 0 ? "\(report.updatedRows) updated" : nil,
        report.deletedRows > 0 ? "\(report.deletedRows) deleted" : nil,
      ].compactMap(\.self)
      lines.append(
        "applied \(text(report.applied)): "
          + (rows.isEmpty ? "no row changed" : rows.joined(separator: ", "))
      )
    }
    if report.sentCommands > 0 { lines.append("sent \(counted(report.sentCommands, "command"))") }
    if report.processedCommands > 0 {
      lines.append("processed \(counted(report.processedCommands, "command"))")
    }
    if report.conflicts > 0 {
      lines.append(
        "\(counted(report.conflicts, "conflict")). "
          + "Show them: docsync conflicts \(shellWord(store))")
      if let sentence = report.conflictPlaces.map(ConflictPlacesJSON.init)?.sentence {
        lines.append("In all \(sentence).")
      }
    }
    lines += report.warnings.map { "warning: \($0.text(store: store, names: names))" }
    if !report.restored.isEmpty {
      lines.append(
        "put back \(text(report.restored)) that \(Self.were(report.restored)) missing or damaged")
    }
    if !report.restoredFiles.isEmpty {
      let files = counted(report.restoredFiles.count, "file")
      lines.append(
        "wrote \(files) again that \(Self.were(report.restoredFiles)) missing or damaged:")
      lines += report.restoredFiles.map { "  " + $0 }
    }
    if !report.removedFiles.isEmpty {
      let files = counted(report.removedFiles.count, "file")
      lines.append("removed \(files) that \(Self.were(report.removedFiles)) damaged:")
      lines += report.removedFiles.map { "  " + $0 }
    }
    if !report.damagedFiles.isEmpty {
      let files = counted(report.damagedFiles.count, "damaged file")
      lines.append(
        "\(files) still there. The whole database has to be uploaded first: sync again when "
          + "nothing waits and no program edits the database:")
      lines += report.damagedFiles.map { "  " + $0 }
    }
    if lines.isEmpty {
      let isUpToDate = report.waiting.isEmpty
      lines.append(isUpToDate ? upToDate : "nothing could be applied")
    }
    return lines
  }

  private static func text(_ incarnation: Incarnation) -> String {
    let why =
      switch incarnation.reason {
      case .copied: "the database was copied or moved"
      case .restored: "the database was restored from a backup"
      case .forked: "another copy of the database has synchronized as this device"
      case .retired: "another device had retired this device"
      case .begunAgain: "the document was begun again"
      }
    return "goes on as a new device (\(incarnation.client.description.prefix(6))): \(why)"
  }

  private static func text(
    _ rebootstrap: SyncReport.Rebootstrap, store: String, _ names: ClientNames
  ) -> [String] {
    let why =
      switch rebootstrap.reason {
      case .gap: "change sets that this device had not applied were removed"
      case .reset: "the document was reset"
      case .createdTwice: "another device has created the document as well"
      case .begunAgain: "the document was deleted and created again"
      default: rebootstrap.reason.rawValue
      }
    var lines = ["took over the document's database from the shared directory: \(why)"]
    let own = rebootstrap.reappliedChangeSets + rebootstrap.returningChangeSets
    if own > 0 { lines.append("added \(counted(own, "change set")) of this device to it") }
    if rebootstrap.changedSchema { lines.append("the schema has changed") }
    if let merged = rebootstrap.merged { lines += merged.lines }
    return lines + ["the former file is kept as \(rebootstrap.backup)"]
      + rebootstrap.warnings.map { "warning: \($0.text(store: store, names: names))" }
  }

  /// Returns the verb for some things.
  private static func were(_ things: [some Any]) -> String { things.count == 1 ? "was" : "were" }

  private static func text(_ sets: [SyncReport.ChangeSet]) -> String {
    let rows = sets.reduce(0) { $0 + $1.rowCount }
    return "\(counted(sets.count, "change set")) (\(counted(rows, "row")))"
  }
}

extension SyncReport {
  /// Whether the lines about the report name devices.
  var namesDevices: Bool {
    let warnings = warnings + (rebootstrap?.warnings ?? [])
    return !waiting.isEmpty || warnings.contains { $0.client != nil }
  }
}

/// A delegate that answers the questions of a synchronization by the options.
private struct Answers: SyncDelegate {
  var recreates: Bool
  var merges: Bool
  var rejoins: Bool

  func decide(_ question: SyncQuestion) async -> SyncQuestion.Decision {
    switch question {
    case .documentDeleted where recreates: .create
    case .documentReplaced where merges: .merge
    case .clientRemoved where rejoins: .rejoin
    default: question.usualDecision
    }
  }
}
