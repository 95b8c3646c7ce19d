import DocumentSyncTesting
import Foundation
import GRDB
import SyncDirectory
import SyncModel
import SyncStore
import Testing

@testable import DocumentSync

/// When a whole store is uploaded, and when it is refused.
struct WholeStoreUploadTests {
  /// Counts, in closures that may not change what they capture.
  private final class Counter: @unchecked Sendable {
    private let lock = NSLock()
    private var count = 0
    func next() -> Int {
      lock.withLock {
        count += 1
        return count
      }
    }
    var value: Int { lock.withLock { count } }
  }

  private func wholeStores(_ fleet: TestFleet) -> [RelativePath] {
    fleet.paths { $0.name.hasSuffix(".store") }
  }

  // MARK: - While edits come

  /// Opens the first device's store once more.
  private func open(
    _ fleet: TestFleet, _ directory: any SharedDirectory
  ) async throws -> DocumentSyncManager {
    try await DocumentSyncManager.open(
      storeAt: fleet.scratch.store("0"), directory: directory,
      options: .init(environment: fleet.environment))
  }

  /// A manager of a store to which a program writes whenever a change set was
  /// published, so many times.
  private func manager(
    of fleet: TestFleet, editedTimes times: Int, _ counter: Counter
  ) async throws -> DocumentSyncManager {
    let fleetManager = fleet[0]
    let hooked = HookedPublication(fleet.memory, part: "SyncChanges") {
      guard counter.value < times else { return }
      let number = counter.next()
      do {
        try fleetManager.put("meanwhile \(number)", "1")
      } catch {
        Issue.record(error)
      }
    }
    let manager = try await open(fleet, hooked)
    try manager.put("first", "1")
    return manager
  }

  /// Each of its change sets is followed by another edit: there is never a moment without one.
  @Test func wholeStoreIsUploadedWhileEditsCome() async throws {
    let fleet = try await TestFleet(1)
    let counter = Counter()
    let manager = try await manager(of: fleet, editedTimes: .max, counter)
    let uploaded = try await manager.uploadWholeStore()
    // The first edit, and the one that was made when that was published.
    #expect(uploaded.vector.number(of: fleet[0].binding.client) == 2)
    let late = try await DocumentSyncManager.join(
      storeAt: fleet.scratch.store("late"), directory: fleet.memory,
      options: .init(environment: fleet.environment))
    #expect(try late.notes().contains("meanwhile 1=1"))
    try await manager.close()
    try await fleet[0].synchronize()
    try await late.synchronize()
    #expect(try late.notes() == fleet[0].notes())
    #expect(counter.value > 1)
  }

  @Test(arguments: [false, true])
  func documentBeginsWhileEditsCome(isReset: Bool) async throws {
    let (scratch, world, memory) = (try Scratch(), World(seed: 7), MemoryDirectory(seed: 7))
    let path = try scratch.makeNotes("a", rows: 2)
    let options = DocumentSyncManager.Options(environment: world.environment)
    if isReset {
      let manager = try await DocumentSyncManager.create(
        storeAt: path, directory: memory, document: "main", options: options)
      try await manager.close()
    }
    let counter = Counter()
    let program = try DatabaseQueue(path: path)
    let edit: @Sendable () -> Void = {
      do {
        try program.write {
          try $0.execute(
            sql: "INSERT INTO notes VALUES (?, '1')", arguments: ["meanwhile \(counter.next())"])
        }
      } catch {
        Issue.record(error)
      }
    }
    let hooked = HookedPublication(memory, part: "/", edit)
    let manager =
      isReset
      ? try await DocumentSyncManager.open(storeAt: path, directory: hooked, options: options)
      : try await DocumentSyncManager.create(
        storeAt: path, directory: hooked, document: "main", options: options)
    if isReset { try await manager.reset() }
    #expect(counter.value > 2)
    let late = try await DocumentSyncManager.join(
      storeAt: scratch.store("late"), directory: memory, options: options)
    try await manager.close()
    let again = try await DocumentSyncManager.open(
      storeAt: path, directory: memory, options: options)
    try await again.synchronize()
    try await late.synchronize()
    #expect(try late.notes() == again.notes())
    #expect(try late.notes().contains("meanwhile 1=1"))
  }

