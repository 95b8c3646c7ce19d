import ArgumentParser
import DocumentSync
import SyncDirectory

/// `docsync join`
struct Join: Verb {
  static let configuration = CommandConfiguration(
    abstract: "Get a document that is in the directory as a database on this device.",
    discussion: """
      Downloads the whole database, puts it at STORE under sync, and synchronizes for the \
      first time. A file that is at STORE already is left alone, unless --replace is given.
      """)

  @Argument(help: "Where the database is to be.")
  var store: String

  @Option(help: ArgumentHelp("The shared directory.", valueName: "DIR"))
  var directory: String

  @Option(
    help: ArgumentHelp("The document (default: the only one in the directory).", valueName: "ID"))
  var document: String?

  @Option(
    help: ArgumentHelp(
      "The application that the directory must belong to (default: any).", valueName: "ID"))
  var application: String?

  @Option(
    help: ArgumentHelp("What to call this device (default: its host name).", valueName: "NAME"))
  var client: String?

  @Flag(help: "Replace the file that is at STORE, and keep it beside the new one as a backup.")
  var replace = false

  @Flag(help: "Merge what is in STORE already; not possible yet.")
  var merge = false

  @OptionGroup var output: OutputOptions

  /// What is printed with `--json`.
  struct Result: Encodable, Sendable {
    var store: String
    var directory: String
    var document: String
    var application: String
    var client: String
    var rowCount: Int
    /// Where the file is that was replaced.
    var backup: String?
  }

  func validate() throws {
    guard !merge else {
      throw ValidationError(
        "--merge is not possible yet: a database that has rows of its own cannot join. "
          + "Join under another path, or give --replace.")
    }
  }

  func perform(_ console: Console) async throws -> Outcome {
    let bar = ProgressBar()
    defer { bar.clear() }
    let manager = try await DocumentSyncManager.join(
      storeAt: store, directory: FolderDirectory(root: directory), document: document,
      application: application, client: client,
      existing: replace ? .replaceKeepingBackup : .refuse, onProgress: bar.handler)
    let binding = manager.binding
    let digest = try manager.store.digest()
    try await manager.close()
    bar.clear()
    let result = Result(
      store: store, directory: directory, document: binding.documentIdentifier,
      application: binding.application, client: binding.client.description,
      rowCount: digest.rowCount, backup: manager.backup)
    var lines = [
      "\(store) is the document “\(result.document)” of \(directory), with "
        + "\(counted(result.rowCount, "row"))."
    ]
    if let backup = result.backup { lines.append("The file that was there is now \(backup).") }
    lines += ["", "Next, whenever something changed:", "  docsync sync \(shellWord(store))"]
    return Outcome(json: result, text: lines.joined(separator: "\n"))
  }
}
