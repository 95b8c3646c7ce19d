import ArgumentParser
import DocumentSync
import SyncDirectory
import SyncModel
import SyncStore

/// `docsync init`
struct Init: Verb {
  static let configuration = CommandConfiguration(
    abstract: "Put a database under sync as a new document.",
    discussion: """
      Adds bookkeeping tables (docsync_…) and triggers to the database, and uploads it to the \
      shared directory, for other devices to join. Your tables, columns and rows stay as they are.

      Give docsync a folder of its own: the directory should be empty, or have been used by docsync \
      before. The database must not be inside the shared directory.

      A name that holds a dot, a comma or an equals sign is put in double quotes, as in SQL: \
      --exclude '"odd.table"'.

      --policy says what this device does if its own edit meets one of another device, such as \
      --policy notes.text=resolve:mergeText. Other devices have policies of their own. “docsync \
      conflicts --help” names all, and “docsync conflicts STORE policy” changes them later.
      """
        + examples(
          "docsync init notes.db --directory ~/Dropbox/DocumentSync",
          "docsync init shop.db --directory /mnt/stick/sync --exclude sessions --dry-run"))

  @Argument(help: "The database file.", completion: .file())
  var store: String

  @Option(help: ArgumentHelp("The shared directory.", valueName: "DIR"), completion: .directory)
  var directory: DirectoryPath

  @Option(
    help: ArgumentHelp(
      "The document's name (default: the file's name without its extension).",
      valueName: "ID"))
  var document: String?

  @Option(help: ArgumentHelp("The application that the directory belongs to.", valueName: "ID"))
  var application = "docsync"

  @Option(
    help: ArgumentHelp("This device's name (default: its host name).", valueName: "NAME"))
  var client: String?

  @OptionGroup var schema: SchemaOptions

  @OptionGroup var policy: PolicyOptions

  @OptionGroup var confirmation: DirectoryConfirmation

  @Flag(help: "Begin with a database that has no tables.")
  var allowEmpty = false

  @Flag(help: "Only show what would be synchronized; change nothing.")
  var dryRun = false

  @OptionGroup var output: OutputOptions

  /// The output with `--json`.
  struct Result: Encodable, Sendable {
    var store: String
    var directory: String
    var document: String
    var application: String
    /// This store's client; `nil` for a dry run.
    var client: String?
    var tables: [TableJSON]
    var leftOut: NamedValues<String>
    var likelyReferences: [LikelyReferenceJSON]
    var hints: [SchemaHintJSON]
    /// What is wrong with the permissions of the directory; `nil` if nothing is.
    var findings: [FindingJSON]?
    var isDryRun: Bool
  }

  func validate() throws {
    guard document?.isEmpty != true else { throw ValidationError("--document must not be empty.") }
  }

  var commandPlace: CommandPlace {
    CommandPlace(
      store: store, directory: directory.path, document: document ?? defaultDocument(for: store))
  }

