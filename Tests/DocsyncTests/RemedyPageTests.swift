import Foundation
import SyncModel
import Testing

@testable import docsync

/// The actions of remedies: their table on the page, and their words.
@Suite struct RemedyPageTests {
  private static func text(_ path: String) throws -> String {
    try String(
      contentsOf: URL(filePath: #filePath).deletingLastPathComponent()
        .appending(path: "../../" + path), encoding: .utf8)
  }

  /// All actions, with what the page calls that which they name.
  private static let actions: [Remedy.Action] = [
    .create, .join, .joinReplacing, .joinMerging, .synchronize, .synchronizeThoroughly,
    .synchronizeRejoining, .synchronizeRecreating, .synchronizeMerging, .reset, .upload, .verify,
    .leave, .leaveAbandoning, .removeClient, .deleteDocument, .listClients, .listDocuments,
    .listChangeSets, .listConflicts, .answerConflict(7), .restoreConflict(7), .exclude("NAME"),
    .identify("TABLE"), .identifyByPrimaryKey("TABLE"),
  ]

  @Test func thePageHasEachActionWithItsCommand() throws {
    let commands = Dictionary(
      uniqueKeysWithValues: Self.actions.map { ($0.code, $0.command(at: .elsewhere)) })
    let library = try Self.text("Sources/SyncModel/Remedy+Action.swift")
    // Titles of one word have another spelling than the code.
    let codes = Set(
      library.matches(of: /case \.(\w+): "(\w+)"/).filter { $0.1 == $0.2 }.map { String($0.1) })
    #expect(codes.count > 20)
    #expect(Set(commands.keys) == codes)
    let whole = try Self.text("Documentation/CommandLine.md")
    let start = try #require(whole.range(of: "\n### Actions of remedies\n")).upperBound
    let page = whole[start...]
    for (code, command) in commands {
      let words = command.replacing(/[“”]/, with: "").replacing("7", with: "NUMBER")
      let line = page.split(separator: "\n").first {
        $0.hasPrefix("| `\(code)` |") && $0.hasSuffix("| `\(words)` |")
      }
      #expect(line != nil, "\(code): \(words)")
    }
    let lines = page.split(separator: "\n").count { line in
      commands.keys.contains { line.hasPrefix("| `\($0)` |") }
    }
    #expect(lines == commands.count)
  }

  /// Names with the signs that separate names on a command line are quoted.
  @Test(arguments: ["notes", "a.b", "a,b", "a=b", "a\"b", "two words"])
  func optionsCanBeTyped(name: String) throws {
    let (table, column) = (SQLName(name), SQLName("c,\(name)"))
    let options = [
      Remedy.Action.exclude(table), .exclude(table, column: column), .identify(table),
      .identifyByPrimaryKey(table),
    ].map { $0.command(at: .elsewhere) }
    let wanted = [
      QualifiedName(table: table), QualifiedName(table: table, column: column),
      QualifiedName(table: table), QualifiedName(table: table),
    ]
    for (option, wanted) in zip(options, wanted) {
      let word = try #require(option.split(separator: " ", maxSplits: 1).last)
      let isQuoted = word.hasPrefix("'")
      #expect(!isQuoted || word.hasSuffix("'") || word.hasSuffix("'=primaryKey"))
      let text = word.replacing("'", with: "").replacing("=primaryKey", with: "")
      #expect(QualifiedName(String(text)) == wanted)
    }
  }

  @Test func wordsOfTheCommandTakeThePlaceOfActions() {
    let remedy: Remedy =
      "See \(.verify), then put \(.exclude("notes")) or \(.restoreConflict(3))" + ", \(2) times."
    #expect(
      remedy.commandText()
        == "See “docsync verify STORE”, then put --exclude notes or "
        + "“docsync conflicts STORE restore 3”, 2 times.")
    #expect(
      remedy.description
        == "See “Verify”, then put “Exclude notes” or “Restore conflict 3”, 2 times.")
    #expect(remedy.actions.map(\.code) == ["verify", "exclude", "restoreConflict"])
  }

  @Test func commandsNameTheDatabaseUnlessAnotherDeviceCallsThem() {
    let remedy: Remedy = "Run \(.upload), or \(elsewhere: .upload) there, or \(.joinMerging)."
    let place = CommandPlace(store: "my notes.db", directory: "/mnt/it", document: "n")
    #expect(
      remedy.commandText(at: place)
        == "Run “docsync upload 'my notes.db'”, or “docsync upload STORE” there, or "
        + "“docsync join 'my notes.db' --directory /mnt/it --document n --merge”.")
    #expect(remedy.actions == [.upload, .upload, .joinMerging])
  }

  /// Applications show the texts of the libraries.
  @Test(arguments: ["SyncModel", "SyncDirectory", "SyncStore", "DocumentSync"])
  func noLibraryNamesACommandOrAnOption(module: String) throws {
    let folder = URL(filePath: #filePath).deletingLastPathComponent()
      .appending(path: "../../Sources/" + module)
    let names = try FileManager.default.subpathsOfDirectory(atPath: folder.path)
      // The readme of the shared directory explains what its files belong to.
      .filter { $0.hasSuffix(".swift") && !$0.hasSuffix("DirectoryLayout+Readme.swift") }
    #expect(names.count > 10)
    for name in names {
      let code = try String(contentsOf: folder.appending(path: name), encoding: .utf8)
      for line in code.split(separator: "\n") {
        let text = line.drop(while: \.isWhitespace)
        guard !text.hasPrefix("//") else { continue }
        #expect(text.firstMatch(of: /docsync [a-z]|[ “(]--[a-z]/) == nil, "\(name): \(text)")
      }
    }
  }

  @Test func thePageHasEveryFindingWithItsGravityAndRemedy() throws {
    let page = try Self.text("Documentation/SharedDirectory.md")
    for kind in VerifyReport.Finding.Kind.allCases {
      let line = try #require(
        page.split(separator: "\n").first {
          $0.hasPrefix("| `\(kind.rawValue)` | \(kind.severity) |")
        },
        "\(kind)")
      #expect(line.contains(kind.remedy.commandText()), "\(kind): \(kind.remedy.commandText())")
    }
  }
}
