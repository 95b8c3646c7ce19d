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
  /// What the devices have done to the records.
  private struct Expected {
    var own: [ModelRecord.ID: [Int: Int64]] = [:]
    var counts: [ModelRecord.ID: Int64] = [:]
    /// The devices that have deleted a record.
    var deleted: [ModelRecord.ID: Set<Int>] = [:]
    var created: Set<ModelRecord.ID> = []
    /// The lists in which a record has been.
    var lists: [ModelRecord.ID: Set<ModelRecord.ID>] = [:]
    /// How often a record was put into a list, and which device has moved it away since then.
    var places: [ModelRecord.ID: [ModelRecord.ID: (count: Int, mover: Int?)]] = [:]
    /// The devices that gave a note tags.
    var taggers: [ModelRecord.ID: Set<Int>] = [:]

    private func lists(of record: ModelRecord) -> Set<ModelRecord.ID> {
      Set(
        ["list", "parent"].compactMap { field in
          guard case .reference(let list) = record[field] else { return nil }
          return list
        })
    }

    mutating func place(_ record: ModelRecord) {
      for list in lists(of: record) {
        lists[record.id, default: []].insert(list)
        let count = places[record.id]?[list]?.count ?? 0
        places[record.id, default: [:]][list] = (count + 1, nil)
      }
    }

    /// Notes that a device moves a record.
    mutating func move(_ record: ModelRecord, to moved: ModelRecord, by device: Int) {
      let former = lists(of: record)
      guard former != lists(of: moved) else { return }
      // The device knows of the only time that the record was put there.
      for list in former where places[record.id]?[list]?.count == 1 {
        places[record.id]?[list]?.mover = device
      }
      place(moved)
    }

    mutating func delete(_ id: ModelRecord.ID, by device: Int) {
      deleted[id, default: []].insert(device)
    }

    /// The devices that may have deleted a record: by itself, or with a list in which it was for the device.
    ///
    /// The mirror of a device may have a record that its model does not have yet. It is deleted with a list that
    /// the model deletes, also if another device moves it away. But a device that moves it away itself does not
    /// delete it with the list.
    ///
    /// - Parameter path: The records that were in the record, directly or not.
    func deleters(of id: ModelRecord.ID, _ path: Set<ModelRecord.ID> = []) -> Set<Int> {
      // A list may have been in a list that was in it at another time.
      let path = path.union([id])
      for (list, place) in places[id] ?? [:] where !path.contains(list) {
        let others = deleters(of: list, path).subtracting(place.mover.map { [$0] } ?? [])
        if !others.isEmpty { return [0, 1, 2] }
      }
      return deleted[id] ?? []
    }

    /// Whether a record may have been deleted for a while on some device.
    func mayHaveBeenGone(_ id: ModelRecord.ID, _ path: Set<ModelRecord.ID> = []) -> Bool {
      let path = path.union([id])
      return deleted[id] != nil
        || (lists[id] ?? []).subtracting(path).contains { mayHaveBeenGone($0, path) }
    }

    /// Whether a deleted note may have come back with a tag that the device that deleted it did not know.
    func mayBeBack(_ id: ModelRecord.ID) -> Bool {
      taggers[id].map { $0.union(deleted[id] ?? []).count > 1 } ?? false
    }
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
      let notes = records.filter { $0.id.type == "Note" && !isSolo($0.id) }
      let lists = records.filter { $0.id.type == "List" }
      let references: [String: ModelValue] = [
        "list": pick(lists).map { .reference($0.id) } ?? .null,
        "next": pick(notes).map { .reference($0.id) } ?? .null,
      ]
      switch roll(20) {
      case 0, 1:
        _ = try await create(list(newName(), ["name": .text("n")]), device)
      case 2, 3, 4:
        let record = note(newName(), references.merging(["count": .integer(0)]) { $1 })
        try await create(record, device)
      case 5:
        guard let list = pick(lists), roll(2) == 0 else { return }
        try await removeList(list.id, device)
      case 6:
        guard let note = pick(notes), roll(2) == 0 else { return }
        try await remove(note.id, device)
      case 7, 8:
        guard let note = pick(notes) else { return }
        try await move(note, references, device)
      case 9:
        guard let note = pick(notes) else { return }
        try await device.edit(note.id, ["title": .text("\(roll(3))")])
      case 10:
        guard let note = pick(notes) else { return }
        expected.withLock { $0.counts[note.id, default: 0] += 1 }
        try await device.count(note.id)
      case 17, 18, 11:
        try await putListIntoList(lists, notes, device)
      case 12:
        guard let list = pick(lists) else { return }
        try await setSlug(of: list.id, "\(index)-\(roll(2))", device)
      case 13, 14:
        guard let list = pick(lists) else { return }
        try await replace(list, index)
      case 15:
        try await tag(pick(records.filter { isSolo($0.id) })?.id, index)
      case 16:
        guard let solo = pick(records.filter { isSolo($0.id) }) else { return }
        try await removeSolo(solo.id, index)
      default:
        guard let note = pick(notes) else { return }
        // Often the former value again.
        let value = Int64(roll(3))
        expected.withLock { $0.own[note.id, default: [:]][index] = value }
        try await device.edit(note.id, ["own\(index)": .integer(value)])
      }
    }

    private func index(of device: Device) -> Int {
      fleet.devices.firstIndex { $0 === device } ?? 0
    }

    private func create(_ record: ModelRecord, _ device: Device) async throws {
      expected.withLock {
        $0.created.insert(record.id)
        $0.place(record)
      }
      try await device.put(record)
    }

    /// Changes references of a record.
    private func move(
      _ record: ModelRecord, _ references: [String: ModelValue], _ device: Device
    ) async throws {
      var moved = record
      for (name, value) in references { moved[name] = value }
      let index = index(of: device)
      expected.withLock { [moved] in $0.move(record, to: moved, by: index) }
      try await device.edit(record.id, references)
    }

    /// Puts a list into another one, often into one that another device has deleted, and may move a note away from it.
    private func putListIntoList(
      _ lists: [ModelRecord], _ notes: [ModelRecord], _ device: Device
    ) async throws {
      guard let child = pick(lists) else { return }
      // Without circles.
      let possible = lists.filter { $0.id < child.id }
      let deleted = expected.withLock { $0.deleted }
      let parent = pick(possible.filter { deleted[$0.id] != nil }) ?? pick(possible)
      try await move(child, ["parent": parent.map { .reference($0.id) } ?? .null], device)
      guard roll(2) == 0, let note = pick(notes.filter { $0["list"] == .reference(child.id) })
      else { return }
      let new = list(newName())
      try await create(new, device)
      try await move(note, ["list": .reference(new.id)], device)
    }

    private func remove(_ id: ModelRecord.ID, _ device: Device) async throws {
      let index = index(of: device)
      expected.withLock { $0.delete(id, by: index) }
      for note in try await device.records where note["next"] == .reference(id) {
        try await device.edit(note.id, ["next": .null])
      }
      try await device.remove(id)
    }

    /// Deletes a list with everything in it, as an application does.
    private func removeList(_ id: ModelRecord.ID, _ device: Device) async throws {
      let index = index(of: device)
      expected.withLock { $0.delete(id, by: index) }
      for record in try await device.records {
        if record["list"] == .reference(id) { try await remove(record.id, device) }
        if record["parent"] == .reference(id) { try await removeList(record.id, device) }
      }
      try await device.remove(id)
    }

    /// Moves everything from a list to a new one, and deletes the list.
    private func replace(_ former: ModelRecord, _ index: Int) async throws {
      let device = fleet[index]
      var new = list(newName(), ["name": .text("r")])
      // Of two devices, only one gives this value to a list.
      if case .text(let slug) = former["slug"], slug.hasPrefix("\(index)-") {
        new["slug"] = .text(slug)
      }
      // The new one comes before what is in it, or after that.
      if roll(2) == 0 { try await create(new, device) }
      for record in try await device.records {
        for field in ["list", "parent"] where record[field] == .reference(former.id) {
          try await move(record, [field: .reference(new.id)], device)
        }
      }
      expected.withLock { $0.delete(former.id, by: index) }
      try await device.remove(former.id)
      if try await device.record(new.id) == nil { try await create(new, device) }
    }

    /// Gives a list a unique value, which another one gives up.
    private func setSlug(
      of id: ModelRecord.ID, _ slug: String, _ device: Device
    ) async throws {
      let own = try await device.record(id)?["slug"] ?? .null
      for list in try await device.records
      where list.id.type == "List" && list["slug"] == .text(slug) {
        let isOwn = own != .text(slug) && "\(own)".contains("\"\(slug.prefix(2))")
        try await device.edit(list.id, ["slug": isOwn ? own : .null])
      }
      try await device.edit(id, ["slug": .text(slug)])
    }

    /// Whether a note is in no list, and may have tags.
    private func isSolo(_ id: ModelRecord.ID) -> Bool {
      id.type == "Note" && id.identity.hasSuffix("solo")
    }

    /// Gives a note a tag, or a new one some.
    private func tag(_ id: ModelRecord.ID?, _ index: Int) async throws {
      var id = id
      if roll(2) == 0 || id == nil {
        let record = note(newName() + "solo")
        id = record.id
        try await create(record, fleet[index])
      }
      for _ in 0...roll(3) {
        guard let id else { return }
        expected.withLock { _ = $0.taggers[id, default: []].insert(index) }
        try await create(
          ModelRecord(type: "Tag", identity: newName(), fields: ["note": .reference(id)]),
          fleet[index])
      }
    }

    private func removeSolo(_ id: ModelRecord.ID, _ index: Int) async throws {
      for record in try await fleet[index].records where record["note"] == .reference(id) {
        try await remove(record.id, fleet[index])
      }
      try await remove(id, fleet[index])
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

  @Test(arguments: 0..<(chosen ?? 6))
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
      guard let record = byID[id] else {
        #expect(!expected.deleters(of: id).isEmpty, "seed \(seed): \(id) is missing")
        continue
      }
      // A device may have edited a record that was deleted and came back.
      guard !expected.mayHaveBeenGone(id), id.type == "Note" else { continue }
      if record["count"] != .null || expected.counts[id] != nil {
        #expect(
          record["count"] == .integer(expected.counts[id] ?? 0), "seed \(seed): \(id)")
      }
      for (index, value) in expected.own[id] ?? [:] {
        #expect(record["own\(index)"] == .integer(value), "seed \(seed): \(id) own\(index)")
      }
    }
    for id in expected.deleted.keys where !expected.mayBeBack(id) {
      #expect(byID[id] == nil, "seed \(seed): \(id) is there")
    }
  }
}
