import Foundation
import SyncModel
import Testing

@testable import SyncStore

/// Stores that earlier versions put under sync: `Fixtures/Stores` has, of each
/// layout, a device's store and a whole store, as SQL.
@Suite struct FormerFormatTests {
  let scratch: Scratch

  init() throws { scratch = try Scratch() }

  private func fixture(
    _ name: String, of format: Int = 1, as copy: String? = nil
  ) throws -> String {
    let folder = URL(filePath: #filePath).deletingLastPathComponent()
      .appending(path: "../../Fixtures/Stores/v\(format)").standardized
    let path = scratch.path + "/\(copy ?? name).db"
    try Program(path).run(
      String(contentsOf: folder.appending(path: "\(name).sql"), encoding: .utf8))
    return path
  }

  /// A device that joins by a whole store of the document that another one has.
  private func joining(_ first: Device, at whole: String) throws -> Device {
    let binding = first.store.binding
    return try Device(
      store: LocalStore.adopt(
        snapshotAt: whole,
        binding: StoreBinding(
          application: binding.application, root: binding.root, directory: scratch.path,
          documentIdentifier: binding.documentIdentifier, document: binding.document,
          generation: binding.generation, generationOrdinal: binding.generationOrdinal,
          client: .random(), clientDescription: "third")),
      path: whole)
  }

  private let format = "SELECT CAST(value AS TEXT) FROM docsync_meta WHERE key = 'format'"
  private let articles = "SELECT name, stock FROM article ORDER BY name"

  @Test func aStoreIsBroughtToTheNewLayoutWhenItIsOpened() throws {
    let path = try fixture("device")
    #expect(try Program(path).rows(format) == ["1"])
    for _ in 1...2 {
      let store = try LocalStore.open(at: path)
      #expect(try Program(path).rows(format) == ["4"])
      for table in ["docsync_early", "docsync_aside", "docsync_plain"] {
        #expect(try Program(path).rows("SELECT count(*) FROM \(table)") == ["0"])
      }
      try store.close()
    }
    #expect(try LocalStore.verify(at: path).report.findings == [])
  }

  @Test func anEarlierLayoutIsNoDamage() throws {
    let path = try fixture("device")
    let before = try Data(contentsOf: URL(filePath: path))
    let report = try LocalStore.verify(at: path).report
    #expect(report.findings == [])
    #expect(
      report.leftOut == [
        "the rows, since some edits are not sent yet. Verify again after the next synchronization."
      ])
    #expect(try Data(contentsOf: URL(filePath: path)) == before)
    try Program(path).run("DROP TABLE docsync_lost")
    #expect(try LocalStore.verify(at: path).report.findings.map(\.kind) == [.bookkeepingDamaged])
  }

  /// What the device had not sent, what others edit, and their whole stores.
  @Test func whatAnEarlierVersionLeftIsSynchronized() throws {
    let path = try fixture("device")
    let first = try Device(store: LocalStore.open(at: path), path: path)
    let second = try joining(first, at: fixture("whole"))
    #expect(try second.rows(format) == ["4"])
    #expect(try second.rows(articles) == ["rice|20", "tea|12"])
    try second.run("UPDATE article SET stock = stock + 10 WHERE name = 'rice'")
    try second.receive(from: first)
    try first.receive(from: second)
    for device in [first, second] {
      #expect(try device.rows(articles) == ["oil|4", "rice|29", "tea|12"])
      try device.checkIntegrity()
    }
    try first.run("UPDATE article SET stock = stock + 1 WHERE name = 'oil'")
    _ = try first.store.replaceContent(withSnapshotAt: fixture("whole", as: "another"))
    #expect(try first.rows(articles) == ["oil|4", "rice|19", "tea|12"])
    #expect(try first.rows(format) == ["4"])
    try first.receive(from: second)
    #expect(try first.rows(articles) == ["oil|5", "rice|29", "tea|12"])
  }

  @Test func aTriggerOfAnEarlierBuildThatLogsNothingIsFound() throws {
    let path = try fixture("device")
    let id = try Program(path).rows("SELECT id FROM docsync_table WHERE name = 'article'")[0]
    try Program(path).run(
      """
      DROP TRIGGER docsync_\(id)_ad;
      CREATE TRIGGER docsync_\(id)_ad AFTER DELETE ON article BEGIN SELECT 1; END;
      """)
    #expect(try LocalStore.verify(at: path).report.findings.map(\.kind) == [.triggersOutOfDate])
  }

  /// Triggers of earlier builds name columns so that SQLite refuses to drop them.
  @Test func triggersOfAnEarlierBuildAreMadeAgain() throws {
    let path = try fixture("device")
    let drop = "ALTER TABLE article DROP COLUMN amount"
    try Program(path).run(
      """
      ALTER TABLE article RENAME COLUMN stock TO amount;
      UPDATE article SET amount = amount + 1 WHERE name = 'oil';
      """)
    #expect(throws: (any Error).self) { try Program(path).run(drop) }
    let first = try Device(store: LocalStore.open(at: path), path: path)
    #expect(try first.store.remadeTables().isEmpty)
    let second = try joining(first, at: fixture("whole"))
    try second.receive(from: first)
    #expect(try second.rows(articles).contains("oil|5"))
    try first.run("\(drop); UPDATE article SET name = 'olive oil' WHERE name = 'oil'")
    try second.receive(from: first)
    #expect(try second.rows(articles).contains("olive oil|5"))
    try first.checkIntegrity()
  }

  /// Until format 4 a row of a join table whose key is made of references waited for a tag that
  /// lost its name.
  @Test func rowsThatWaitedForATagAreShownWithItsStandIn() throws {
    let path = try fixture("device", of: 3)
    let tags = "SELECT note, name, text FROM note_tag JOIN tag ON tag = id ORDER BY note"
    #expect(try Program(path).rows(tags) == ["n|red|b"])
    #expect(try LocalStore.verify(at: path).report.findings == [])
    let first = try Device(store: LocalStore.open(at: path), path: path)
    _ = try first.store.seal()
    let shown = ["m|red|y", "n|red|b"]
    #expect(try first.rows(tags) == shown)
    try first.checkIntegrity()

    let second = try joining(first, at: fixture("whole", of: 3))
    _ = try second.store.seal()
    #expect(try second.rows(tags) == shown)
    #expect(try second.store.digest().visible == first.store.digest().visible)

    _ = try second.store.replaceContent(withSnapshotAt: fixture("whole", of: 3, as: "another"))
    _ = try second.store.seal()
    #expect(try second.rows(tags) == shown)
    try second.checkIntegrity()
  }

  @Test func aStoreThatNoVersionMadeIsRefused() throws {
    for value in ["X'30'", "X'2d31'", "X'61'", "NULL"] {
      let path = try fixture("device")
      try Program(path).run("UPDATE docsync_meta SET value = \(value) WHERE key = 'format'")
      #expect(throws: StoreError.self) { try LocalStore.open(at: path) }
      #expect(try LocalStore.verify(at: path).report.findings.map(\.kind) == [.bookkeepingDamaged])
      try FileManager.default.removeItem(atPath: path)
    }
  }
}
