import ArgumentParser
import Foundation
import SyncModel
import SyncStore

/// The parts of the way of one large W1, each in a process of its own, so
/// that the memory of one is not counted for another.
enum MemoryPhase: String, CaseIterable, Codable, ExpressibleByArgument {
  /// Insert the rows; for the session extension also make the changeset,
  /// which lives only as long as the process.
  case write
  /// Make the payload.
  case extract
  /// Apply the payload on the second device.
  case apply
}

/// Runs one phase and prints the peaks over the idle process, in bytes.
struct MemoryProbe: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "memory-probe", abstract: "Runs one phase in this process.",
    shouldDisplay: false)

  @Argument var subject: SubjectName
  @Argument var phase: MemoryPhase
  @Argument var rows: Int
  @Argument var directory: String

  private static let seed: UInt64 = 1_000_003

  func run() throws {
    let folder = URL(filePath: directory, directoryHint: .isDirectory)
    let peaks: [MemoryPhase: Int]
    switch subject {
    case .plain: peaks = [:]
    case .session: peaks = try runSession(in: folder)
    case .documentSync: peaks = try runDocumentSync(in: folder)
    }
    let named = Dictionary(uniqueKeysWithValues: peaks.map { ($0.key.rawValue, $0.value) })
    print(String(decoding: try JSONEncoder().encode(named), as: UTF8.self))
  }

  private func runSession(in folder: URL) throws -> [MemoryPhase: Int] {
    let payloadFile = folder.appending(path: "changeset")
    let paths = Device.allCases.map { folder.appending(path: "\($0.rawValue).sqlite").path }
    switch phase {
    case .write:
      for path in paths { try Database(path: path).execute(NotesTable.schema) }
      let database = try Database(path: paths[0])
      let recorder = try SessionRecorder(of: database)
      let idle = try PeakMemory.reset()
      try NotesTable.insert(rows, seed: Self.seed, to: database)
      let written = try PeakMemory.current() - idle
      _ = try PeakMemory.reset()
      let changeset = try recorder.changeset()
      let extracted = try PeakMemory.current() - idle
      try Data(changeset.bytes).write(to: payloadFile)
      return [.write: written, .extract: extracted]
    case .extract:
      return [:]
    case .apply:
      let database = try Database(path: paths[1])
      let idle = try PeakMemory.reset()
      let changeset = try SessionPayload(contentsOf: payloadFile)
      try database.transaction { try changeset.apply(to: database, replacing: true) }
      let peak = try PeakMemory.current() - idle
      try verify(paths)
      return [.apply: peak]
    }
  }

  private func runDocumentSync(in folder: URL) throws -> [MemoryPhase: Int] {
    let payloads = folder.appending(path: "changes", directoryHint: .isDirectory)
    let paths = Device.allCases.map { StorePair.path(of: $0, in: folder) }
    switch phase {
    case .write:
      let pair = try StorePair(directory: folder)
      let database = try Database(path: paths[0])
      let idle = try PeakMemory.reset()
      try NotesTable.insert(rows, seed: Self.seed, to: database)
      let peak = try PeakMemory.current() - idle
      try pair.first.close()
      try pair.second.close()
      return [.write: peak]
    case .extract:
      try FileManager.default.createDirectory(at: payloads, withIntermediateDirectories: true)
      let store = try LocalStore.open(at: paths[0])
      let idle = try PeakMemory.reset()
      for changeSet in try store.seal().changeSets {
        let name = String(format: "%08d", Int(changeSet.number))
        try Data(store.sealedBytes(changeSet.number)).write(to: payloads.appending(path: name))
      }
      return [.extract: try PeakMemory.current() - idle]
    case .apply:
      let store = try LocalStore.open(at: paths[1])
      let names = try FileManager.default.contentsOfDirectory(atPath: payloads.path).sorted()
      let idle = try PeakMemory.reset()
      for name in names {
        try store.apply(files: [[UInt8](Data(contentsOf: payloads.appending(path: name)))])
      }
      let peak = try PeakMemory.current() - idle
      try verify(paths)
      return [.apply: peak]
    }
  }

  /// Whether both devices have all rows, by number and by sums.
  private func verify(_ paths: [String]) throws {
    let sums = try paths.map { path in
      let database = try Database(path: path)
      return try [
        "count(*)", "sum(rating)", "sum(edited)", "sum(length(title))", "sum(length(body))",
      ].map { try database.integer("SELECT \($0) FROM notes") }
    }
    guard sums[0] == sums[1], sums[0][0] == Int64(rows) else {
      throw VerificationFailure(
        description: "\(subject.rawValue) with \(rows) rows: the devices differ, \(sums)")
    }
  }
}

/// The devices do not hold what they should.
struct VerificationFailure: Error, CustomStringConvertible {
  var description: String
}

extension MemoryPhase {
  /// Runs all phases in child processes; gives the peaks in bytes.
  static func run(_ subject: SubjectName, rows: Int, in folder: URL) throws -> [MemoryPhase: Int] {
    var peaks: [MemoryPhase: Int] = [:]
    for phase in allCases where !(subject == .session && phase == .extract) {
      let process = Process()
      process.executableURL = Bundle.main.executableURL
      process.arguments = [
        "memory-probe", subject.rawValue, phase.rawValue, "\(rows)", folder.path,
      ]
      let output = Pipe()
      process.standardOutput = output
      try process.run()
      let text = try output.fileHandleForReading.readToEnd() ?? Data()
      process.waitUntilExit()
      guard process.terminationStatus == 0 else {
        throw VerificationFailure(
          description: "the memory probe \(subject.rawValue) \(phase.rawValue) failed")
      }
      for (name, peak) in try JSONDecoder().decode([String: Int].self, from: text) {
        if let phase = MemoryPhase(rawValue: name) { peaks[phase] = peak }
      }
    }
    return peaks
  }
}
