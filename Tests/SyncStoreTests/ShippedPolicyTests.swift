import Foundation
import SyncModel
import Synchronization
import Testing

@testable import SyncStore

/// Devices whose policies are functions of the library.
@Suite struct ShippedPolicyTests {
  let scratch: Scratch

  init() throws { scratch = try Scratch() }

  /// Devices that all merge the text of a note.
  private func devices(
    _ count: Int, _ policy: ConflictPolicy = .mergeText, text: String = "milk\nbread\n"
  ) throws -> [Device] {
    let devices = try scratch.devices(
      count,
      """
      CREATE TABLE note (id TEXT PRIMARY KEY, body TEXT, number INTEGER, up TEXT REFERENCES note);
      INSERT INTO note (id, body, number) VALUES ('x', '\(text)', 5);
      """)
    for device in devices { try device.setPolicy(policy, table: "note", column: "body") }
    return devices
  }

  private static let body = "SELECT replace(body, char(10), '/') FROM note"

  private func write(_ device: Device, _ text: String) throws {
    try device.run(
      "UPDATE note SET body = replace('\(text)', '/', char(10)) WHERE id = 'x'")
  }

  @Test func twoTextsAreMergedEverywhere() throws {
    let devices = try devices(2)
    try write(devices[0], "milk/bread/eggs/")
    try write(devices[1], "oat milk/bread/")
    try devices[1].receive(from: devices[0])
    #expect(try devices[1].rows(Self.body) == ["oat milk/bread/eggs/"])
    let conflict = try devices[1].store.conflict(1)
    #expect(conflict.rule == .resolve && conflict.outcome == .other && conflict.status == .settled)
    try converge(devices, Self.body, ["oat milk/bread/eggs/"])
    for device in devices { #expect(try device.sealsNothing()) }
  }

  /// A device that comes later decides about the text that the others have made.
  @Test func threeTextsAreMergedEverywhere() throws {
    let devices = try devices(3)
    try write(devices[0], "milk/bread/eggs/")
    try write(devices[1], "oat milk/bread/")
    try write(devices[2], "milk/rye bread/")
    try devices[1].receive(from: devices[0])
    try devices[2].receive(from: devices[0])
    #expect(try devices[2].rows(Self.body) == ["milk/rye bread/eggs/"])
    // The third one has decided, too, and has not published what it decided.
    try devices[2].receive(from: devices[1])
    try converge(devices, Self.body, ["oat milk/rye bread/eggs/"])
    for device in devices { #expect(try device.sealsNothing()) }
  }

  /// What each device has made of the lines of notes: of some notes, different lines, so that the result does not
  /// depend on the order; of others, any.
  private struct Notes {
    private var generator = SeededGenerator(seed: 11)
    private var count = 0
    let base: [[String]]
    private(set) var texts: [[[String]]]
    /// The number of notes of which each device changes other lines.
    static let separate = 6

    init() {
      base = (0..<2 * Self.separate).map { note in (0..<5).map { "n\(note) w\($0)" } }
      texts = []
      for device in 0..<3 {
        texts.append(
          base.indices.map { note in
            var text = base[note]
            change(&text, note, device)
            return text
          })
      }
    }

    private mutating func change(_ text: inout [String], _ note: Int, _ device: Int) {
      let fresh = "n\(note) d\(device) \(generator.below(100))"
      guard note >= Self.separate else {
        text[2 * device] = generator.below(2) == 0 ? fresh : text[2 * device] + " " + fresh
        // All have added this line.
        if device > 0 || generator.below(2) == 0 { text.append("n\(note) common") }
        return
      }
      for _ in 0..<2 {
        let place = generator.below(text.count)
        switch generator.below(4) {
        case 0: text.remove(at: place)
        case 1: text.insert("n\(note) common", at: place)
        case 2: text[place] += " " + fresh
        default: text[place] = fresh
        }
        if Set(text).count < text.count { text = Array(Set(text)).sorted() }
      }
    }
  }

  /// Whichever device decides first, and whichever text it gets first, all devices have one text, and no line twice.
  @Test(
    arguments: [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]], [false, true])
  func threeDevicesMergeInAnyOrder(order: [Int], inOnePass: Bool) throws {
    let notes = Notes()
    let devices = try scratch.devices(3, "CREATE TABLE note (id TEXT PRIMARY KEY, body TEXT)")
    func write(_ device: Device, _ texts: [[String]]) throws {
      for (note, lines) in texts.enumerated() {
        let text = lines.joined(separator: "' || char(10) || '")
        try device.run(
          "INSERT INTO note VALUES ('\(note)', '\(text)') ON CONFLICT DO UPDATE SET body = excluded.body"
        )
      }
    }
    try write(devices[0], notes.base)
    try exchange(devices)
    for (device, texts) in zip(devices, notes.texts) {
      try device.setPolicy(.mergeText, table: "note", column: "body")
      try write(device, texts)
    }
    let ordered = order.map { devices[$0] }
    try ordered[1].receive(from: ordered[0])
    if inOnePass {
      try ordered[2].receive(from: ordered[0], ordered[1])
    } else {
      try ordered[2].receive(from: ordered[0])
      try ordered[2].receive(from: ordered[1])
    }
    try converge(devices)
    for device in devices { #expect(try device.sealsNothing()) }
    let merged = try devices[0].rows("SELECT body FROM note ORDER BY CAST(id AS INTEGER)")
      .map { $0.components(separatedBy: "\n") }
    for (note, lines) in merged.enumerated() {
      #expect(Set(lines).count == lines.count, "\(notes.texts.map { $0[note] }) becomes \(lines)")
      guard note < Notes.separate else { continue }
      let changed = (0..<3).map { notes.texts[$0][note] }
      #expect(
        lines == [
          changed[0][0], notes.base[note][1], changed[1][2], notes.base[note][3], changed[2][4],
          "n\(note) common",
        ])
    }
  }

  /// An upload whose end is unknown: the other device has the edit, and this one takes it for unpublished.
  @Test(arguments: [
    ("milk/bread/eggs/", "oat milk/bread/", "oat milk/bread/eggs/"),
    // Nothing in common, in either order.
    ("one/", "two/", "one/two/"), ("two/", "one/", "one/two/"),
  ])
  func twoThatDecideTheSameConflictAgree(first: String, second: String, merged: String) throws {
    let devices = try devices(2)
    try write(devices[0], first)
    try write(devices[1], second)
    let unconfirmed = try devices.map { device in
      try device.store.seal().changeSets.map { sealed in
        let bytes = try device.store.sealedBytes(sealed.number)
        return ReceivedChangeSet(
          changeSet: try ChangeSetCodec.decode(bytes), hash: ContentHash(of: bytes), bytes: bytes)
      }
    }
    _ = try devices[0].store.apply(unconfirmed[1])
    _ = try devices[1].store.apply(unconfirmed[0])
    for device in devices {
      #expect(try device.rows(Self.body) == [merged])
      #expect(try device.store.conflict(1).rule == .resolve)
    }
    try converge(devices, Self.body, [merged])
    for device in devices {
      #expect(try device.sealsNothing())
      #expect(try device.store.conflicts().count == 1)
    }
  }

  @Test func valuesThatCannotBeMergedAreLeftToTheStamps() throws {
    let devices = try devices(2, .mergeJSON, text: "{}")
    try devices[0].setClock(offset: -50)
    try devices[1].setClock(offset: -100)
    try write(devices[0], "later")
    try write(devices[1], "{}")
    try write(devices[1], "earlier")
    try devices[1].receive(from: devices[0])
    let conflict = try devices[1].store.conflict(1)
    #expect(conflict.rule == .resolve && conflict.outcome == .remote && conflict.status == .settled)
    #expect(conflict.message?.contains("cannot merge") == true)
    try converge(devices, Self.body, ["later"])
  }

  /// A text that no change set can carry would stay on the device that made it.
  @Test(arguments: [29_000, 30_000])
  func aTextThatIsTooLargeIsNotMade(length: Int) throws {
    var options = StoreOptions.patient
    options.limits.memoryBytes = 64 << 10
    let devices = try scratch.devices(
      2, "CREATE TABLE note (id TEXT PRIMARY KEY, body TEXT); INSERT INTO note VALUES ('x', '')",
      options: options)
    for (device, offset) in zip(devices, [-50.0, -100]) {
      try device.setPolicy(.mergeText, table: "note", column: "body")
      try device.setClock(offset: offset)
    }
    func text(_ letter: Character) -> String { String(repeating: letter, count: length / 2) }
    try write(devices[0], text("b"))
    try write(devices[1], text("a"))
    let report = try devices[1].receive(from: devices[0])
    let conflict = try devices[1].store.conflict(1)
    #expect(conflict.rule == .resolve)
    if length < 29_484 {
      #expect(report.warnings.isEmpty && conflict.status == .settled)
      try converge(devices, Self.body, [text("a") + "/" + text("b")])
    } else {
      #expect(report.warnings.map(\.code) == [.policyFailed] && conflict.status == .open)
      #expect(conflict.message?.contains("29484 can be sent") == true, "\(conflict.message ?? "")")
      try converge(devices, Self.body, [text("b")])
    }
    for device in devices {
      #expect(try device.sealsNothing())
      #expect(try device.store.status().heldEdits.isEmpty)
    }
  }

  /// The function has to check many times: the sealing after it checks a few times as well.
  @Test func aFunctionIsCancelledAndDecidesLater() throws {
    func text(_ first: String, _ last: String) -> String {
      (0..<100).map { "\(first) \($0) \(last)/unchanged \($0)/" }.joined()
    }
    let devices = try devices(2, text: "")
    try write(devices[0], text("a", "b"))
    try exchange(devices)
    try write(devices[0], text("new", "b"))
    try write(devices[1], text("a", "new"))
    // An application without functions is asked before the function begins.
    let checks = Mutex<Int?>(nil)
    devices[1].store.setResolver { _, _ in
      checks.withLock { $0 = 0 }
      return nil
    }
    let applied = try devices[1].store.appliedVector().number(of: devices[0].store.binding.client)
    let received = try devices[0].outgoing(after: applied)
    #expect(throws: CancellationError.self) {
      try devices[1].store.apply(
        received,
        checkCancellation: {
          let count = checks.withLock { count in
            count = count.map { $0 + 1 }
            return count ?? 0
          }
          if count == 100 { throw CancellationError() }
        })
    }
    #expect(try devices[1].rows(Self.body) == [text("a", "new")])
    try devices[1].receive(from: devices[0])
    try converge(devices, Self.body, [text("new", "new")])
  }

