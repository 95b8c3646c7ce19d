import ArgumentParser
import Foundation
import Testing

@testable import docsync

/// What shells and people ask of the command before they use it: its version, and completions.
@Suite struct ShellTests {
  private let scratch: Scratch
  private let verbs = Docsync.configuration.subcommands.map { $0._commandName }

  init() throws { scratch = try Scratch() }

  @Test func theVersionIsPrintedAndDescribedInTheChangelog() throws {
    let output = try scratch.succeed("--version").output
    #expect(
      output.wholeMatch(of: /docsync (.+)\nformat of databases [0-9]+, SQLite 3\.[0-9.]+\n/)?.1
        == Docsync.version[...], "\(output)")
    let changelog = try String(
      contentsOf: URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .appendingPathComponent("../../Documentation/Changelog.md"), encoding: .utf8)
    let heading = Docsync.version.hasSuffix("-dev") ? "Unreleased" : Docsync.version
    #expect(changelog.contains("\n## \(heading)"))
  }

  @Test(arguments: ["bash", "zsh", "fish"])
  func aCompletionScriptHoldsEveryVerb(shell: String) throws {
    #expect(verbs.count >= 20)
    let script = try scratch.succeed("--generate-completion-script", shell).output
    let words = Set(script.split { !($0.isLetter || $0 == "-") }.map(String.init))
    #expect(verbs.filter { !words.contains($0) } == [])
  }

  /// Calls the function of “complete -F function docsync” as bash does.
  private static let completing = """
    source "$0"
    COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMP_LINE="$*" COMP_POINT=${#COMP_LINE} COMP_TYPE=9
    "$(complete -p docsync | sed 's/.*-F \\([^ ]*\\).*/\\1/')" docsync "${@: -1}" "${@: -2:1}"
    printf '%s\\n' "${COMPREPLY[@]}"
    """

  /// What the user gets who types TAB after the last of the words.
  private func completions(_ words: String...) throws -> [String] {
    let script = scratch.path + "/completions.bash"
    try scratch.succeed("--generate-completion-script", "bash").output
      .write(toFile: script, atomically: true, encoding: .utf8)
    let (process, pipe) = (Process(), Pipe())
    process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    process.arguments = ["bash", "-c", Self.completing, script] + words
    process.currentDirectoryURL = URL(fileURLWithPath: scratch.path)
    process.standardOutput = pipe
    try process.run()
    let output = pipe.fileHandleForReading.readDataToEndOfFile()
    process.waitUntilExit()
    #expect(process.terminationStatus == 0)
    return String(decoding: output, as: UTF8.self).split(separator: "\n").map(String.init).sorted()
  }

  @Test func bashCompletesVerbsFilesAndFolders() throws {
    try scratch.makeNotes("notes.db")
    #expect(try completions("docsync", "rem") == ["remove-all", "remove-client"])
    #expect(try completions("docsync", "sync", "no") == ["notes.db"])
    #expect(try completions("docsync", "verify", "no") == ["notes.db"])
    #expect(try completions("docsync", "init", "notes.db", "--directory", "sh") == ["shared"])
    #expect(try completions("docsync", "clients", "--directory", "no") == [])
  }
}