  /// A device that joins from a whole store counts what it contains as applied, and never asks for it.
  @Test func whatAWholeStoreContainsIsPublishedBeforeIt() async throws {
    let fleet = try await TestFleet(1)
    let faulty = FaultyDirectory(fleet.memory)
    let counter = Counter()
    let hooked = HookedPublication(faulty, part: "SyncChanges") {
      guard counter.next() == 1 else { return }
      do {
        try fleet[0].put("meanwhile", "1")
      } catch {
        Issue.record(error)
      }
    }
    let manager = try await open(fleet, hooked)
    try manager.put("first", "1")
    faulty.script(FaultyDirectory.Fault(.fail(.noSpace), on: .upload))
    #expect(await syncError { try await manager.uploadWholeStore() } != nil)
    #expect(fleet.changeSets(of: 0).count == 2)
    #expect(try manager.store.sealedChangeSets().allSatisfy(\.isPublished))
  }

  /// The table is compared with its former rows before its edits are sealed. Otherwise all of its
  /// rows would count as edited, in 1970.
  @Test func tableThatIsMadeAgainMeanwhileIsCompared() async throws {
    let fleet = try await TestFleet(2)
    try fleet[0].put("x", "1")
    try await fleet.settle()
    let counter = Counter()
    let hooked = HookedPublication(fleet.memory, part: "SyncChanges") {
      guard counter.next() == 1 else { return }
      do {
        let program = try DatabaseQueue(path: fleet.scratch.store("0"))
        try program.writeWithoutTransaction {
          try $0.execute(
            sql: """
              BEGIN; CREATE TABLE other (id TEXT PRIMARY KEY, body TEXT);
              INSERT INTO other SELECT * FROM notes; DROP TABLE notes;
              ALTER TABLE other RENAME TO notes; UPDATE notes SET body = 'later' WHERE id = 'x';
              COMMIT
              """)
        }
        try program.close()
      } catch {
        Issue.record(error)
      }
    }
    let manager = try await open(fleet, hooked)
    try manager.put("first", "1")
    try await manager.uploadWholeStore()
    try await manager.close()
    #expect(try fleet[0].store.sealedChangeSets().map(\.rowCount) == [1, 1, 1])
    try await fleet.settle()
    #expect(try fleet[0].notes().contains("x=later"))
    #expect(try fleet[1].notes() == fleet[0].notes())
  }

  /// A damaged page is met only when the copy is cleaned.
  @Test func damagedDatabaseIsNamedAndNotItsCopy() async throws {
    let fleet = try await TestFleet(1, rows: 500)
    try await fleet.settle()
    try await fleet[0].close()
    let path = fleet.scratch.store("0")
    let queue = try DatabaseQueue(path: path)
    let page = try await queue.writeWithoutTransaction { database in
      try database.execute(sql: "PRAGMA wal_checkpoint(TRUNCATE)")
      return try Int.fetchOne(
        database, sql: "SELECT rootpage FROM sqlite_schema WHERE name = 'notes'") ?? 0
    }
    try queue.close()
    let handle = try #require(FileHandle(forUpdatingAtPath: path))
    try handle.seek(toOffset: UInt64((page - 1) * 4096))
    try handle.write(contentsOf: Data(repeating: 0xFF, count: 64))
    try handle.close()
    let error = await syncError {
      let manager = try await DocumentSyncManager.open(
        storeAt: path, directory: fleet.memory, options: .init(environment: fleet.environment))
      try await manager.uploadWholeStore()
    }
    #expect(error?.code == .storeDamaged)
    #expect(error?.path == path)
  }

  /// An operation during which a program makes an edit whenever the operation asks whether it is
  /// cancelled, unless the store is locked.
  private final class EditedOperation: SyncOperation<Void>, @unchecked Sendable {
    let program: DatabaseQueue

    init(_ path: String, _ environment: SyncEnvironment) throws {
      program = try DatabaseQueue(path: path)
      super.init("edit", environment: environment)
    }

    override var isCancelled: Bool {
      do {
        try program.write { try $0.execute(sql: "UPDATE notes SET body = body || '.'") }
      } catch let error as DatabaseError where error.resultCode == .SQLITE_BUSY {
        // The store is at work.
      } catch {
        Issue.record(error)
      }
      return super.isCancelled
    }
  }

  @Test func firstWholeStoreThatIsNotUploadedIsAskedFor() async throws {
    let fleet = try await TestFleet(1)
    let operation = try EditedOperation(fleet[0].store.path, fleet.environment)
    for path in wholeStores(fleet) { try fleet.memory.remove(path) }
    let upload = WholeStoreUpload(
      store: fleet[0].store, directory: fleet.memory,
      turns: SyncTurns(environment: fleet.environment), context: OperationContext(operation))
    let error = await syncError { try upload.begin() }
    #expect(error?.code == .unpublishedEdits)
    #expect(error?.message.contains("No other device can synchronize") == true)
    #expect(error?.remedy.hasPrefix("Let no program write to the database") == true)
  }

