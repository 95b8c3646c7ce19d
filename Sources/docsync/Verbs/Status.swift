import ArgumentParser
import DocumentSync
import Foundation
import SyncDirectory
import SyncModel
import SyncStore

/// `docsync status`
struct Status: Verb {
  static let configuration = CommandConfiguration(
    abstract: "Show what is not sent yet, what is missing, and what needs a decision.",
    discussion: """
      Reads the database, and the names in the shared directory; nothing is sent, fetched or \
      changed. Several databases have a line each.
      """
        + examples(
          "docsync status notes.db", "docsync status notes.db --tables",
          "docsync status notes.db shop.db"))

  @Argument(help: "The database files.", completion: .file())
  var stores: [String]

  @OptionGroup var place: MovedDirectory

  @OptionGroup var patience: Patience

  @Flag(help: "Print also which tables are synchronized, and how their rows are identified.")
  var tables = false

  @OptionGroup var output: OutputOptions

  /// The output for one store with `--json`.
  struct Result: Encodable, Sendable {
    var store: String
    var document: String
    var application: String
    var directory: String
    var isDirectoryThere: Bool
    var directoryState: DirectoryState
    var client: String
    var clientName: String
    /// The time of the last synchronization without an error; absent if it is not known.
    var syncedMilliseconds: Int64?
    var unsentEdits: Int
    var unsentChangeSets: Int
    /// The number of change sets of others that are in the directory and not applied; absent if the
    /// directory cannot be read.
    var unreceivedChangeSets: Int?
    /// Why the directory does not tell what is to be received; absent if it does, or is not there.
    var directoryError: Failure?
    var lastNumber: UInt64
    var applied: VectorJSON
    var waiting: [WaitJSON]
    var openConflicts: Int
    var parked: [ParkedRowJSON]
    var tables: [TableJSON]
    var leftOut: NamedValues<String>
    /// Tables and columns that only other devices have and whose values this store stores.
    var unknownNames: [SQLName]
    /// Tables and columns that lost their values.
    var incompleteNames: [SQLName]
    var rowsWithoutKey: NamedValues<Int>
    /// Tables that cannot be synchronized; absent if there are none.
    var unsuitableTables: [UnsuitableTableJSON]?
    /// The edits that are too large to be sent; absent if there are none.
    var heldEdits: [HeldEditJSON]?
    /// Why older conflicts stay in the database; absent if they do not.
    var conflictArchiveProblem: String?
  }

  /// The output for several stores with `--json`.
  struct Results: Encodable, Sendable {
    var stores: [Store] = []
    /// The first failure, if any.
    var error: Failure?
  }

  /// The result of one of several stores.
  struct Store: Encodable, Sendable {
    var store: String
    var status: Result?
    var error: Failure?
  }

  func validate() throws {
    guard !stores.isEmpty else { throw ValidationError("Name at least one database file.") }
  }

  var commandPlace: CommandPlace {
    stores.count == 1 ? place.commandPlace(of: stores[0]) : CommandPlace()
  }

  func perform(_ console: Console) async throws -> Outcome {
    guard stores.count > 1 else {
      return try await look(at: stores[0]) { manager, result, status, unsettled in
        let names = result.isDirectoryThere ? await ClientNames(manager) : ClientNames()
        return Outcome(
          json: result, lines: lines(result, status, unsettled, names), status: unsettled.status)
      }
    }
    var results = Results()
    var rows: [[String]] = []
    var statuses: [ExitStatus] = []
    for store in stores {
      do {
        try await look(at: store) { _, result, _, unsettled in
          results.stores.append(Store(store: store, status: result))
          rows.append(Self.cells(result, unsettled))
          statuses.append(unsettled.status)
        }
      } catch {
        let failure = Failure(error).at(place.commandPlace(of: store))
        guard failure.code != SyncError.Code.cancelled.rawValue else { throw failure }
        results.stores.append(Store(store: store, error: failure))
        results.error = results.error ?? failure
        console.note(failure.lines)
        statuses.append(failure.status)
      }
    }
    return Outcome(json: results, lines: alignedLines(rows), status: .worst(statuses))
  }

  /// Opens a store, and passes what there is to tell about it to `body`.
  private func look<Value>(
    at store: String,
    _ body: (DocumentSyncManager, Result, StoreStatus, Unsettled) async throws -> Value
  ) async throws -> Value {
    try await withManager(
      store, directory: place.directory, environment: patience.environment
    ) { manager in
      let status = try await manager.status()
      let unsettled = Unsettled(
        waits: try await manager.waits(), openConflicts: status.openConflicts,
        parked: status.parked)
      let result = try await Self.result(store, manager, status, unsettled)
      return try await body(manager, result, status, unsettled)
    }
  }

