import Foundation
import GRDB
import Testing

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// Errors of the command: the exit code, what is said, and that nothing was
/// changed.
@Suite struct FailureTests {
  let scratch: Scratch

  init() throws { scratch = try Scratch() }

  // MARK: The command line

  @Test(arguments: [
    ("stauts", "status"), ("snyc", "sync"), ("push", "sync"), ("diff", "show"), ("verfy", "verify"),
    ("doc", "documents"),
  ])
  func misspelledCommandGetsAProposal(typed: String, meant: String) throws {
    let result = try scratch.docsync(typed, "a.db", "--thorough")
    #expect(result.status == 2)
    #expect(
      result.errors.hasPrefix(
        "docsync: There is no command “\(typed)”. Did you mean “\(meant)”?\n"), "\(result.errors)")
  }

  @Test func wordLikeNoCommandGetsNoProposal() throws {
    let result = try scratch.docsync("xyzzy", "--json")
    let error = try #require(try result.json()["error"] as? [String: Any])
    #expect(result.status == 2 && error["code"] as? String == "usage")
    #expect(error["message"] as? String == "There is no command “xyzzy”.")
  }

  @Test func policyThatNeedsAFunctionOfAnApplicationIsRefused() throws {
    try scratch.makeTwoDevices()
    let result = try scratch.docsync("conflicts", "a.db", "policy", "notes=resolve:longer")
    #expect(result.status == 2 && result.errors.contains("docsync has no function “longer”"))
    #expect(try scratch.succeed("conflicts", "a.db", "policy").output == "document  latestWins\n")
  }

  // MARK: The store

  @Test func initOfAStoreUnderSyncIsRefused() throws {
    try scratch.makeTwoDevices()
    try scratch.expectFailure(
      "init", "a.db", "--directory", "shared", "--document", "other", status: 5,
      code: "alreadyUnderSync", path: "a.db")
  }

  @Test func initOfAFileThatIsNoDatabaseFails() throws {
    try Data("this is not a database, but long enough to be one".utf8).write(
      to: URL(fileURLWithPath: scratch.path + "/text.db"))
    try scratch.expectFailure(
      "init", "text.db", "--directory", "shared", status: 1, code: "notADatabase",
      path: "text.db")
  }

  @Test func initOfAFileThatIsNotThereFails() throws {
    try scratch.expectFailure(
      "init", "none.db", "--directory", "shared", status: 1, code: "storeMissing",
      path: "none.db")
  }

  @Test func initOfATableWithoutPrimaryKeyFails() throws {
    try scratch.sql("log.db", "CREATE TABLE log (line TEXT)")
    try scratch.expectFailure(
      "init", "log.db", "--directory", "shared", status: 1, code: "storeUnsuitable",
      path: "log.db")
    let said = try scratch.docsync("init", "log.db", "--directory", "shared").errors
    #expect(said.contains("\"log\"") && said.contains("primary key"))
  }

  @Test(arguments: ["nothere", "notes.nothere", "\"no.table\""])
  func excludingWhatIsNotThereFails(name: String) throws {
    try scratch.makeNotes("a.db")
    try scratch.expectFailure(
      "init", "a.db", "--directory", "shared", "--exclude", name, status: 1,
      code: "storeUnsuitable", path: "a.db")
  }

  @Test(arguments: ["sync", "status", "pending", "log", "digest", "clients", "upload"])
  func aStoreThatIsNotUnderSyncIsSaidToBeSo(verb: String) throws {
    try scratch.makeNotes("a.db")
    try scratch.expectFailure(verb, "a.db", status: 1, code: "notUnderSync", path: "a.db")
  }

  @Test func syncOfAStoreThatIsBeingSyncedIsRefused() throws {
    try scratch.makeTwoDevices()
    try scratch.sql("a.db", "UPDATE notes SET title = 'changed'")
    // What another docsync holds while it works on the store.
    let lock = open(scratch.path + "/a.db-docsync-lock", O_RDWR | O_CREAT | O_CLOEXEC, 0o644)
    try #require(lock >= 0 && flock(lock, LOCK_EX | LOCK_NB) == 0)
    try scratch.expectFailure("sync", "a.db", status: 6, code: "storeInUse", path: "a.db")
    // Closing alone would not do: a process that another test starts may have a copy.
    flock(lock, LOCK_UN)
    close(lock)
    try scratch.succeed("sync", "a.db")
  }

  @Test func syncOfADatabaseThatAnotherProgramLocksIsBusy() throws {
    try scratch.makeTwoDevices()
    try scratch.sql("a.db", "UPDATE notes SET title = 'to send'")
    let other = try DatabaseQueue(path: scratch.path + "/a.db")
    try other.write { database in
      try database.execute(sql: "UPDATE notes SET title = 'unfinished'")
      // The test must not read the file itself: closing it would end the lock.
      let result = try Executable.run(["sync", "a.db", "--json"], in: scratch.path)
      let error = try result.json()["error"] as? [String: Any]
      #expect(result.status == 6 && error?["code"] as? String == "storeBusy")
      #expect((error?["remedy"] as? String)?.hasSuffix("add --wait 60.") == true)
    }
    try scratch.succeed("sync", "a.db")
  }

  @Test func joinOntoAFileIsRefusedAndReplaceKeepsIt() throws {
    try scratch.makeTwoDevices()
    try scratch.makeNotes("c.db")
    try scratch.expectFailure(
      "join", "c.db", "--directory", "shared", status: 5, code: "fileExists", path: "c.db")
    try scratch.sql("c.db", "INSERT INTO notes (title) VALUES ('only here')")
    let old = try scratch.column("c.db", "SELECT title FROM notes ORDER BY id")
    let result = try scratch.succeed(
      "join", "c.db", "--directory", "shared", "--replace", "--json"
    ).json()
    let backup = try #require(result["backup"] as? String)
    #expect(try scratch.column(backup, "SELECT title FROM notes ORDER BY id") == old)
    #expect(try !scratch.column("c.db", "SELECT title FROM notes").contains("\"only here\""))
    #expect(try scratch.succeed("status", "c.db").output.contains("nothing"))
  }

  /// As after joining was interrupted.
  @Test func joinOntoAStoreUnderSyncSaysHowToGoOn() throws {
    try scratch.makeTwoDevices()
    let refused = try scratch.docsync("join", "b.db", "--directory", "shared")
    #expect(refused.status == 5)
    #expect(refused.errors.contains("“docsync sync b.db”") && refused.errors.contains("--replace"))
  }

  @Test func joinThatReplacesAStoreOfAnotherDocumentSaysThatItIsStillWaitedFor() throws {
    try scratch.makeTwoDevices()
    try scratch.makeNotes("other.db")
    try FileManager.default.createDirectory(
      atPath: scratch.path + "/elsewhere", withIntermediateDirectories: false)
    try scratch.succeed("init", "other.db", "--directory", "elsewhere")
    let joined = try scratch.succeed("join", "b.db", "--directory", "elsewhere", "--replace")
    #expect(joined.output.contains("whose devices keep waiting for it"), "\(joined.output)")
  }

  @Test(arguments: [[], ["--replace"]])
  func joinOntoAFolderIsRefused(options: [String]) throws {
    try scratch.makeTwoDevices()
    try FileManager.default.createDirectory(
      atPath: scratch.path + "/mine/inner", withIntermediateDirectories: true)
    try scratch.expectFailure(
      ["join", "mine", "--directory", "shared"] + options, status: 5, code: "notAFile",
      path: "mine")
  }

  @Test func joinIntoAFolderThatIsNotThereNamesTheFolder() throws {
    try scratch.makeTwoDevices()
    try scratch.expectFailure(
      "join", "nowhere/c.db", "--directory", "shared", status: 1, code: "storeMissing",
      path: "nowhere")
  }

  @Test(.enabled(if: ReadOnlyFolder.isPossible, "needs chattr +i when run as root"))
  func joinIntoAFolderThatMayNotBeWrittenNamesTheFolder() throws {
    try scratch.makeTwoDevices()
    let folder = scratch.path + "/mine"
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false)
    try ReadOnlyFolder.with(folder) {
      try scratch.expectFailure(
        "join", "mine/c.db", "--directory", "shared", status: 1, code: "storeNotWritable",
        path: "mine")
    }
  }

  // MARK: The directory

  @Test func joinWithoutTheDocumentListsThoseThatAreThere() throws {
    try scratch.makeTwoDevices()
    try scratch.expectFailure(
      "join", "c.db", "--directory", "shared", "--document", "recipes", status: 1,
      code: "documentMissing", path: scratch.path + "/shared")
    let said = try scratch.docsync(
      "join", "c.db", "--directory", "shared", "--document", "recipes"
    ).errors
    #expect(said.contains("“notes”"))
  }

  @Test func anEmptyDirectoryIsAwayForEveryCommand() throws {
    try scratch.makeTwoDevices()
    try FileManager.default.createDirectory(
      atPath: scratch.path + "/empty", withIntermediateDirectories: false)
    for arguments in [
      ["documents", "--directory", "empty"], ["clients", "--directory", "empty"],
      ["verify", "--directory", "empty"], ["sync", "a.db", "--directory", "empty"],
      ["clients", "a.db", "--directory", "empty"], ["join", "c.db", "--directory", "empty"],
    ] {
      let result = try Executable.run(arguments, in: scratch.path)
      #expect(result.status == 4, "\(arguments): \(result.output)\(result.errors)")
    }
  }

  @Test func statusSaysWhatIsInPlaceOfTheDirectory() throws {
    try scratch.makeTwoDevices()
    try scratch.sql("other.db", "CREATE TABLE t (id INTEGER PRIMARY KEY)")
    for folder in ["empty", "other"] {
      try FileManager.default.createDirectory(
        atPath: scratch.path + "/" + folder, withIntermediateDirectories: false)
    }
    try scratch.succeed("init", "other.db", "--directory", "other")
    for (folder, state, words) in [
      ("shared", "there", "/shared\n"), ("empty", "empty", "(empty: is it mounted?)"),
      ("other", "other", "(another shared directory"), ("nowhere", "away", "(not there)"),
    ] {
      let text = try scratch.succeed("status", "a.db", "--directory", folder)
      #expect(text.output.contains(words), "\(folder): \(text.output)")
      let json = try scratch.succeed("status", "a.db", "--directory", folder, "--json").json()
      #expect(json["directoryState"] as? String == state)
      #expect(json["isDirectoryThere"] as? Bool == (state != "away"))
    }
  }

  @Test func aDatabaseWithoutTablesIsRefused() throws {
    try Data().write(to: URL(filePath: scratch.path + "/zero.db"))
    try scratch.expectFailure(
      "init", "zero.db", "--directory", "shared", status: 5, code: "storeEmpty", path: "zero.db")
    #expect(try Data(contentsOf: URL(filePath: scratch.path + "/zero.db")).isEmpty)
    try scratch.succeed("init", "zero.db", "--directory", "shared", "--allow-empty")
  }

  /// A pipe whose reader has ended ends the command, and the folder of the demo with it.
  @Test func aDemoWhosePipeEndsRemovesItsFolder() throws {
    let process = Process()
    process.executableURL = URL(filePath: "/bin/sh")
    process.arguments = ["-c", "\"$0\" demo 2>/dev/null | head -1", Executable.path]
    process.currentDirectoryURL = URL(filePath: scratch.path)
    process.environment = ProcessInfo.processInfo.environment.merging(
      ["TMPDIR": scratch.path + "/shared"]) { $1 }
    process.standardOutput = FileHandle.nullDevice
    try process.run()
    process.waitUntilExit()
    #expect(try FileManager.default.contentsOfDirectory(atPath: scratch.path + "/shared") == [])
  }

  @Test func joinOfAnEmptyDirectoryFails() throws {
    try scratch.expectFailure(
      "join", "c.db", "--directory", "shared", status: 4, code: "applicationMissing",
      path: scratch.path + "/shared")
  }

  @Test func joinOfSeveralDocumentsAsksForOne() throws {
    for name in ["a", "b"] {
      try scratch.makeNotes(name + ".db")
      try scratch.succeed("init", name + ".db", "--directory", "shared")
    }
    try scratch.expectFailure(
      "join", "c.db", "--directory", "shared", status: 1, code: "documentAmbiguous",
      path: scratch.path + "/shared")
    try scratch.succeed("join", "c.db", "--directory", "shared", "--document", "b")
  }

  @Test func initOfADocumentThatIsThereIsRefused() throws {
    try scratch.makeTwoDevices()
    try scratch.makeNotes("notes.db")
    try scratch.expectFailure(
      "init", "notes.db", "--directory", "shared", status: 5, code: "documentExists",
      path: scratch.path + "/shared")
  }

  @Test func aDirectoryThatIsNotThereIsAway() throws {
    try scratch.makeNotes("a.db")
    try scratch.expectFailure(
      "init", "a.db", "--directory", "away", status: 4, code: "directoryAway",
      path: scratch.path + "/away")
    try scratch.expectFailure(
      "join", "b.db", "--directory", "away", status: 4, code: "directoryAway",
      path: scratch.path + "/away")
    try scratch.expectFailure(
      "documents", "--directory", "away", status: 4, code: "directoryAway",
      path: scratch.path + "/away")
  }

  @Test func syncWithoutTheDirectoryIsAwayAndKeepsTheEdits() throws {
    try scratch.makeTwoDevices()
    try scratch.sql("a.db", "UPDATE notes SET title = 'kept' WHERE id = 1")
    let (here, gone) = (scratch.path + "/shared", scratch.path + "/gone")
    try FileManager.default.moveItem(atPath: here, toPath: gone)
    try scratch.expectFailure(
      "sync", "a.db", status: 4, code: "directoryAway", path: here)
    try FileManager.default.createDirectory(atPath: here, withIntermediateDirectories: false)
    try scratch.expectFailure("sync", "a.db", status: 4, code: "rootMissing", path: here)
    try FileManager.default.removeItem(atPath: here)
    try FileManager.default.moveItem(atPath: gone, toPath: here)
    try scratch.succeed("sync", "a.db", "b.db")
    #expect(try scratch.column("b.db", "SELECT title FROM notes").contains("\"kept\""))
  }

  @Test func aFileIsNoDirectory() throws {
    try scratch.makeNotes("a.db")
    try Data().write(to: URL(fileURLWithPath: scratch.path + "/file"))
    try scratch.expectFailure(
      "init", "a.db", "--directory", "file", status: 1, code: "notADirectory",
      path: scratch.path + "/file")
  }

  @Test(.enabled(if: ReadOnlyFolder.isPossible, "needs chattr +i when run as root"))
  func aDirectoryThatMayNotBeWrittenFails() throws {
    try scratch.makeNotes("a.db")
    try ReadOnlyFolder.with(scratch.path + "/shared") {
      try scratch.expectFailure(
        "init", "a.db", "--directory", "shared", status: 1, code: "directoryNotWritable",
        path: scratch.path + "/shared")
    }
    try scratch.succeed("init", "a.db", "--directory", "shared")
  }

  // MARK: Usage

  @Test(arguments: [
    ["init"], ["init", "a.db"], ["sync"], ["clients"],
    ["log", "a.db", "--limit", "0"], ["pending", "a.db", "--limit", "0"], ["show", "a.db", "zero"],
    ["init", "a.db", "--directory", "shared", "--identity", "notes"],
    ["init", "a.db", "--directory", "shared", "--exclude", "a.b.c"],
    ["join", "a.db", "--directory", "shared", "--merge", "--replace"],
    ["join", "a.db", "--directory", "shared", "--prefer", "local"],
  ])
  func wrongUsageExitsWithTwo(arguments: [String]) throws {
    let text = try Executable.run(arguments, in: scratch.path)
    #expect(text.status == 2)
    #expect(text.output == "" && text.errors.contains("Error: "))
    let json = try Executable.run(arguments + ["--json"], in: scratch.path)
    #expect(json.status == 2 && json.errors == "")
    let error = try #require(try json.json()["error"] as? [String: Any])
    #expect(error["code"] as? String == "usage")
    #expect((error["message"] as? String)?.isEmpty == false)
    #expect(error["path"] is NSNull)
  }

  @Test func showOfWhatIsNotThereFails() throws {
    try scratch.makeTwoDevices()
    try scratch.expectFailure(
      "show", "a.db", "7", status: 1, code: "noSuchChangeSet", path: "a.db")
    try scratch.expectFailure(
      "show", "a.db", "zzzz/1", status: 1, code: "noSuchClient", path: "a.db")
    try scratch.sql("b.db", "UPDATE notes SET title = 'x'")
    try scratch.succeed("sync", "b.db", "a.db")
    let b = try #require(
      try scratch.succeed("status", "b.db", "--json").json()["client"] as? String)
    let errors = try scratch.docsync("show", "a.db", "\(b)/99").errors
    #expect(errors.contains("is not in the directory. Its last one there is 1."), "\(errors)")
  }
}
