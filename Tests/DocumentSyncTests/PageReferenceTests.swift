import Foundation
import Testing

/// What pages refer to: each other, files, and names in code.
struct PageReferenceTests {
  private static let top = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
    .appendingPathComponent("../../").standardizedFileURL

  /// The pages in a folder, by their paths.
  private static func pages(in folder: String) throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: top.path + "/" + folder)
      .filter { $0.hasSuffix(".md") }.sorted().map { folder + "/" + $0 }
  }

  static func pages() throws -> [String] {
    try ["Documentation", ".github", "Fixtures/Merge"].flatMap { try pages(in: $0) } + ["README.md"]
  }

  /// The name by which a link finds a heading: small letters, no marks,
  /// hyphens for spaces.
  private static func anchor(_ heading: Substring) -> String {
    var text = String(heading.drop { $0 == "#" }).trimmingCharacters(in: .whitespaces)
      .replacing(/\[([^\]]*)\]\([^)]*\)/) { String($0.output.1) }.lowercased()
    text.removeAll { !($0.isLetter || $0.isNumber || $0 == " " || $0 == "-" || $0 == "_") }
    return text.replacingOccurrences(of: " ", with: "-")
  }

  private static func anchors(_ page: String) throws -> Set<String> {
    var isCode = false
    var anchors: Set<String> = []
    for line in try Page(page).text.split(separator: "\n", omittingEmptySubsequences: false) {
      if line.hasPrefix("```") { isCode.toggle() }
      if !isCode, line.hasPrefix("#") { anchors.insert(anchor(line)) }
    }
    return anchors
  }

  /// The links on a page that do not lead elsewhere.
  private func links(on page: String) throws -> [String] {
    try Page(page).text.split(separator: "\n").filter { $0.contains("](") }.flatMap { line in
      line.matches(of: /\]\(([^)\s]+)\)/).map { String($0.1) }.filter { !$0.contains("://") }
    }
  }

  @Test func theIndexListsEveryPageOnce() throws {
    let links = try links(on: "Documentation/README.md").map { "Documentation/" + $0 }
    for page in try Self.pages(in: "Documentation") where page != "Documentation/README.md" {
      #expect(links.filter { $0 == page }.count == 1, "\(page)")
    }
  }

  @Test(arguments: try pages())
  func everyLinkLeadsToAPageAndAHeading(page: String) throws {
    let folder = (page as NSString).deletingLastPathComponent
    for link in try links(on: page) {
      let parts = link.split(separator: "#", maxSplits: 1, omittingEmptySubsequences: false)
      let target =
        parts[0].isEmpty
        ? page
        : ((folder as NSString).appendingPathComponent(String(parts[0])) as NSString) as String
      #expect(
        FileManager.default.fileExists(atPath: Self.top.path + "/" + target), "\(link) on \(page)")
      guard parts.count == 2, target.hasSuffix(".md") else { continue }
      #expect(try Self.anchors(target).contains(String(parts[1])), "\(link) on \(page)")
    }
  }

  /// Every name that is declared somewhere in the code.
  private static func declared() throws -> Set<String> {
    var names: Set<String> = []
    let folder = top.path + "/Sources"
    for file in try FileManager.default.subpathsOfDirectory(atPath: folder)
    where file.hasSuffix(".swift") {
      for line in try String(contentsOfFile: folder + "/" + file, encoding: .utf8)
        .split(separator: "\n")
      where !line.trimmingCharacters(in: .whitespaces).hasPrefix("//") {
        let declarations =
          /(?:class|struct|enum|protocol|actor|func|let|var|typealias)\s+`?(\w+)/
        for match in line.matches(of: declarations) { names.insert(String(match.1)) }
        // Labels of parameters, and cases, of which several may be on a line.
        for match in line.matches(of: #/(\w+)(?: \w+)?: /#) { names.insert(String(match.1)) }
        if let cases = line.firstMatch(of: /^\s*(?:indirect )?case (.*)/) {
          for match in cases.1.matches(of: /`?(\w+)/) { names.insert(String(match.1)) }
        }
      }
    }
    return names
  }

  /// In the tables of what there was and what there is the last column is
  /// about what there is.
  @Test func everyNameOfOursOnThePageForTICoreDataSyncIsDeclared() throws {
    let declared = try Self.declared()
    #expect(declared.count > 1000)
    let foreign: Set = ["ValueObservation", "Encryption"]
    var seen = 0
    for line in try Page("Documentation/ComingFromTICoreDataSync.md").text.split(separator: "\n") {
      guard line.hasPrefix("| ") || line.hasPrefix("New: "),
        let cell = line.split(separator: "|").last(where: { !$0.allSatisfy(\.isWhitespace) })
      else { continue }
      for code in cell.matches(of: /`([^`]+)`/) {
        for name in code.1.matches(of: /[A-Za-z_]\w*/) where !foreign.contains(String(name.0)) {
          seen += 1
          let isDeclared = declared.contains(String(name.0))
          #expect(isDeclared, "\(name.0) of \(code.1) in: \(line)")
        }
      }
    }
    #expect(seen > 150)
  }
}
