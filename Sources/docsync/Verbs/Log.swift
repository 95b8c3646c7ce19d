import ArgumentParser
import DocumentSync
import SyncStore

/// `docsync log`
struct Log: StoreVerb {
  static let configuration = CommandConfiguration(
    abstract: "List the change sets that this device made or applied, the newest first.",
    discussion: examples("docsync log notes.db --limit 20"))

  @OptionGroup var arguments: StoreArguments

  @Option(help: ArgumentHelp("The greatest number of change sets to list.", valueName: "COUNT"))
  var limit = 50

  @OptionGroup var output: OutputOptions

  /// The output with `--json`.
  struct Result: Encodable, Sendable {
    var store: String
    var changeSets: [ChangeSet]
  }

  /// A change set of the history.
  struct ChangeSet: Encodable, Sendable {
    var client: String
    var clientName: String?
    var isOwn: Bool
    var number: UInt64
    var hash: String
    var rowCount: Int
    /// When this device made or applied it, in milliseconds since 1970.
    var appliedMilliseconds: Int64
  }

  func validate() throws {
    guard limit > 0 else { throw ValidationError("--limit must be 1 or more.") }
  }

  func perform(_ console: Console) async throws -> Outcome {
    try await arguments.withManager { manager in
      let history = try await manager.history(limit: limit)
      let names = await ClientNames(manager)
      let own = manager.binding.client
      let result = Result(
        store: arguments.store,
        changeSets: history.map { set in
          ChangeSet(
            client: set.client.description, clientName: names.name(set.client),
            isOwn: set.client == own, number: set.number, hash: set.hash.description,
            rowCount: set.rowCount, appliedMilliseconds: set.milliseconds)
        })
      let lines = alignedLines(
        history.map { set in
          [
            timeText(set.milliseconds), names.reference(set.client, set.number),
            counted(set.rowCount, "row"),
            set.client == own ? "made here" : "by \(names.label(set.client))",
          ]
        })
      return Outcome(
        json: result,
        lines: lines.isEmpty ? ["No change sets yet."] : lines)
    }
  }
}
