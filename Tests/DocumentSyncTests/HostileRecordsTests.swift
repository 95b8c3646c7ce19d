import DocumentSyncTesting
import Foundation
import GRDB
import SyncDirectory
import SyncModel
import Testing

@testable import DocumentSync
@testable import SyncStore

/// A store of which another program has changed the numbers that it keeps as
/// JSON. Each operation works, or names the table: none ends the process.
struct HostileRecordsTests {
  /// A value of the bookkeeping.
  struct Place: Hashable, Sendable, CustomTestStringConvertible {
    var table: String
    var key: String
    var testDescription: String { "\(table), \(key)" }
  }

  /// A store with all records, and its directory.
  private struct Original: Sendable {
    var store: Data
    var items: [RelativePath: MemoryDirectory.Item]
    var values: [Place: String]
  }

  /// A store with a long history, and one that has published no change set yet.
  private struct Originals: Sendable {
    var busy: Original
    var fresh: Original
  }

  private static let records = (StoreRecords.ofOneLife + [UnreportedWarnings.key]).filter {
    // The others are texts.
    !(StoreRecords.withoutContent + ["unsound", "replaced", "mergesInto"]).contains($0)
  }.map { Place(table: "docsync_record", key: $0) }

  private static let metas = MetaTable.Key.allCases.filter {
    // The others are texts.
    $0 == .format || ($0.isJSON && ![.configuration, .excludedNames].contains($0))
  }.map { Place(table: "docsync_meta", key: $0.rawValue) }

  /// - Parameter looksAtPlace: Whether a copy of a store is another client, which has no records of
  ///   the former one.
  private static func environment(_ world: World, looksAtPlace: Bool) -> SyncEnvironment {
    var environment = world.environment
    if looksAtPlace { environment.store.places = StorePlaces(machine: "m", folder: nil) }
    environment.thresholds.looseCount = 4
    environment.thresholds.tailCount = 1
    environment.thresholds.mergeCount = 2
    environment.thresholds.ownInterval = 2
    environment.thresholds.appliedInterval = 2
    return environment
  }

  /// Three devices; one is retired, and another has published something that
  /// the first does not have.
  private static let originals = Task {
    let scratch = try Scratch()
    let memory = MemoryDirectory(seed: 5)
    let environment = HostileRecordsTests.environment(World(seed: 5), looksAtPlace: true)
    try sql(
      DamagedStore.schema + "INSERT INTO folder VALUES (1, 'a'), (3, 'b');",
      at: scratch.store("0"))
    var managers = [
      try await DocumentSyncManager.create(
        storeAt: scratch.store("0"), directory: memory, document: "main",
        options: .init(client: "0", environment: environment))
    ]
    for index in [1, 2] {
      managers.append(
        try await DocumentSyncManager.join(
          storeAt: scratch.store("\(index)"), directory: memory,
          options: .init(client: "\(index)", environment: environment)))
    }
    func edit(_ rounds: Range<Int>) async throws {
      for round in rounds {
        for (index, manager) in managers.enumerated() {
          try manager.edit("INSERT INTO tag VALUES ('\(index) \(round)', 'x')")
          try manager.edit("UPDATE folder SET name = '\(index) \(round)' WHERE id = 1")
        }
        for manager in managers { try await manager.synchronize() }
      }
    }
    try await edit(0..<4)
    _ = try await managers[0].reset()
    for manager in managers + managers { try await manager.synchronize() }
    try await managers[2].close()
    let gone = managers.removeLast().binding.client
    try await edit(4..<8)
    _ = try await managers[0].retire(.client(gone, .removed))
    try await managers[0].sendCommand(name: "c", payload: [1])
    try await edit(8..<12)
    _ = try await managers[0].vacuum()
    try managers[1].edit("INSERT INTO tag VALUES ('late', 'x')")
    try await managers[1].synchronize()
    try managers[0].edit("INSERT INTO tag VALUES ('own', 'x')")
    try await managers[0].sendCommand(name: "d", payload: [1])
    managers.append(
      try await DocumentSyncManager.join(
        storeAt: scratch.store("3"), directory: memory,
        options: .init(client: "3", environment: environment)))
    try await managers[2].synchronize()
    for manager in [managers[0], managers[2]] {
      try fill(manager, other: managers[1].binding.client)
    }
    // The comparison of a table that was made again would seal a change set.
    try sql("DELETE FROM docsync_meta WHERE key = 'remade'", at: managers[2].store.path)
    for manager in managers { try await manager.close() }
    return Originals(
      busy: try await read(scratch.store("0"), memory),
      fresh: try await read(scratch.store("3"), memory))
  }

