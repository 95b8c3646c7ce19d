import ArgumentParser
import DocumentSync
import SyncDirectory

/// `docsync documents`
struct Documents: Verb {
  static let configuration = CommandConfiguration(
    abstract: "List the documents in a shared directory.",
    discussion: examples("docsync documents --directory ~/Dropbox/DocumentSync"))

  @Option(help: ArgumentHelp("The shared directory.", valueName: "DIR"), completion: .directory)
  var directory: DirectoryPath

  @Option(
    help: ArgumentHelp(
      "The application that the directory must belong to (default: any).", valueName: "ID"))
  var application: String?

  @OptionGroup var output: OutputOptions

  /// The output with `--json`.
  struct Result: Encodable, Sendable {
    var directory: String
    var documents: [DocumentJSON]
    /// The documents whose descriptions cannot be read.
    var unreadable: [UnreadableDocumentJSON]
  }

  var commandPlace: CommandPlace { CommandPlace(directory: directory.path) }

  func perform(_ console: Console) async throws -> Outcome {
    let manager = ApplicationSyncManager(
      directory: directory.directory, applicationIdentifier: application)
    let bar = ProgressBar(on: console)
    defer { bar.clear() }
    let documents = try await manager.listDocuments(measuring: true, onProgress: bar.handler)
    bar.clear()
    let unreadable = try await manager.listUnreadableDocuments()
    let result = Result(
      directory: directory.path, documents: documents.map(DocumentJSON.init),
      unreadable: unreadable.map(UnreadableDocumentJSON.init))
    let names = ClientNames(
      names: Dictionary(
        try await manager.listClients().filter { !$0.description.isEmpty }
          .map { ($0.client, $0.description) },
        uniquingKeysWith: { $1 }))
    var lines = alignedLines(documents.map { Self.cells($0, names) })
    for document in unreadable {
      lines += [
        "a\(document.isDeleted ? " deleted" : "") document that cannot be read: the file that "
          + "describes it is \(document.fault)",
        "  path: \(document.path)",
        "  next: \(DocumentDescription.Unreadable.remedy.commandText(at: commandPlace))",
      ]
    }
    return Outcome(
      json: result, lines: lines.isEmpty ? ["No documents yet."] : lines,
      status: unreadable.contains { !$0.isDeleted } ? .waiting : .done)
  }

  private static func cells(_ document: DocumentDescription, _ names: ClientNames) -> [String] {
    var history =
      "created \(timeText(document.createdMilliseconds)) by \(names.label(document.creator))"
    if let deletion = document.deletion {
      let who = deletion.clientDescription.map(printable) ?? names.label(deletion.client)
      history +=
        "; deleted" + (deletion.milliseconds.map { " " + timeText($0) } ?? "")
        + " by \(who)"
    } else if let time = document.contents?.lastSyncMilliseconds {
      history += "; synced " + timeText(time)
    }
    var identifier = printable(document.identifier)
    if document.description != document.identifier, !document.description.isEmpty {
      identifier += " (\(printable(document.description)))"
    }
    guard let contents = document.contents else { return [identifier, history] }
    return [
      identifier, counted(contents.clients.count, "device"),
      counted(contents.fileCount, "file"), byteText(contents.byteCount), history,
    ]
  }
}
