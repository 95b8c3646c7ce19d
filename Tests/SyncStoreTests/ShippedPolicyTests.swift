import Foundation
import SyncModel
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
    try devices[0].store.apply(unconfirmed[1])
    try devices[1].store.apply(unconfirmed[0])
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