  func perform(_ console: Console) async throws -> Outcome {
    let document = document ?? defaultDocument(for: store)
    var configuration = schema.configuration
    // The plan of a set-up that was interrupted contains the answers to the questions.
    let isUnderSync = try DocumentSyncManager.isUnderSync(storeAt: store)
    let before = isUnderSync ? try SetUpState.read(storeAt: store)?.configuration : nil
    // A later set-up contains its plan.
    let plan =
      isUnderSync && before == nil && !dryRun
      ? nil : try DocumentSyncManager.plan(storeAt: store, configuration: configuration)
    let likely = plan?.likelyReferences ?? []
    let undecided = schema.undecided(likely)
    var result = Result(
      store: store, directory: directory.path, document: document, application: application,
      client: nil, tables: (plan?.tables ?? []).map(TableJSON.init),
      leftOut: NamedValues((plan?.leftOut ?? [:]).mapValues(\.rawValue)),
      likelyReferences: undecided.map(LikelyReferenceJSON.init),
      hints: (plan?.hints ?? []).map(SchemaHintJSON.init), isDryRun: dryRun)
    if let plan, plan.tables.isEmpty, plan.leftOut.isEmpty, !allowEmpty {
      throw Failure(
        code: "storeEmpty", message: "The database has no tables.", path: store,
        remedy: "Check the path. To begin with an empty database, add --allow-empty.",
        status: .refused)
    }
    guard !dryRun else {
      return Outcome(
        json: result,
        lines: ["Nothing was changed. This is what would be done:"] + Self.plan(result))
    }
    if plan != nil {
      do {
        try await DirectoryQuestion(path: directory.path, confirmation: confirmation).ask(console)
      } catch let error as SyncError where before != nil && error.code == .directoryAway {
        // The error below also says how to end the set-up.
      }
    }
    let (known, open) = Self.answered(undecided, by: before)
    let answers = try await ReferenceQuestions(store: store, references: open).ask(console) + known
    for reference in answers {
      configuration.references[reference.table, default: [:]][reference.column] = reference.parent
    }
    for reference in likely where !answers.contains(reference) {
      configuration.plainColumns[reference.table, default: []].insert(reference.column)
    }
    result.likelyReferences = []
    let bar = ProgressBar(on: console)
    defer { bar.clear() }
    let manager = try await DocumentSyncManager.create(
      storeAt: store, directory: directory.directory, document: document,
      options: .init(
        application: application, client: client, configuration: configuration,
        policies: try policy.policies()),
      onProgress: bar.handler)
    result.client = manager.binding.client.description
    if plan == nil {
      let status = try await manager.status()
      (result.tables, result.leftOut) = (
        status.tables.map(TableJSON.init), NamedValues(status.leftOut.mapValues(\.rawValue))
      )
    }
    let application = ApplicationSyncManager(
      directory: manager.directory, applicationIdentifier: application)
    let documents = try await application.listDocuments().filter { !$0.isDeleted }
    let closed = try await application.findClosedFolders()
    result.findings = closed.map { [FindingJSON($0, at: commandPlace)] }
    try await manager.close()
    bar.clear()
    return Outcome(
      json: result,
      lines: Self.lines(result, manager.resumption, isOnlyDocument: documents.count <= 1)
        + (closed?.lines(at: commandPlace) ?? []))
  }

  /// Divides questions into those that were answered with “yes” before a set-up was interrupted, and
  /// those that were not answered.
  private static func answered(
    _ references: [StorePlan.LikelyReference], by before: StoreConfiguration?
  ) -> (yes: [StorePlan.LikelyReference], open: [StorePlan.LikelyReference]) {
    guard let before else { return ([], references) }
    let yes = references.filter { before.references[$0.table]?[$0.column] == $0.parent }
    let open = references.filter {
      !yes.contains($0) && before.plainColumns[$0.table]?.contains($0.column) != true
    }
    return (yes, open)
  }

  private static func lines(
    _ result: Result, _ resumption: SetUpState.Resumption?, isOnlyDocument: Bool
  ) -> [String] {
    let join =
      "docsync join \(shellWord(result.document + ".db")) --directory \(shellWord(result.directory))"
      + (isOnlyDocument ? "" : " --document \(shellWord(result.document))")
    var lines: [String] =
      switch resumption {
      case .completed: ["Completed the set-up that was interrupted before."]
      case .replaced: ["Ended the set-up that was interrupted before, and began again."]
      case nil: []
      }
    lines += [
      "\(result.store) is under sync as the document “\(result.document)” in \(result.directory)."
    ]
    lines += plan(result)
    lines += [
      "", "Next, on another device, with the path that the shared directory has there:",
      "  " + join, "",
      "And here, after every change:", "  docsync sync \(shellWord(result.store))",
    ]
    return lines
  }

  private static func plan(_ result: Result) -> [String] {
    var lines = ["", "Synchronized tables, and how their rows are matched between devices:"]
    lines += alignedLines(result.tables.map(\.cells), indent: 2)
    if result.tables.isEmpty { lines.append("  none") }
    if !result.leftOut.values.isEmpty {
      lines += ["", "Not synchronized:"]
      lines += alignedLines(
        result.leftOut.values.map { [printable($0.key), printable($0.value)] },
        indent: 2)
    }
    if !result.likelyReferences.isEmpty {
      lines += ["", "These columns look like references to rows, and are not declared:"]
      lines += alignedLines(result.likelyReferences.map(\.cells), indent: 2)
      lines += [
        "Integer keys differ between devices. Declare references with",
        "--reference TABLE.COLUMN=TABLE, and plain numbers with --no-reference TABLE.COLUMN.",
      ]
    }
    if !result.hints.isEmpty {
      lines += ["", "Check these:"]
      lines += result.hints.map { "  " + $0.sentence }
    }
    return lines
  }
}