  // MARK: - Stores from which no device could join

  /// Runs SQL on a store as a program would that respects nothing.
  private func damage(_ manager: DocumentSyncManager, _ sql: String) throws {
    let queue = try DatabaseQueue(path: manager.store.path)
    try queue.writeWithoutTransaction { try $0.execute(sql: sql) }
    try queue.close()
  }

  @Test func storeWithDamagedBookkeepingIsNotUploaded() async throws {
    let fleet = try await TestFleet(2)
    try fleet[0].put("x", "1")
    try await fleet.settle()
    let before = wholeStores(fleet)
    try damage(
      fleet[0], "INSERT INTO docsync_lost VALUES (x'00', x'00')")
    let error = try #require(await syncError { try await fleet[0].uploadWholeStore() })
    #expect(error.code == .storeDamaged)
    #expect(error.path == fleet.scratch.store("0"))
    #expect(error.message.contains("no device could join from it"))
    #expect(error.remedy.actions.contains(.verify))
    #expect(wholeStores(fleet) == before)
    #expect(try fleet.scratch.names().filter { $0.contains("docsync-tmp") } == [])
    let listed = try StoreRecords(fleet[0].store).wholeStores()
    #expect(listed.count == 1 && listed[0].number == 1)
  }

  @Test func uploadThatFailsLeavesNothingBesideTheStore() async throws {
    let fleet = try await TestFleet(1)
    try await fleet.settle()
    fleet.directories[0].script(FaultyDirectory.Fault(.fail(.noSpace), on: .upload))
    #expect(await syncError { try await fleet[0].uploadWholeStore() } != nil)
    #expect(try fleet.scratch.names().filter { $0.contains("docsync-tmp") } == [])
  }

  /// It is not what the synchronization is about.
  @Test func damagedStoreThatWasAskedForAWholeStoreSynchronizesAllTheSame() async throws {
    let fleet = try await TestFleet(2)
    try fleet[0].put("x", "1")
    try await fleet.settle()
    try CommandSteps.enqueue(
      SyncCommand(SyncCommand.Upload(client: fleet[0].binding.client, number: 1)),
      in: fleet[1].store)
    try await fleet[1].synchronize()
    try damage(fleet[0], "INSERT INTO docsync_lost VALUES (x'00', x'00')")
    try fleet[0].put("y", "2")
    for _ in 0..<2 {
      let report = try await fleet[0].synchronize()
      #expect(report.warnings.map(\.code) == [.wholeStoreRefused])
      #expect(!report.uploadedWholeStore)
    }
    try await fleet[1].synchronize()
    #expect(try fleet[1].notes().contains("y=2"))
  }

  /// They are there on every device, and are the application's.
  @Test func devicesJoinThoughRowsBreakConditionsOfTheirTable() async throws {
    let (scratch, world, memory) = (try Scratch(), World(seed: 6), MemoryDirectory(seed: 6))
    let path = scratch.store("a")
    let queue = try DatabaseQueue(path: path)
    try await queue.write { database in
      try database.execute(
        sql: """
          CREATE TABLE t (id TEXT PRIMARY KEY, n INTEGER CHECK (n > 0), m TEXT);
          PRAGMA ignore_check_constraints = ON; INSERT INTO t VALUES ('a', 5, NULL), ('b', -5, NULL)
          """)
    }
    try queue.close()
    let first = try await DocumentSyncManager.create(
      storeAt: path, directory: memory, document: "main",
      options: .init(environment: world.environment))
    let late = try await DocumentSyncManager.join(
      storeAt: scratch.store("b"), directory: memory, options: .init(environment: world.environment)
    )
    #expect(try late.store.digest().visible == first.store.digest().visible)
  }

  // MARK: - By itself

  /// Bytes that no compression makes fewer.
  private func noise(_ count: Int, _ random: inout SeededRandom) -> Data {
    Data((0..<count).map { _ in UInt8.random(in: .min ... .max, using: &random) })
  }

  /// Makes as many change sets, of one row each.
  private func edit(
    _ manager: DocumentSyncManager, times count: Int, bytes: Int = 0, _ random: inout SeededRandom
  ) throws {
    for _ in 0..<count {
      try manager.edit(
        "INSERT INTO notes VALUES(?, ?)",
        ["row \(random.next())", noise(bytes, &random)])
      _ = try manager.store.seal()
    }
  }

