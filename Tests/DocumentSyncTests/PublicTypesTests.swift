import Foundation
import Testing

/// The public types, in the code and in `Documentation/PublicTypes.md`.
struct PublicTypesTests {
  /// A module's top-level public types.
  private static func types(of module: String) throws -> Set<String> {
    let sources = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
      .appendingPathComponent("../../Sources/" + module).standardizedFileURL
    let files = try #require(FileManager.default.enumerator(atPath: sources.path))
    var types: Set<String> = []
    for case let file as String in files where file.hasSuffix(".swift") {
      let text = try String(contentsOf: sources.appendingPathComponent(file), encoding: .utf8)
      let declaration =
        /^(?:@\S+ )*(?:public|open) (?:[a-z]+ )*?(?:struct|class|enum|protocol|actor|typealias) (\w+)/
      for line in text.split(separator: "\n") {
        if let match = line.firstMatch(of: declaration) { types.insert(String(match.1)) }
      }
    }
    return types
  }

  private static func isOperation(_ type: String) -> Bool { type.hasSuffix("Operation") }

  /// The types in the tables of the page, with their lines, by heading.
  private static func listed() throws -> [(heading: String, type: String, line: String)] {
    var heading = ""
    var listed: [(heading: String, type: String, line: String)] = []
    for line in try Page("Documentation/PublicTypes.md").text.split(separator: "\n") {
      if line.hasPrefix("## ") { heading = String(line.dropFirst(3)) }
      if let row = line.wholeMatch(of: /\| `(\w+)` \| (.+) \|/) {
        listed.append((heading, String(row.1), String(row.2)))
      }
    }
    return listed
  }

  @Test func thePageListsWhatAnAppSees() throws {
    let seen = Set(
      try ["DocumentSync", "SyncStore", "SyncModel", "SyncDirectory"].flatMap {
        try Self.types(of: $0)
      })
    let testing = try Self.types(of: "DocumentSyncTesting")
    let models = try Self.types(of: "DocumentSyncModels")
    let listed = try Self.listed()
    #expect(Set(listed.map(\.type)).count == listed.count, "a type stands there twice")
    func types(where isThere: (String) -> Bool) -> Set<String> {
      Set(listed.filter { isThere($0.heading) }.map(\.type))
    }
    let operations = seen.filter(Self.isOperation)
    #expect(types { $0 == "Operations" } == operations)
    #expect(types { $0 == "Testing a directory" } == testing)
    #expect(types { $0 == "Models outside of SQLite" } == models)
    let others: Set = ["Operations", "Testing a directory", "Models outside of SQLite"]
    #expect(types { !others.contains($0) } == seen.subtracting(operations))
  }

  @Test func anAppSeesAtMostSixtyTypesBesidesOperations() throws {
    let seen = try ["DocumentSync", "SyncStore", "SyncModel", "SyncDirectory"].flatMap {
      try Self.types(of: $0)
    }
    let others = seen.filter { !Self.isOperation($0) }
    #expect(others.count > 50 && others.count <= 60, "\(others.sorted())")
  }
}
