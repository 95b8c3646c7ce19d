import DocumentSyncTesting
import Foundation
import GRDB
import SyncDirectory
import SyncModel
import SyncStore
import Synchronization
import Testing

@testable import DocumentSync

/// One kind of damage of a store, and all that is to be found of it.
private struct StoreDamage: Sendable, CustomTestStringConvertible {
  var name: String
  /// The kinds, each with the table or the path.
  var make: @Sendable (DamagedStore) throws -> Set<String>
  var testDescription: String { name }

  init(_ name: String, _ make: @escaping @Sendable (DamagedStore) throws -> Set<String>) {
    self.name = name
    self.make = make
  }
}

private func found(_ kind: VerifyReport.Finding.Kind, _ place: String?) -> String {
  "\(kind) \(place ?? "")"
}

private func found(_ kind: VerifyReport.Finding.Kind, _ path: RelativePath) -> String {
  found(kind, path.description)
}

struct VerifyStoreTests {
  @Test func storeThatIsWholeGivesNothing() async throws {
    let store = try await DamagedStore()
    #expect(try store.value("SELECT count(*) FROM docsync_kept") as Int > 1)
    #expect(try store.value("SELECT count(*) FROM docsync_conflict") as Int > 1)
    let report = try await store.verify()
    #expect(report.findings == [])
    #expect(report.leftOut == [])
    #expect(report.rowCount > 5)
    #expect(report.fileCount > 5)
  }

  @Test(arguments: databaseDamage + rowDamage + changeSetDamage + directoryDamage)
  fileprivate func damageGivesExactlyItsFinding(_ damage: StoreDamage) async throws {
    let store = try await DamagedStore()
    let expected = try damage.make(store)
    let (files, items) = (try store.files(), store.memory.items)
    let report = try await store.verify()
    #expect(
      Set(report.findings.map { found($0.kind, $0.path ?? $0.table?.text) }) == expected,
      "\(report.findings)")
    #expect(report.findings.allSatisfy { !$0.remedy.isEmpty && !$0.message.isEmpty })
    #expect(try store.files() == files)
    #expect(store.memory.items == items)
  }

  @Test func unsealedEditsAreNoDamage() async throws {
    let store = try await DamagedStore()
    try store.sql(
      """
      INSERT INTO note VALUES (9, 'nine', 1); DELETE FROM note WHERE id = 2;
      UPDATE folder SET name = 'renamed' WHERE id = 1; INSERT INTO tag VALUES ('new', 'x');
      DELETE FROM tag WHERE id = 'a2'
      """)
    let report = try await store.verify()
    #expect(report.findings == [])
    #expect(report.leftOut.count == 1)
  }

  @Test(arguments: ["DELETE", "WAL"])
  func nothingIsChanged(journalMode: String) async throws {
    let store = try await DamagedStore()
    try store.sql("PRAGMA journal_mode = \(journalMode)")
    let before = try store.files()
    #expect(try await store.verify().findings == [])
    #expect(try store.files() == before)
  }

  @Test func whatACrashLeftInTheWALIsReadAndStays() async throws {
    let store = try await DamagedStore()
    try store.sql("PRAGMA journal_mode = WAL")
    let crashed = try Scratch()
    try store.crash(during: "UPDATE docsync_conflict SET status = 'nonsense'", into: crashed)
    let names = try crashed.names()
    let report = try await DocumentSyncManager.verify(
      storeAt: crashed.store("0"), directory: store.memory, environment: store.environment)
    #expect(Set(report.findings.map(\.kind)) == [.journalDamaged])
    #expect(try crashed.names() == names)
  }

  @Test func storeInUseIsRefused() async throws {
    let store = try await DamagedStore()
    let lock = try StoreLock(store: store.path, operation: "test")
    defer { lock.unlock() }
    #expect(await syncError { _ = try await store.verify() }?.code == .storeInUse)
  }

  @Test func cancellationStopsIt() async throws {
    let store = try await DamagedStore()
    let operation = VerifyStoreOperation(
      storeAt: store.path, directory: store.memory, environment: store.environment)
    operation.observe { [weak operation] progress in
      if progress.completedCount > 2 { operation?.cancel() }
    }
    let error = await syncError { _ = try await OperationQueue().run(operation) }
    #expect(error?.code == .cancelled)
  }

  @Test func progressIsDeterminate() async throws {
    let store = try await DamagedStore()
    let seen = Mutex<[SyncProgress]>([])
    _ = try await DocumentSyncManager.verify(
      storeAt: store.path, directory: store.memory, environment: store.environment
    ) { progress in seen.withLock { $0.append(progress) } }
    let verifying = seen.withLock(\.self).filter {
      $0.phase == .verifying && $0.totalCount > 0
    }
    #expect(verifying.contains { $0.fraction == 1 })
    #expect(verifying.allSatisfy { $0.completedCount <= $0.totalCount })
  }

  @Test func storeThatWasCopiedIsSaidToBe() async throws {
    let store = try await DamagedStore()
    var environment = store.environment
    environment.store.places = StorePlaces(machine: "here", folder: nil)
    let manager = try await DocumentSyncManager.open(
      storeAt: store.path, directory: store.memory, options: .init(environment: environment))
    try await manager.close()
    #expect(try await store.verify(environment).findings == [])
    environment.store.places = StorePlaces(machine: "elsewhere", folder: nil)
    #expect(try await store.verify(environment).findings.map(\.kind) == [.storeMoved])
  }

  @Test func directoryThatIsAwayIsAFinding() async throws {
    let store = try await DamagedStore()
    store.memory.isAway = true
    let report = try await store.verify()
    #expect(report.findings.map(\.kind) == [.directoryAway])
    #expect(report.leftOut.count == 1)
  }

  /// As the mount point of a stick that is not there.
  @Test func emptyDirectoryIsAFinding() async throws {
    let store = try await DamagedStore()
    for path in store.memory.items.keys where path != .root { store.memory.take(path) }
    let report = try await store.verify()
    #expect(report.findings.map(\.kind) == [.directoryAway])
    #expect(report.findings.first?.message.contains("is empty") == true)
    #expect(report.leftOut == ["the shared directory, since it is empty."])
  }

  @Test func managerVerifiesItsOwnStore() async throws {
    let fleet = try await TestFleet(2)
    try fleet[1].put("a", "b")
    try await fleet.settle()
    #expect(try await fleet[0].verify().findings == [])
    #expect(try await fleet[1].verify().findings == [])
  }
}

