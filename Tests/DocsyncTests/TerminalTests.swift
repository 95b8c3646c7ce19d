import Foundation
import Testing

/// What destroys asks on a terminal, and does it only if “yes” is typed.
@Suite struct TerminalTests {
  /// A verb that destroys something, and what the question says.
  struct Question: Sendable, CustomTestStringConvertible {
    var arguments: [String]
    var says: [String]
    /// What it prints when it was allowed to.
    var result: String
    var testDescription: String { arguments[0] }
  }

  static let questions = [
    Question(
      arguments: ["leave", "b.db"],
      says: ["takes b.db out of sync", "1 edit will be sent before"],
      result: "b.db is an ordinary database again."),
    Question(
      arguments: ["remove-client", "a.db", "B"],
      says: ["removes “B” (", "last synchronized 20"], result: "is removed."),
    Question(
      arguments: ["reset", "a.db"],
      says: [
        "starts the document “notes” again, from a.db", "1 device will have to download it again",
        "  B (", "files, ",
      ], result: "“notes” begins again, as generation 2"),
    Question(
      arguments: ["delete-document", "notes", "--directory", "shared"],
      says: ["deletes the document “notes”", "2 devices will be notified"],
      result: "Deleted “notes”: "),
    Question(
      arguments: ["remove-all", "--directory", "shared"],
      says: ["1 document: “notes”", "the descriptions of 2 devices"], result: "Removed"),
  ]

  @Test(arguments: questions)
  func whatDestroysAsksAndDoesItIfTheAnswerIsYes(question: Question) throws {
    let scratch = try Scratch()
    try scratch.makeTwoDevices()
    try scratch.sql("b.db", "UPDATE notes SET title = 'x' WHERE id = 1")
    let before = try scratch.contents()
    for answer in ["no\n", "y\n", "\n", "\u{4}"] {
      let refused = try Terminal.run(question.arguments, answer: answer, in: scratch.path)
      #expect(refused.status == 5 && refused.output == "", "\(refused.errors)")
      #expect(refused.errors.contains("Nothing was changed."))
      for text in question.says { #expect(refused.errors.contains(text), "\(refused.errors)") }
    }
    #expect(try scratch.contents() == before)
    let done = try Terminal.run(question.arguments, answer: "yes\n", in: scratch.path)
    #expect(done.status == 0, "\(done.errors)")
    #expect(done.output.contains(question.result), "\(done.output)")
    #expect(try scratch.contents() != before)
  }

  @Test(arguments: questions)
  func withJSONTheUserIsNotAsked(question: Question) throws {
    let scratch = try Scratch()
    try scratch.makeTwoDevices()
    let result = try Terminal.run(
      question.arguments + ["--json"], answer: "yes\n", in: scratch.path)
    #expect(result.status == 5 && result.errors == "")
    #expect(
      (try result.json()["error"] as? [String: Any])?["code"] as? String
        == "confirmationNeeded")
  }

  @Test(arguments: [
    ("unset NO_COLOR; export TERM=xterm", true), ("export NO_COLOR=1 TERM=xterm", false),
    ("unset NO_COLOR; export TERM=dumb", false),
  ])
  func errorsHaveColoursOnATerminalThatWantsThem(shell: String, hasColours: Bool) throws {
    let scratch = try Scratch()
    let errors = try Terminal.run(
      ["sync", "none.db"], answer: "", in: scratch.path, after: shell
    ).errors
    #expect(errors.contains("docsync: ") && errors.contains("next: "), "\(errors)")
    #expect(errors.contains("\u{1B}[1;31mdocsync: \u{1B}[0m") == hasColours, "\(errors)")
    #expect(errors.contains("\u{1B}") == hasColours, "\(errors)")
    let piped = try Executable.run(["sync", "none.db"], in: scratch.path, after: shell)
    #expect(!piped.errors.contains("\u{1B}"), "\(piped.errors)")
  }

  /// Both may go to one terminal, where the bar would stand in the object. The bar appears after a
  /// tenth of a second, so the database is large.
  @Test(arguments: [false, true], [80, 24] as [UInt16])
  func progressBarFitsTheTerminalAndIsNotDrawnWithJSON(isJSON: Bool, columns: UInt16) throws {
    let scratch = try Scratch()
    try scratch.sql(
      "big.db",
      """
      CREATE TABLE notes (id INTEGER PRIMARY KEY, title TEXT);
      WITH RECURSIVE number(n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM number LIMIT 500000)
      INSERT INTO notes SELECT n, 'note ' || n FROM number;
      """)
    try FileManager.default.createDirectory(
      atPath: scratch.path + "/shared", withIntermediateDirectories: true)
    let result = try Terminal.run(
      ["init", "big.db", "--directory", "shared"] + (isJSON ? ["--json"] : []),
      answer: "", in: scratch.path, columns: columns)
    #expect(result.status == 0, "\(result.output)")
    guard !isJSON else {
      #expect(result.errors == "")
      return
    }
    let bars = result.errors.split(separator: "\r")
      .map { $0.replacing("\u{1B}[K", with: "") }.filter { !$0.isEmpty }
    #expect(!bars.isEmpty, "\(result.errors)")
    #expect(bars.allSatisfy { $0.count < columns }, "\(bars)")
    #expect(bars.allSatisfy { $0.hasPrefix("[") == (columns == 80) }, "\(bars)")
    // The bar is that of the whole command: it never goes back.
    let percents = try bars.map { bar in
      try #require(Int(bar.split(separator: "%")[0].split(separator: " ").last ?? ""), "\(bar)")
    }
    #expect(percents == percents.sorted(), "\(percents)")
  }
}
