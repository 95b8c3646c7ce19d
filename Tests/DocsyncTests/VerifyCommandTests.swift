import Foundation
import GRDB
import Testing

/// What `docsync verify` says, and how it ends.
@Suite struct VerifyCommandTests {
  let scratch: Scratch

  init() throws { scratch = try Scratch() }

  /// The path of a file below the shared directory that ends so.
  private func file(endingIn suffix: String) throws -> String {
    let names = try #require(FileManager.default.enumerator(atPath: scratch.path + "/shared"))
    let found = names.compactMap { $0 as? String }.sorted().first { $0.hasSuffix(suffix) }
    return try #require(found)
  }

  private func prepare() throws {
    try scratch.makeTwoDevices()
    try scratch.sql("a.db", "INSERT INTO notes (title) VALUES ('more')")
    try scratch.succeed("sync", "a.db", "b.db", "a.db")
  }

  @Test func nothingIsWrongWithWhatIsWhole() throws {
    try prepare()
    for arguments in [["a.db"], ["b.db"], ["--directory", "shared"]] {
      let result = try Executable.run(["verify"] + arguments, in: scratch.path)
      #expect(result.status == 0, "\(result.output)")
      #expect(result.output.contains("nothing is wrong"))
    }
  }

  @Test func damageIsNamedWithItsRemedyAndEndsWithOne() throws {
    try prepare()
    let path = try file(endingIn: ".syncchg")
    try Data("hello".utf8).write(to: URL(fileURLWithPath: scratch.path + "/shared/" + path))
    let result = try scratch.docsync("verify", "--directory", "shared")
    #expect(result.status == 1)
    #expect(result.output.contains("path: " + path) && result.output.contains("next: "))
    let json = try scratch.docsync("verify", "a.db", "--json").json()
    let findings = try #require(json["findings"] as? [[String: Any]])
    #expect(findings.map { $0["kind"] as? String } == ["wrongType"])
    #expect(findings.first?["path"] as? String == path)
    #expect(findings.first?["severity"] as? String == "error")
  }

  @Test func whatOnlyWaitsEndsWithThreeAndNotesDoNotCount() throws {
    try prepare()
    let shared = URL(fileURLWithPath: scratch.path + "/shared")
    try Data().write(to: shared.appendingPathComponent(".DS_Store"))
    #expect(try scratch.docsync("verify", "--directory", "shared").status == 0)
    try Data().write(to: shared.appendingPathComponent(".syncthing.README.txt.tmp"))
    let noted = try scratch.docsync("verify", "--directory", "shared")
    #expect(noted.status == 0 && noted.output.contains("note: "), "\(noted.output)")
    #expect(try scratch.docsync("verify", "a.db").status == 0)
    // A change set that has not arrived.
    try FileManager.default.removeItem(
      at: shared.appendingPathComponent(file(endingIn: ".syncchg")))
    let waiting = try scratch.docsync("verify", "b.db")
    #expect(waiting.status == 3, "\(waiting.output)")
  }

  @Test func directoryThatIsAwayEndsWithFour() throws {
    try prepare()
    try FileManager.default.moveItem(
      atPath: scratch.path + "/shared", toPath: scratch.path + "/away")
    #expect(try scratch.docsync("verify", "--directory", "shared").status == 4)
    #expect(try scratch.docsync("verify", "a.db").status == 4)
    let moved = try scratch.docsync("verify", "a.db", "--directory", "away")
    #expect(moved.status == 0, "\(moved.output)")
  }

  @Test func withoutStoreAndDirectoryTheUsageIsWrong() throws {
    #expect(try scratch.docsync("verify").status == 2)
  }

  @Test(
    .enabled(if: ReadOnlyFolder.isPossible, "needs chattr +i when run as root"),
    arguments: ["DELETE", "WAL"])
  func permissionToReadIsEnough(journalMode: String) throws {
    try prepare()
    try FileManager.default.createDirectory(
      atPath: scratch.path + "/kept", withIntermediateDirectories: false)
    try scratch.sql("a.db", "UPDATE notes SET title = 'last' WHERE id = 1")
    try scratch.succeed("sync", "a.db")
    try scratch.setJournalMode(journalMode, of: "a.db")
    try FileManager.default.copyItem(
      atPath: scratch.path + "/a.db", toPath: scratch.path + "/kept/a.db")
    try ReadOnlyFolder.with(scratch.path + "/kept") {
      try ReadOnlyFolder.with(scratch.path + "/shared") {
        let result = try scratch.docsync("verify", "kept/a.db", "--json")
        let findings = try result.json()["findings"] as? [[String: Any]]
        // It is a copy, and says so.
        #expect(findings?.map { $0["kind"] as? String } == ["storeMoved"], "\(result)")
        #expect(result.status == 0)
      }
    }
  }
}

extension Scratch {
  /// Sets how a database keeps its journal, which no transaction can.
  fileprivate func setJournalMode(_ mode: String, of store: String) throws {
    let queue = try DatabaseQueue(path: path + "/" + store)
    try queue.writeWithoutTransaction {
      try $0.execute(sql: "PRAGMA journal_mode = \(mode)")
    }
    try queue.close()
  }
}