// MARK: - The database and its bookkeeping

private let databaseDamage: [StoreDamage] = [
  StoreDamage("damaged pages") { store in
    var content = try Data(contentsOf: URL(fileURLWithPath: store.path))
    for index in (content.count / 2)..<(content.count / 2 + 4_096) { content[index] = 0xA5 }
    try content.write(to: URL(fileURLWithPath: store.path))
    return [found(.databaseDamaged, nil)]
  },
  StoreDamage("a reference that leads nowhere") { store in
    try store.sql("INSERT INTO note VALUES (50, 'x', 999)")
    return [found(.foreignKeysBroken, "note")]
  },
  StoreDamage("a row that breaks a condition") { store in
    try store.sql("PRAGMA ignore_check_constraints = ON; UPDATE tag SET label = ''")
    return [found(.constraintsBroken, "tag")]
  },
  StoreDamage("a table that cannot be synchronized") { store in
    try store.sql("CREATE TABLE loose (a)")
    return [found(.schemaUnsuitable, "loose")]
  },
  StoreDamage("an edit that is too large to be sent") { store in
    try store.sql("UPDATE tag SET label = printf('%.*c', 40000, 'x') WHERE id = 'a1'")
    var options = store.environment.store
    options.limits.memoryBytes = 64 << 10
    let opened = try LocalStore.open(at: store.path, options: options)
    _ = try opened.seal()
    try opened.close()
    return [found(.editTooLarge, "tag")]
  },
  StoreDamage("a missing table of bookkeeping") { store in
    try store.sql("DROP TABLE docsync_claim")
    return [
      found(.bookkeepingDamaged, "docsync_claim"), found(.bookkeepingDamaged, "docsync_claim_row"),
    ]
  },
  StoreDamage("a table of bookkeeping with other columns") { store in
    try store.sql("ALTER TABLE docsync_history ADD COLUMN extra")
    return [found(.bookkeepingDamaged, "docsync_history")]
  },
  StoreDamage("bookkeeping of other types") { store in
    try store.sql("UPDATE docsync_outbox SET hash = 'text'")
    return [found(.bookkeepingDamaged, "docsync_outbox")]
  },
  StoreDamage("no binding") { store in
    try store.sql("DELETE FROM docsync_meta WHERE key = 'binding'")
    return [found(.bookkeepingDamaged, "docsync_meta")]
  },
  StoreDamage("bookkeeping of a newer version") { store in
    try store.sql("UPDATE docsync_meta SET value = CAST('99' AS BLOB) WHERE key = 'format'")
    return [found(.bookkeepingNewer, "docsync_meta")]
  },
  StoreDamage("a missing trigger") { store in
    try store.sql("DROP TRIGGER docsync_1_ad")
    return [found(.triggersOutOfDate, "folder")]
  },
  StoreDamage("a missing table of stamps") { store in
    try store.sql("DROP TABLE docsync_stamps_2")
    return [found(.bookkeepingDamaged, "docsync_stamps_2")]
  },
]

// MARK: - Rows

