import ArgumentParser
import DocumentSync
import Foundation
import SyncModel

/// `docsync reset`
struct Reset: StoreVerb {
  static let configuration = CommandConfiguration(
    abstract: "Start the document again from this database.",
    discussion: """
      For a shared directory that is damaged beyond repair, or to delete the history. All other \
      devices take over this database; their edits that it does not have are added. The command \
      lists these devices before it asks.
      """ + examples("docsync reset notes.db"))

  @OptionGroup var arguments: StoreArguments

  @OptionGroup var confirmation: ConfirmationOptions
  @OptionGroup var output: OutputOptions

  /// The output with `--json`.
  struct Result: Encodable, Sendable {
    var store: String
    var document: String
    var generation: String
    var ordinal: Int
    /// The devices that have to take over the new generation.
    var clients: [String]
  }

  func perform(_ console: Console) async throws -> Outcome {
    try await arguments.withManager { manager in
      // If a reset was interrupted, the user has already allowed it.
      var members: [ClientDescription] = []
      if try await manager.isSetUp() { members = try await confirm(manager, console) }
      let bar = ProgressBar(on: console)
      defer { bar.clear() }
      let binding = try await manager.reset(onProgress: bar.handler)
      bar.clear()
      let document = binding.documentIdentifier
      var text =
        "“\(printable(document))” begins again, as generation \(binding.generationOrdinal), "
        + "from \(arguments.store)."
      if !members.isEmpty {
        let count = counted(members.count, "device")
        text +=
          " \(count) \(members.count == 1 ? "takes" : "take") over its database at the next sync."
      }
      return Outcome(
        json: Result(
          store: arguments.store, document: document, generation: "\(binding.generation)",
          ordinal: binding.generationOrdinal, clients: members.map(\.client.description)),
        lines: [text])
    }
  }

  /// Asks the user; returns the devices that have to take over the new generation.
  private func confirm(
    _ manager: DocumentSyncManager, _ console: Console
  ) async throws -> [ClientDescription] {
    let members = try await manager.listClients().filter {
      $0.status == .member && $0.client != manager.binding.client
    }
    let document = printable(manager.binding.documentIdentifier)
    try await confirmation.ask(
      "This starts the document “\(document)” again, from \(arguments.store).",
      try await lines(manager, members), path: manager.directory.location, console)
    return members
  }

  /// Returns lines about the devices that have to take over the new generation, and the
  /// consequences of the reset.
  private func lines(
    _ manager: DocumentSyncManager, _ members: [ClientDescription]
  ) async throws -> [String] {
    var lines: [String] = []
    if members.isEmpty {
      lines.append("no other device shares it")
    } else {
      let size = try FileManager.default.attributesOfItem(atPath: arguments.store)[.size]
      let count = counted(members.count, "device")
      let bytes = byteText((size as? NSNumber)?.intValue ?? 0)
      lines.append(
        "\(count) will have to download it again, \(bytes) before compression, and "
          + "\(members.count == 1 ? "brings" : "bring") along what was edited there:")
      lines += members.map { "  " + Self.line($0) }
    }
    let status = try await manager.status()
    if status.unsealedEdits > 0 || status.unpublishedChangeSets > 0 {
      lines.append("edits of this device that are not sent yet will be sent first")
    }
    let whole =
      members.isEmpty
      ? "its history will be deleted" : "its history will be deleted, when all of them have"
    do {
      let documents = try await ApplicationSyncManager(
        directory: manager.directory, environment: manager.environment
      ).listDocuments(measuring: true)
      if let contents = documents.first(where: { $0.name == manager.binding.document })?.contents {
        lines.append(
          "\(whole): up to \(counted(contents.fileCount, "file")), \(byteText(contents.byteCount))")
      }
    } catch let error as SyncError {
      // The directory may be damaged, which may be the reason for the reset.
      lines.append("\(whole); its size is unknown: \(error.message)")
    }
    return lines + ["this device goes on as a new one; no row of this database changes"]
  }

  private static func line(_ client: ClientDescription) -> String {
    let name = client.description.isEmpty ? "(not known yet)" : printable(client.description)
    var line = "\(name) (\(ClientNames.short(client.client)))"
    if let time = client.state?.milliseconds { line += ", synced last " + timeText(time) }
    return line
  }
}
