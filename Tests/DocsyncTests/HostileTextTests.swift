import Foundation
import Testing

/// Text of other devices and programs that a terminal would obey.
@Suite struct HostileTextTests {
  let scratch: Scratch

  init() throws { scratch = try Scratch() }

  /// An escape sequence, its one-character form, an override of direction, a
  /// carriage return.
  private static let hostile = "a\u{1B}[2Jb\u{9B}31mc\u{202E}d\re"

  private func expectHarmless(
    _ text: String, sourceLocation: SourceLocation = #_sourceLocation
  ) {
    let found = text.unicodeScalars.filter { scalar in
      scalar != "\n"
        && (scalar.properties.generalCategory == .control || scalar == "\u{202E}")
    }
    #expect(
      found.isEmpty, "\(found.map { String($0.value, radix: 16) })", sourceLocation: sourceLocation)
  }

  @Test func everyVerbShowsTextFromElsewhereAsText() throws {
    try scratch.sql(
      "a.db",
      """
      CREATE TABLE "t\(Self.hostile)" (id INTEGER PRIMARY KEY, "c\(Self.hostile)" TEXT);
      CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT UNIQUE);
      INSERT INTO notes VALUES (1, 'x');
      """)
    try scratch.succeed(
      "init", "a.db", "--directory", "shared", "--document", "n\(Self.hostile)")
    try scratch.succeed("join", "b.db", "--directory", "shared")
    try scratch.sql("a.db", "UPDATE notes SET text = 'A\(Self.hostile)'")
    try scratch.sql("a.db", "INSERT INTO \"t\(Self.hostile)\" VALUES (1, '\(Self.hostile)')")
    try scratch.sql("b.db", "UPDATE notes SET text = 'B\(Self.hostile)'")
    try scratch.sql("b.db", "INSERT INTO notes VALUES (2, '\(Self.hostile)')")
    for store in ["a.db", "b.db", "a.db"] { try scratch.succeed("sync", store) }

    var shown = 0
    for verb in [
      ["status", "a.db"], ["log", "b.db"], ["show", "a.db", "1"], ["show", "b.db", "1"],
      ["conflicts", "a.db"], ["conflicts", "b.db"], ["conflicts", "b.db", "show", "1"],
      ["documents", "--directory", "shared"], ["clients", "a.db"], ["verify", "a.db"],
      ["verify", "--directory", "shared"], ["sync", "a.db"], ["upload", "a.db"],
      ["vacuum", "a.db"],
      ["join", "c.db", "--directory", "shared", "--document", "no\(Self.hostile)"],
      ["delete-document", "n\(Self.hostile)", "--directory", "shared"],
      ["init", "b.db", "--directory", "shared", "--exclude", "no\(Self.hostile)"],
      ["leave", "b.db"],
    ] {
      for options in [[], ["--json"]] {
        let result = try Executable.run(verb + options, in: scratch.path)
        expectHarmless(result.output)
        expectHarmless(result.errors)
        if (result.output + result.errors).contains("u{1b}[2J") { shown += 1 }
      }
    }
    // Most of them show some of it.
    #expect(shown >= 8)
  }

  @Test func escapedTextIsTheSameTextInJSON() throws {
    try scratch.makeNotes("a.db")
    let name = "n\(Self.hostile)"
    let result = try scratch.succeed(
      "init", "a.db", "--directory", "shared", "--document", name, "--json")
    #expect(try result.json()["document"] as? String == name)
  }
}