  private static func result(
    _ store: String, _ manager: DocumentSyncManager, _ status: StoreStatus, _ unsettled: Unsettled
  ) async throws -> Result {
    let binding = manager.binding
    let state = await DirectoryState(of: manager)
    var result = Result(
      store: store, document: binding.documentIdentifier,
      application: binding.application, directory: manager.directory.location,
      isDirectoryThere: state.isThere, directoryState: state,
      client: binding.client.description, clientName: binding.clientDescription,
      syncedMilliseconds: manager.lastSynchronization?.milliseconds,
      unsentEdits: status.unsealedEdits,
      unsentChangeSets: status.unpublishedChangeSets,
      lastNumber: status.head,
      applied: VectorJSON(status.vector),
      waiting: unsettled.waits.map { WaitJSON($0, missing: missing($0, status)) },
      openConflicts: status.openConflicts,
      parked: status.parked.map(ParkedRowJSON.init), tables: status.tables.map(TableJSON.init),
      leftOut: NamedValues(status.leftOut.mapValues(\.rawValue)),
      unknownNames: status.unknownNames,
      incompleteNames: status.incompleteNames, rowsWithoutKey: NamedValues(status.rowsWithoutKey),
      unsuitableTables: status.unsuitableTables.isEmpty
        ? nil : status.unsuitableTables.map(UnsuitableTableJSON.init),
      heldEdits: status.heldEdits.isEmpty ? nil : status.heldEdits.map(HeldEditJSON.init),
      conflictArchiveProblem: status.conflictArchiveProblem)
    try await addUnreceived(to: &result, manager)
    return result
  }

  /// Adds the number of change sets that have not been received, or why it is not known.
  private static func addUnreceived(to result: inout Result, _ manager: DocumentSyncManager)
    async throws
  {
    guard result.directoryState == .there else { return }
    do {
      // Forged names can contain any numbers.
      result.unreceivedChangeSets = try await manager.unreceived().values.reduce(0) {
        $0 > .max - $1 ? .max : $0 + $1
      }
    } catch let error as SyncError where error.code == .cancelled {
      throw error
    } catch {
      result.directoryError = Failure(error).at(
        CommandPlace(store: result.store, directory: result.directory, isUnderSync: true))
    }
  }

  /// Returns the change sets that must be applied before one that the store has; `nil` for one that
  /// it does not have.
  private static func missing(
    _ wait: SyncReport.Wait, _ status: StoreStatus
  ) -> [ClientIdentifier: UInt64]? {
    guard !wait.isCommand else { return nil }
    return status.waiting.first { $0.client == wait.client && $0.number == wait.number }?.missing
  }

  /// Returns the cells of the line for one of several stores.
  private static func cells(_ result: Result, _ unsettled: Unsettled) -> [String] {
    var notes: [String] = []
    let note = result.directoryState.note.trimmingCharacters(in: .whitespaces)
    if !note.isEmpty { notes.append("directory " + note) }
    if !unsettled.waits.isEmpty { notes.append("\(unsettled.waits.count) waiting") }
    if unsettled.openConflicts > 0 {
      notes.append("\(counted(unsettled.openConflicts, "question")) open")
    }
    if let held = result.heldEdits {
      notes.append("\(counted(held.count, "edit")) too large to be sent")
    }
    if !unsettled.parked.isEmpty {
      notes.append("\(counted(unsettled.parked.count, "row")) hidden")
    }
    let cells = [
      printable(result.store), synced(result), "to send: \(toSend(result))",
      "to receive: \(toReceive(result))",
    ]
    return notes.isEmpty ? cells : cells + [notes.joined(separator: ", ")]
  }

  private static func synced(_ result: Result) -> String {
    result.syncedMilliseconds.map { "synchronized \(timeText($0))" }
      ?? "last synchronization not known"
  }

  private static func toReceive(_ result: Result) -> String {
    if let error = result.directoryError { return "not known. \(printable(error.message))" }
    guard let count = result.unreceivedChangeSets else { return "not known" }
    return count > 0 ? counted(count, "change set") : "nothing"
  }

