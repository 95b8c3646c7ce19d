import Foundation
import Testing

@testable import SyncStore

/// The tables of bookkeeping as every version has made them, and their owners.
@Suite struct BookkeepingTests {
  private static let root = URL(filePath: #filePath).deletingLastPathComponent()
    .appending(path: "../..").standardized

  /// The text goes into the files of stores, and other devices compare shapes: it stays as it is,
  /// byte for byte, in this order.
  @Test func tablesAreMadeByTheStatementsOfEveryVersion() throws {
    let file = Self.root.appending(path: "Fixtures/Stores/bookkeeping.sql")
    var text = ""
    var known = 0
    for version in 1...Bookkeeping.format {
      let statements = Bookkeeping.creation(upTo: version)
      text += (version > 1 ? "\n" : "") + "-- Version \(version)\n"
      for statement in statements.dropFirst(known) { text += statement + ";\n" }
      known = statements.count
    }
    #expect(try text == String(contentsOf: file, encoding: .utf8))
  }

  // MARK: - Owners

  /// Files beside that of a table's definition that may have SQL on the table.
  private static let gateways: [String: Set<String>] = [
    "docsync_conflict": ["ConflictJournal.swift"]
  ]

  @Test func onlyTheOwnerOfATableHasSQLOnIt() throws {
    let tables = Set(Bookkeeping.tables.map(\.name))
    let folder = Self.root.appending(path: "Sources/SyncStore")
    let paths = FileManager.default.enumerator(atPath: folder.path)?.compactMap { $0 as? String }
    let definition = /TableDefinition\(\s*"(docsync_\w+)"/
    let use =
      /(?:FROM|INTO|UPDATE|REPLACE|JOIN|TABLE|EXISTS|ON)\s+(?:\w+\.|\\\([^()]*\)\.)?(docsync_\w+)/
    var owners: [String: String] = [:]
    var uses: [String: Set<String>] = [:]
    for path in (paths ?? []).filter({ $0.hasSuffix(".swift") }) {
      let text = try String(contentsOf: folder.appending(path: path), encoding: .utf8)
      let file = (path as NSString).lastPathComponent
      for match in text.matches(of: definition) { owners[String(match.1)] = file }
      for match in text.matches(of: use) where tables.contains(String(match.1)) {
        uses[file, default: []].insert(String(match.1))
      }
    }
    #expect(Set(owners.keys) == tables)
    for (file, found) in uses {
      let foreign = found.filter { table in
        // Extensions of the owner have files of their own.
        let owner = owners[table].map { String($0.dropLast(".swift".count)) } ?? ""
        return file != owner + ".swift" && !file.hasPrefix(owner + "+")
          && Self.gateways[table]?.contains(file) != true
      }
      #expect(foreign.isEmpty, "\(file) has SQL on tables of others.")
    }
  }
}
