import ArgumentParser
import DocumentSync
import SyncDirectory
import SyncStore

/// `docsync join`
struct Join: Verb {
  static let configuration = CommandConfiguration(
    abstract: "Fetch a document from the directory, as a database on this device.",
    discussion: """
      Downloads the whole database to STORE, puts it under sync, and synchronizes for the first \
      time. If a file exists at STORE, the command fails, unless you give --replace or --merge.

      --replace keeps a copy of the existing database as a backup. If it is a store of the \
      same document, the new store sends its unsent edits and takes the place of its client. \
      Tables that stay on the device are only in the backup.

      --merge adds the rows of the existing file, which must have the document's columns. Rows \
      that the document does not have are sent to all devices. Where values differ, the \
      document's are kept, or with --prefer local those of the file. “docsync conflicts” lists \
      the values that were not kept, and can restore them.

      --policy says what this device does if its own edit meets one of another device, such as \
      --policy notes.text=resolve:mergeText. “docsync conflicts --help” names all policies.
      """
        + examples(
          "docsync join notes.db --directory ~/Dropbox/DocumentSync",
          "docsync join notes.db --directory ~/Dropbox/DocumentSync --merge"))

  @Argument(help: "The path of the database to create.", completion: .file())
  var store: String

  @Option(help: ArgumentHelp("The shared directory.", valueName: "DIR"), completion: .directory)
  var directory: DirectoryPath

  @Option(
    help: ArgumentHelp("The document (default: the only one in the directory).", valueName: "ID"))
  var document: String?

  @Option(
    help: ArgumentHelp(
      "The application that the directory must belong to (default: any).", valueName: "ID"))
  var application: String?

  @Option(
    help: ArgumentHelp("This device's name (default: its host name).", valueName: "NAME"))
  var client: String?

  @Flag(help: "Replace the database that is at STORE, and keep a copy of it as a backup.")
  var replace = false

  @Flag(help: "Merge the rows of the database that is at STORE, and keep a copy as with --replace.")
  var merge = false

  @Option(
    help: ArgumentHelp(
      "With --merge, whose values to keep where a row differs: document or local.",
      valueName: "SIDE"))
  var prefer: MergedRows.Preference?

  @OptionGroup var policy: PolicyOptions

  @OptionGroup var output: OutputOptions

  /// The output with `--json`.
  struct Result: Encodable, Sendable {
    var store: String
    var directory: String
    var document: String
    var application: String
    var client: String
    var rowCount: Int
    /// The path of the backup of the database that was there.
    var backup: String?
    /// The outcome of merging the rows of the existing file.
    var merged: MergedRowsJSON?
    /// The store that the command has replaced, if it was under sync.
    var replaced: ReplacedStoreJSON?
    /// The change sets and commands that cannot be applied yet.
    var waiting: [WaitJSON]
    var openConflicts: Int
    /// How many rows are hidden.
    var parkedCount: Int
    /// How many rows have NULL in their key, by table; `nil` if there are none.
    var rowsWithoutKey: NamedValues<Int>?
    /// What is wrong with the permissions of the directory; `nil` if nothing is.
    var findings: [FindingJSON]?
  }

  func validate() throws {
    if merge, replace { throw ValidationError("Give --merge or --replace, not both.") }
    if prefer != nil, !merge { throw ValidationError("--prefer goes with --merge.") }
  }

  var commandPlace: CommandPlace {
    CommandPlace(store: store, directory: directory.path, document: document)
  }

  private var existing: ExistingFile {
    if merge { return .merge(prefer: prefer ?? .document) }
    return replace ? .replaceKeepingBackup : .refuse
  }

  func perform(_ console: Console) async throws -> Outcome {
    do {
      return try await join(console)
    } catch {
      throw explained(error)
    }
  }

  /// Returns the failure. If joining was interrupted and the database is there, the next
  /// synchronization goes on, and joining again would be refused.
  private func explained(_ error: any Error) -> Failure {
    var failure = Failure(error).at(commandPlace)
    if failure.code == SyncError.Code.policyUnsuitable.rawValue {
      let store = shellWord(store)
      failure.remedy =
        "The database is there, without these policies. Set others with “docsync conflicts \(store) policy”, "
        + "then continue with “docsync sync \(store)”."
    }
    // With --merge or --replace, the database under sync may be the former one.
    guard failure.code == SyncError.Code.cancelled.rawValue, existing == .refuse else {
      return failure
    }
    do {
      if try DocumentSyncManager.isUnderSync(storeAt: store) {
        failure.remedy = "Nothing is lost. To go on: “docsync sync \(shellWord(store))”."
      }
    } catch {
      // There is no database yet, so the same command begins again.
    }
    return failure
  }

