import ArgumentParser
import DocumentSync
import SyncDirectory
import SyncModel

/// `docsync clients`
struct Clients: Verb {
  static let configuration = CommandConfiguration(
    abstract: "List the devices that share a document, or all of a shared directory.")

  @Argument(help: "The database file, for the devices that share its document.")
  var store: String?

  @Option(
    help: ArgumentHelp(
      "The shared directory, for all devices; with STORE, where it is now.", valueName: "DIR"))
  var directory: String?

  @OptionGroup var output: OutputOptions

  /// What is printed with `--json`.
  struct Result: Encodable, Sendable {
    var store: String?
    var directory: String
    /// The client that the store is.
    var own: String?
    var clients: [ClientDescription]
  }

  func validate() throws {
    guard store != nil || directory != nil else {
      throw ValidationError("Name a database file, or a shared directory with --directory.")
    }
  }

  func perform(_ console: Console) async throws -> Outcome {
    let folder = directory.map(FolderDirectory.init(root:))
    let result: Result
    if let store {
      result = try await withManager(store, directory: folder) { manager in
        Result(
          store: store, directory: manager.directory.location,
          own: manager.binding.client.description, clients: try await manager.listClients())
      }
    } else {
      let folder = folder ?? FolderDirectory(root: ".")
      result = Result(
        directory: folder.location,
        clients: try await ApplicationSyncManager(directory: folder).listClients())
    }
    let lines = alignedLines(result.clients.map { Self.cells($0, in: result) })
    return Outcome(
      json: result, text: lines.isEmpty ? "No devices yet." : lines.joined(separator: "\n"))
  }

  private static func cells(_ client: ClientDescription, in result: Result) -> [String] {
    let name = client.description.isEmpty ? "(not known yet)" : printable(client.description)
    var cells = [ClientNames.short(client.client), name]
    if let state = client.state {
      cells.append(counted(Int(state.changeHead), "change set"))
      cells.append(lack(client.client, state, of: result.clients))
      cells.append(state.milliseconds.map { "synced " + timeText($0) } ?? "")
    } else if let registered = client.registeredMilliseconds {
      cells.append("since " + timeText(registered))
    }
    if client.client.description == result.own { cells[1] += " (this one)" }
    return cells
  }

  /// How far a client is behind the others, as far as its marker tells.
  private static func lack(
    _ client: ClientIdentifier, _ state: ClientDescription.State, of all: [ClientDescription]
  ) -> String {
    guard let applied = state.applied else { return "not readable yet" }
    let count = all.reduce(UInt64(0)) { sum, other in
      guard other.client != client, let head = other.state?.changeHead else { return sum }
      let number = applied.number(of: other.client)
      return sum + (head > number ? head - number : 0)
    }
    return count == 0 ? "has everything" : "lacks \(count)"
  }
}
