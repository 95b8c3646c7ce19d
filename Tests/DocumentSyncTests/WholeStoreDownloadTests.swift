import DocumentSyncTesting
import Foundation
import GRDB
import SyncDirectory
import SyncModel
import SyncStore
import Testing

@testable import DocumentSync

/// What is checked of a whole store before anything is taken from it, and
/// what is done if it is not what it should be.
struct WholeStoreDownloadTests {
  /// A whole store whose file is whole, under a name with the right hash, and
  /// of which a marker says that it was found whole.
  enum Wrong: String, CaseIterable, Sendable, CustomTestStringConvertible {
    case vectorBeyondTheDatabase, databaseBeyondTheVector, schema, commands, brokenPage, noDatabase
    case bookkeepingMissing, bookkeepingOfOtherTypes, newerFormat, ofADevice, editsOfADevice

    var testDescription: String { rawValue }

    /// What the user is told.
    var sentence: String {
      switch self {
      case .vectorBeyondTheDatabase, .databaseBeyondTheVector:
        "The change sets in the whole store are not those in its header."
      case .schema: "The schema in the whole store is not the one that it names."
      case .commands: "The commands in the whole store are not those in its header."
      case .brokenPage, .noDatabase, .bookkeepingMissing, .bookkeepingOfOtherTypes:
        "The database in the whole store is damaged."
      case .newerFormat: "The whole store was made by a newer version of DocumentSync."
      case .ofADevice, .editsOfADevice:
        "The whole store contains data that belongs to one device alone."
      }
    }

    /// Publishes it as the best of a device, and says where.
    func publish(in directory: DamagedDirectory, of index: Int) throws -> RelativePath {
      let client = directory.original.clients[index]
      let path =
        switch self {
        case .vectorBeyondTheDatabase:
          try directory.publishWholeStore(
            of: index,
            header: { header in
              for client in header.vector.entries.keys { header.vector[client]?.number += 1 }
            })
        case .databaseBeyondTheVector:
          try change(
            directory, index, "UPDATE docsync_client SET number = number + 1 WHERE number > 0")
        case .schema:
          try directory.publishWholeStore(
            of: index, header: { $0.schema = ContentHash(of: [1]) })
        case .commands:
          try directory.publishWholeStore(
            of: index,
            header: {
              $0.commands[client] = VersionVector.Entry(number: 7, hash: ContentHash(of: [7]))
            })
        case .brokenPage:
          try directory.publishWholeStore(
            of: index,
            database: { path in
              var content = try Data(contentsOf: URL(fileURLWithPath: path))
              for offset in 8_192..<12_288 { content[offset] = 0xA5 }
              try content.write(to: URL(fileURLWithPath: path))
            })
        case .noDatabase:
          try directory.publishWholeStore(
            of: index, database: { try Data("hello".utf8).write(to: URL(fileURLWithPath: $0)) })
        case .bookkeepingMissing: try change(directory, index, "DROP TABLE docsync_kept")
        case .bookkeepingOfOtherTypes:
          try change(directory, index, "UPDATE docsync_client SET number = 1, hash = NULL")
        case .newerFormat:
          try change(
            directory, index,
            "UPDATE docsync_meta SET value = CAST('99' AS BLOB) WHERE key = 'format'")
        case .ofADevice:
          try change(directory, index, "INSERT INTO docsync_meta VALUES ('binding', x'00')")
        case .editsOfADevice:
          try change(directory, index, "INSERT INTO docsync_log_1 (op, at, k0) VALUES (0, 1, 'a')")
        }
      try directory.listWholeStore(path, of: index)
      return path
    }

    private func change(
      _ directory: DamagedDirectory, _ index: Int, _ sql: String
    ) throws -> RelativePath {
      try directory.publishWholeStore(
        of: index,
        database: { path in
          let queue = try DatabaseQueue(path: path)
          try queue.write { try $0.execute(sql: sql) }
          try queue.close()
        })
    }
  }

  private let scratch: Scratch

  init() throws { scratch = try Scratch() }

  private func join(
    _ directory: any SharedDirectory, existing: ExistingFile = .refuse
  ) async throws -> DocumentSyncManager {
    try await DocumentSyncManager.join(
      storeAt: scratch.store("late"), directory: directory, existing: existing,
      options: .init(client: "late", environment: World(seed: 9).environment))
  }