  private func join(_ console: Console) async throws -> Outcome {
    let bar = ProgressBar(on: console)
    defer { bar.clear() }
    let manager = try await DocumentSyncManager.join(
      storeAt: store, directory: directory.directory, document: document,
      existing: existing,
      options: .init(application: application, client: client, policies: try policy.policies()),
      onProgress: bar.handler)
    let binding = manager.binding
    let rowCount = try await manager.rowCount()
    let status = try await manager.status()
    let withoutKey = manager.merged == nil ? [:] : status.rowsWithoutKey
    let unsettled = Unsettled(
      waits: try await manager.waits(), openConflicts: status.openConflicts,
      parked: status.parked)
    let names = unsettled.waits.isEmpty ? ClientNames() : await ClientNames(manager)
    let closed = try await ApplicationSyncManager(
      directory: manager.directory, applicationIdentifier: application
    ).findClosedFolders()
    try await manager.close()
    bar.clear()
    let result = Result(
      store: store, directory: directory.path, document: binding.documentIdentifier,
      application: binding.application, client: binding.client.description,
      rowCount: rowCount, backup: manager.backup,
      merged: manager.merged.map(MergedRowsJSON.init),
      replaced: manager.replaced.map(ReplacedStoreJSON.init),
      waiting: unsettled.waits.map { WaitJSON($0) }, openConflicts: unsettled.openConflicts,
      parkedCount: unsettled.parked.count,
      rowsWithoutKey: withoutKey.isEmpty ? nil : NamedValues(withoutKey),
      findings: closed.map { [FindingJSON($0, at: commandPlace)] })
    var lines = [
      "\(store) is the document “\(result.document)” of \(directory), with "
        + "\(counted(result.rowCount, "row"))."
    ]
    if let backup = result.backup { lines.append("The former database is kept as \(backup).") }
    if let line = manager.replaced?.line(store: store, backup: result.backup) { lines.append(line) }
    if let merged = manager.merged {
      lines += merged.lines
      if merged.refusedRows + merged.differingRows > 0 {
        lines.append("Values that were not kept: docsync conflicts \(shellWord(store))")
      }
    }
    lines += rowsWithoutKeyLines(withoutKey)
    lines += unsettled.lines(store: store, names)
    lines += closed?.lines(at: commandPlace) ?? []
    lines += ["", "Next, after every change:", "  docsync sync \(shellWord(store))"]
    return Outcome(json: result, lines: lines, status: unsettled.status)
  }
}

extension ReplacedStore {
  /// What becomes of the edits that the store had not sent; `nil` if nothing need be reported.
  fileprivate func line(store: String, backup: String?) -> String? {
    if let unreadable {
      return
        "That file was under sync and could not be read: \(unreadable) Edits that it had not sent are only "
        + "in that file. List the devices to retire with “docsync clients \(shellWord(store))”."
    }
    let unsent = counted(unsentChangeSets, "change set")
    guard !isSameDocument else {
      let lines = [
        unsentChangeSets > 0 ? "Its edits that were not sent were added: \(unsent)." : nil,
        restoredChangeSets > 0
          ? "The directory lacked what that database had sent; it was put back: "
            + "\(counted(restoredChangeSets, "change set"))."
          : nil,
        missingLine(backup),
        heldEdits > 0
          ? "That file alone has what was too large to be sent: \(counted(heldEdits, "edit"))."
          : nil,
      ].compactMap(\.self)
      return lines.isEmpty ? nil : lines.joined(separator: " ")
    }
    return
      "That file belonged to the document “\(printable(document ?? ""))” in \(directory ?? ""), whose "
      + "devices keep waiting for it"
      + (unsentChangeSets > 0 ? ", and had not sent \(unsent)" : "")
      + ". It is unchanged: synchronize it under its new name, and take it out of sync with “docsync "
      + "leave \(backup.map(shellWord) ?? "STORE")” if you do not need it."
  }
}

extension ReplacedStore {
  /// Names the change sets that are lost; `nil` if none is.
  fileprivate func missingLine(_ backup: String?) -> String? {
    guard !missingChangeSets.isEmpty, let client else { return nil }
    let isOne = missingChangeSets.count == 1
    return
      "warning: The directory has lost \(isOne ? "change set" : "change sets") "
      + "\(rangesText(missingChangeSets)) of \(client), which that database had sent. "
      + "\(backup ?? "The former database") has their rows; other devices may have them, too."
  }
}

/// Returns numbers in order as text, such as “1–3, 5”.
private func rangesText(_ numbers: [UInt64]) -> String {
  var ranges: [ClosedRange<UInt64>] = []
  for number in numbers {
    if let last = ranges.last, last.upperBound + 1 == number {
      ranges[ranges.count - 1] = last.lowerBound...number
    } else {
      ranges.append(number...number)
    }
  }
  return ranges.map {
    $0.count == 1 ? "\($0.lowerBound)" : "\($0.lowerBound)–\($0.upperBound)"
  }.joined(separator: ", ")
}

extension MergedRows.Preference: ExpressibleByArgument {}
