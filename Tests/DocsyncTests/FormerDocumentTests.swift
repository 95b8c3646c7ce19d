import Foundation
import Testing

/// A document of an earlier build: `Fixtures/Documents` has, of each layout of the bookkeeping,
/// two devices' databases as SQL, and their shared directory.
///
/// In `v4`, made by 0.1.0-dev, A has deleted a tag that B has used since, both have edits that
/// they have not sent, B has not received A's second change set, and has an open question and
/// three hidden rows.
@Suite struct FormerDocumentTests {
  let scratch: Scratch

  init() throws { scratch = try Scratch() }

  private func open(_ version: String) throws {
    let folder = URL(filePath: #filePath).deletingLastPathComponent()
      .appending(path: "../../Fixtures/Documents/\(version)").standardized
    for store in ["a", "b"] {
      try scratch.load(
        store + ".db",
        String(contentsOf: folder.appending(path: store + ".sql"), encoding: .utf8))
    }
    try FileManager.default.removeItem(atPath: scratch.path + "/shared")
    try FileManager.default.copyItem(
      atPath: folder.appending(path: "shared").path, toPath: scratch.path + "/shared")
  }

  private func visible(_ store: String) throws -> String? {
    try scratch.succeed("digest", store, "--json").json()["visible"] as? String
  }

  @Test func bothDevicesGoOnWithAllTheirEdits() throws {
    try open("v4")
    // As the build that made them has printed them.
    #expect(
      try visible("a.db") == "3507d37127c8181f1f59ff8fe2670b56b2abfcb61cef398db77efc4cb32801bd")
    // The build that made it has printed another one: a digest contains the identities of rows, and
    // those that B has inserted get theirs when they are sealed. Opening makes the triggers again,
    // and seals the edits before that; the rows stay the same.
    #expect(
      try visible("b.db") == "929df917e0f9d29ef22c93d6afbb90a1e14bb0f10d411d948199a5e4d38b9b1c")

    for store in ["a.db", "b.db", "a.db", "b.db"] {
      let sync = try scratch.docsync("sync", store, "--directory", "shared")
      // B has an open question. Other rows stand for the hidden rows of A.
      #expect(sync.status == (store == "b.db" ? 3 : 0), "\(sync.output) \(sync.errors)")
    }
    for store in ["a.db", "b.db"] {
      #expect(
        try visible(store) == "0111eb39799ff2c1b37f6e8d4fc4b1d75c0099e00fb90ca791a56744f9757b85")
      let articles = "SELECT code || ' ' || stock FROM article ORDER BY code"
      #expect(try scratch.column(store, articles) == ["\"rice 24\"", "\"tea 111\""])
      let notes = """
        SELECT title || ' in ' || folder.name FROM note JOIN folder ON folder.id = note.folder
        ORDER BY title
        """
      #expect(
        try scratch.column(store, notes) == [
          "\"Bread in Home\"", "\"Late in Work\"", "\"Mine in Home\"", "\"Oslo in Trips\"",
          "\"Report in Work\"", "\"Rome in Trips\"",
        ])
      let verified = try scratch.succeed("verify", store, "--directory", "shared", "--json").json()
      #expect((verified["findings"] as? [Any])?.count == 0)
    }
    // What stays on one device stayed there.
    #expect(try scratch.column("a.db", "SELECT key FROM setting") == ["\"window\""])
    #expect(try scratch.column("b.db", "SELECT key FROM setting") == ["\"color\""])
    // The question was not decided.
    let questions = try scratch.docsync("conflicts", "b.db", "--open", "--json")
    #expect((try questions.json()["conflicts"] as? [Any])?.count == 1)
  }
}
