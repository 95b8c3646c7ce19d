import ArgumentParser
import Foundation

/// The command: runs the workloads on every subject in turn and reports.
@main
struct Benchmarks: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "Benchmarks",
    abstract: "Compares capture, export and apply with plain SQL and SQLite's session extension.",
    discussion: "Documentation/Performance.md says what each figure contains.",
    subcommands: [BookkeepingProbe.self, EngineProbe.self, MemoryProbe.self])

  @Flag(help: "Print one JSON object instead of tables.")
  var json = false
  @Option(help: "The rows of the table; the other workloads scale with it.")
  var rows = 100_000
  @Option(help: "The workloads to report, separated by commas. Earlier ones still run.")
  var workload = Workload.allCases.map(\.rawValue).joined(separator: ",")
  @Option(help: "The subjects, separated by commas: plain, session, documentsync.")
  var subjects = SubjectName.allCases.map(\.rawValue).joined(separator: ",")
  @Option(help: "How often everything is done; the report has the medians.")
  var rounds = 5
  @Flag(help: "Measure peak memory with 1,000,000 rows too, which takes minutes.")
  var million = false
  @Flag(inversion: .prefixedNo, help: "Measure peak memory.")
  var memory = true
  @Option(help: "Where the files go. Default: a memory file system if there is one.")
  var directory: String?

  private static let seed: UInt64 = 20_260_101

  func validate() throws {
    guard rows >= 10, rounds >= 1 else {
      throw ValidationError("There must be at least 10 rows and 1 round.")
    }
    _ = try parse(workload, as: Workload.self)
    _ = try parse(subjects, as: SubjectName.self)
  }

  func run() async throws {
    let workloads = try parse(workload, as: Workload.self)
    let subjects = try parse(subjects, as: SubjectName.self)
    let folder = Self.base(directory).appending(
      path: "documentsync-benchmark-\(UUID().uuidString)", directoryHint: .isDirectory)
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    let outcome = Result { try measure(workloads, of: subjects, in: folder) }
    try FileManager.default.removeItem(at: folder)
    let report = try outcome.get()
    print(json ? try report.json() : report.text())
  }

  private func measure(
    _ workloads: [Workload], of subjects: [SubjectName], in folder: URL
  ) throws -> Report {
    let dataset = Dataset(rows: rows, seed: Self.seed)
    var samples = Samples()
    var bookkeeping: [String: Int64] = [:]
    for round in 0..<rounds {
      progress("round \(round + 1) of \(rounds):")
      var contenders: [(name: SubjectName, subject: any Subject)] = []
      for name in subjects {
        let home = folder.appending(path: "\(name.rawValue)-\(round)", directoryHint: .isDirectory)
        try FileManager.default.createDirectory(at: home, withIntermediateDirectories: true)
        contenders.append((name, try name.type.init(directory: home)))
      }
      for workload in Workload.allCases where workload <= (workloads.max() ?? .conflict) {
        progress(" \(workload.rawValue)")
        var contents: [SubjectName: NotesTable.Contents] = [:]
        for (name, subject) in contenders {
          let figures = try subject.run(workload, of: dataset, round: round)
          if workloads.contains(workload) { samples.add(figures, of: name, in: workload) }
          contents[name] = try verify(subject, named: name, after: workload, of: dataset)
        }
        guard workload == .conflict || Set(contents.values).count <= 1 else {
          throw VerificationFailure(description: "\(workload.rawValue): the subjects differ")
        }
      }
      progress("\n")
      if let last = contenders.first(where: { $0.name == .documentSync }) {
        bookkeeping = try last.subject.bookkeepingTables()
      }
      contenders = []
      for name in subjects {
        try FileManager.default.removeItem(at: folder.appending(path: "\(name.rawValue)-\(round)"))
      }
    }
    var report = Report(
      directory: folder.deletingLastPathComponent(), rows: rows, rounds: rounds,
      workloads: workloads, subjects: subjects, samples: samples)
    report.bookkeeping = bookkeeping
    try measureMemory(of: subjects, in: folder, report: &report)
    return report
  }

  /// Throws unless both devices hold the same rows, and the right number.
  private func verify(
    _ subject: any Subject, named name: SubjectName, after workload: Workload, of dataset: Dataset
  ) throws -> NotesTable.Contents {
    let first = try subject.open(.first)
    let contents = try NotesTable.contents(of: first)
    guard try NotesTable.contents(of: subject.open(.second)) == contents else {
      throw VerificationFailure(
        description: "\(workload.rawValue), \(name.rawValue): the devices differ")
    }
    let deleted = workload < .delete ? 0 : dataset.deletions.count
    guard contents.rowCount == dataset.notes.count - deleted else {
      throw VerificationFailure(
        description: "\(workload.rawValue), \(name.rawValue): \(contents.rowCount) rows")
    }
    if workload == .conflict {
      let strangers = try NotesTable.strangers(after: dataset, in: first)
      guard strangers == 0 else {
        throw VerificationFailure(
          description: "\(workload.rawValue), \(name.rawValue): \(strangers) rows hold "
            + "what neither device wrote")
      }
    }
    return contents
  }

  private func measureMemory(
    of subjects: [SubjectName], in folder: URL, report: inout Report
  ) throws {
    guard memory || million else { return }
    for size in (memory ? [rows] : []) + (million ? [1_000_000] : []) {
      for name in subjects where name != .plain {
        progress("memory of \(name.rawValue) with \(size) rows\n")
        let home = folder.appending(path: "memory", directoryHint: .isDirectory)
        try FileManager.default.createDirectory(at: home, withIntermediateDirectories: true)
        report.addMemory(
          try MemoryPhase.run(name, rows: size, in: home), of: name, rows: size)
        try FileManager.default.removeItem(at: home)
      }
    }
  }

  /// The folder for files.
  ///
  /// - Parameter directory: The folder that was asked for.
  static func base(_ directory: String?) -> URL {
    if let directory { return URL(filePath: directory, directoryHint: .isDirectory) }
    let shared = "/dev/shm"
    return FileManager.default.isWritableFile(atPath: shared)
      ? URL(filePath: shared, directoryHint: .isDirectory) : FileManager.default.temporaryDirectory
  }

  private func parse<Name: CaseIterable & RawRepresentable & Hashable>(
    _ list: String, as type: Name.Type
  ) throws -> [Name] where Name.RawValue == String {
    let texts = list.split(separator: ",").map { $0.trimmingCharacters(in: .whitespaces) }
    for text in texts where Name(rawValue: text) == nil {
      throw ValidationError(
        "\(text) is none of \(Name.allCases.map(\.rawValue).joined(separator: ", ")).")
    }
    let wanted = Set(texts.compactMap(Name.init(rawValue:)))
    return Name.allCases.filter(wanted.contains)
  }

  private func progress(_ text: String) {
    FileHandle.standardError.write(Data(text.utf8))
  }
}
