import DocumentSync
import DocumentSyncModels
import DocumentSyncTesting
import Foundation
import Synchronization
import Testing

/// Random histories of two and three models, with edits during synchronizations, refusals, and ends of processes.
///
/// Each device has a field of its own, and adds to a counter. So each edit of a record that no device has deleted
/// must be in all models in the end, once.
@Suite struct RandomModelTests {
  /// What the devices have done to the notes.
  private struct Expected {
    var own: [ModelRecord.ID: [Int: Int64]] = [:]
    var counts: [ModelRecord.ID: Int64] = [:]
    var deleted: Set<ModelRecord.ID> = []
    /// The lists in which a note has been.
    var lists: [ModelRecord.ID: Set<ModelRecord.ID>] = [:]
    var created: Set<ModelRecord.ID> = []
  }

  private final class History: Sendable {
    let fleet: ModelFleet
    let random: Mutex<SeededRandom>
    let expected = Mutex(Expected())
    let names = Mutex(0)
    /// Whether calls may still fail.
    let isFaulty = Mutex(true)

    init(seed: UInt64) throws {
      var random = SeededRandom(seed: seed)
      let kinds: [Device.Kind] = (0..<Int.random(in: 2...3, using: &random)).map { _ in
        Bool.random(using: &random) ? .memory : .json
      }
      fleet = try ModelFleet(
        kinds, seed: seed, batchSize: [1, 2, 5, 200].randomElement(using: &random) ?? 1)
      self.random = Mutex(random)
    }

    func roll(_ sides: Int) -> Int { random.withLock { Int.random(in: 0..<sides, using: &$0) } }

    func pick<Element>(_ elements: [Element]) -> Element? {
      elements.isEmpty ? nil : elements[roll(elements.count)]
    }

    func newName() -> String {
      // In no particular order.
      let number = names.withLock { number in
        number += 1
        return number
      }
      return "\(roll(90) + 10)-\(number)"
    }

    /// One edit of the application.
    func edit(_ index: Int) async throws {
      let device = fleet[index]
      let records = try await device.records
      let notes = records.filter { $0.id.type == "Note" }
      let lists = records.filter { $0.id.type == "List" }
      let references: [String: ModelValue] = [
        "list": pick(lists).map { .reference($0.id) } ?? .null,
        "next": pick(notes).map { .reference($0.id) } ?? .null,
      ]
      switch roll(12) {
      case 0, 1:
        let name = list(newName(), ["name": .text("n")])
        expected.withLock { _ = $0.created.insert(name.id) }
        try await device.put(name)
      case 2, 3, 4:
        var record = note(newName(), references)
        record["count"] = .integer(0)
        expected.withLock { [record] expected in
          expected.created.insert(record.id)
          if case .reference(let list) = record["list"] {
            expected.lists[record.id, default: []].insert(list)
          }
        }
        try await device.put(record)
      case 5:
        guard let list = pick(lists), roll(2) == 0 else { return }
        expected.withLock { _ = $0.deleted.insert(list.id) }
        // As an application does.
        for note in notes where note["list"] == .reference(list.id) {
          try await remove(note.id, device)
        }
        try await device.remove(list.id)
      case 6:
        guard let note = pick(notes), roll(2) == 0 else { return }
        try await remove(note.id, device)
      case 7:
        guard let note = pick(notes) else { return }
        if case .reference(let list)? = references["list"] {
          expected.withLock { _ = $0.lists[note.id, default: []].insert(list) }
        }
        try await device.edit(note.id, references)
      case 8:
        guard let note = pick(notes) else { return }
        try await device.edit(note.id, ["title": .text("\(roll(3))")])
      case 9, 10:
        guard let note = pick(notes) else { return }
        expected.withLock { $0.counts[note.id, default: 0] += 1 }
        try await device.count(note.id)
      default:
        guard let note = pick(notes) else { return }
        // Often the former value again.
        let value = Int64(roll(3))
        expected.withLock { $0.own[note.id, default: [:]][index] = value }
        try await device.edit(note.id, ["own\(index)": .integer(value)])
      }
    }

    private func remove(_ id: ModelRecord.ID, _ device: Device) async throws {
      expected.withLock { _ = $0.deleted.insert(id) }
      for note in try await device.records where note["next"] == .reference(id) {
        try await device.edit(note.id, ["next": .null])
      }
      try await device.remove(id)
    }

    struct Refusal: Error {}

    func synchronize(_ index: Int) async throws {
      do {
        try await fleet[index].synchronize()
      } catch let error as SyncError where [.cancelled, .adapterFailed].contains(error.code) {
        // The process ends, or goes on after an error.
        if error.code == .cancelled { try await fleet[index].kill() }
      }
    }

    func run(steps: Int) async throws {
      for (index, device) in fleet.devices.enumerated() {
        await device.set { [self] moment, _ in
          guard isFaulty.withLock({ $0 }) else { return }
          switch roll(60) {
          case 0: throw CancellationError()
          // An adapter that refuses a record has not saved it.
          case 1 where moment.isBefore || !["save", "delete"].contains(moment.call):
            throw Refusal()
          case 2...5:
            // An acknowledged record may be changed on the way, too.
            try await edit(index)
          default: break
          }
        }
      }
      for _ in 0..<steps {
        let index = roll(fleet.devices.count)
        if roll(4) == 0 { try await synchronize(index) } else { try await edit(index) }
      }
      isFaulty.withLock { $0 = false }
    }
  }

  /// How many histories are played: a few, or as many as `DOCSYNC_MODEL_HISTORIES` has.
  private static let chosen = ProcessInfo.processInfo.environment["DOCSYNC_MODEL_HISTORIES"]
    .flatMap(Int.init)

  /// Whether tests may take minutes.
  static var isLong: Bool { chosen != nil }

  @Test(arguments: 0..<(chosen ?? 8))
  func modelsBecomeEqualAndNoEditIsLost(seed: Int) async throws {
    let history = try History(seed: UInt64(seed))
    try await history.run(steps: 25)
    try await check(history, seed)
  }

  private func check(_ history: History, _ seed: Int) async throws {
    let reports = try await history.fleet.settle()
    for report in reports { #expect(report.problems == [], "seed \(seed)") }
    let records = try await history.fleet[0].records
    for device in history.fleet.devices {
      let others = try await device.records
      #expect(others == records, "seed \(seed)")
      try await device.kill()
    }
    let byID = Dictionary(uniqueKeysWithValues: records.map { ($0.id, $0) })
    let expected = history.expected.withLock { $0 }
    for id in expected.created {
      let isGone =
        expected.deleted.contains(id)
        || !(expected.lists[id] ?? []).isDisjoint(with: expected.deleted)
      guard let record = byID[id] else {
        #expect(isGone, "seed \(seed): \(id) is missing")
        continue
      }
      // A device may have edited a record that was deleted and came back.
      guard !isGone, id.type == "Note" else { continue }
      #expect(
        record["count"] == .integer(expected.counts[id] ?? 0), "seed \(seed): \(id)")
      for (index, value) in expected.own[id] ?? [:] {
        #expect(record["own\(index)"] == .integer(value), "seed \(seed): \(id) own\(index)")
      }
    }
    for id in expected.deleted { #expect(byID[id] == nil, "seed \(seed): \(id) is there") }
  }
}
