import Foundation
import SyncModel
import Testing

@testable import SyncStore

struct HostileSchema: Sendable {
  var sql: String
  var edits: [String]
  var configuration = StoreConfiguration()

  init(
    _ sql: String, edits: [String],
    _ configure: (inout StoreConfiguration) -> Void = { _ in }
  ) {
    self.sql = sql
    self.edits = edits
    configure(&configuration)
  }
}

/// Three devices and some that mean harm.
struct HostileFleet {
  struct Counts {
    var files = 0
    var applied = 0
    var refused = 0
    var problems: [String] = []

    mutating func add(_ other: Counts) {
      files += other.files
      applied += other.applied
      refused += other.refused
      problems += other.problems
    }
  }

  /// A file, and when each device receives it.
  struct Delivery {
    var file: ReceivedChangeSet
    /// Of an honest device, by its index; `nil` for one that is forged.
    var author: Int?
    /// For each device where it comes among all.
    var places: [UInt64]
    /// For each device whether it comes together with the one before it.
    var isTogether: [Bool]
  }

  /// What is wrong, and of which kind that is.
  struct Problem {
    var kind: String
    var description: String
  }

  /// What became of files.
  struct Outcome {
    var refused: Set<ContentHash> = []
    var problems: [Problem] = []
  }

  private let scratch: Scratch
  private let seed: UInt64
  private let honest: [[ReceivedChangeSet]]
  private static let deviceCount = 3

  /// Honest devices, which have edited, and whose stores are copied for every
  /// trial.
  init(_ schema: HostileSchema, seed: UInt64) throws {
    self.seed = seed
    scratch = try Scratch()
    let devices = try scratch.devices(
      Self.deviceCount, schema.sql, configuration: schema.configuration, options: Self.options,
      clients: (1...3).map { ClientIdentifier(bits: Bits128(high: $0, low: 1)) })
    var generator = SeededGenerator(seed: seed)
    for (index, device) in devices.enumerated() {
      // In real time, so that clocks say something else than before.
      try device.setClock(milliseconds: 1_790_000_000_000 + Int64(generator.below(3)))
      try device.setIdentities(letter: UInt8(index + 1))
    }
    for round in 0..<2 {
      for device in devices {
        for _ in 0...generator.below(3) {
          do {
            try device.run(schema.edits[generator.below(schema.edits.count)])
          } catch is Program.Failure {
            // What the schema refuses is passed over.
            continue
          }
        }
        _ = try device.store.seal()
      }
      if round == 0 { try devices[1].receive(from: devices[0]) }
    }
    honest = try devices.map { try $0.outgoing() }
    for device in devices { try device.store.close() }
  }

  private static var options: StoreOptions {
    var options = StoreOptions()
    options.places = nil
    return options
  }

  /// Makes files, gives them to the devices in different orders, and compares
  /// what becomes of them.
  func run(_ count: Int) throws -> Counts {
    var counts = Counts(files: count)
    let sets = honest.flatMap { $0.map(\.changeSet) }
    var mutations = HostileMutations(of: sets, seed: seed)
    var deliveries: [Delivery] = []
    for _ in 0..<count {
      var set = sets[mutations.generator.below(sets.count)]
      set.header.client = .random(using: &mutations.generator)
      set.header.number = 1
      set.header.previous = nil
      guard let file = try Self.file(mutations.mutate(set)) else {
        counts.refused += 1
        continue
      }
      deliveries.append(Self.delivery(of: file, author: nil, &mutations.generator))
    }
    for (index, files) in honest.enumerated() {
      for file in files {
        deliveries.append(Self.delivery(of: file, author: index, &mutations.generator))
      }
    }
    let outcome = try outcome(of: deliveries)
    counts.applied += deliveries.count - honest.reduce(0) { $0 + $1.count } - outcome.refused.count
    counts.refused += outcome.refused.count
    guard let problem = outcome.problems.first else { return counts }
    let shrunk = try HostileShrinking(kind: problem.kind, trial: self.outcome).shrink(deliveries)
    let rest = try self.outcome(of: shrunk).problems
    counts.problems = [
      "seed \(seed): " + rest.map(\.description).joined(separator: "\n")
        + "\n" + shrunk.map(HostileText.text).joined(separator: "\n")
    ]
    return counts
  }

