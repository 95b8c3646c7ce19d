import ArgumentParser
import DocumentSync
import SyncDirectory
import SyncModel

/// `docsync verify`
struct Verify: Verb {
  static let configuration = CommandConfiguration(
    abstract: "Check a database and its shared directory, or a directory alone.",
    discussion: """
      Checks every file of the directory and the whole database, and prints what is wrong and \
      what to do. Nothing is changed; read permission is enough. Ends with 1 if something is \
      wrong, with 3 if something is only missing yet. Notes do not change the exit code.
      """ + examples("docsync verify notes.db", "docsync verify --directory /mnt/stick/sync"))

  @Argument(help: "The database file, to check together with its directory.", completion: .file())
  var store: String?

  @Option(
    help: ArgumentHelp(
      "The shared directory to check; with STORE, its present path.", valueName: "DIR"),
    completion: .directory)
  var directory: DirectoryPath?

  @OptionGroup var patience: Patience

  @OptionGroup var output: OutputOptions

  /// The output with `--json`.
  struct Result: Encodable, Sendable {
    var store: String?
    var directory: String?
    var fileCount: Int
    var byteCount: Int
    var rowCount: Int
    var findings: [FindingJSON]
    var notChecked: [String]
  }

  func validate() throws {
    guard store != nil || directory != nil else {
      throw ValidationError("Name a database file, or a shared directory with --directory.")
    }
  }

  var commandPlace: CommandPlace {
    CommandPlace(
      store: store, directory: directory?.path, isUnderSync: store != nil, canWait: store != nil)
  }

  func perform(_ console: Console) async throws -> Outcome {
    let bar = ProgressBar(on: console)
    defer { bar.clear() }
    let folder = directory?.directory
    let report: VerifyReport
    if let store {
      report = try await DocumentSyncManager.verify(
        storeAt: store, directory: folder, environment: patience.environment,
        onProgress: bar.handler)
    } else {
      report = try await ApplicationSyncManager(
        directory: folder ?? DirectoryPath(argument: ".").directory
      )
      .verify(onProgress: bar.handler)
    }
    bar.clear()
    let result = Result(
      store: store, directory: directory?.path, fileCount: report.fileCount,
      byteCount: report.byteCount, rowCount: report.rowCount,
      findings: report.findings.map { FindingJSON($0, at: commandPlace) },
      notChecked: report.leftOut)
    return Outcome(json: result, lines: lines(report), status: Self.status(report))
  }

  private static func status(_ report: VerifyReport) -> ExitStatus {
    switch report.severity {
    case .error: isOfNothing(report) ? .directoryAway : .failed
    case .waiting:
      report.findings.contains { $0.kind == .directoryAway } ? .directoryAway : .waiting
    // A note names something that is worth knowing, and requires no action.
    case .note, nil: .done
    }
  }

  /// Whether the directory has no file of docsync: it may be a mount point without its mount.
  private static func isOfNothing(_ report: VerifyReport) -> Bool {
    report.fileCount == 0
      && report.findings.allSatisfy { $0.severity == .note || $0.kind == .applicationMissing }
  }

  private func lines(_ report: VerifyReport) -> [String] {
    var lines: [String] = []
    for finding in report.findings { lines += finding.lines(at: commandPlace) }
    lines += report.leftOut.map { "not checked: \(printable($0))" }
    let looked = [
      report.fileCount > 0 ? counted(report.fileCount, "file") : nil,
      report.byteCount > 0 ? byteText(report.byteCount) : nil,
      report.rowCount > 0 ? counted(report.rowCount, "row") : nil,
    ].compactMap(\.self).joined(separator: ", ")
    let counts = VerifyReport.Finding.Severity.allCases.reversed().compactMap { severity in
      let count = report.findings.count { $0.severity == severity }
      return count == 0 ? nil : "\(count) \(Self.words[severity] ?? severity.rawValue)"
    }
    lines.append(
      (looked.isEmpty ? "" : "Checked \(looked): ")
        + (counts.isEmpty ? "nothing is wrong." : counts.joined(separator: ", ") + "."))
    return lines
  }

  private static let words: [VerifyReport.Finding.Severity: String] = [
    .error: "wrong", .waiting: "waiting", .note: "to note",
  ]
}

extension VerifyReport.Finding {
  /// The finding for people, with what to do.
  func lines(at place: CommandPlace) -> [String] {
    var lines = ["\(severity.rawValue): \(printable(message))"]
    if let path { lines.append("  path: \(printable(path))") }
    if let table { lines.append("  table: \(printable(table))") }
    if let detail { lines.append("  detail: \(printable(detail))") }
    lines.append("  next: \(remedy.commandText(at: place))")
    return lines
  }
}
