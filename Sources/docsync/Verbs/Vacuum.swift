import ArgumentParser
import DocumentSync

/// `docsync vacuum`
struct Vacuum: StoreVerb {
  static let configuration = CommandConfiguration(
    abstract: "Remove files that no device needs any more.",
    discussion: """
      Synchronizes first. “docsync sync” does the same from time to time. The command removes \
      only files of this device and of retired devices, and lists the files that it keeps, with \
      the devices that need them.
      """ + examples("docsync vacuum notes.db"))

  @OptionGroup var arguments: StoreArguments
  @OptionGroup var output: OutputOptions

  /// The output with `--json`.
  struct Result: Encodable, Sendable {
    var store: String
    var vacuum: VacuumJSON
  }

  func perform(_ console: Console) async throws -> Outcome {
    try await arguments.withManager { manager in
      let bar = ProgressBar(on: console)
      defer { bar.clear() }
      let report = try await manager.vacuum(onProgress: bar.handler)
      bar.clear()
      let names = await ClientNames(manager)
      return Outcome(
        json: Result(store: arguments.store, vacuum: VacuumJSON(report)),
        lines: Self.lines(report, names))
    }
  }

  private static func lines(_ report: VacuumReport, _ names: ClientNames) -> [String] {
    var lines = report.removed.map { files in
      "removed \(text(files)) of \(names.label(files.client)): \(files.reason)"
    }
    if report.madeSegments > 0 { lines.append("made \(counted(report.madeSegments, "segment"))") }
    if report.verifiedSegments > 0 {
      lines.append("checked \(counted(report.verifiedSegments, "segment")) of other devices")
    }
    if report.uploadedWholeStore { lines.append("uploaded a copy of the database") }
    if lines.isEmpty { lines.append("nothing to remove") }
    lines += report.kept.map { files in
      let who = files.member.map { " for \(names.label($0))" } ?? ""
      return "kept \(text(files)) of \(names.label(files.client))\(who): \(files.reason)"
    }
    return lines
  }

  private static func text(_ files: VacuumReport.Files) -> String {
    let noun =
      switch files.kind {
      case .changeSets: "change set"
      case .segments: "segment"
      case .wholeStores: "copy of the database"
      case .commands: "command"
      case .markers: "marker"
      }
    let numbers = files.first == files.last ? "\(files.first)" : "\(files.first)–\(files.last)"
    return "\(counted(files.count, noun)) (\(numbers))"
  }
}