private let rowDamage: [StoreDamage] = [
  StoreDamage("a row that was not captured") { store in
    try store.uncaptured("INSERT INTO tag VALUES ('unseen', 'x')")
    return [found(.rowUnknown, "tag")]
  },
  StoreDamage("a row that went uncaptured") { store in
    try store.uncaptured("DELETE FROM tag WHERE id = 'a1'")
    return [found(.rowMissing, "tag")]
  },
  StoreDamage("a deleted row that came back uncaptured") { store in
    try store.uncaptured("INSERT INTO tag VALUES ('b0', 'back')")
    return [found(.rowDeleted, "tag")]
  },
  StoreDamage("a row that has lost its identity") { store in
    try store.sql("DELETE FROM docsync_id_2 WHERE key = 2")
    return [found(.rowUnknown, "note"), found(.rowMissing, "note")]
  },
  StoreDamage("two rows with one identity") { store in
    try store.sql(
      "UPDATE docsync_id_2 SET identity = (SELECT identity FROM docsync_id_2 WHERE key = 1) "
        + "WHERE key = 2")
    return [found(.identityAmbiguous, "note"), found(.rowMissing, "note")]
  },
  StoreDamage("an identity of no row") { store in
    try store.sql("INSERT INTO docsync_id_2 VALUES (77, x'00112233445566778899aabbccddeeff')")
    return [found(.identityOrphaned, "note")]
  },
  StoreDamage("stamps that cannot be read") { store in
    try store.sql("UPDATE docsync_stamps_3 SET block = x'02ff'")
    return [found(.stampsDamaged, "docsync_stamps_3")]
  },
  StoreDamage("stamps that are gone") { store in
    try store.sql("DELETE FROM docsync_stamps_3")
    return [found(.rowUnknown, "tag")]
  },
  StoreDamage("a kept row that cannot be read") { store in
    try store.sql("UPDATE docsync_kept SET cells = x'01ff' WHERE reason = 'uniqueValueTaken'")
    return [found(.keptRowDamaged, "docsync_kept")]
  },
  StoreDamage("a kept row without a valid reason") { store in
    try store.sql("UPDATE docsync_kept SET reason = 'why' WHERE reason = 'uniqueValueTaken'")
    return [found(.keptRowDamaged, "docsync_kept"), found(.keptRowInconsistent, "folder")]
  },
  StoreDamage("a kept row that is gone") { store in
    try store.sql(
      "DELETE FROM docsync_claim; DELETE FROM docsync_kept WHERE reason = 'uniqueValueTaken'")
    return [found(.rowMissing, "folder")]
  },
  StoreDamage("claims that are gone") { store in
    try store.sql("DELETE FROM docsync_claim")
    return [found(.keptRowInconsistent, "folder")]
  },
  StoreDamage("references of kept rows that are gone") { store in
    try store.sql("DELETE FROM docsync_kept_reference")
    return [found(.keptRowInconsistent, "note")]
  },
  StoreDamage("claims of a row that is not kept") { store in
    try store.sql("INSERT INTO docsync_claim VALUES (1, 0, x'00', x'00')")
    return [found(.keptRowInconsistent, "docsync_claim")]
  },
  StoreDamage("another value than follows") { store in
    try store.uncaptured("UPDATE note SET folder = 1 WHERE text = 'three'")
    return [found(.shownDiffers, "note")]
  },
]

// MARK: - Change sets, journal, records

private let changeSetDamage: [StoreDamage] = [
  StoreDamage("a sealed change set with other bytes") { store in
    try store.sql(
      "UPDATE docsync_outbox SET bytes = CAST(bytes || x'00' AS BLOB) WHERE number = 2")
    return [found(.outboxDamaged, "docsync_outbox")]
  },
  StoreDamage("a sealed change set missing between others") { store in
    try store.sql("DELETE FROM docsync_outbox WHERE number = 2")
    return [found(.outboxDamaged, "docsync_outbox")]
  },
  StoreDamage("another head than the last sealed change set") { store in
    try store.sql(
      "DELETE FROM docsync_outbox WHERE number = (SELECT max(number) FROM docsync_outbox)")
    return [found(.outboxDamaged, "docsync_outbox")]
  },
  StoreDamage("a waiting change set that is damaged") { store in
    try store.sql("INSERT INTO docsync_inbox VALUES (x'00', 3, x'00', x'0102')")
    return [found(.inboxDamaged, "docsync_inbox")]
  },
  StoreDamage("an entry of the journal that cannot be read") { store in
    try store.sql(
      "UPDATE docsync_conflict SET status = 'nonsense' "
        + "WHERE number = (SELECT min(number) FROM docsync_conflict)")
    return [found(.journalDamaged, "docsync_conflict")]
  },
  StoreDamage("a record that cannot be read") { store in
    try store.sql("UPDATE docsync_record SET value = x'7b' WHERE key = 'seenMarkers'")
    return [found(.recordDamaged, "docsync_record")]
  },
]

