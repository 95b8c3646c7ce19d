import ArgumentParser
import DocumentSync
import SyncModel

/// `docsync retire`
struct Retire: StoreVerb {
  static let configuration = CommandConfiguration(
    abstract: "Stop waiting for inactive devices.",
    discussion: """
      Files that all devices have applied are removed; a device that never returns prevents \
      this. If a retired device returns, it continues, perhaps as a new device; none of its \
      edits are lost.
      """
        + examples(
          "docsync retire notes.db --client phone", "docsync retire notes.db --not-seen 90"))

  @OptionGroup var arguments: StoreArguments

  @Option(
    help: ArgumentHelp(
      "The device to retire: its name, its identifier, or the beginning of that.",
      valueName: "CLIENT"))
  var client: String?

  @Option(
    help: ArgumentHelp(
      "Retire all devices of which this one has seen nothing for so many days.",
      valueName: "DAYS"))
  var notSeen: Int?

  @OptionGroup var output: OutputOptions

  /// The output with `--json`.
  struct Result: Encodable, Sendable {
    var store: String
    var retired: [String]
  }

  func validate() throws {
    guard (client == nil) != (notSeen == nil) else {
      throw ValidationError("Name one device with --client, or a time with --not-seen.")
    }
    if let notSeen, !(1...36_500).contains(notSeen) {
      throw ValidationError("--not-seen takes a number of days from 1 to 36500.")
    }
  }

  func perform(_ console: Console) async throws -> Outcome {
    try await arguments.withManager { manager in
      let selection: RetirementSelection
      if let client {
        let only = try ClientChoice.choose(
          client, among: await manager.listClients(), store: arguments.store)
        selection = .client(only.client, .absent)
      } else {
        selection = .notSeen(for: .seconds(Int64(notSeen ?? 0) * 24 * 60 * 60))
      }
      let names = await ClientNames(manager)
      let bar = ProgressBar(on: console)
      defer { bar.clear() }
      let retired = try await manager.retire(selection, onProgress: bar.handler)
      bar.clear()
      let lines = retired.map { "Retired \(names.label($0))." }
      return Outcome(
        json: Result(store: arguments.store, retired: retired.map(\.description)),
        lines: lines.isEmpty ? ["No device to retire."] : lines)
    }
  }
}
