import Foundation
import Testing

/// `--policy` of `docsync init` and `docsync join`
@Suite struct PolicyOptionTests {
  let scratch: Scratch

  init() throws {
    scratch = try Scratch()
    try scratch.makeNotes("a.db")
  }

  @Test func bothDevicesMergeTitlesFromTheBeginning() throws {
    let options = ["--policy", "notes.title=resolve:mergeText", "--policy", "localWins"]
    let initial = try Executable.run(
      ["init", "a.db", "--directory", "shared", "--document", "notes"] + options, in: scratch.path)
    #expect(initial.status == 0, "\(initial.errors)")
    let join = try Executable.run(
      ["join", "b.db", "--directory", "shared"] + options, in: scratch.path)
    #expect(join.status == 0, "\(join.errors)")
    for store in ["a.db", "b.db"] {
      #expect(
        try scratch.succeed("conflicts", store, "policy").output
          == "document     localWins\nnotes.title  resolve:mergeText\n")
    }
    try scratch.sql("a.db", "UPDATE notes SET title = 'the quick fox' WHERE id = 1")
    try scratch.succeed("sync", "a.db", "b.db")
    try scratch.sql("a.db", "UPDATE notes SET title = 'the slow fox' WHERE id = 1")
    try scratch.sql("b.db", "UPDATE notes SET title = 'the quick dog' WHERE id = 1")
    try scratch.succeed("sync", "a.db", "b.db", "a.db")
    for store in ["a.db", "b.db"] {
      #expect(
        try scratch.column(store, "SELECT title FROM notes WHERE id = 1") == ["\"the slow dog\""])
    }
  }

  @Test func policiesThatDoNotExistChangeNothing() throws {
    for policy in ["notes=", "resolve:longer", "notes.title=resolve:", "=ask"] {
      let result = try scratch.docsync(
        "init", "a.db", "--directory", "shared", "--policy", policy)
      #expect(result.status == 2, "\(policy): \(result.errors)")
    }
    for policy in ["nothing=ask", "notes.id=resolve:mergeText", "tags.weight=resolve:mergeText"] {
      let result = try scratch.docsync(
        "init", "a.db", "--directory", "shared", "--policy", policy)
      #expect(result.status == 1 && result.errors.contains("next: Name"), "\(result.errors)")
    }
    // Nothing was begun.
    try scratch.succeed("init", "a.db", "--directory", "shared")
  }

  @Test func aDatabaseThatJoinedWithPoliciesOfOtherTablesIsThereWithoutThem() throws {
    try scratch.succeed("init", "a.db", "--directory", "shared")
    let result = try scratch.docsync(
      "join", "b.db", "--directory", "shared", "--policy", "nothing=ask")
    #expect(result.status == 1 && result.errors.contains("docsync conflicts b.db policy"))
    try scratch.succeed("conflicts", "b.db", "policy", "notes=ask")
    try scratch.succeed("sync", "b.db")
  }
}
