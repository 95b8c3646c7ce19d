import ArgumentParser
import DocumentSync
import SyncModel

/// `docsync delete-document`
struct DeleteDocument: Verb {
  static let configuration = CommandConfiguration(
    commandName: "delete-document",
    abstract: "Delete a document from a shared directory.",
    discussion: """
      Removes its files, of all devices, and leaves a note that tells the devices who deleted \
      the document and when. Their databases stay as they are, with all edits; each of them can \
      create the document again, or leave.

      If the command is interrupted, run it again to complete it.
      """ + examples("docsync delete-document notes --directory ~/Dropbox/DocumentSync"))

  @Argument(help: "The document.")
  var document: String

  @OptionGroup var options: RemovalOptions
  @OptionGroup var confirmation: ConfirmationOptions
  @OptionGroup var output: OutputOptions

  /// The output with `--json`.
  struct Result: Encodable, Sendable {
    var directory: String
    var removed: RemovalJSON
  }

  var commandPlace: CommandPlace { CommandPlace(directory: options.directory.path) }

  func perform(_ console: Console) async throws -> Outcome {
    let (manager, client) = (options.manager, ClientIdentifier.random())
    let bar = ProgressBar(on: console)
    defer { bar.clear() }
    let preview = try await manager.deleteDocument(
      document, by: client, described: options.client, preview: true, onProgress: bar.handler)
    bar.clear()
    try await confirmation.ask(
      "This deletes the document “\(printable(document))” in \(options.directory.path).",
      Self.lines(preview, try await manager.listClients()), path: options.directory.path, console)
    let removal = ProgressBar(on: console)
    defer { removal.clear() }
    let report = try await manager.deleteDocument(
      document, by: client, described: options.client, onProgress: removal.handler)
    removal.clear()
    let lines = ["Deleted “\(printable(document))”: \(report.sizeText)."] + report.remainingLines
    return Outcome(
      json: Result(directory: options.directory.path, removed: RemovalJSON(report)),
      lines: lines)
  }

  private static func lines(
    _ preview: RemovalReport, _ clients: [ClientDescription]
  ) -> [String] {
    var lines: [String] = []
    if let deletion = preview.documents.first?.deletion {
      let who = deletion.clientDescription.map { " on “\(printable($0))”" } ?? ""
      lines.append("it was deleted before\(who); the rest of it will be removed")
    }
    lines.append("\(preview.sizeText) will be removed")
    let name = preview.documents.first?.name
    let sharing = clients.filter { $0.status == .member && $0.document == name }
    if !sharing.isEmpty {
      let names = ClientNames(
        names: Dictionary(
          sharing.filter { !$0.description.isEmpty }.map { ($0.client, $0.description) },
          uniquingKeysWith: { $1 }))
      lines.append(
        "\(counted(sharing.count, "device")) will be notified and keep "
          + (sharing.count == 1 ? "its database: " : "their databases: ")
          + sharing.map { names.label($0.client) }.joined(separator: ", "))
    }
    return lines + preview.remainingLines
  }
}
