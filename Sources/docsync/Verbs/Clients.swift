import ArgumentParser
import DocumentSync
import SyncDirectory
import SyncModel

/// `docsync clients`
struct Clients: Verb {
  static let configuration = CommandConfiguration(
    abstract: "List the devices that share a document, or all of a shared directory.",
    discussion: examples(
      "docsync clients notes.db", "docsync clients --directory ~/Dropbox/DocumentSync"))

  @Argument(
    help: "A database file, to list the devices that share its document.", completion: .file())
  var store: String?

  @Option(
    help: ArgumentHelp(
      "The shared directory, to list all of its devices; with STORE, its present path.",
      valueName: "DIR"),
    completion: .directory)
  var directory: DirectoryPath?

  @OptionGroup var output: OutputOptions

  /// The output with `--json`.
  struct Result: Encodable, Sendable {
    var store: String?
    var directory: String
    /// The store's client.
    var client: String?
    var clients: [ClientJSON]
  }

  func validate() throws {
    guard store != nil || directory != nil else {
      throw ValidationError("Name a database file, or a shared directory with --directory.")
    }
  }

  var commandPlace: CommandPlace {
    CommandPlace(store: store, directory: directory?.path, isUnderSync: store != nil)
  }

  func perform(_ console: Console) async throws -> Outcome {
    let folder = directory?.directory
    let clients: [ClientDescription]
    var result: Result
    if let store {
      (clients, result) = try await withManager(store, directory: folder) { manager in
        (
          try await manager.listClients(),
          Result(
            store: store, directory: manager.directory.location,
            client: manager.binding.client.description, clients: [])
        )
      }
    } else {
      let folder = folder ?? DirectoryPath(argument: ".").directory
      let manager = ApplicationSyncManager(directory: folder)
      _ = try await manager.findApplication()
      clients = try await manager.listClients()
      result = Result(directory: folder.location, clients: [])
    }
    result.clients = clients.map(ClientJSON.init)
    let lines = alignedLines(clients.map { Self.cells($0, own: result.client) })
    return Outcome(
      json: result, lines: lines.isEmpty ? ["No devices yet."] : lines)
  }

  private static func cells(_ client: ClientDescription, own: String?) -> [String] {
    var name = client.description.isEmpty ? "(not known yet)" : printable(client.description)
    if client.client.description == own { name += " (this one)" }
    var cells = [
      ClientNames.short(client.client), name, printable(client.platform), status(client),
    ]
    if let state = client.state {
      cells.append(counted(Int(state.changeHead), "change set"))
      cells.append(lag(client))
      cells.append(state.milliseconds.map { "synced " + timeText($0) } ?? "")
    } else if let registered = client.registeredMilliseconds {
      cells.append("since " + timeText(registered))
    }
    if let ancestor = client.ancestor { cells.append("was \(ClientNames.short(ancestor))") }
    return cells
  }

  private static func status(_ client: ClientDescription) -> String {
    switch client.status {
    case .neverSynced: "not synced yet"
    case .member: "member"
    case .retired: "retired"
    case .removed:
      "removed" + (client.removal?.clientDescription.map { " by \(printable($0))" } ?? "")
    case .left: "left"
    }
  }

  /// Returns how many change sets a client lacks, according to its marker.
  private static func lag(_ client: ClientDescription) -> String {
    guard let lag = client.lag else { return "not readable yet" }
    return lag == 0 ? "has everything" : "lacks \(lag)"
  }
}
