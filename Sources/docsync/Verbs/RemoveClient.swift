import ArgumentParser
import DocumentSync
import SyncModel

/// `docsync remove-client`
struct RemoveClient: Verb {
  static let configuration = CommandConfiguration(
    commandName: "remove-client",
    abstract: "Remove another device from a document: the others stop waiting for it.",
    discussion: """
      What the device has sent stays. Should it return, it is told, and goes on as a new \
      device; what it had not sent arrives then.

      CLIENT is an identifier from “docsync clients”, the beginning of one, or a name that only \
      one device has.
      """)

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
      let client = try Self.choose(client, among: clients, store: arguments.store)
      guard client.client != manager.binding.client else {
        throw Failure(
          code: SyncError.Code.clientMissing.rawValue,
          message: "This is the device of the database itself.", path: arguments.store,
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
        text: "\(label) is removed.")
    }
  }

  private static func lines(_ client: ClientDescription) -> [String] {
    var lines: [String] = []
    if let state = client.state {
      lines.append("its \(counted(Int(state.changeHead), "change set")) stay")
      if let time = state.milliseconds { lines.append("it synchronized last " + timeText(time)) }
      if let lag = client.lag, lag > 0 {
        lines.append("it lacks \(counted(Int(lag), "change set"))")
      }
    } else {
      lines.append("it has never synchronized")
    }
    lines.append("what it has not sent arrives if it returns, from a new device")
    return lines
  }

  /// The client with that identifier, beginning of an identifier, or name.
  private static func choose(
    _ text: String, among clients: [ClientDescription], store: String
  ) throws -> ClientDescription {
    let exact = clients.filter { $0.client.description == text }
    let named = clients.filter { $0.description == text }
    let beginning = clients.filter { $0.client.description.hasPrefix(text) }
    let found = [exact, named, beginning].first { !$0.isEmpty } ?? []
    guard let only = found.first else {
      throw Failure(
        code: "noSuchClient", message: "There is no device “\(printable(text))”.", path: store,
        remedy: "See “docsync clients”, and name one of them.")
    }
    guard found.count == 1 else {
      throw Failure(
        code: "ambiguousClient",
        message: "“\(printable(text))” is the name or the beginning of several devices.",
        path: store, remedy: "Give more of the identifier; “docsync clients” has them.")
    }
    return only
  }
}