  private func lines(
    _ result: Result, _ status: StoreStatus, _ unsettled: Unsettled, _ names: ClientNames
  ) -> [String] {
    let directory = printable(result.directory) + result.directoryState.note
    var lines = alignedLines([
      ["document", printable(result.document)],
      ["application", printable(result.application)],
      ["directory", directory],
      ["this device", "\(printable(result.clientName)) (\(result.client.prefix(6)))"],
      ["last sync", result.syncedMilliseconds.map(timeText) ?? "not known"],
      ["to send", Self.toSend(result)],
      ["to receive", Self.toReceive(result)],
      ["made", counted(Int(result.lastNumber), "change set")],
      ["received", Self.received(status.vector, names)],
    ])
    if !unsettled.waits.isEmpty {
      lines += ["", "Waiting since the last synchronization:"]
      for wait in unsettled.waits {
        let missing = Self.missing(wait, status) ?? [:]
        lines.append("  \(wait.title(names))\(missing.isEmpty ? ": \(wait.message)" : "")")
        if let path = wait.path { lines.append("    \(path)") }
        if let next = wait.next(store: result.store, names) { lines.append("    next: \(next)") }
        for (client, number) in missing.sorted(by: { $0.key < $1.key }) {
          lines.append("    for change set \(number) of \(names.label(client))")
        }
      }
    }
    if unsettled.waits.contains(where: { $0.reason == .manyDeletions }) {
      lines.append(
        "  Apply what is deleted: docsync sync \(shellWord(result.store)) --allow-deletions")
    }
    if unsettled.openConflicts > 0 {
      lines += [
        "",
        "\(counted(unsettled.openConflicts, "question")) open. "
          + "Show them: docsync conflicts \(shellWord(result.store)) --open",
      ]
    }
    if let problem = status.conflictArchiveProblem {
      lines += ["", printable("warning: " + problem)]
    }
    if !status.unknownNames.isEmpty {
      lines += [
        "", "Tables and columns that exist on other devices only; their values are kept:",
        "  " + printable(status.unknownNames.joined(separator: ", ")),
        "Their definitions: docsync schema \(shellWord(result.store))",
      ]
    }
    if !status.incompleteNames.isEmpty {
      lines += [
        "",
        "Tables and columns whose values are incomplete:",
        "  " + printable(status.incompleteNames.joined(separator: ", ")),
        "Join again: docsync join \(shellWord(result.store)) --directory "
          + "\(shellWord(result.directory)) --document \(shellWord(result.document)) --replace",
      ]
    }
    lines += rowsWithoutKeyLines(status.rowsWithoutKey)
    if !status.unsuitableTables.isEmpty {
      lines += ["", "Tables that cannot be synchronized and stay on this device:"]
      lines += status.unsuitableTables.map {
        "  " + printable("\($0.explanation) \($0.remedy)")
      }
    }
    if !status.heldEdits.isEmpty {
      lines += ["", "Edits that are too large to be sent and stay on this device:"]
      lines += status.heldEdits.prefix(20).map { "  " + printable("\($0.message) \($0.remedy)") }
      if status.heldEdits.count > 20 { lines.append("  and \(status.heldEdits.count - 20) more") }
    }
    if !status.parked.isEmpty {
      lines += ["", "Hidden rows:"] + parkedLines(status.parked, indent: 2)
    }
    guard tables else { return lines }
    lines += ["", "Synchronized:"] + alignedLines(result.tables.map(\.cells), indent: 2)
    if !result.leftOut.values.isEmpty {
      lines += ["", "Left out:"]
      lines += alignedLines(
        result.leftOut.values.map { [printable($0.key), printable($0.value)] },
        indent: 2)
    }
    return lines
  }

  private static func toSend(_ result: Result) -> String {
    guard result.unsentEdits > 0 || result.unsentChangeSets > 0 else { return "nothing" }
    var parts: [String] = []
    if result.unsentEdits > 0 { parts.append(counted(result.unsentEdits, "edit")) }
    if result.unsentChangeSets > 0 {
      parts.append(counted(result.unsentChangeSets, "change set"))
    }
    return parts.joined(separator: ", ")
  }

  private static func received(_ vector: VersionVector, _ names: ClientNames) -> String {
    guard !vector.entries.isEmpty else { return "nothing yet" }
    return vector.sorted.map { "\($0.entry.number) of \(names.label($0.client))" }
      .joined(separator: ", ")
  }
}

/// The lines about rows with NULL in their key, by table; none if there are none.
func rowsWithoutKeyLines(_ counts: [SQLName: Int]) -> [String] {
  guard !counts.isEmpty else { return [] }
  return ["", "Rows with NULL in their key, which stay on this device:"]
    + counts.sorted { $0.key < $1.key }.map { "  \(counted($1, "row")) of \(printable($0))" }
}
