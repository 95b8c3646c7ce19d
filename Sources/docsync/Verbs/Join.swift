import ArgumentParser
import DocumentSync
import SyncDirectory
import SyncStore

/// `docsync join`
struct Join: Verb {
  static let configuration = CommandConfiguration(
    abstract: "Get a document that is in the directory as a database on this device.",
    discussion: """
      Downloads the whole database, puts it at STORE under sync, and synchronizes for the \
      first time. A file that is at STORE already is left alone, unless --replace or --merge is \
      given.

      --replace keeps the file beside the new one as a backup. If it is a store of the same \
      document, what it had not sent is sent by the new one, which takes the place of its \
      client. The tables that stay on the device are in the backup alone.

      --merge takes the rows of that file along, which must have the document's columns: rows \
      that the document does not have are sent to all devices, those that it has with the same \
      values are left alone, and where values differ the document's stand, or with --prefer local \
      those of the file. What does not stand is listed by “docsync conflicts”, and can be put back.
      """)

  @Argument(help: "Where the database is to be.", completion: .file())
  var store: String

  @Option(help: ArgumentHelp("The shared directory.", valueName: "DIR"), completion: .directory)
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

  @Flag(help: "Merge the rows of the file that is at STORE, and keep it as with --replace.")
  var merge = false

  @Option(
    help: ArgumentHelp(
      "With --merge, whose values stand where a row differs: document or local.",
      valueName: "SIDE"))
  var prefer: MergedRows.Preference?

  @OptionGroup var output: OutputOptions

  /// The output with `--json`.
  struct Result: Encodable, Sendable {
    var store: String
    var directory: String
    var document: String
    var application: String
    var client: String
    var rowCount: Int
    /// The new path of the file that was replaced.
    var backup: String?
    /// The outcome of merging its rows.
    var merged: MergedRows?
    /// The store that it was, if it was under sync and was replaced.
    var replaced: ReplacedStore?
  }

  func validate() throws {
    if merge, replace { throw ValidationError("Give --merge or --replace, not both.") }
    if prefer != nil, !merge { throw ValidationError("--prefer goes with --merge.") }
  }

  private var existing: ExistingFile {
    if merge { return .merge(prefer: prefer ?? .document) }
    return replace ? .replaceKeepingBackup : .refuse
  }

  func perform(_ console: Console) async throws -> Outcome {
    let bar = ProgressBar(on: console)
    defer { bar.clear() }
    let manager = try await DocumentSyncManager.join(
      storeAt: store, directory: FolderDirectory(root: directory), document: document,
      existing: existing, options: .init(application: application, client: client),
      onProgress: bar.handler)
    let binding = manager.binding
    let digest = try await manager.digest()
    try await manager.close()
    bar.clear()
    let result = Result(
      store: store, directory: directory, document: binding.documentIdentifier,
      application: binding.application, client: binding.client.description,
      rowCount: digest.rowCount, backup: manager.backup, merged: manager.merged,
      replaced: manager.replaced)
    var lines = [
      "\(store) is the document “\(result.document)” of \(directory), with "
        + "\(counted(result.rowCount, "row"))."
    ]
    if let backup = result.backup { lines.append("The file that was there is now \(backup).") }
    if let line = result.replaced?.line { lines.append(line) }
    if let merged = result.merged {
      lines += merged.lines
      if merged.refusedRows + merged.differingRows > 0 {
        lines.append("What did not stand is listed by “docsync conflicts \(shellWord(store))”.")
      }
    }
    lines += ["", "Next, whenever something changed:", "  docsync sync \(shellWord(store))"]
    return Outcome(json: result, text: lines.joined(separator: "\n"))
  }
}

extension ReplacedStore {
  /// The fate of the edits that it had not sent.
  fileprivate var line: String? {
    if let unreadable {
      return
        "It was under sync and could not be read: \(unreadable) What it had not sent is in that "
        + "file alone; “docsync clients” tells which device to retire."
    }
    let unsent = counted(unsentChangeSets, "change set")
    guard !isSameDocument else {
      return unsentChangeSets > 0 ? "What it had not sent was taken along: \(unsent)." : nil
    }
    return
      "It was a store of the document “\(printable(document ?? ""))” in \(directory ?? ""), whose "
      + "devices go on waiting for it"
      + (unsentChangeSets > 0 ? ", and had not sent \(unsent)" : "")
      + ". It is whole: synchronize it under its new name, and take it out of sync with “docsync "
      + "leave” if you do not need it."
  }
}

extension MergedRows.Preference: ExpressibleByArgument {}
