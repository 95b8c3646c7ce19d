import Foundation
import Testing

/// Stores that go over to another document of the same name, as it is typed.
@Suite struct GoingOverTests {
  let scratch: Scratch

  init() throws { scratch = try Scratch() }

  /// Copies what is in one folder and not in another, as a synchronizer does.
  private func copy(_ source: String, to destination: String) throws {
    let manager = FileManager.default
    for name in try manager.subpathsOfDirectory(atPath: scratch.path + "/" + source).sorted() {
      let (from, to) = (
        "\(scratch.path)/\(source)/\(name)", "\(scratch.path)/\(destination)/\(name)"
      )
      var isFolder: ObjCBool = false
      guard manager.fileExists(atPath: from, isDirectory: &isFolder) else { continue }
      guard !manager.fileExists(atPath: to) else { continue }
      if isFolder.boolValue {
        try manager.createDirectory(atPath: to, withIntermediateDirectories: true)
      } else {
        try manager.copyItem(atPath: from, toPath: to)
      }
    }
  }

  @Test func documentThatTwoDevicesHaveCreatedIsOne() throws {
    try FileManager.default.createDirectory(
      atPath: scratch.path + "/apart", withIntermediateDirectories: true)
    for (store, directory) in [("a.db", "shared"), ("b.db", "apart")] {
      try scratch.makeNotes(store)
      try scratch.sql(store, "INSERT INTO notes (title) VALUES ('of \(store)')")
      try scratch.succeed("init", store, "--directory", directory, "--document", "notes")
    }
    try copy("apart", to: "shared")
    try copy("shared", to: "apart")
    var said = ""
    for (store, directory) in [("a.db", "shared"), ("b.db", "apart")] {
      said += try scratch.succeed("sync", store, "--directory", directory).output
    }
    #expect(said.contains("another device has created the document as well"))
    #expect(said.contains("Of its rows, 1 were new, 2 the same, and 0 had other values."))
    #expect(said.contains("1 row got another key."))
    #expect(said.contains("the former file is kept as "))
    for store in ["a.db", "b.db", "a.db"] {
      try scratch.succeed("sync", store, "--directory", "shared")
      try copy("apart", to: "shared")
    }
    let titles = try scratch.column("a.db", "SELECT title FROM notes ORDER BY title")
    #expect(titles == ["\"of a.db\"", "\"of b.db\"", "\"one\"", "\"two\""])
    #expect(try scratch.column("b.db", "SELECT title FROM notes ORDER BY title") == titles)
  }
}