  private func wholeStores(_ directory: DamagedDirectory) -> [RelativePath] {
    directory.memory.items.keys.filter { $0.name.hasSuffix(".store") }.sorted()
  }

  /// The hashes of the whole stores that a store says it has found whole.
  private func verified(_ manager: DocumentSyncManager) throws -> [String] {
    try StoreRecords(manager.store).wholeStores().map(\.hash.nameFragment)
  }

  private func fragment(_ path: RelativePath) -> String {
    String(path.name.split(separator: ".")[1])
  }

  // MARK: - Joining

  @Test(arguments: Wrong.allCases)
  func joiningPassesOverOneThatIsNotWhatItSays(_ wrong: Wrong) async throws {
    let directory = try await DamagedDirectory()
    let path = try wrong.publish(in: directory, of: 1)
    let expected = try await DamagedDirectory()
    let late = try await join(directory.memory)
    // What it lacks has come with change sets.
    let other = try await DocumentSyncManager.join(
      storeAt: scratch.store("other"), directory: expected.memory,
      options: .init(environment: World(seed: 9).environment))
    #expect(try late.notes() == other.notes())
    #expect(try !verified(late).isEmpty && !verified(late).contains(fragment(path)))
    #expect(try scratch.names().filter { $0.contains("docsync-tmp") } == [])
  }

