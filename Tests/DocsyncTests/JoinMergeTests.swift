import Foundation
import Testing

/// `docsync join --merge` as it is typed.
@Suite struct JoinMergeTests {
  let scratch: Scratch

  init() throws { scratch = try Scratch() }

  private static let table = "CREATE TABLE tag (name TEXT PRIMARY KEY, color TEXT)"

  private func makeDocument() throws {
    try scratch.sql(
      "a.db", "\(Self.table); INSERT INTO tag VALUES ('red', 'theirs'), ('blue', 'same')")
    try scratch.succeed("init", "a.db", "--directory", "shared", "--document", "tags")
    try scratch.sql(
      "b.db",
      "\(Self.table); INSERT INTO tag VALUES ('red', 'ours'), ('blue', 'same'), ('green', 'new')")
  }

  private func colors(_ store: String) throws -> [String] {
    try scratch.column(store, "SELECT color FROM tag ORDER BY name")
  }

  @Test(arguments: ["document", "local"])
  func rowsOfTheFileAreTakenAlong(prefer: String) throws {
    try makeDocument()
    try scratch.expectFailure(
      "join", "b.db", "--directory", "shared", status: 5, code: "fileExists", path: "b.db")
    let joined = try scratch.succeed(
      "join", "b.db", "--directory", "shared", "--merge", "--prefer", prefer)
    #expect(joined.output.contains("1 were new, 1 the same, and 1 had other values"))
    try scratch.succeed("sync", "a.db")
    let isLocal = prefer == "local"
    for store in ["a.db", "b.db"] {
      #expect(
        try colors(store).map { $0.replacing("\"", with: "") } == [
          "same", "new", isLocal ? "ours" : "theirs",
        ])
    }
    let lost = isLocal ? "theirs" : "ours"
    #expect(try scratch.succeed("conflicts", "b.db").output.contains(lost))
    let names = try FileManager.default.contentsOfDirectory(atPath: scratch.path)
    let backup = try #require(names.first { $0.hasPrefix("b.db.backup-") })
    #expect(try colors(backup).count == 3)
    #expect(!names.contains { $0.contains("docsync-tmp") })
    // It is under sync now.
    let again = try scratch.docsync("join", "b.db", "--directory", "shared", "--merge")
    #expect(again.status == 5)
    #expect(again.errors.contains("under sync already"))
  }

  @Test func columnsThatDifferAreNamedAndNothingIsChanged() throws {
    try makeDocument()
    try scratch.sql("c.db", "CREATE TABLE tag (name TEXT PRIMARY KEY, colour TEXT)")
    try scratch.expectFailure(
      "join", "c.db", "--directory", "shared", "--merge", status: 1, code: "storeUnsuitable",
      path: "c.db")
    let failed = try scratch.docsync("join", "c.db", "--directory", "shared", "--merge")
    #expect(failed.errors.contains("tag.colour exists only in the database"))
    #expect(failed.errors.contains("tag.color exists only in the document"))
  }
}
