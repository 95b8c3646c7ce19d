import ArgumentParser
import DocumentSync
import SyncDirectory
import SyncModel
import SyncStore

/// `docsync status`
struct Status: Verb {
  static let configuration = CommandConfiguration(
    abstract: "Show what is not sent yet, what is missing, and what needs a decision.",
    discussion: """
      Reads the database, and looks whether the shared directory is there; nothing is sent, fetched \
      or changed.
      """ + examples("docsync status notes.db"))

  @OptionGroup var arguments: StoreArguments
  @OptionGroup var output: OutputOptions

  /// The output with `--json`.
  struct Result: Encodable, Sendable {
    var store: String
    var document: String
    var application: String
    var directory: String
    var isDirectoryThere: Bool
    var directoryState: DirectoryState
    var client: String
    var clientName: String
    var unsentEdits: Int
    var unsentChangeSets: Int
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
    /// Why older conflicts stay in the database; absent if they do not.
    var conflictArchiveProblem: String?
  }

  func perform(_ console: Console) async throws -> Outcome {
    try await arguments.withManager { manager in
      let status = try await manager.status()
      let unsettled = Unsettled(
        waits: try await manager.waits(), openConflicts: status.openConflicts,
        parked: status.parked)
      let binding = manager.binding
      let state = await DirectoryState(of: manager)
      let result = Result(
        store: arguments.store, document: binding.documentIdentifier,
        application: binding.application, directory: manager.directory.location,
        isDirectoryThere: state.isThere, directoryState: state,
        client: binding.client.description, clientName: binding.clientDescription,
        unsentEdits: status.unsealedEdits,
        unsentChangeSets: status.unpublishedChangeSets, lastNumber: status.head,
        applied: VectorJSON(status.vector),
        waiting: unsettled.waits.map { WaitJSON($0, missing: Self.missing($0, status)) },
        openConflicts: status.openConflicts,
        parked: status.parked.map(ParkedRowJSON.init), tables: status.tables.map(TableJSON.init),
        leftOut: NamedValues(status.leftOut.mapValues(\.rawValue)),
        unknownNames: status.unknownNames,
        incompleteNames: status.incompleteNames, rowsWithoutKey: NamedValues(status.rowsWithoutKey),
        unsuitableTables: status.unsuitableTables.isEmpty
          ? nil : status.unsuitableTables.map(UnsuitableTableJSON.init),
        conflictArchiveProblem: status.conflictArchiveProblem)
      let names = result.isDirectoryThere ? await ClientNames(manager) : ClientNames()
      return Outcome(
        json: result, lines: Self.lines(result, status, unsettled, names),
        status: unsettled.status)
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

  private static func lines(
    _ result: Result, _ status: StoreStatus, _ unsettled: Unsettled, _ names: ClientNames
  ) -> [String] {
    let directory = printable(result.directory) + result.directoryState.note
    var lines = alignedLines([
      ["document", printable(result.document)],
      ["application", printable(result.application)],
      ["directory", directory],
      ["this device", "\(printable(result.clientName)) (\(result.client.prefix(6)))"],
      ["to send", toSend(result)],
      ["made", counted(Int(result.lastNumber), "change set")],
      ["received", received(status.vector, names)],
    ])
    if !unsettled.waits.isEmpty {
      lines += ["", "Waiting since the last synchronization:"]
      for wait in unsettled.waits {
        let missing = missing(wait, status) ?? [:]
        lines.append("  \(wait.title(names))\(missing.isEmpty ? ": \(wait.message)" : "")")
        if let path = wait.path { lines.append("    \(path)") }
        for (client, number) in missing.sorted(by: { $0.key < $1.key }) {
          lines.append("    for change set \(number) of \(names.label(client))")
        }
      }
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
      ]
    }
    if !status.incompleteNames.isEmpty {
      lines += [
        "",
        "Tables and columns whose values are incomplete; join again with “docsync join --replace”:",
        "  " + printable(status.incompleteNames.joined(separator: ", ")),
      ]
    }
    lines += rowsWithoutKeyLines(status.rowsWithoutKey)
    if !status.unsuitableTables.isEmpty {
      lines += ["", "Tables that cannot be synchronized and stay on this device:"]
      lines += status.unsuitableTables.map {
        "  " + printable("\($0.explanation) \($0.remedy)")
      }
    }
    if !status.parked.isEmpty {
      lines += ["", "Hidden rows:"] + parkedLines(status.parked, indent: 2)
    }
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