  private static func read(_ path: String, _ memory: MemoryDirectory) async throws -> Original {
    try sql("PRAGMA wal_checkpoint(TRUNCATE)", at: path)
    let queue = try DatabaseQueue(path: path)
    let values = try await queue.read { database in
      var values: [Place: String] = [:]
      for place in records + metas {
        let value = try Data.fetchOne(
          database, sql: "SELECT value FROM \(place.table) WHERE key = ?", arguments: [place.key])
        values[place] = value.map { String(decoding: $0, as: UTF8.self) }
      }
      return values
    }
    try queue.close()
    return Original(
      store: try Data(contentsOf: URL(fileURLWithPath: path)), items: memory.items, values: values)
  }

  /// Gives the store the records that it does not have yet.
  private static func fill(_ manager: DocumentSyncManager, other: ClientIdentifier) throws {
    let records = StoreRecords(manager.store)
    let hash = ContentHash(of: [1])
    let wait = SyncReport.Wait(client: other, number: 7, reason: .notArrived, message: "m")
    let awaited = try #require(StoreRecords.Awaited(wait))
    try records.keep(StoreRecords.Waits(last: [awaited], said: [awaited]))
    try records.keep(refused: [wait])
    try records.keep(answered: [other: 16])
    try records.keep(asked: [other.description: 7])
    try records.keep(["\(hash)": 1])
    if try records.segments().allSatisfy({ $0.client != other }) {
      let segment = RecentSyncFile.Segment(client: other, first: 1, last: 2, hash: hash)
      try records.keep(records.segments() + [segment])
    }
    try records.keep(try records.kept())
    try records.keep([other: StoreRecords.Kept(changeSets: 2, commands: 2)])
    let absence = StoreRecords.Absence(revision: 3, milliseconds: 5, count: 4, last: 6)
    try records.keep([other: absence])
    try records.keep(
      SyncCommand.Reset(generation: manager.binding.generation, ordinal: 2) as SyncCommand.Reset?)
    var ancestors = try records.ancestors()
    ancestors.clients.append(other)
    ancestors.contained[other.description] = 1
    try records.keep(ancestors)
    if try records.formerGenerations().isEmpty {
      try records.keep([
        StoreRecords.FormerGeneration(
          generation: manager.binding.generation, contained: [other.description: 1],
          lowestKept: [other.description: 1], cuts: [other.description: 1])
      ])
    }
    var lives = try records.formerLives()
    lives.append(
      StoreRecords.FormerLife(
        document: manager.binding.document, generation: manager.binding.generation,
        client: manager.binding.client, members: [other], retired: [],
        clearing: [other.description: 1]))
    try records.keep(lives)
    let wholeStore = WholeStoreDescription(
      client: other, number: 1, hash: hash, vector: VersionVector(), byteCount: 1,
      storeByteCount: 1)
    var warning = SyncWarning(.parked, message: "m")
    warning.milliseconds = 1
    try records.keep(
      SyncReport.Rebootstrap(
        reason: .gap, backup: "b", wholeStore: wholeStore, merged: MergedRows(),
        warnings: [warning, warning]) as SyncReport.Rebootstrap?)
    let own = try #require(try records.ownMarker())
    var former = own
    former.content.client = other
    try manager.store.setRecord(
      "former.marker", to: Array(try JSONEncoder().encode(former)))
    var state = try CommandState.read(from: manager.store)
    state.reset = SyncCommand.Reset(generation: manager.binding.generation, ordinal: 2)
    state.wanted = [SyncCommand.Upload(client: other, number: 1)]
    try manager.store.process(state: try state.encoded(), events: [], limits: [:])
    let unreported = String(
      decoding: try JSONEncoder().encode([warning]), as: UTF8.self)
    try sql(
      """
      INSERT OR REPLACE INTO docsync_record VALUES
        ('\(UnreportedWarnings.key)', CAST('\(unreported)' AS BLOB)),
        ('\(UnreportedQuestions.key)', CAST('{"asked":[1],"numbers":[1,2]}' AS BLOB));
      INSERT OR REPLACE INTO docsync_meta VALUES
        ('formerNames', CAST('{"columns":{"1":{"1000":{"name":"a","wireName":"a"}}},"tables":
      {"-1":{"columns":{"0":{"name":"a","wireName":"a"}},"identity":"primaryKey","name":"t",
      "wireName":"t"}}}' AS BLOB)),
        ('remade', CAST('{"noticed":{"1":5},"sealed":{"1":{"client":"\(other)","number":1}},
      "heldKeys":[{"table":1,"key":9,"identity":[3,1]}],
      "references":[{"table":2,"identity":[3,1],"column":"folder","parent":[3,1]}]}' AS BLOB)),
        ('incarnations', CAST('[{"ancestor":"\(other)","client":"\(manager.binding.client)",
      "reason":"copied","isAncestorGone":false,"milliseconds":5}]' AS BLOB)),
        ('heldEdits', CAST('{"edits":[{"kind":"update","table":"tag","identity":"AwE=",
      "columns":["note"],"large":["note"],"client":"\(other)","times":[5],"isOfKnownRow":true,
      "byteCount":9,"limit":1}]}' AS BLOB)),
        ('unconfirmedDeletions', CAST('{"changeSets":[{"hash":"\(hash)",
      "tables":[{"table":"tag","deletedCount":2,"rowCount":3}]}]}' AS BLOB));
      """, at: manager.store.path)
  }

