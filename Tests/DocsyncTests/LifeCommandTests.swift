import Foundation
import Testing

/// Leaving, removing and deleting, and what is listed of documents and
/// devices.
@Suite struct LifeCommandTests {
  let scratch: Scratch

  init() throws { scratch = try Scratch() }

  private func schema(_ store: String) throws -> [String] {
    try scratch.column(store, "SELECT ifnull(sql, name) FROM sqlite_schema ORDER BY rowid")
  }

  private func client(_ name: String) throws -> [String: Any] {
    let clients = try #require(
      try scratch.succeed("clients", "a.db", "--json").json()["clients"] as? [[String: Any]])
    return try #require(clients.first { $0["clientName"] as? String == name })
  }

  /// The files below the shared directory.
  private func sharedFiles() throws -> [String] {
    try scratch.contents().keys.filter { $0.hasPrefix("shared/") && $0.contains(".") }
  }

  // MARK: copies and backups

  @Test func copiedAndRestoredDatabasesGoOnAsNewDevicesAndSaySo() throws {
    try scratch.makeTwoDevices()
    let (b, c) = (scratch.path + "/b.db", scratch.path + "/c.db")
    try FileManager.default.copyItem(atPath: b, toPath: c)
    try scratch.sql("b.db", "INSERT INTO notes (title) VALUES ('of the original')")
    try scratch.sql("c.db", "INSERT INTO notes (title) VALUES ('of the copy')")
    let original = try scratch.succeed("sync", "b.db")
    #expect(!original.output.contains("new device"))
    let copy = try scratch.succeed("sync", "c.db")
    #expect(copy.output.contains("goes on as a new device"))
    #expect(copy.output.contains("was copied or moved"))
    let kept = try Data(contentsOf: URL(fileURLWithPath: b))
    try scratch.sql("b.db", "INSERT INTO notes (title) VALUES ('after the backup')")
    try scratch.succeed("sync", "b.db")
    try kept.write(to: URL(fileURLWithPath: b))
    try scratch.sql("b.db", "INSERT INTO notes (title) VALUES ('after it was restored')")
    let restored = try scratch.succeed("sync", "b.db")
    #expect(restored.output.contains("goes on as a new device"))
    for store in ["a.db", "c.db", "b.db"] { try scratch.succeed("sync", store) }
    for store in ["a.db", "b.db", "c.db"] {
      let titles = try scratch.column(store, "SELECT title FROM notes")
      for title in [
        "of the original", "of the copy", "after the backup", "after it was restored",
      ] {
        #expect(titles.contains("\"\(title)\""), "\(store)")
      }
    }
  }

  @Test(.enabled(if: ReadOnlyFolder.isPossible, "needs chattr +i when run as root"))
  func copyThatMayOnlyBeReadCanBeLookedAt() throws {
    try scratch.makeTwoDevices()
    let kept = scratch.path + "/kept"
    try FileManager.default.createDirectory(atPath: kept, withIntermediateDirectories: false)
    try FileManager.default.copyItem(atPath: scratch.path + "/b.db", toPath: kept + "/b.db")
    let digest = try scratch.succeed("digest", "b.db", "--json").json()["visible"] as? String
    try ReadOnlyFolder.with(kept) {
      let copy = try scratch.succeed("digest", "kept/b.db", "--json").json()
      #expect(copy["visible"] as? String == digest && digest != nil)
      try scratch.succeed("status", "kept/b.db")
    }
  }

  // MARK: leave

  @Test func whoLeavesHasAnOrdinaryDatabaseAndTheOthersHaveItsEdits() throws {
    try scratch.makeNotes("plain.db")
    let plain = try schema("plain.db")
    try scratch.makeTwoDevices()
    try scratch.sql("b.db", "INSERT INTO notes (title) VALUES ('last words')")
    let result = try scratch.succeed("leave", "b.db", "--yes", "--json").json()
    #expect(result["hasLeft"] as? Bool == true && result["hasToldOthers"] as? Bool == true)
    #expect(result["document"] as? String == "notes")
    let lost = try #require(result["lost"] as? [String: Any])
    #expect((lost["parked"] as? [Any])?.isEmpty == true && lost["conflictCount"] as? Int == 0)
    #expect(try schema("b.db") == plain)
    try scratch.succeed("sync", "a.db")
    #expect(try scratch.column("a.db", "SELECT title FROM notes").contains("\"last words\""))
    #expect(try client("B")["status"] as? String == "left")
    let again = try scratch.succeed("leave", "b.db", "--yes")
    #expect(again.output == "b.db is not under sync.\n")
    try scratch.succeed("init", "b.db", "--directory", "shared", "--document", "mine")
  }

  @Test func leavingWithoutTheDirectoryIsAwayUnlessItIsAbandoned() throws {
    try scratch.makeTwoDevices()
    try scratch.sql("b.db", "INSERT INTO notes (title) VALUES ('kept')")
    let (here, gone) = (scratch.path + "/shared", scratch.path + "/gone")
    try FileManager.default.moveItem(atPath: here, toPath: gone)
    try scratch.expectFailure(
      "leave", "b.db", "--yes", status: 4, code: "directoryAway", path: here)
    let result = try scratch.succeed("leave", "b.db", "--yes", "--abandon", "--json").json()
    let lost = try #require(result["lost"] as? [String: Any])
    #expect(lost["unsentEdits"] as? Int ?? 0 > 0)
    #expect(try scratch.column("b.db", "SELECT title FROM notes").contains("\"kept\""))
    #expect(try schema("b.db").allSatisfy { !$0.contains("docsync_") })
  }

  @Test func leavingNamesWhatWouldBeLost() throws {
    try scratch.makeTwoDevices()
    try scratch.sql("a.db", "CREATE TABLE more (id INTEGER PRIMARY KEY, x TEXT)")
    try scratch.succeed("sync", "a.db")
    try scratch.sql("a.db", "INSERT INTO more (x) VALUES ('1'), ('2')")
    try scratch.succeed("sync", "a.db", "b.db")
    let refused = try scratch.docsync("leave", "b.db")
    #expect(refused.status == 5)
    #expect(
      refused.errors.contains("2 rows of more, which only other devices have, will be removed"))
    try scratch.succeed("leave", "b.db", "--yes")
  }

  // MARK: Confirmation

  @Test func whatDestroysWantsYesWithoutATerminalAndChangesNothing() throws {
    try scratch.makeTwoDevices()
    try scratch.sql("b.db", "UPDATE notes SET title = 'x' WHERE id = 1")
    let (code, shared) = ("confirmationNeeded", scratch.path + "/shared")
    try scratch.expectFailure("leave", "b.db", status: 5, code: code, path: "b.db")
    try scratch.expectFailure("remove-client", "a.db", "B", status: 5, code: code, path: shared)
    try scratch.expectFailure(
      "delete-document", "notes", "--directory", "shared", status: 5, code: code,
      path: scratch.path + "/shared")
    try scratch.expectFailure(
      "remove-all", "--directory", "shared", status: 5, code: code, path: scratch.path + "/shared")
    let leave = try scratch.docsync("leave", "b.db").errors
    #expect(leave.contains("out of sync with the document “notes”"))
    #expect(leave.contains("will be sent before"))
    let remove = try scratch.docsync("remove-client", "a.db", "B").errors
    #expect(remove.contains("“B”") && remove.contains("last synchronized"))
    let delete = try scratch.docsync("delete-document", "notes", "--directory", "shared").errors
    #expect(
      delete.contains("files, ") && delete.contains("2 devices will be notified and keep their "))
    let all = try scratch.docsync("remove-all", "--directory", "shared").errors
    #expect(all.contains("1 document: “notes”") && all.contains("the descriptions of 2 devices"))
  }

  // MARK: remove-client

  @Test(arguments: ["name", "beginning"])
  func removedDeviceIsListedAsSuch(by how: String) throws {
    try scratch.makeTwoDevices()
    let identifier = try #require(try client("B")["client"] as? String)
    let result = try scratch.succeed(
      "remove-client", "a.db", how == "name" ? "B" : String(identifier.prefix(9)), "--yes",
      "--json"
    ).json()
    let removed = try #require(result["removed"] as? [String: Any])
    #expect(removed["client"] as? String == identifier)
    #expect(try client("B")["status"] as? String == "removed")
    let text = try scratch.succeed("clients", "--directory", "shared").output
    #expect(text.contains("removed by A") && text.contains("member"))
  }

  @Test func deviceThatIsNotThereIsNotRemoved() throws {
    try scratch.makeTwoDevices()
    try scratch.expectFailure(
      "remove-client", "a.db", "zzzz", "--yes", status: 1, code: "noSuchClient", path: "a.db")
    try scratch.expectFailure(
      "remove-client", "a.db", "A", "--yes", status: 1, code: "clientMissing", path: "a.db")
  }

  // MARK: delete-document, remove-all

  @Test func deletedDocumentIsListedAndTheOthersAreTold() throws {
    try scratch.makeTwoDevices()
    try scratch.sql("b.db", "INSERT INTO notes (title) VALUES ('kept')")
    let result = try scratch.succeed(
      "delete-document", "notes", "--directory", "shared", "--client", "attic", "--yes", "--json"
    ).json()
    let removed = try #require(result["removed"] as? [String: Any])
    #expect(removed["fileCount"] as? Int ?? 0 > 2 && removed["byteCount"] as? Int ?? 0 > 1000)
    #expect(try sharedFiles().filter { $0.contains("RecentSyncs") } == [])
    let text = try scratch.succeed("documents", "--directory", "shared").output
    #expect(text.contains("; deleted 20") && text.contains("by attic"))
    try scratch.expectFailure(
      "sync", "b.db", status: 5, code: "documentDeleted", path: scratch.path + "/shared")
    let said = try scratch.docsync("sync", "b.db").errors
    #expect(said.contains("was deleted on “attic”") && said.contains("docsync leave"))
    #expect(try scratch.column("b.db", "SELECT title FROM notes").contains("\"kept\""))
    try scratch.succeed(
      "delete-document", "notes", "--directory", "shared", "--client", "other", "--yes")
    // Another device creates it again, and b is told.
    try scratch.makeNotes("c.db")
    try scratch.succeed("init", "c.db", "--directory", "shared", "--document", "notes")
    let replaced = try scratch.docsync("sync", "b.db")
    #expect(replaced.status == 5 && replaced.errors.contains("another was created"))
    #expect(replaced.errors.contains("docsync sync b.db --merge"))
    try scratch.succeed("leave", "b.db", "--abandon", "--yes")
    #expect(try scratch.column("b.db", "SELECT title FROM notes").contains("\"kept\""))
  }

  @Test func deletedDocumentIsCreatedAgainFromADatabaseThatSharedIt() throws {
    try scratch.makeTwoDevices()
    try scratch.sql("b.db", "INSERT INTO notes (title) VALUES ('kept')")
    try scratch.succeed("delete-document", "notes", "--directory", "shared", "--yes")
    try scratch.succeed("sync", "b.db", "--recreate")
    try scratch.succeed("sync", "b.db", "--recreate")
    try scratch.succeed("join", "c.db", "--directory", "shared")
    #expect(try scratch.column("c.db", "SELECT title FROM notes").contains("\"kept\""))
    #expect(try scratch.docsync("sync", "a.db", "--recreate").status == 5)
    // The other brings its rows along.
    try scratch.sql("a.db", "INSERT INTO notes (title) VALUES ('of a')")
    let merged = try scratch.succeed("sync", "a.db", "--merge")
    #expect(merged.output.contains("the document was deleted and created again"))
    #expect(merged.output.contains("Of its rows, 1 were new"))
    try scratch.succeed("sync", "b.db", "--merge")
    let titles = try scratch.column("b.db", "SELECT title FROM notes ORDER BY title")
    #expect(titles == ["\"kept\"", "\"of a\"", "\"one\"", "\"two\""])
  }

  @Test func removedDeviceIsToldAndCanLeave() throws {
    try scratch.makeTwoDevices()
    try scratch.sql("b.db", "INSERT INTO notes (title) VALUES ('kept')")
    try scratch.succeed("remove-client", "a.db", "B", "--yes")
    let told = try scratch.docsync("sync", "b.db")
    #expect(told.status == 5 && told.errors.contains("docsync sync b.db --rejoin"))
    try scratch.succeed("leave", "b.db", "--abandon", "--yes")
    #expect(try scratch.column("b.db", "SELECT title FROM notes").contains("\"kept\""))
  }

  @Test func removedDeviceGoesOnAsANewOneIfItIsToldTo() throws {
    try scratch.makeTwoDevices()
    // Where nothing was removed it says nothing.
    let idle = try scratch.succeed("sync", "b.db", "--rejoin")
    #expect(!idle.output.contains("new device"))
    try scratch.sql("b.db", "INSERT INTO notes (title) VALUES ('kept')")
    try scratch.succeed("remove-client", "a.db", "B", "--yes")
    #expect(try scratch.docsync("sync", "b.db").status == 5)
    let returned = try scratch.succeed("sync", "b.db", "--rejoin", "--json").json()
    let store = try #require((returned["stores"] as? [[String: Any]])?.first)
    let report = try #require(store["report"] as? [String: Any])
    let incarnations = try #require(report["incarnations"] as? [[String: Any]])
    #expect(incarnations.map { $0["reason"] as? String } == ["retired"])
    #expect((report["sent"] as? [Any])?.count == 1)
    try scratch.succeed("sync", "a.db")
    #expect(try scratch.column("a.db", "SELECT title FROM notes").contains("\"kept\""))
    // From then on it is a device like any other.
    try scratch.sql("a.db", "INSERT INTO notes (title) VALUES ('for all')")
    try scratch.succeed("sync", "a.db")
    try scratch.succeed("sync", "b.db")
    #expect(try scratch.column("b.db", "SELECT title FROM notes").contains("\"for all\""))
    let clients = try scratch.succeed("clients", "a.db", "--json").json()["clients"]
    let states = try #require(clients as? [[String: Any]]).map { $0["status"] as? String }
    #expect(states.filter { $0 == "member" }.count == 2)
    #expect(states.filter { $0 == "removed" }.count == 1)
  }

  @Test func documentThatIsNotThereIsNotDeleted() throws {
    try scratch.makeTwoDevices()
    try scratch.expectFailure(
      "delete-document", "recipes", "--directory", "shared", "--yes", status: 1,
      code: "documentMissing", path: scratch.path + "/shared")
    try scratch.expectFailure(
      "delete-document", "notes", "--directory", "shared", "--application", "other", "--yes",
      status: 5, code: "otherApplication", path: scratch.path + "/shared")
  }

  @Test func everythingIsRemovedButWhatIsNotOurs() throws {
    try scratch.makeTwoDevices()
    try Data([1]).write(to: URL(fileURLWithPath: scratch.path + "/shared/holiday.jpg"))
    let result = try scratch.succeed("remove-all", "--directory", "shared", "--yes", "--json")
      .json()
    let removed = try #require(result["removed"] as? [String: Any])
    #expect(removed["otherFiles"] as? [String] == ["holiday.jpg"])
    #expect((removed["clients"] as? [Any])?.count == 2)
    let left = try sharedFiles().map { ($0 as NSString).lastPathComponent }
    #expect(left.count == 3 && left.contains("holiday.jpg"))
    try scratch.expectFailure(
      "sync", "a.db", status: 5, code: "documentDeleted", path: scratch.path + "/shared")
    try scratch.expectFailure(
      "documents", "--directory", "shared", status: 4, code: "applicationMissing",
      path: scratch.path + "/shared")
  }

  // MARK: Lists

  @Test func documentsAreListedWithTheirSizes() throws {
    try scratch.makeTwoDevices()
    let result = try scratch.succeed("documents", "--directory", "shared", "--json").json()
    let document = try #require((result["documents"] as? [[String: Any]])?.first)
    let contents = try #require(document["contents"] as? [String: Any])
    let files = try scratch.contents().filter {
      $0.key.hasPrefix("shared/Documents/") && $0.key.contains(".")
    }
    #expect(contents["fileCount"] as? Int == files.count)
    #expect(contents["byteCount"] as? Int == files.values.reduce(0) { $0 + $1.count })
    #expect((contents["clients"] as? [Any])?.count == 2)
    let text = try scratch.succeed("documents", "--directory", "shared").output
    #expect(text.contains("2 devices") && text.contains("\(files.count) files"))
  }

  @Test func devicesAreListedWithWhatTheyLack() throws {
    try scratch.makeTwoDevices()
    for title in ["x", "y"] {
      try scratch.sql("a.db", "INSERT INTO notes (title) VALUES ('\(title)')")
      try scratch.succeed("sync", "a.db")
    }
    let state = try #require(try client("B")["state"] as? [String: Any])
    let lacking = try #require((state["lacking"] as? [[String: Any]])?.first)
    #expect(lacking["first"] as? Int == 1 && lacking["last"] as? Int == 2)
    let text = try scratch.succeed("clients", "a.db").output
    #expect(text.contains("A (this one)") && text.contains("lacks 2"))
    #expect(text.contains("member") && text.contains("synced 20"))
  }
}
