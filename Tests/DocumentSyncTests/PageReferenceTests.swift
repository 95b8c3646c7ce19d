import Foundation
import Testing

/// What pages refer to: each other, files, and names in code.
struct PageReferenceTests {
  private static let top = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
    .appendingPathComponent("../../").standardizedFileURL

  private static func exists(_ path: String) -> Bool {
    FileManager.default.fileExists(atPath: top.path + "/" + path)
  }

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
      #expect(Self.exists(target), "\(link) on \(page)")
      guard parts.count == 2, target.hasSuffix(".md") else { continue }
      #expect(try Self.anchors(target).contains(String(parts[1])), "\(link) on \(page)")
    }
  }

  /// The texts in code on a page, apart from blocks of code.
  private static func codes(in text: some StringProtocol) -> [String] {
    var isBlock = false
    return text.split(separator: "\n").flatMap { line -> [String] in
      if line.hasPrefix("```") { isBlock.toggle() }
      // Every other part of a line is between backticks.
      let parts = line.split(separator: "`", omittingEmptySubsequences: false)
      return isBlock
        ? [] : stride(from: 1, to: parts.count - 1, by: 2).map { String(parts[$0]) }
    }
  }

  /// `README.txt` is in shared directories, and a name with a gap stands for many files.
  @Test(arguments: try pages())
  func everyFileThatAPageNamesIsThere(page: String) throws {
    let folders = ["Sources/", "Tests/", "Fixtures/", "Documentation/", ".ci/", ".github/"]
    let kinds = [".swift", ".py", ".json", ".txt", ".md"]
    let files = try ["Sources", "Tests", "Fixtures"].flatMap {
      try FileManager.default.subpathsOfDirectory(atPath: Self.top.path + "/" + $0)
    }
    let names = Set(files.map { ($0 as NSString).lastPathComponent } + ["README.txt"])
    for code in Self.codes(in: try Page(page).text) {
      let file = String(code.prefix { $0 != " " })
      if folders.contains(where: file.hasPrefix) {
        let folder = file.contains("*") ? (file as NSString).deletingLastPathComponent : file
        #expect(Self.exists(folder), "\(code)")
      } else if kinds.contains(where: file.hasSuffix), !code.contains(/[<…*]/) {
        let isThere = names.contains(file)
        #expect(isThere, "\(code)")
      }
    }
  }

  /// Names of types, and of files and tests, which begin with a capital. The page for
  /// other systems have a test of their own.
  @Test(arguments: try pages().filter { !$0.contains("ComingFrom") })
  func everyTypeThatAPageNamesIsDeclared(page: String) throws {
    var declared = try Self.declared(in: "Sources").union(Self.declared(in: "Tests"))
    // Modules, and chapters of modules, are folders.
    for folder in ["Sources", "Tests", "Documentation", "Fixtures"] {
      declared.insert(folder)
      declared.formUnion(
        try FileManager.default.subpathsOfDirectory(atPath: Self.top.path + "/" + folder)
          .map { ($0 as NSString).lastPathComponent })
    }
    // Of Windows, Linux, an example, and of schemas.
    let foreign: Set = ["Thumbs", "VmHWM", "Note", "Chinook_Sqlite"]
    for code in Self.codes(in: try Page(page).text)
    where !code.contains(/[ <=\/]/) && !code.hasPrefix("+") && !code.hasSuffix(".txt") {
      for name in code.matches(of: /\b[A-Z][a-z]\w*(?:\+\w+)?/).map({ String($0.0) })
      where !foreign.contains(name) {
        let isDeclared = declared.contains(name)
        #expect(isDeclared, "\(code)")
      }
    }
  }

  /// The table says “Module: `Type`, `Folder/`; Module: `Type+Part` and `+Part`”.
  @Test func everyPlaceOfAConcernIsInItsModule() throws {
    let page = try Page("Documentation/Architecture.md").text
    let table = page[try #require(page.range(of: "## Where a concern lives")).upperBound...]
    let modules = try FileManager.default.contentsOfDirectory(atPath: Self.top.path + "/Sources")
    var seen = 0
    for line in table.split(separator: "\n") where line.hasPrefix("| ") {
      let cells = line.split(separator: "|")
      guard cells.count == 2 else { continue }
      var module = ""
      for part in cells[1].split(separator: ";") {
        let words = part.split { !$0.isLetter && !$0.isNumber }.map(String.init)
        module = words.first(where: modules.contains) ?? module
        let codes = Self.codes(in: part)
        guard !codes.isEmpty else { continue }
        try #require(module != "", "no module: \(line)")
        let declared = try Self.declared(in: "Sources/" + module, others: false)
        let files = try FileManager.default.subpathsOfDirectory(
          atPath: Self.top.path + "/Sources/" + module)
        for code in codes {
          seen += 1
          let isThere =
            if code.hasSuffix("/") {
              files.contains(String(code.dropLast()))
            } else if code.contains("/") {
              files.contains(code + ".swift")
            } else if code.hasPrefix("+") {
              files.contains { $0.hasSuffix(code + ".swift") }
            } else {
              declared.contains(String(code.prefix { $0 != "." }))
            }
          #expect(isThere, "\(code) in \(module)")
        }
      }
    }
    #expect(seen > 25)
  }

  /// The names in a file.
  private struct Names {
    /// Those of types, functions and variables.
    var declared: Set<String> = []
    /// Cases and labels of parameters, and other words beside them.
    var others: Set<String> = []
  }

  /// The names in each file, by its path.
  private static let namesByFile = Result {
    var names: [String: Names] = [:]
    for folder in ["Sources", "Tests"] {
      for file in try FileManager.default.subpathsOfDirectory(atPath: top.path + "/" + folder)
      where file.hasSuffix(".swift") {
        let path = folder + "/" + file
        names[path] = Self.names(in: try Page(path).text)
      }
    }
    return names
  }

  /// The names in a text. Bytes are looked at, since characters take too long for all files.
  private static func names(in text: String) -> Names {
    let keywords: Set = [
      "class", "struct", "enum", "protocol", "actor", "func", "let", "var", "typealias",
    ]
    func isWord(_ byte: UInt8) -> Bool {
      let letter = byte | 0x20
      return (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(letter)
        || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) || byte == UInt8(ascii: "_")
    }
    var names = Names()
    for line in text.utf8.split(separator: UInt8(ascii: "\n")) {
      let parts = line.split { !isWord($0) }
      guard !line.drop(while: { $0 == UInt8(ascii: " ") }).starts(with: "//".utf8) else { continue }
      let words = parts.map { String(Substring($0)) }
      if words.prefix(2).contains("case") { names.others.formUnion(words) }
      for (index, word) in words.enumerated() {
        let follows = parts[index].endIndex
        if index > 0, keywords.contains(words[index - 1]) { names.declared.insert(word) }
        if follows < line.endIndex, line[follows] == UInt8(ascii: ":") {
          names.others.formUnion(words[max(0, index - 1)...index])
        }
      }
    }
    return names
  }

  /// The names of the files of a folder, and every name that is declared in them; with `others`,
  /// also cases and labels.
  private static func declared(
    in folder: String, others: Bool = true
  ) throws -> Set<String> {
    var all: Set<String> = []
    for (path, names) in try namesByFile.get() where path.hasPrefix(folder + "/") {
      all.insert(((path as NSString).lastPathComponent as NSString).deletingPathExtension)
      all.formUnion(names.declared)
      if others { all.formUnion(names.others) }
    }
    return all
  }

  /// In the tables of what there was and what there is, the columns after the first one are
  /// about what there is.
  @Test(arguments: ["TICoreDataSync", "CKSyncEngine", "SyncKit", "CKSIncrementalStore"])
  func everyNameOfOursOnThePageForAnotherSystemIsDeclared(system: String) throws {
    let declared = try Self.declared(in: "Sources")
    #expect(declared.count > 1000)
    let foreign: Set = ["DocumentSyncGRDB", "DocumentSyncModels", "GRDB", "Encryption"]
    var seen = 0
    for line in try Page("Documentation/ComingFrom\(system).md").text.split(separator: "\n") {
      guard line.hasPrefix("| ") || line.hasPrefix("New: "),
        case let cells = line.split(separator: "|").filter({ !$0.allSatisfy(\.isWhitespace) }),
        !cells.isEmpty
      else { continue }
      let ours = cells.count == 1 ? cells : Array(cells.dropFirst())
      for code in ours.flatMap({ $0.matches(of: /`([^`]+)`/) }) {
        for name in code.1.matches(of: /[A-Za-z_]\w*/) where !foreign.contains(String(name.0)) {
          seen += 1
          let isDeclared = declared.contains(String(name.0))
          #expect(isDeclared, "\(name.0) of \(code.1) in: \(line)")
        }
      }
    }
    #expect(seen > (system == "TICoreDataSync" ? 150 : 40))
  }
}