  @Test(arguments: Wrong.allCases)
  func joiningWithoutAnotherOneSaysWhatIsWrong(_ wrong: Wrong) async throws {
    let directory = try await DamagedDirectory()
    let path = try wrong.publish(in: directory, of: 1)
    for other in wholeStores(directory) where other != path { directory.take(other) }
    let before = directory.memory.items
    let error = try #require(await syncError { _ = try await join(directory.memory) })
    #expect(error.code == (wrong == .newerFormat ? .newerVersionNeeded : .wholeStoreMissing))
    #expect(error.path == directory.memory.location + "/" + path.description)
    #expect(error.message.contains(wrong.sentence))
    #expect(
      error.remedy
        == (wrong == .newerFormat
          ? "Update DocumentSync on this device, then try again."
          : "Run \(elsewhere: .upload) on a device that has the document, then try again."))
    #expect(directory.memory.items == before)
    #expect(try scratch.names() == ["late.db-docsync-lock"])
  }

  @Test func allThatAreWrongAreNamed() async throws {
    let directory = try await DamagedDirectory()
    let first = try Wrong.brokenPage.publish(in: directory, of: 1)
    let second = try Wrong.schema.publish(in: directory, of: 0)
    for other in wholeStores(directory) where ![first, second].contains(other) {
      directory.take(other)
    }
    let error = try #require(await syncError { _ = try await join(directory.memory) })
    #expect(error.code == .wholeStoreMissing)
    #expect(
      error.path == directory.memory.location + "/" + directory.layout.wholeStores.description)
    for (path, wrong) in [(first, Wrong.brokenPage), (second, .schema)] {
      #expect(error.message.contains(path.components.suffix(2).joined(separator: "/")))
      #expect(error.message.contains(wrong.sentence))
      #expect(error.detail?.contains(path.description) == true)
    }
  }

  /// Files in the place of whole stores, with the hashes that they name.
  private func forge(_ count: Int, in directory: DamagedDirectory) -> Set<RelativePath> {
    Set(
      (0..<count).map { number in
        let content = Array("forged \(number)".utf8)
        let name = WholeStoreName(
          number: UInt64(1_000 + number), hash: HashFragment(ContentHash(of: content)))
        return directory.put(
          content, at: directory.layout.path(of: name, by: directory.original.clients[2]))
      })
  }

  @Test func joiningTriesAllThatCostNoMoreThanTheirFiles() async throws {
    let directory = try await DamagedDirectory()
    let honest = wholeStores(directory)
    let forged = forge(200, in: directory)
    // Those that markers tell of come first.
    let counter = CountingDirectory(directory.memory)
    _ = try await join(counter)
    #expect(forged.isDisjoint(with: counter.counts.read))
    for path in honest { directory.take(path) }
    let tries = CountingDirectory(directory.memory)
    let other = try Scratch()
    let error = try #require(
      await syncError {
        _ = try await DocumentSyncManager.join(
          storeAt: other.store("late"), directory: tries,
          options: .init(client: "late", environment: World(seed: 9).environment))
      })
    #expect(error.code == .wholeStoreMissing)
    #expect(error.message.hasSuffix(" Nor can 192 more."))
    #expect(tries.counts.read.filter(forged.contains).count == 200)
  }

  @Test func mergingPassesOverOneThatIsNotWhatItSays() async throws {
    let directory = try await DamagedDirectory()
    let path = try Wrong.vectorBeyondTheDatabase.publish(in: directory, of: 1)
    _ = try scratch.makeNotes("late", rows: 7)
    let late = try await join(directory.memory, existing: .merge(prefer: .document))
    #expect(late.merged != nil)
    #expect(try late.notes().contains("seed-6=body 6"))
    #expect(try !verified(late).contains(fragment(path)))
  }

  // MARK: - Re-bootstrap

  /// Two devices, and a third that misses what the others have cleared away.
  private func makeFleetWithGap() async throws -> TestFleet {
    let fleet = try await TestFleet(3)
    try await fleet.settle()
    try await fleet[0].retire(.client(fleet[2].binding.client, .absent))
    for number in 0..<3 {
      try fleet[0].put("row \(number)", "cleared away")
      for index in [0, 1] { try await fleet[index].synchronize() }
    }
    try await fleet[1].uploadWholeStore()
    for index in [0, 1, 0, 1, 0] { _ = try await fleet[index].vacuum() }
    #expect(fleet.changeSets(of: 0).isEmpty)
    return fleet
  }

  @Test(arguments: Wrong.allCases)
  func aGapIsClosedByAnotherOneThanTheOneThatIsNotWhatItSays(_ wrong: Wrong) async throws {
    let fleet = try await makeFleetWithGap()
    let directory = DamagedDirectory(of: fleet)
    let path = try wrong.publish(in: directory, of: 1)
    let report = try await fleet[2].synchronize()
    let taken = try #require(report.rebootstrap?.wholeStore)
    #expect(taken.hash.nameFragment != fragment(path))
    #expect(try !verified(fleet[2]).contains(fragment(path)))
    try await fleet.settle()
    try fleet.expectEqual()
  }

  @Test(arguments: Wrong.allCases)
  func aGapThatOnlyAWrongOneWouldCloseLeavesTheStoreAsItWas(_ wrong: Wrong) async throws {
    let fleet = try await makeFleetWithGap()
    let directory = DamagedDirectory(of: fleet)
    let path = try wrong.publish(in: directory, of: 1)
    for other in wholeStores(directory) where other != path { directory.take(other) }
    try fleet[2].put("mine", "kept")
    let before = try fleet[2].notes()
    let error = try #require(await syncError { try await fleet[2].synchronize() })
    #expect(error.message.contains(wrong.sentence))
    #expect(error.path == directory.memory.location + "/" + path.description)
    #expect(try fleet[2].notes() == before)
    #expect(try !verified(fleet[2]).contains(fragment(path)))
    #expect(try fleet.scratch.names().filter { $0.contains(".before-") } == [])
    // What the error says helps.
    try await fleet[0].uploadWholeStore()
    #expect(try await fleet[2].synchronize().rebootstrap != nil)
    try await fleet.settle()
    try fleet.expectEqual()
    #expect(try fleet[0].notes().contains("mine=kept"))
  }

  // MARK: - What goes meanwhile

  /// A fleet, and what was taken away and what came while a whole store was
  /// uploaded and the former one cleared away.
  private func makeFleetBeforeUpload(
    older: Bool
  ) async throws -> (TestFleet, after: [RelativePath: MemoryDirectory.Item]) {
    let fleet = try await TestFleet(2)
    let oldest = fleet.memory.items
    if older {
      try fleet[0].put("old", "1")
      try await fleet.settle()
      try await fleet[0].uploadWholeStore()
      try await fleet.settle()
      fleet.memory.takeOver(oldest.filter { $0.key.name.hasSuffix(".store") })
    }
    try fleet[0].put("x", "1")
    try await fleet.settle()
    let before = fleet.memory.items
    try await fleet[0].uploadWholeStore()
    try await fleet.settle()
    for index in [0, 1, 0, 1, 0] { _ = try await fleet[index].vacuum() }
    #expect(fleet.changeSets(of: 0).isEmpty)
    let after = fleet.memory.items
    Self.set(fleet.memory, to: before)
    return (fleet, after)
  }

  private static func set(
    _ memory: MemoryDirectory, to items: [RelativePath: MemoryDirectory.Item]
  ) {
    for path in memory.items.keys.sorted().reversed() where items[path] == nil { memory.take(path) }
    memory.takeOver(items)
  }

  /// The one that was listed goes, with the change sets after it, before it is
  /// read. One that is older may still be there, and is not what counts.
  @Test(arguments: [false, true])
  func newerOneIsTakenWhereTheListedOneGoesBeforeItIsRead(older: Bool) async throws {
    let (fleet, after) = try await makeFleetBeforeUpload(older: older)
    let newest = try #require(after.keys.filter { $0.name.hasSuffix(".store") }.max())
    let memory = fleet.memory
    let kept = older ? memory.items.filter { $0.key.name.hasPrefix("1.") } : [:]
    let hooked = HookedRead(memory, part: "WholeStore") {
      Self.set(memory, to: after)
      memory.takeOver(kept.filter { $0.key.name.hasSuffix(".store") })
    }
    let late = try await join(hooked)
    #expect(hooked.wasCalled)
    #expect(try late.notes() == fleet[0].notes())
    #expect(try verified(late) == [fragment(newest)])
  }

  @Test func oneThatOnlyGoesIsSaidToBeGone() async throws {
    let fleet = try await TestFleet(1)
    let memory = fleet.memory
    let path = try #require(memory.items.keys.first { $0.name.hasSuffix(".store") })
    let error = await syncError {
      _ = try await join(HookedRead(memory, part: "WholeStore") { memory.take(path) })
    }
    #expect(error?.code == .wholeStoreMissing)
    #expect(error?.path == memory.location + "/" + path.description)
    #expect(error?.message.contains("was listed, and is not there") == true)
    #expect(error?.remedy.contains("Wait until the shared directory has arrived") == true)
  }

  // MARK: - What is read

  @Test func lateJoinerReadsTheNewestOneAndOnlyTheChangeSetsAfterIt() async throws {
    let fleet = try await TestFleet(2)
    func edit(_ text: String) async throws {
      for number in 0..<6 {
        for index in 0...1 {
          try fleet[index].put("\(text) \(number) \(index)", text)
          try await fleet[index].synchronize()
        }
      }
      try await fleet.settle()
    }
    try await edit("before")
    try await fleet[0].uploadWholeStore()
    try await edit("between")
    try await fleet[1].uploadWholeStore()
    try await fleet.settle()
    let before = Set(fleet.changeSets(of: 0) + fleet.changeSets(of: 1))
    try await edit("after")
    let later = Set(fleet.changeSets(of: 0) + fleet.changeSets(of: 1)).subtracting(before)
    #expect(before.count == 24 && later.count == 12)
    let stores = fleet.paths { $0.name.hasSuffix(".store") }
    #expect(stores.count == 3)
    let newest = try #require(
      stores.first { $0.components.contains(fleet[1].binding.client.description) })

    let counter = CountingDirectory(fleet.memory)
    let late = try await join(counter)
    let read = counter.counts.read
    #expect(try late.notes() == fleet[0].notes())
    #expect(read.filter { $0.components.contains("WholeStore") } == [newest])
    let changes = read.filter { $0.components.contains("SyncChanges") }
    #expect(changes.count == 12 && Set(changes) == later)
    // The rest is what says who is there.
    let others = read.filter {
      !$0.components.contains("WholeStore") && !$0.components.contains("SyncChanges")
    }
    #expect(
      others.allSatisfy {
        $0.components.contains("RecentSyncs") || $0.components.contains("ClientDevices")
          || $0.name.hasSuffix(".json")
      })
    func byteCount(_ paths: some Sequence<RelativePath>) throws -> Int {
      try paths.reduce(0) { try $0 + fleet.memory.byteCount(of: $1) }
    }
    #expect(
      try byteCount(read) == byteCount([newest]) + byteCount(later) + byteCount(others))
  }
}