  @Test func applicationsFunctionOfTheSameNameDecides() throws {
    let devices = try devices(2)
    devices[1].store.setResolver { name, _ in name == "mergeText" ? .text("mine") : nil }
    try write(devices[0], "one")
    try write(devices[1], "two")
    try devices[1].receive(from: devices[0])
    try converge(devices, Self.body, ["mine"])
  }

  @Test func tablePolicyConcernsTheValuesThatItCanMerge() throws {
    let devices = try devices(2, .latestWins)
    try devices[1].setPolicy(.mergeText, table: "note")
    try devices[1].store.setPolicies { $0.set(nil, table: "note", column: "body") }
    try devices[0].setClock(offset: -50)
    try devices[1].setClock(offset: -100)
    try devices[0].run("UPDATE note SET body = 'one', number = 1")
    try devices[1].run("UPDATE note SET body = 'two', number = 2")
    try devices[1].receive(from: devices[0])
    try converge(devices, "SELECT replace(body, char(10), '/'), number FROM note", ["one/two|1"])
  }

  @Test(arguments: [
    (ConflictPolicy.max, "number", true), (.min, "body", true), (.mergeText, "body", true),
    (.mergeText, "number", false), (.mergeJSON, "number", false), (.unionOfLines, "number", false),
    (.mergeText, "up", false), (.max, "up", false), (.resolve("own"), "up", true),
  ])
  func functionForOtherValuesIsRefused(
    policy: ConflictPolicy, column: SQLName, isSuitable: Bool
  ) throws {
    let device = try devices(1)[0]
    let before = try device.store.policies()
    do {
      try device.setPolicy(policy, table: "NOTE", column: column)
      #expect(isSuitable)
    } catch let error as StoreError {
      #expect(!isSuitable && error.code == .badPolicy, "\(error)")
      #expect(error.message.contains("\"\(column)\"") || error.message.contains("\(column)"))
      #expect(try device.store.policies() == before)
    }
  }
}
