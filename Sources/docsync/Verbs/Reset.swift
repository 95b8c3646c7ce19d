import ArgumentParser
import DocumentSync

/// `docsync reset`
struct Reset: Verb {
  static let configuration = CommandConfiguration(
    abstract: "Begin the document anew from this database.",
    discussion: """
      For a shared directory that is damaged beyond repair, or a history that is to go. All \
      other devices take over what this database has; what was edited on them and is not in it \
      comes along.
      """)

  @OptionGroup var arguments: StoreArguments

  @Flag(help: "Do it: every device of the document takes over this database.")
  var yes = false

  @OptionGroup var output: OutputOptions

  /// What is printed with `--json`.
  struct Result: Encodable, Sendable {
    var store: String
    var document: String
    var generation: String
    var ordinal: Int
  }

  func perform(_ console: Console) async throws -> Outcome {
    try await arguments.withManager { manager in
      let document = manager.binding.documentIdentifier
      guard yes else {
        throw SyncError(
          .confirmationNeeded, operation: "begin the document anew", path: arguments.store,
          message: "Every device that shares “\(printable(document))” would take over this "
            + "database; nothing was changed.",
          remedy: "Say --yes if that is meant.")
      }
      let bar = ProgressBar()
      defer { bar.clear() }
      let binding = try await manager.reset(onProgress: bar.handler)
      bar.clear()
      return Outcome(
        json: Result(
          store: arguments.store, document: document, generation: "\(binding.generation)",
          ordinal: binding.generationOrdinal),
        text: "“\(printable(document))” begins anew, as generation \(binding.generationOrdinal), "
          + "with what \(arguments.store) has.")
    }
  }
}
