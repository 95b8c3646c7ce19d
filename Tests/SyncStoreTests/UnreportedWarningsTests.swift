import SyncModel
import Testing

@testable import SyncStore

/// Edits are also sealed outside of a synchronization. Then the next one reports the warnings.
@Suite struct UnreportedWarningsTests {
  let scratch: Scratch

  init() throws { scratch = try Scratch() }

  private func device() throws -> Device {
    let device = try scratch.devices(
      1, "CREATE TABLE t (k TEXT PRIMARY KEY, v); INSERT INTO t VALUES ('a', 1), ('b', 2)")[0]
    try device.run("UPDATE t SET k = NULL WHERE k = 'a'")
    return device
  }

  private func expectOneReport(by device: Device) throws {
    #expect(try device.store.seal().warnings.map(\.code) == [.keyRestored])
    #expect(try device.store.seal().warnings == [])
  }

  @Test func aChangeOfPoliciesLeavesItsWarnings() throws {
    let device = try device()
    try device.store.setPolicies { $0.set(.ask, table: "t") }
    #expect(try device.rows("SELECT k FROM t ORDER BY k") == ["a", "b"])
    try expectOneReport(by: device)
  }

  @Test(arguments: [true, false])
  func aMigrationLeavesItsWarnings(writesFirst: Bool) throws {
    let device = try device()
    try device.run("ALTER TABLE t ADD COLUMN w")
    if writesFirst {
      try device.store.setRecord("x", to: [1])
    } else {
      _ = try device.store.status()
    }
    #expect(try device.rows("SELECT k FROM t ORDER BY k") == ["a", "b"])
    try expectOneReport(by: device)
  }

  /// As with `docsync status` between a migration and `docsync sync`.
  @Test func anotherProcessReportsThem() throws {
    let device = try device()
    try device.run("ALTER TABLE t ADD COLUMN w")
    try expectOneReport(by: device.changed(isOpen: false) { _ in })
    try device.run("UPDATE t SET k = NULL WHERE k = 'b'; ALTER TABLE t ADD COLUMN x")
    let second = try LocalStore.open(at: device.path)
    _ = try second.status()
    try second.close()
    let third = try LocalStore.open(at: device.path)
    #expect(try third.seal().warnings.map(\.code) == [.keyRestored])
    try third.close()
  }

  /// Two processes may leave warnings before one reports them.
  @Test func warningsAddUp() throws {
    let device = try device()
    try device.store.setPolicies { $0.set(.ask, table: "t") }
    try device.run("UPDATE t SET k = NULL WHERE k = 'b'")
    try device.store.setPolicies { $0.set(.latestWins, table: "t") }
    #expect(try device.store.seal().warnings.map(\.count) == [2])
  }

  @Test func whatSealingHidesIsReported() throws {
    let device = try scratch.devices(
      1,
      """
      CREATE TABLE p (k TEXT PRIMARY KEY); CREATE TABLE c (k TEXT PRIMARY KEY, p REFERENCES p);
      """)[0]
    try device.run("PRAGMA foreign_keys = OFF; INSERT INTO c VALUES ('c', 'gone')")
    let report = try device.store.seal()
    #expect(report.parkedRows == 1)
    #expect(report.warnings.map(\.code) == [.parked] && report.warnings.first?.table == "c")
  }
}
