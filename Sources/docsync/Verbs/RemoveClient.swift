import ArgumentParser
import DocumentSync
import SyncModel

/// `docsync remove-client`
struct RemoveClient: StoreVerb {
  static let configuration = CommandConfiguration(
    commandName: "remove-client",
    abstract: "Remove another device from a document: the others stop waiting for it.",
    discussion: """
      The edits that the device has sent stay. If the device returns, it is told, and continues \
      as a new device; its unsent edits arrive then.

      CLIENT is an identifier from “docsync clients”, the beginning of one, or a unique name.
      """ + examples("docsync remove-client notes.db phone"))

  @OptionGroup var arguments: StoreArguments

  @Argument(help: "The device.")
  var client: String

  @OptionGroup var confirmation: ConfirmationOptions
  @OptionGroup var output: OutputOptions

  /// The output with `--json`.
  struct Result: Encodable, Sendable {
    var store: String
    var document: String
    var removed: ClientJSON
  }

  func perform(_ console: Console) async throws -> Outcome {
    try await arguments.withManager { manager in
      let clients = try await manager.listClients()
      let client = try ClientChoice.choose(client, among: clients, store: arguments.store)
      guard client.client != manager.binding.client else {
        throw Failure(
          code: SyncError.Code.clientMissing.rawValue,
          message: "This is the device that you are using.", path: arguments.store,
          remedy: "Take it out of sync with “docsync leave \(shellWord(arguments.store))” instead.")
      }
      let name = client.description.isEmpty ? "the device" : "“\(printable(client.description))”"
      let label = "\(name) (\(ClientNames.short(client.client)))"
      try await confirmation.ask(
        "This removes \(label) from the document "
          + "“\(printable(manager.binding.documentIdentifier))”.",
        Self.lines(client), path: manager.directory.location, console)
      let bar = ProgressBar(on: console)
      defer { bar.clear() }
      let removed = try await manager.removeClient(client.client, onProgress: bar.handler)
      bar.clear()
      return Outcome(
        json: Result(
          store: arguments.store, document: manager.binding.documentIdentifier,
          removed: ClientJSON(removed)),
        lines: ["\(label) is removed."])
    }
  }

  private static func lines(_ client: ClientDescription) -> [String] {
    var lines: [String] = []
    if let state = client.state {
      lines.append("its \(counted(Int(state.changeHead), "change set")) stay")
      if let time = state.milliseconds { lines.append("last synchronized " + timeText(time)) }
      if let lag = client.lag, lag > 0 {
        lines.append("it lacks \(counted(Int(lag), "change set"))")
      }
    } else {
      lines.append("it has not synchronized since the document began or was reset")
    }
    lines.append("if it returns, it sends its edits as a new device")
    return lines
  }
}
