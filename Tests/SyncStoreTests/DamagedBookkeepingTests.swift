import Foundation
import GRDB
import SyncModel
import Testing

@testable import SyncStore

/// A store of which part of the bookkeeping is gone.
@Suite struct DamagedBookkeepingTests {
  let scratch: Scratch

  init() throws { scratch = try Scratch() }

  private func devices() throws -> [Device] {
    try scratch.devices(2, "CREATE TABLE t (k TEXT PRIMARY KEY, v)")
  }

  private func error(_ body: () throws -> Void) -> StoreError? {
    do {
      try body()
      Issue.record("nothing was thrown")
    } catch let error as StoreError {
      return error
    } catch {
      Issue.record(error)
    }
    return nil
  }

  @Test func storeWithoutTheTableThatMakesItOneIsDamaged() throws {
    let device = try devices()[0]
    let path = device.path
    try device.store.close()
    try Program(path).run("DROP TABLE docsync_meta")
    for attempt in [
      { _ = try LocalStore.isUnderSync(at: path) }, { _ = try LocalStore.open(at: path) },
      { _ = try LocalStore.verify(at: path) },
    ] {
      let found = error(attempt)
      #expect(found?.code == .damaged)
      #expect(found?.path == path)
      #expect(found?.remedy.actions.contains(.joinReplacing) ?? false)
    }
  }

  @Test func tableOfTheApplicationMayHaveSuchAName() throws {
    let path = scratch.path + "/plain.db"
    try Program(path).run("CREATE TABLE docsync_client (id INTEGER PRIMARY KEY)")
    #expect(try !LocalStore.isUnderSync(at: path))
  }

  @Test(arguments: ["docsync_outbox", "docsync_client"])
  func missingTableIsNoMatterOfIntegrity(table: String) throws {
    let device = try devices()[0]
    try device.run("INSERT INTO t VALUES ('a', 1)")
    try Program(device.path).run("DROP TABLE \(table)")
    let found = error { _ = try device.store.seal() }
    #expect(found?.code == .damaged)
    #expect(found?.remedy.actions.contains(.verify) ?? false)
    #expect(found?.remedy.actions.contains(.joinReplacing) ?? false)
  }

  @Test func tableOfTheApplicationThatIsMissingIsNotTakenForOurs() {
    func code(_ table: String) -> StoreError.Code {
      StoreError(
        DatabaseError(resultCode: .SQLITE_ERROR, message: "no such table: \(table)"), path: "x"
      ).code
    }
    #expect(code("main.notes") == .sqlite)
    #expect(code("docsync_outbox") == .damaged)
    #expect(code("main.docsync_log_3") == .damaged)
  }

  @Test func fileThatMayNotBeReadIsSaidToBeSo() {
    let found = StoreError(reading: "x", CocoaError(.fileReadNoPermission))
    #expect(found.code == .notReadable)
    #expect(found.remedy.contains("may read"))
    #expect(StoreError(reading: "x", CocoaError(.fileWriteOutOfSpace)).code == .noSpace)
  }
}