  /// A change set as it comes from the shared directory; `nil` if it is
  /// refused by every reader.
  static func file(_ set: SyncChangeSet) throws -> ReceivedChangeSet? {
    do {
      let bytes = try ChangeSetCodec.encode(set)
      return ReceivedChangeSet(
        changeSet: try ChangeSetCodec.decode(bytes), hash: ContentHash(of: bytes), bytes: bytes)
    } catch is CodecError {
      return nil
    }
  }

  private static func delivery(
    of file: ReceivedChangeSet, author: Int?, _ generator: inout SeededGenerator
  ) -> Delivery {
    Delivery(
      file: file, author: author, places: (0..<deviceCount).map { _ in generator.next() },
      isTogether: (0..<deviceCount).map { _ in generator.chance(70) })
  }

  // MARK: - Trials

  /// Gives files to the devices as they were, and looks at what comes of it.
  private func outcome(of deliveries: [Delivery]) throws -> Outcome {
    let devices = try (0..<Self.deviceCount).map(copy)
    defer { remove() }
    var outcome = Outcome()
    for (index, device) in devices.enumerated() {
      let all = deliveries.filter { $0.author != index }
        .sorted { $0.places[index] < $1.places[index] }
      var refusals: Set<ContentHash> = []
      var position = 0
      while position < all.count {
        var end = position + 1
        while end < all.count, all[end].isTogether[index] { end += 1 }
        do {
          let report = try device.store.apply(all[position..<end].map(\.file))
          refusals.formUnion(report.refused.map(\.hash))
        } catch {
          outcome.problems.append(
            Problem(kind: "thrown", description: "device \(index + 1) throws: \(error)"))
          return outcome
        }
        position = end
      }
      if index == 0 {
        outcome.refused = refusals
      } else if outcome.refused != refusals {
        outcome.problems.append(
          Problem(kind: "refused", description: "refused by one and not by the other"))
      }
    }
    do {
      try exchange(devices)
      try compare(devices, &outcome)
      for (index, device) in devices.enumerated() {
        try check(device, index, deliveries, &outcome)
      }
    } catch {
      outcome.problems.append(Problem(kind: "thrown", description: "thrown: \(error)"))
    }
    for device in devices { try device.store.close() }
    return outcome
  }

  private func trial(_ index: Int) -> String { scratch.path + "/trial\(index).db" }

  private func copy(_ index: Int) throws -> Device {
    let original = scratch.path + "/device\(index + 1).db"
    for ending in ["", "-wal"] where FileManager.default.fileExists(atPath: original + ending) {
      try FileManager.default.copyItem(atPath: original + ending, toPath: trial(index) + ending)
    }
    return try Device(
      store: try LocalStore.open(at: trial(index), options: Self.options), path: trial(index))
  }

  private func remove() {
    for index in 0..<Self.deviceCount {
      for ending in ["", "-wal", "-shm", "-journal", "-docsync-lock"] {
        let path = trial(index) + ending
        guard FileManager.default.fileExists(atPath: path) else { continue }
        do {
          try FileManager.default.removeItem(atPath: path)
        } catch {
          Issue.record("cannot remove \(path): \(error)")
        }
      }
    }
  }

  private func compare(_ devices: [Device], _ outcome: inout Outcome) throws {
    let digests = try devices.map { try $0.store.digest() }
    if digests.contains(where: { $0.visible != digests[0].visible }) {
      outcome.problems.append(
        Problem(kind: "visible", description: "visible:\n" + (try HostileText.differences(devices)))
      )
    } else if digests.contains(where: { $0.logical != digests[0].logical }) {
      outcome.problems.append(
        Problem(kind: "logical", description: "logical:\n" + (try HostileText.differences(devices)))
      )
    }
  }

  private func check(
    _ device: Device, _ index: Int, _ deliveries: [Delivery], _ outcome: inout Outcome
  ) throws {
    let found = try LocalStore.verify(at: device.path).report.findings
    outcome.problems += found.filter { $0.severity > .note }.map {
      Problem(kind: "\($0.kind)", description: "device \(index + 1): \($0)")
    }
    if try device.rows("PRAGMA integrity_check") != ["ok"]
      || device.rows("PRAGMA foreign_key_check") != []
    {
      outcome.problems.append(
        Problem(kind: "integrity", description: "device \(index + 1): integrity"))
    }
    let known = Set(deliveries.filter { $0.author == nil }.map(\.file.changeSet.header.client))
    if try device.store.waiting().contains(where: { !known.contains($0.client) }) {
      outcome.problems.append(
        Problem(kind: "waits", description: "device \(index + 1): an honest change set waits"))
    }
  }
}
