import Foundation
import Testing

/// What the command says when something is not as it should be, and that it
/// helps.
struct RemedyTests {
  let scratch: Scratch

  init() throws { scratch = try Scratch() }

  /// The files in the shared directory whose names begin so.
  private func shared(_ prefix: String) throws -> [String] {
    let root = scratch.path + "/shared"
    let paths = FileManager.default.enumerator(atPath: root)?.compactMap { $0 as? String } ?? []
    return paths.filter { ($0 as NSString).lastPathComponent.hasPrefix(prefix) }
      .map { root + "/" + $0 }
  }

  private func halve(_ path: String) throws {
    let content = try Data(contentsOf: URL(fileURLWithPath: path))
    try content.prefix(content.count / 2).write(to: URL(fileURLWithPath: path))
  }

  /// Runs the first command that the remedy of an error names, as a shell reads it.
  private func follow(_ failed: Executable.Result) throws -> Executable.Result {
    let next = try #require(
      failed.errors.split(separator: "\n").first { $0.hasPrefix("  next: ") }, "\(failed.errors)")
    let command = try #require(next.firstMatch(of: /“(.+?)”/), "\(next)").1
    return try Executable.run(
      [], in: scratch.path,
      after: "exe=$1; docsync() { \"$exe\" \"$@\"; }; \(command); exit")
  }

  @Test(arguments: [
    ["join", "my notes.db", "--directory", "shared"],
    ["init", "notes.db", "--directory", "shared"],
  ])
  func commandsForAFileThatIsThereAreWhole(command: [String]) throws {
    try scratch.makeTwoDevices()
    try scratch.makeNotes(command[1])
    let refused = try Executable.run(command + ["--document", "notes"], in: scratch.path)
    #expect(refused.status == 5)
    let followed = try follow(refused)
    #expect(followed.status == 0, "\(refused.errors)\(followed.errors)")
    try scratch.succeed("sync", command[1])
  }

  @Test func commandsForADocumentThatIsGoneAreWhole() throws {
    try scratch.makeTwoDevices()
    try scratch.succeed("remove-client", "a.db", "B", "--yes")
    for status in [5, 0] as [Int32] {
      let synced = try scratch.docsync("sync", "b.db")
      #expect(synced.status == status)
      if status == 5 { #expect(try follow(synced).status == 0, "\(synced.errors)") }
    }
    try scratch.succeed("delete-document", "notes", "--directory", "shared", "--yes")
    let synced = try scratch.docsync("sync", "b.db")
    #expect(synced.status == 5)
    #expect(try follow(synced).output.contains("created the document “notes” again"))
  }

  @Test func commandsForADirectoryThatIsAwayAreWhole() throws {
    try scratch.makeNotes("c.db")
    let away = try scratch.docsync("init", "c.db", "--directory", "not there")
    #expect(away.status == 4)
    #expect(try follow(away).status == 0, "\(away.errors)")
    try scratch.succeed("init", "c.db", "--directory", "not there")
    try FileManager.default.moveItem(
      atPath: scratch.path + "/not there", toPath: scratch.path + "/moved")
    let moved = try scratch.docsync("sync", "c.db")
    #expect(moved.status == 4)
    #expect(moved.errors.contains("“docsync sync c.db --directory NEW”"), "\(moved.errors)")
    try scratch.succeed("sync", "c.db", "--directory", "moved")
  }

  @Test func damagedGenerationFileIsNamedAndWrittenAgain() throws {
    try scratch.makeTwoDevices()
    let path = try #require(try shared("generation.").first)
    let name = (path as NSString).lastPathComponent
    try halve(path)
    let listed = try scratch.docsync("documents", "--directory", "shared")
    #expect(listed.status == 3)
    #expect(listed.output.contains(name) && listed.output.contains("docsync sync STORE --thorough"))
    for document in [[], ["--document", "notes"]] {
      let joined = try Executable.run(
        ["join", "c.db", "--directory", "shared"] + document, in: scratch.path)
      #expect(joined.status == 1)
      #expect(
        joined.errors.contains(name) && joined.errors.contains("docsync sync STORE --thorough"))
    }
    try scratch.makeNotes("d.db")
    let begun = try scratch.docsync("init", "d.db", "--directory", "shared", "--document", "notes")
    #expect(begun.status == 1 && begun.errors.contains(name))
    let mended = try scratch.succeed("sync", "b.db", "--thorough")
    #expect(mended.output.contains("wrote 1 file again") && mended.output.contains(name))
    try scratch.succeed("join", "c.db", "--directory", "shared")
    try scratch.succeed("verify", "a.db")
  }

  @Test func lostGenerationFileHasAWayOut() throws {
    try scratch.makeTwoDevices()
    try FileManager.default.removeItem(atPath: try #require(try shared("generation.").first))
    for command in [
      ["sync", "a.db"], ["sync", "a.db", "--recreate"], ["reset", "a.db", "--yes"],
      ["upload", "a.db"],
    ] {
      let failed = try Executable.run(command, in: scratch.path)
      #expect(failed.status == 4)
      #expect(failed.errors.contains("docsync sync a.db --thorough"), "\(failed.errors)")
    }
    try scratch.succeed("sync", "a.db", "--thorough")
    try scratch.succeed("verify", "b.db")
  }

  @Test func creatingADocumentAgainIsSaid() throws {
    try scratch.makeTwoDevices()
    try scratch.succeed("delete-document", "notes", "--directory", "shared", "--yes")
    let said = try scratch.succeed("sync", "b.db", "--recreate").output
    #expect(said.contains("created the document “notes” again") && !said.contains("up to date"))
    #expect(try scratch.succeed("sync", "b.db", "--recreate").output.contains("up to date"))
  }

  @Test func leavingADeletedDocumentIsRefusedBeforeItAsks() throws {
    try scratch.makeTwoDevices()
    try scratch.sql("b.db", "INSERT INTO notes (title) VALUES ('kept')")
    try scratch.succeed(
      "delete-document", "notes", "--directory", "shared", "--client", "attic", "--yes")
    for more in [[], ["--yes"]] {
      let refused = try Executable.run(["leave", "b.db"] + more, in: scratch.path)
      #expect(refused.status == 5)
      #expect(!(refused.output + refused.errors).contains("will be sent"))
      #expect(refused.errors.contains("docsync leave b.db --abandon"))
      #expect(refused.errors.contains("was deleted on “attic” at 20"))
    }
  }

  @Test func deviceOfTheDatabaseItselfIsNotRemoved() throws {
    try scratch.makeTwoDevices()
    for more in [[], ["--yes"]] {
      let refused = try Executable.run(["remove-client", "a.db", "A"] + more, in: scratch.path)
      #expect(refused.status == 1)
      #expect(!(refused.output + refused.errors).contains("This removes"))
      #expect(refused.errors.contains("docsync leave a.db"))
    }
  }

  @Test func storeWithoutItsMetaTableIsDamaged() throws {
    try scratch.makeTwoDevices()
    try scratch.sql("b.db", "DROP TABLE docsync_meta")
    for command in ["sync", "leave", "verify", "status"] {
      let failed = try scratch.docsync(command, "b.db")
      #expect(failed.status == 1)
      #expect(
        failed.errors.contains("docsync join b.db --directory DIR --replace"),
        "\(command): \(failed.errors)")
    }
    try scratch.succeed("join", "b.db", "--directory", "shared", "--replace")
    try scratch.succeed("sync", "b.db")
  }
}
