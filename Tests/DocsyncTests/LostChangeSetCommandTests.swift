import Foundation
import Testing

/// `docsync join --replace` where the directory has lost what the database had sent.
@Suite struct LostChangeSetCommandTests {
  let scratch: Scratch

  init() throws {
    scratch = try Scratch()
    try scratch.makeTwoDevices()
  }

  /// The second device sends two change sets, and the directory is restored from an earlier backup.
  private func lose() throws {
    try copy("shared", to: "backup")
    for title in ["first", "second"] {
      try scratch.sql("b.db", "INSERT INTO notes (title) VALUES ('\(title)')")
      try scratch.succeed("sync", "b.db")
    }
    try FileManager.default.removeItem(atPath: scratch.path + "/shared")
    try copy("backup", to: "shared")
  }

  private func copy(_ folder: String, to other: String) throws {
    try FileManager.default.copyItem(
      atPath: scratch.path + "/" + folder, toPath: scratch.path + "/" + other)
  }

  @Test func itIsPutBack() throws {
    try lose()
    let join = try scratch.succeed("join", "b.db", "--directory", "shared", "--replace")
    #expect(
      join.output.contains(
        "The directory lacked what that database had sent; it was put back: 2 change sets."),
      "\(join.output)")
    for _ in 0..<4 { try scratch.succeed("sync", "b.db", "a.db") }
    for store in ["a.db", "b.db"] {
      #expect(
        try scratch.column(store, "SELECT title FROM notes WHERE id > 2 ORDER BY 1")
          == ["\"first\"", "\"second\""])
    }
  }

  @Test func whatIsLostForGoodIsNamed() throws {
    try lose()
    try scratch.sql("b.db", "UPDATE docsync_outbox SET bytes = x''")
    let join = try scratch.succeed("join", "b.db", "--directory", "shared", "--replace")
    #expect(
      join.output.contains("warning: The directory has lost change sets 1–2 of "),
      "\(join.output)")
    #expect(join.output.contains(" has their rows"))
  }
}
