import ArgumentParser
import DocumentSync
import SyncModel

/// `docsync remove-all`
struct RemoveAll: Verb {
  static let configuration = CommandConfiguration(
    commandName: "remove-all",
    abstract: "Remove everything that is synchronized through a directory.",
    discussion: """
      Deletes every document as “docsync delete-document” does, then the descriptions of the \
      devices, and last the file of the application. Databases on the devices stay as they are. \
      The notes that tell the devices stay, and so do files that do not belong to DocumentSync; \
      the command lists these.

      If the command is interrupted, run it again to complete it.
      """ + examples("docsync remove-all --directory ~/Dropbox/DocumentSync"))

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
    let preview = try await manager.removeAll(
      by: client, described: options.client, preview: true, onProgress: bar.handler)
    bar.clear()
    try await confirmation.ask(
      "This removes everything that is synchronized through \(options.directory.path).",
      Self.lines(preview), path: options.directory.path, console)
    let removal = ProgressBar(on: console)
    defer { removal.clear() }
    let report = try await manager.removeAll(
      by: client, described: options.client, onProgress: removal.handler)
    removal.clear()
    let lines =
      [
        "Removed \(counted(report.documents.count, "document")) and "
          + "\(counted(report.clients.count, "device")): \(report.sizeText)."
      ] + report.remainingLines
    return Outcome(
      json: Result(directory: options.directory.path, removed: RemovalJSON(report)),
      lines: lines)
  }

  private static func lines(_ preview: RemovalReport) -> [String] {
    let living = preview.documents.filter { !$0.isDeleted }
    var lines = ["\(preview.sizeText) will be removed"]
    if !living.isEmpty {
      lines.append(
        "\(counted(living.count, "document")): "
          + living.map { "“\(printable($0.identifier))”" }.joined(separator: ", "))
    }
    if !preview.clients.isEmpty {
      lines.append(
        "the descriptions of \(counted(preview.clients.count, "device")): "
          + preview.clients.map { client in
            client.description.isEmpty
              ? ClientNames.short(client.client) : printable(client.description)
          }.joined(separator: ", "))
    }
    return lines + preview.remainingLines
  }
}
