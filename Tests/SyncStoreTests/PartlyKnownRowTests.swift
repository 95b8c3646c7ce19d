import Foundation
import SyncModel
import Testing

@testable import SyncStore

/// Rows that come back on the device that has erased them.
@Suite struct PartlyKnownRowTests {
  let scratch: Scratch

  init() throws { scratch = try Scratch() }

  /// Two devices: the first one has deleted a note, the second one has edited it since.
  private func erased() throws -> (Device, Device) {
    let devices = try scratch.devices(
      2,
      """
      CREATE TABLE note (id TEXT PRIMARY KEY, a, b, c DEFAULT 7);
      INSERT INTO note VALUES ('x', 1, 2, 3);
      """)
    let (one, two) = (devices[0], devices[1])
    try one.setClock(offset: -100)
    try two.setClock(offset: -50)
    try one.run("DELETE FROM note WHERE id = 'x'")
    try two.run("UPDATE note SET a = 'new' WHERE id = 'x'")
    try one.receive(from: two)
    return (one, two)
  }

  @Test func restoringSaysWhichColumnsHaveTheirDefaults() throws {
    let (one, two) = try erased()
    #expect(try one.store.restoreConflict(1) == ["b", "c"])
    try converge([one, two], "SELECT a, b, c FROM note", ["new|NULL|7"])
  }

  @Test func theDeviceThatHasTheRowKnowsAllOfIt() throws {
    let (one, two) = try erased()
    try two.receive(from: one)
    #expect(try two.store.restoreConflict(1) == [])
    try converge([one, two], "SELECT a, b, c FROM note", ["new|2|3"])
  }

  @Test func valuesThatArrivedSinceAreTakenFromTheDeletedRow() throws {
    let (one, two) = try erased()
    try two.run("UPDATE note SET b = 'later' WHERE id = 'x'")
    try one.receive(from: two)
    #expect(try one.store.restoreConflict(1) == ["c"])
    try converge([one, two], "SELECT a, b, c FROM note", ["new|later|7"])
  }
}
