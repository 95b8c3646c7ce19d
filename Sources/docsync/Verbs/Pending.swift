import ArgumentParser
import DocumentSync
import SyncModel
import SyncStore

/// `docsync pending`
struct Pending: StoreVerb {
  static let configuration = CommandConfiguration(
    abstract: "List the edits of this device that are not sent yet, row by row.",
    discussion: """
      “+” stands for an inserted row, “~” for an updated one, “-” for a deleted one. It reads the \
      database only.
      """
        + examples("docsync pending notes.db", "docsync pending notes.db --limit 1000"))

  @OptionGroup var arguments: StoreArguments

  @Option(help: ArgumentHelp("The greatest number of rows to list.", valueName: "COUNT"))
  var limit = 100

  @OptionGroup var output: OutputOptions

  /// The output with `--json`.
  struct Result: Encodable, Sendable {
    var store: String
    /// About how many edits are in no change set yet.
    var unsealedCount: Int
    /// The rows in change sets that were not sent.
    var unpublishedCount: Int
    /// The edits that are too large to be sent.
    var tooLargeCount: Int
    var changes: [PendingChangeJSON]
    /// Whether there are more than the limit.
    var hasMore: Bool
    /// Tables that may have other changes than these; absent if there are none.
    var incompleteTables: [SQLName]?
  }

  func validate() throws {
    guard (1...1_000_000).contains(limit) else {
      throw ValidationError("--limit must be from 1 to 1000000.")
    }
  }

  func perform(_ console: Console) async throws -> Outcome {
    try await arguments.withManager { manager in
      let pending = try await manager.pendingChanges(limit: limit)
      let count = try await manager.pendingCount()
      let result = Result(
        store: arguments.store, unsealedCount: count.unsealed, unpublishedCount: count.unpublished,
        tooLargeCount: count.tooLarge, changes: pending.changes.map(PendingChangeJSON.init),
        hasMore: pending.hasMore,
        incompleteTables: pending.incompleteTables.isEmpty ? nil : pending.incompleteTables)
      return Outcome(json: result, lines: lines(pending))
    }
  }

  private func lines(_ pending: StoreStatus.PendingChanges) -> [String] {
    var lines = alignedLines(pending.changes.map(cells))
    if lines.isEmpty, pending.incompleteTables.isEmpty { lines = ["Nothing to send."] }
    if pending.hasMore {
      lines.append("There are more. List them with a greater --limit than \(limit).")
    }
    if !pending.incompleteTables.isEmpty {
      if !lines.isEmpty { lines.append("") }
      lines += [
        "Tables that may have other edits; `docsync sync` finds them, or says what to do:",
        "  " + printable(pending.incompleteTables.joined(separator: ", ")),
      ]
    }
    return lines
  }

  private func cells(_ change: StoreStatus.PendingChanges.Change) -> [String] {
    let sign =
      switch change.kind {
      case .inserted: "+"
      case .updated: "~"
      case .deleted: "-"
      }
    let key = change.key.map { key in
      zip(change.keyColumns, key).map { "\(printable($0)) \(ValueJSON($1).text)" }
        .joined(separator: ", ")
    }
    let stage =
      switch change.stage {
      case .unsealed: "in no change set yet"
      case .unpublished: "in a change set that was not sent"
      case .tooLarge: "too large to be sent"
      }
    return [
      "\(sign) \(printable(change.table))", key ?? "key not known here",
      printable(change.columns.joined(separator: ", ")), timeText(change.since.milliseconds), stage,
    ]
  }
}