  private static func sql(_ statements: String, at path: String) throws {
    let queue = try DatabaseQueue(path: path)
    try queue.writeWithoutTransaction { try $0.execute(sql: statements) }
    try queue.close()
  }

  private static let numbers = [
    "0", "-1", "9223372036854775807", "18446744073709551615", "\"text\"",
  ]
  /// How many numbers of each name are changed.
  private static let greatestCount = 1

  /// A text of JSON with another number, for each of its numbers and each of
  /// the other numbers; keys that are numbers count.
  private static func mutations(of text: String) throws -> [String] {
    let pattern = try NSRegularExpression(
      pattern: #"(?<=[:\[,]|^)-?\d+(?=[,}\]]|$)|(?<=")-?\d+(?=":)"#)
    let range = NSRange(text.startIndex..., in: text)
    var found: [String] = []
    var counts: [Substring: Int] = [:]
    for match in pattern.matches(in: text, range: range) {
      let place = try #require(Range(match.range, in: text))
      let name = text[..<place.lowerBound].split(separator: ",").last?.split(separator: "\"")
        .dropLast()
        .last
      counts[name ?? "", default: 0] += 1
      if counts[name ?? "", default: 0] > greatestCount { continue }
      let isKey = text[place.upperBound...].hasPrefix("\"")
      for number in numbers where number != text[place] {
        let number = isKey ? number.replacingOccurrences(of: "\"", with: "") : number
        found.append(text.replacingCharacters(in: place, with: number))
      }
    }
    return found
  }

  @Test(arguments: records + metas)
  func noNumberOfARecordEndsTheProcess(_ place: Place) async throws {
    try await change(place, in: try await Self.originals.value.busy)
  }

  /// Otherwise nothing would come to the numbers.
  @Test func withoutAChangeEverythingSucceeds() async throws {
    for original in [try await Self.originals.value.busy, try await Self.originals.value.fresh] {
      let scratch = try Scratch()
      let path = scratch.store("copy")
      try original.store.write(to: URL(fileURLWithPath: path))
      let environment = Self.environment(
        World(seed: 7, milliseconds: 1_700_100_000_000), looksAtPlace: false)
      #expect(try await use(path, original.items, environment, "unchanged") == [])
    }
  }

  @Test(
    arguments: records.filter {
      ["client.kept", "client.housekeeping", "client.marker", "client.segments", "retiredKept"]
        .contains($0.key)
    })
  func noNumberOfAFreshStoreEndsTheProcess(_ place: Place) async throws {
    try await change(place, in: try await Self.originals.value.fresh)
  }

  private func change(_ place: Place, in original: Original) async throws {
    let text = try #require(original.values[place], "\(place) is not there")
    let mutations = try Self.mutations(of: text)
    #expect(!mutations.isEmpty, "\(text)")
    let scratch = try Scratch()
    let environment = Self.environment(
      World(seed: 7, milliseconds: 1_700_100_000_000), looksAtPlace: place.key == "place")
    for mutation in mutations {
      for name in try scratch.names() {
        try FileManager.default.removeItem(atPath: scratch.path + "/" + name)
      }
      try original.store.write(to: URL(fileURLWithPath: scratch.store("copy")))
      try await Self.write(mutation, to: place, at: scratch.store("copy"))
      _ = try await use(
        scratch.store("copy"), original.items, environment, "\(place.testDescription): \(mutation)")
    }
  }

  private static func write(_ text: String, to place: Place, at path: String) async throws {
    let queue = try DatabaseQueue(path: path)
    try await queue.write { database in
      try database.execute(
        sql: "UPDATE \(place.table) SET value = ? WHERE key = ?",
        arguments: [Data(text.utf8), place.key])
    }
    try queue.close()
  }

  /// The whole of what one can do with a store.
  private func use(
    _ path: String, _ items: [RelativePath: MemoryDirectory.Item], _ environment: SyncEnvironment,
    _ what: String
  ) async throws -> [String] {
    let memory = MemoryDirectory(seed: 3)
    memory.takeOver(items)
    func attempt(_ step: String, _ body: () async throws -> Void) async {
      do {
        try await body()
      } catch let error as SyncError where error.code == .newerVersionNeeded {
        #expect(what.hasPrefix("docsync_meta, format"), "\(what), \(step): \(error)")
      } catch let error as SyncError {
        errors.append("\(step): \(error.detail ?? error.message)")
        #expect(
          error.code == .storeDamaged && error.message.contains("docsync_")
            && !error.remedy.isEmpty, "\(what), \(step): \(error)")
      } catch {
        Issue.record("\(what), \(step): \(error)")
      }
    }
    var errors: [String] = []
    var isDamaged = false
    await attempt("verify") {
      let report = try await DocumentSyncManager.verify(
        storeAt: path, directory: memory, environment: environment)
      isDamaged = report.findings.contains {
        [.recordDamaged, .bookkeepingDamaged, .journalDamaged].contains($0.kind)
      }
    }
    await attempt("open") {
      let manager = try await DocumentSyncManager.open(
        storeAt: path, directory: memory, options: .init(environment: environment))
      await attempt("status") { _ = try await manager.status() }
      await attempt("conflicts") { _ = try await manager.droppedConflicts() }
      for round in 1...2 {
        await attempt("synchronize \(round)") { _ = try await manager.synchronize() }
      }
      await attempt("clients") { _ = try await manager.listClients() }
      await attempt("vacuum") { _ = try await manager.vacuum() }
      await attempt("upload") { _ = try await manager.uploadWholeStore() }
      try await manager.close()
    }
    if !errors.isEmpty { #expect(isDamaged, "\(what): verify does not tell of \(errors)") }
    return errors
  }
}
