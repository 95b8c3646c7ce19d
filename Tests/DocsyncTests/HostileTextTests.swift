import Foundation
import SyncModel
import Testing

@testable import DocumentSync

/// Text of other devices and programs that a terminal would obey.
@Suite struct HostileTextTests {
  let scratch: Scratch

  init() throws { scratch = try Scratch() }

  /// An escape sequence, its one-character form, an override of direction, a
  /// carriage return, an isolate of direction, and a line that looks like one of the command's own.
  private static let hostile = "a\u{1B}[2Jb\u{9B}31mc\u{202E}d\re\u{2066}f\n  next: f"

  /// What changes the direction of the text after it.
  private static let directions: [ClosedRange<Unicode.Scalar>] = [
    "\u{202A}"..."\u{202E}", "\u{2066}"..."\u{2069}",
  ]

  private func expectHarmless(
    _ text: String, sourceLocation: SourceLocation = #_sourceLocation
  ) {
    let found = text.unicodeScalars.filter { scalar in
      scalar != "\n"
        && (scalar.properties.generalCategory == .control
          || Self.directions.contains { $0.contains(scalar) })
    }
    #expect(
      found.isEmpty, "\(found.map { String($0.value, radix: 16) })", sourceLocation: sourceLocation)
    let forged = text.split(separator: "\n").filter {
      $0.drop { $0 == " " }.hasPrefix("next: f")
    }
    #expect(forged.isEmpty, sourceLocation: sourceLocation)
  }

  /// What the command writes for the hostile text.
  private static let escaped =
    "a\\u{1b}[2Jb\\u{9b}31mc\\u{202e}d\\u{d}e\\u{2066}f\\u{a}  next: f"

  /// Two devices, `a.db` and `b.db`, with hostile text wherever a user or a device can put it: the
  /// names of the application, of the document, of both devices, of tables and columns, and values.
  /// They have a conflict and rows with the same unique value.
  private func makeDevices() throws {
    try scratch.sql(
      "a.db",
      """
      CREATE TABLE "t\(Self.hostile)" (id INTEGER PRIMARY KEY, "c\(Self.hostile)" TEXT);
      CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT UNIQUE);
      INSERT INTO notes VALUES (1, 'x');
      """)
    try scratch.succeed(
      "init", "a.db", "--directory", "shared", "--document", "n\(Self.hostile)",
      "--application", "app\(Self.hostile)", "--client", "A")
    try scratch.succeed("join", "b.db", "--directory", "shared", "--client", "B")
    try renameClients()
    try scratch.sql("a.db", "UPDATE notes SET text = 'A\(Self.hostile)'")
    try scratch.sql("a.db", "INSERT INTO \"t\(Self.hostile)\" VALUES (1, '\(Self.hostile)')")
    try scratch.sql("b.db", "UPDATE notes SET text = 'B\(Self.hostile)'")
    try scratch.sql("b.db", "INSERT INTO notes VALUES (2, '\(Self.hostile)')")
    for store in ["a.db", "b.db", "a.db"] { try scratch.succeed("sync", store) }
  }

  /// Gives all devices names that the command refuses to give: what other software would
  /// write into the directory, and into the store of each.
  private func renameClients() throws {
    let folder = scratch.path + "/shared/ClientDevices"
    let names = try FileManager.default.contentsOfDirectory(atPath: folder)
    #expect(names.count >= 2)
    for name in names {
      let url = URL(fileURLWithPath: folder + "/" + name)
      var file = try Envelope.decodeJSON(
        ClientFile.self, from: Array(Data(contentsOf: url)), type: .clientDevice)
      file.description = String(file.description.prefix(1)) + Self.hostile
      file.platform = "p" + Self.hostile
      try Data(try Envelope.encodeJSON(file, type: .clientDevice)).write(to: url)
      try scratch.sql(
        file.description.prefix(1).lowercased() + ".db",
        """
        UPDATE docsync_meta SET value = CAST(json_set(
          CAST(value AS TEXT), '$.clientDescription', '\(file.description)') AS BLOB)
        WHERE key = 'binding'
        """)
    }
  }

  /// Runs verbs; returns those that showed hostile text, escaped, in their text.
  private func showing(
    _ verbs: [[String]], withOptions options: [[String]],
    sourceLocation: SourceLocation = #_sourceLocation
  ) throws -> Set<String> {
    var showing: Set<String> = []
    for verb in verbs {
      for options in options {
        let result = try Executable.run(verb + options, in: scratch.path)
        expectHarmless(result.output, sourceLocation: sourceLocation)
        expectHarmless(result.errors, sourceLocation: sourceLocation)
        if (result.output + result.errors).contains(Self.escaped) { showing.insert(verb[0]) }
      }
    }
    return showing
  }

  @Test func everyVerbShowsTextFromElsewhereAsText() throws {
    try makeDevices()
    try scratch.sql("a.db", "INSERT INTO \"t\(Self.hostile)\" VALUES (2, '')")
    let verbs = [
      ["status", "a.db"], ["pending", "a.db"], ["log", "b.db"], ["show", "a.db", "1"],
      ["show", "b.db", "1"],
      ["conflicts", "a.db"], ["conflicts", "b.db"], ["conflicts", "b.db", "show", "1"],
      ["documents", "--directory", "shared"], ["clients", "a.db"], ["verify", "a.db"],
      ["verify", "--directory", "shared"], ["sync", "a.db"], ["upload", "a.db"],
      ["vacuum", "a.db"], ["digest", "a.db"],
      ["join", "c.db", "--directory", "shared", "--document", "no\(Self.hostile)"],
      ["join", "c.db", "--directory", "shared", "--application", "no\(Self.hostile)"],
      ["delete-document", "n\(Self.hostile)", "--directory", "shared"],
      ["init", "b.db", "--directory", "shared", "--exclude", "no\(Self.hostile)"],
      ["retire", "a.db", "--client", "no\(Self.hostile)"],
      ["remove-client", "a.db", "B\(Self.hostile)"],
      ["remove-client", "a.db", "no\(Self.hostile)"], ["reset", "a.db"],
      ["remove-all", "--directory", "shared"],
      ["remove-all", "--directory", "shared", "--application", "no\(Self.hostile)"],
      ["leave", "b.db"],
    ]
    let showing = try showing(verbs, withOptions: [["--json"], []])
    // The others show nothing that comes from elsewhere.
    #expect(
      Set(verbs.map { $0[0] }).subtracting(showing).sorted()
        == ["digest", "sync", "upload", "verify"])
  }

  @Test func whatWasDestroyedIsShownAsText() throws {
    try makeDevices()
    let ofB = try #require(
      try Executable.run(["status", "b.db", "--json"], in: scratch.path).json()["client"]
        as? String)
    try scratch.succeed("join", "c.db", "--directory", "shared", "--client", "C")
    try renameClients()
    let verbs = [
      ["remove-client", "a.db", "C\(Self.hostile)", "--yes"], ["retire", "a.db", "--client", ofB],
      // They are told that they were removed, or that the document begins again.
      ["sync", "a.db"], ["sync", "b.db"], ["sync", "c.db"], ["clients", "a.db"],
      ["reset", "a.db", "--yes"], ["sync", "b.db"], ["status", "b.db"],
      ["delete-document", "n\(Self.hostile)", "--directory", "shared", "--yes"],
      ["documents", "--directory", "shared"], ["sync", "b.db"], ["leave", "b.db", "--yes"],
      ["remove-all", "--directory", "shared", "--yes"],
    ]
    let showing = try showing(verbs, withOptions: [[]]).sorted()
    #expect(
      showing
        == [
          "clients", "delete-document", "documents", "leave", "remove-client", "reset", "retire",
          "status", "sync",
        ])
  }

  @Test(arguments: [
    ["remove-client", "a.db", "B\(hostile)"], ["reset", "a.db"],
    ["delete-document", "n\(hostile)", "--directory", "shared"],
    ["remove-all", "--directory", "shared"], ["leave", "b\(hostile).db"],
    ["init", "refers\(hostile).db", "--directory", "shared"],
  ]) func questionsShowTextFromElsewhereAsText(arguments: [String]) throws {
    try makeDevices()
    try FileManager.default.moveItem(
      atPath: scratch.path + "/b.db", toPath: scratch.path + "/b\(Self.hostile).db")
    try scratch.sql(
      "refers\(Self.hostile).db",
      """
      CREATE TABLE "t\(Self.hostile)" (id INTEGER PRIMARY KEY, text);
      CREATE TABLE "u\(Self.hostile)" (id INTEGER PRIMARY KEY, "t\(Self.hostile)_id" INTEGER);
      """)
    let result = try Terminal.run(
      arguments, answer: "no\n", in: scratch.path, after: "export NO_COLOR=1")
    #expect(result.errors.contains("to go on: "), "\(result.errors)")
    #expect(result.errors.contains(Self.escaped), "\(result.errors)")
    expectHarmless(result.errors)
    expectHarmless(result.output)
  }

  @Test func escapedTextIsTheSameTextInJSON() throws {
    try scratch.makeNotes("a.db")
    let name = "n\(Self.hostile)"
    let result = try scratch.succeed(
      "init", "a.db", "--directory", "shared", "--document", name, "--json")
    #expect(try result.json()["document"] as? String == name)
  }
}