// MARK: - The store against its directory

private let directoryDamage: [StoreDamage] = [
  StoreDamage("another directory") { store in
    let own = try #require(
      store.memory.items.keys.first { $0.name.hasPrefix("application.") })
    store.memory.take(own)
    let root = RootIdentifier(bits: Bits128(high: 4, low: 4))
    let content = try Envelope.encodeJSON(
      ApplicationFile(
        application: "docsync", root: root, creator: store.original.binding.client,
        createdMilliseconds: 1), type: .application)
    store.memory.put(
      .file(content), at: DirectoryLayout.path(of: ApplicationName(root: root)))
    return [found(.bindingMissing, own), found(.rootMissing, own)]
  },
  StoreDamage("a generation that was begun again") { store in
    let layout = store.original.binding.layout.document
    let name = GenerationName(ordinal: 2, key: IntegrityKey(bits: Bits128(high: 4, low: 4)))
    let root = try #require(
      store.memory.items.keys.compactMap { ApplicationName($0.name) }.first?.root)
    let content = try Envelope.encodeJSON(
      GenerationFile(
        root: root, document: layout.name,
        identifier: "main", generation: name.key, ordinal: 2, description: "",
        creator: store.original.binding.client, createdMilliseconds: 1), type: .generation)
    store.memory.put(.file(content), at: layout.path(of: name))
    return [
      found(.bindingMissing, layout.folder),
      found(.generationFolderMissing, layout.generation(name.key).folder),
    ]
  },
  StoreDamage("an own change set missing") { store in
    let path = try store.changeSet(2)
    store.memory.take(path)
    return [found(.ownFileMissing, path), found(.changeSetMissing, path)]
  },
  StoreDamage("the own marker missing") { store in
    let folder = store.original.binding.layout.recentSyncs
    let names = try store.memory.list(folder, as: MarkerName.self).names.filter {
      $0.client == store.original.binding.client
    }
    let newest = try #require(names.max { $0.revision < $1.revision })
    store.memory.take(store.original.binding.layout.path(of: newest))
    return [found(.ownFileMissing, store.original.binding.layout.path(of: newest))]
  },
  StoreDamage("an own change set that the store has not made") { store in
    let last = try store.changeSet(nil)
    let bytes = try store.memory.read(last, limit: .max)
    var changeSet = try ChangeSetCodec.decode(bytes)
    changeSet.header.number += 1
    changeSet.header.previous = ContentHash(of: bytes)
    let content = try ChangeSetCodec.encode(changeSet)
    let name = ChangeSetName(
      number: changeSet.header.number, hash: HashFragment(ContentHash(of: content)))
    let path = store.original.binding.layout.path(of: name, by: store.original.binding.client)
    store.memory.put(.file(content), at: path)
    return [found(.storeBehind, path)]
  },
  StoreDamage("another hash of what was applied") { store in
    try store.sql(
      "UPDATE docsync_client SET hash = zeroblob(32) WHERE client = x'\(hexadecimal(store.original.binding.other))'"
    )
    return [found(.appliedDiffers, try store.changeSet(nil, of: store.original.binding.other))]
  },
  StoreDamage("more applied than was ever there") { store in
    try store.sql(
      "UPDATE docsync_client SET number = 99 WHERE client = x'\(hexadecimal(store.original.binding.other))'"
    )
    let folder = store.original.binding.layout.syncChanges(of: store.original.binding.other)
    return [found(.directoryBehind, folder)]
  },
]

private func hexadecimal(_ client: ClientIdentifier) -> String {
  client.bits.bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
}

extension DamagedStore {
  /// Copies the store as a crash leaves it: what was written last is in its
  /// WAL alone.
  fileprivate func crash(during statements: String, into scratch: Scratch) throws {
    let queue = try DatabaseQueue(path: path)
    try queue.write { try $0.execute(sql: statements) }
    for suffix in ["", "-wal"] {
      try FileManager.default.copyItem(
        atPath: path + suffix, toPath: scratch.store("0") + suffix)
    }
    try queue.close()
  }

  /// The path of a change set of a client, its last if `number` is `nil`.
  fileprivate func changeSet(
    _ number: UInt64?, of client: ClientIdentifier? = nil
  ) throws -> RelativePath {
    let client = client ?? original.binding.client
    let layout = original.binding.layout
    let names = try memory.list(layout.syncChanges(of: client), as: ChangeSetName.self).names
    let name = number.map { number in names.first { $0.number == number } } ?? names.max()
    return layout.path(of: try #require(name), by: client)
  }
}