  private func cost(_ fleet: TestFleet, since vector: VersionVector) throws -> Int {
    try fleet[0].store.historyByteCount(beyond: vector)
  }

  /// At the next housekeeping after more than 1 MiB has come together, and at
  /// none before.
  @Test func synchronizingUploadsOnceJoiningWouldCostTooMuch() async throws {
    var random = SeededRandom(seed: 3)
    let fleet = try await TestFleet(1)
    let client = fleet[0].binding.client
    let limit = SyncThresholds().wholeStoreBytes
    try await fleet.settle()
    let before = wholeStores(fleet)
    try edit(fleet[0], times: 31, bytes: 100, &random)
    let left = try limit - cost(fleet, since: VersionVector())
    try edit(fleet[0], times: 1, bytes: left - 500, &random)
    #expect(try (limit - 500...limit).contains(cost(fleet, since: VersionVector())))
    let first = try await fleet[0].synchronize()
    #expect(first.housekeeping != nil)
    #expect(!first.uploadedWholeStore && first.housekeeping?.uploadedWholeStore == false)
    #expect(wholeStores(fleet) == before)

    // Too much, and it is not yet time to look.
    try edit(fleet[0], times: 31, bytes: 100, &random)
    #expect(try cost(fleet, since: VersionVector()) > limit)
    let second = try await fleet[0].synchronize()
    #expect(second.housekeeping == nil)
    #expect(wholeStores(fleet) == before)

    try edit(fleet[0], times: 1, &random)
    let third = try await fleet[0].synchronize()
    #expect(third.housekeeping?.uploadedWholeStore == true)
    let verified = try StoreRecords(fleet[0].store).wholeStores()
    #expect(verified.map { $0.vector.number(of: client) }.max() == 64)
    // It took the place of the first, and others are told of it.
    #expect(wholeStores(fleet).count == 1 && wholeStores(fleet) != before)
    let late = try await DocumentSyncManager.join(
      storeAt: fleet.scratch.store("late"), directory: fleet.memory,
      options: .init(environment: fleet.environment))
    #expect(
      try StoreRecords(late.store).wholeStores().map(\.hash) == verified.suffix(1).map(\.hash))

    // What comes next is little again.
    try edit(fleet[0], times: 32, bytes: 100, &random)
    let fourth = try await fleet[0].synchronize()
    #expect(fourth.housekeeping?.uploadedWholeStore == false)
  }

  /// Of a great whole store more than half has to come together.
  @Test func synchronizingUploadsOnceHalfOfTheWholeStoreHasComeTogether() async throws {
    var random = SeededRandom(seed: 4)
    let fleet = try await TestFleet(1)
    try edit(fleet[0], times: 1, bytes: 3 << 20, &random)
    let great = try await fleet[0].uploadWholeStore()
    let half = great.byteCount / 2
    #expect(half > SyncThresholds().wholeStoreBytes)
    let vector = great.vector
    try edit(fleet[0], times: 31, bytes: 100, &random)
    let left = try half - cost(fleet, since: vector)
    try edit(fleet[0], times: 1, bytes: left - 500, &random)
    #expect(try (half - 500...half).contains(cost(fleet, since: vector)))
    let first = try await fleet[0].synchronize()
    #expect(first.housekeeping?.uploadedWholeStore == false)
    try edit(fleet[0], times: 32, bytes: 100, &random)
    let second = try await fleet[0].synchronize()
    #expect(second.housekeeping?.uploadedWholeStore == true)
  }

  /// The one that comes after waits for a quarter more, so that both do not
  /// upload at once.
  @Test func whoComesLaterInTheOrderOfMembersWaitsForMore() async throws {
    var random = SeededRandom(seed: 5)
    let fleet = try await TestFleet(2)
    try await fleet.settle()
    let order = fleet.managers.map(\.binding.client)
    let (first, later) = order[0] < order[1] ? (fleet[0], fleet[1]) : (fleet[1], fleet[0])
    let limit = SyncThresholds().wholeStoreBytes
    try edit(later, times: 32, bytes: limit / 32 + 1_000, &random)
    let report = try await later.synchronize()
    #expect(report.housekeeping?.uploadedWholeStore == false)
    // Who comes first has only to look.
    try edit(first, times: 32, &random)
    let other = try await first.synchronize()
    #expect(other.housekeeping?.uploadedWholeStore == true)
  }
}
