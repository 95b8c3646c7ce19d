import Foundation
import Testing

/// What the documentation says is what is there.
@Suite struct ReadmeTests {
  private static let root = URL(fileURLWithPath: #filePath)
    .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()

  private func text(_ path: String) throws -> String {
    try String(contentsOf: Self.root.appendingPathComponent(path), encoding: .utf8)
  }

  @Test func theReadmeHoldsTheExampleThatIsCompiledHere() throws {
    let example = try text("Tests/DocsyncTests/ReadmeExample.swift")
    #expect(try text("README.md").contains("```swift\n\(example)```"))
  }

  @Test func theExampleDoesWhatItSays() async throws {
    let scratch = try Scratch()
    try scratch.makeNotes("laptop.db")
    let report = try await shareNotes(
      laptop: scratch.path + "/laptop.db", phone: scratch.path + "/phone.db",
      folder: scratch.path + "/shared")
    #expect(report.waiting.isEmpty)
    #expect(
      try scratch.column("phone.db", "SELECT title FROM notes")
        == scratch.column("laptop.db", "SELECT title FROM notes"))
  }

  @Test func theExitCodesOfTheHelpAreDocumented() throws {
    let help = try Scratch().succeed("--help").output
    let page = try text("Documentation/CommandLine.md")
    let codes = help.split(separator: "\n").compactMap { line -> (Substring, Substring)? in
      let parts = line.dropFirst(2).split(separator: " ", maxSplits: 1)
      guard line.hasPrefix("  "), parts.count == 2, UInt8(parts[0]) != nil else { return nil }
      return (parts[0], parts[1].drop { $0 == " " })
    }
    #expect(codes.count == 7)
    for (code, meaning) in codes { #expect(page.contains("| \(code) | \(meaning) |")) }
  }
}
