import DocumentSync
import DocumentSyncModels
import Foundation
import Testing

/// What the application takes back after the mirror has taken it, and before that was acknowledged; and
/// what the mirror finds at its first call.
@Suite struct UndoneEditTests {
  /// The process of a device ends before a call of its adapter.
  private func end(_ device: Device, before call: String) async throws {
    await device.set { moment, _ in
      if moment == Moment(call: call, isBefore: true) { throw CancellationError() }
    }
    await #expect(throws: SyncError.self) { try await device.synchronize() }
    try await device.kill()
    await device.set { _, _ in }
  }

  @Test(arguments: [Device.Kind.memory, .json])
  func anEditThatIsTakenBackBeforeItsAcknowledgementIsTakenBackEverywhere(
    kind: Device.Kind
  ) async throws {
    let fleet = try ModelFleet([kind, .memory])
    let former = note("n", ["title": .text("a"), "count": .integer(5)])
    try await fleet[0].put(former)
    try await fleet.settle()
    try await fleet[0].edit(id("Note", "n"), ["title": .text("b"), "count": .integer(6)])
    try await end(fleet[0], before: "didUpload")
    try await fleet[0].put(former)
    #expect(try await fleet.expectEqual() == [former])
    // It counts once, also if the application goes on.
    try await fleet[0].count(id("Note", "n"))
    #expect(
      try await fleet.expectEqual()
        == [note("n", ["title": .text("a"), "count": .integer(6)])])
  }

  /// The edit waits, since its list is missing.
  @Test(arguments: [Device.Kind.memory, .json])
  func anEditThatWaitsIsTakenBack(kind: Device.Kind) async throws {
    let fleet = try ModelFleet([kind, .memory])
    try await fleet[0].put(note("n"))
    try await fleet.settle()
    try await fleet[0].edit(id("Note", "n"), ["list": .reference(id("List", "l"))])
    try await end(fleet[0], before: "didUpload")
    try await fleet[0].put(note("n"))
    #expect(try await fleet.expectEqual() == [note("n")])
    try await fleet[1].put(list("l"))
    #expect(try await fleet.expectEqual() == [list("l"), note("n")])
  }

  @Test(arguments: [Device.Kind.memory, .json])
  func aDeletionThatIsTakenBackBeforeItsAcknowledgementIsVoid(kind: Device.Kind) async throws {
    let fleet = try ModelFleet([kind, .memory])
    let former = note("n", ["title": .text("a")])
    try await fleet[0].put(former)
    try await fleet.settle()
    try await fleet[0].remove(id("Note", "n"))
    try await end(fleet[0], before: "didDelete")
    try await fleet[0].put(former)
    #expect(try await fleet.expectEqual() == [former])
    try await fleet[0].remove(id("Note", "n"))
    #expect(try await fleet.expectEqual() == [])
  }

  /// Both devices have joined before either has sent anything.
  @Test func theSecondModelGetsTheValuesThatHaveArrived() async throws {
    let fleet = try ModelFleet([.memory, .json])
    for device in fleet.devices { _ = try await device.open() }
    try await fleet[0].put(note("n", ["title": .text("first")]))
    try await fleet[0].synchronize()
    try await fleet[1].put(note("n", ["title": .text("second")]))
    #expect(try await fleet.expectEqual() == [note("n", ["title": .text("first")])])
  }

  @Test func anEmptyFileIsNoMirrorInTheWay() async throws {
    let fleet = try ModelFleet([.memory, .json])
    for device in fleet.devices {
      try Data().write(to: URL(fileURLWithPath: device.path))
      try await device.put(note(device.kind == .memory ? "a" : "b"))
      try await device.synchronize()
    }
    #expect(try await fleet.expectEqual() == [note("a"), note("b")])
  }
}
