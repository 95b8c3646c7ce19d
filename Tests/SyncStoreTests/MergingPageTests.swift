import Foundation
import Testing

/// The worked examples of `Documentation/Merging.md`.
@Suite struct MergingPageTests {
  @Test func everyExampleNamesCasesThatExist() throws {
    let page = MergeCaseReader.directory.deletingLastPathComponent().deletingLastPathComponent()
      .appending(path: "Documentation/Merging.md")
    let text = try String(contentsOf: page, encoding: .utf8)
    let examples = try #require(text.range(of: "## Worked examples")).upperBound
    let names = Set(try MergeCaseReader.all().map(\.name))
    var quoted: [String] = []
    // A name may go over the end of a line.
    for part in text[examples...].split(separator: "“").dropFirst() {
      let name = try #require(part.firstIndex(of: "”"))
      quoted.append(part[..<name].split(whereSeparator: \.isWhitespace).joined(separator: " "))
    }
    #expect(quoted.count > 25)
    #expect(quoted.filter { !names.contains($0) } == [])
  }
}
