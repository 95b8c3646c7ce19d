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

  /// Files that have SQL on tables of others, which should become fewer.
  private static let exceptions: [String: Set<String>] = [
    "ChangeSetBuilder.swift": ["docsync_outbox"],
    "IncarnationBranch.swift": ["docsync_outbox"],
    "LocalStore+Applying.swift": ["docsync_inbox"],
    "LocalStore+Commands.swift": ["docsync_command", "docsync_event", "docsync_inbox"],
    "LocalStore+Incarnation.swift": ["docsync_outbox"],
    "LocalStore+Sealing.swift": ["docsync_outbox"],
    "LocalStore+Snapshot.swift": ["docsync_outbox"],
    "LocalStore+Status.swift": ["docsync_outbox"],
    "PendingChangeSets.swift": ["docsync_inbox"],
    "Replacing.swift": ["docsync_outbox", "docsync_inbox"],
    "StoreSession+OwnChangeSets.swift": ["docsync_outbox", "docsync_inbox"],
    "StoreSession+Policies.swift": ["docsync_outbox"],
    "StoreSession+Ranges.swift": ["docsync_outbox"],
    "StoreSession+RemovalLoss.swift": ["docsync_outbox", "docsync_inbox"],
    "StoreVerifier+ChangeSets.swift": ["docsync_outbox", "docsync_inbox", "docsync_command"],
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
      let foreign = found.filter { owners[$0] != file && Self.gateways[$0]?.contains(file) != true }
      #expect(foreign == Self.exceptions[file] ?? [], "\(file) has SQL on tables of others.")
    }
    for file in Self.exceptions.keys {
      #expect(uses[file] != nil, "\(file) is no exception any more.")
    }
  }
}
