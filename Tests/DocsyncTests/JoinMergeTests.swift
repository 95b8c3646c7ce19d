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

  /// SQLite lets most keys be NULL. No command refuses a table because of such rows.
  @Test func rowsWithNullInTheirKeyStayOnTheirDevices() throws {
    let table = "CREATE TABLE tag (name TEXT PRIMARY KEY, color TEXT)"
    try scratch.sql(
      "a.db", "\(table); INSERT INTO tag VALUES ('red', 'r'), (NULL, 'a'), (NULL, 'a')")
    let begun = try scratch.succeed("init", "a.db", "--directory", "shared", "--document", "tags")
    let sentence = "2 rows of tag with NULL in the key, as in tag.name, stay on this device."
    #expect(begun.output.contains(sentence))
    let warning = "rows of tag have NULL in their key"
    #expect(
      try scratch.succeed("sync", "a.db").output.contains(
        "warning: \(warning) and stay on this device (2 times)"))
    #expect(try !scratch.succeed("sync", "a.db").output.contains(warning))
    #expect(try scratch.succeed("status", "a.db").output.contains("2 rows of tag"))
    #expect(try scratch.docsync("verify", "a.db").output.contains("2 rows have NULL"))
    try scratch.sql("b.db", "\(table); INSERT INTO tag VALUES (NULL, 'b'), ('blue', 'b')")
    let joined = try scratch.succeed("join", "b.db", "--directory", "shared", "--merge")
    #expect(joined.output.contains("Rows with NULL in their key, which stay on this device:"))
    #expect(joined.output.contains("  1 row of tag"))
    try scratch.sql(
      "a.db",
      """
      UPDATE tag SET color = 'edited' WHERE name IS NULL;
      CREATE TABLE added (k TEXT PRIMARY KEY, v); INSERT INTO added VALUES (NULL, 1), ('x', 2);
      """)
    let synchronized = try scratch.succeed("sync", "a.db")
    let verified = try scratch.docsync("verify", "a.db")
    #expect(verified.status == 0 && verified.errors == "")
    for (name, found) in [
      ("tag", "2 rows have NULL in their key, so that no other device has them."),
      ("added", "1 row has NULL in its key, so that no other device has it."),
    ] {
      #expect(synchronized.output.contains("rows of \(name) have NULL in their key"))
      #expect(
        try scratch.succeed("status", "a.db").output.contains(
          "\(name == "tag" ? "2 rows" : "1 row") of \(name)"))
      #expect(verified.output.contains("note: \(found)\n  table: \(name)\n"), "\(verified.output)")
    }
    try scratch.sql("b.db", "CREATE TABLE added (k TEXT PRIMARY KEY, v)")
    try scratch.succeed("sync", "b.db")
    #expect(
      try ["a.db", "b.db"].map {
        try scratch.column($0, "SELECT color FROM tag WHERE name IS NULL")
      } == [["\"edited\"", "\"edited\""], ["\"b\""]])
    #expect(
      try scratch.column("b.db", "SELECT name FROM tag WHERE name NOT NULL ORDER BY 1")
        == ["\"blue\"", "\"red\""])
    #expect(try scratch.column("b.db", "SELECT v FROM added") == ["2"])
    let digests = try ["a.db", "b.db"].map {
      try #require(scratch.succeed("digest", $0, "--json").json()["visible"] as? String)
    }
    #expect(digests[0] == digests[1])
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
