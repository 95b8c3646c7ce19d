import DocumentSync
import DocumentSyncTesting
import Foundation
import GRDB
import SyncDirectory
import SyncModel
import SyncStore
import Testing

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

struct SetUpTests {
  let scratch: Scratch
  let directory = MemoryDirectory(seed: 1)
  let world = World(seed: 1)

  init() throws { scratch = try Scratch() }

  private func create(
    _ name: String, document: String = "main", application: String = "notes", rows: Int = 3
  ) async throws -> DocumentSyncManager {
    try await DocumentSyncManager.create(
      storeAt: try scratch.makeNotes(name, rows: rows), directory: directory, document: document,
      options: .init(application: application, client: name, environment: world.environment))
  }

  private func join(
    _ name: String, document: String? = nil, existing: ExistingFile = .refuse
  ) async throws -> DocumentSyncManager {
    try await DocumentSyncManager.join(
      storeAt: scratch.store(name), directory: directory, document: document, existing: existing,
      options: .init(client: name, environment: world.environment))
  }

  @Test func createdDocumentIsThereForOthers() async throws {
    let manager = try await create("a")
    let text = try {
      var text = DirectoryText()
      return try text.render(directory)
    }()
    #expect(
      text == """
        ClientDevices/
          client-1.1.json
        Documents/
          document-1/
            generation-1/
              RecentSyncs/
                client-1.0.0.1.#1
                client-1.0.0.2.#2
              WholeStore/
                client-1/
                  1.#3.store
            generation.1.generation-1.json
        README.txt
        application.root-1.json

        """)
    let applications = ApplicationSyncManager(
      directory: directory, environment: world.environment)
    let documents = try await applications.listDocuments()
    #expect(documents.map(\.identifier) == ["main"])
    #expect(documents.first?.name == manager.binding.document)
    let clients = try await applications.listClients()
    #expect(clients.map(\.description) == ["a"])
  }

  @Test func joinedStoreHasTheRowsAndIsAMember() async throws {
    let first = try await create("a")
    try first.put("x", "later")
    try await first.synchronize()
    let second = try await join("b")
    #expect(try second.notes() == first.notes())
    #expect(try second.notes().contains("x=later"))
    #expect(second.binding.client != first.binding.client)
    let members = try await second.listClients()
    #expect(Set(members.map(\.description)) == ["a", "b"])
    #expect(members.allSatisfy { $0.state != nil })
    #expect(
      try scratch.names().filter { $0.contains("tmp") || $0.hasSuffix("-wal") } == [])
  }

  @Test func openedStoreKnowsItsDirectory() async throws {
    let folder = scratch.path + "/shared"
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    let manager = try await DocumentSyncManager.create(
      storeAt: try scratch.makeNotes("a"), directory: FolderDirectory(root: folder),
      document: "main", options: .init(environment: world.environment))
    try await manager.close()
    let again = try await DocumentSyncManager.open(
      storeAt: scratch.store("a"), options: .init(environment: world.environment))
    let report = try await again.synchronize()
    #expect(report.isIdle)
    try await again.close()
  }

  @Test func storeUnderSyncIsRefusedAndSaysWhere() async throws {
    let manager = try await create("a")
    let before = directory.items
    let error = await syncError {
      _ = try await DocumentSyncManager.create(
        storeAt: manager.store.path, directory: directory, document: "other",
        options: .init(environment: world.environment))
    }
    #expect(error?.code == .alreadyUnderSync)
    #expect(error?.classification == .refused)
    #expect(error?.message.contains("main") == true)
    #expect(error?.message.contains("memory") == true)
    #expect(directory.items == before)
  }

  @Test func documentThatIsThereIsRefusedBeforeAnythingIsWritten() async throws {
    _ = try await create("a")
    let before = directory.items
    let path = try scratch.makeNotes("b")
    let error = await syncError {
      _ = try await DocumentSyncManager.create(
        storeAt: path, directory: directory, document: "main",
        options: .init(application: "notes", environment: world.environment))
    }
    #expect(error?.code == .documentExists)
    #expect(error?.remedy.contains("Join") == true)
    #expect(directory.items == before)
    #expect(try !LocalStore.isUnderSync(at: path))
  }

  @Test func otherApplicationIsRefused() async throws {
    _ = try await create("a")
    let error = await syncError { _ = try await create("b", document: "x", application: "other") }
    #expect(error?.code == .otherApplication)
    #expect(error?.message.contains("notes") == true)
  }

  @Test func absentDirectoryIsAwayAndNothingIsChanged() async throws {
    let path = try scratch.makeNotes("a")
    let error = await syncError {
      _ = try await DocumentSyncManager.create(
        storeAt: path, directory: FolderDirectory(root: scratch.path + "/absent"), document: "main",
        options: .init(environment: world.environment))
    }
    #expect(error?.code == .directoryAway)
    #expect(error?.classification == .directoryAway)
    #expect(try scratch.names() == ["a.db"])
    #expect(try !LocalStore.isUnderSync(at: path))
  }

  @Test func directoryThatMayNotBeWrittenToIsRefused() async throws {
    let path = try scratch.makeNotes("a")
    directory.isReadOnly = true
    let error = await syncError {
      _ = try await DocumentSyncManager.create(
        storeAt: path, directory: directory, document: "main",
        options: .init(environment: world.environment))
    }
    #expect(error?.code == .directoryNotWritable)
    #expect(try !LocalStore.isUnderSync(at: path))
    #expect(try scratch.names() == ["a.db"])
  }

  @Test func fileThatIsNoDatabaseIsRefused() async throws {
    let path = scratch.store("a")
    try Data("this is plain text, and long enough to be read".utf8).write(
      to: URL(fileURLWithPath: path))
    let error = await syncError {
      _ = try await DocumentSyncManager.create(
        storeAt: path, directory: directory, document: "main",
        options: .init(environment: world.environment))
    }
    #expect(error?.code == .notADatabase)
    #expect(directory.items.isEmpty)
    #expect(try scratch.names() == ["a.db"])
  }

  @Test func joiningWithoutTheDocumentListsThoseThatAreThere() async throws {
    _ = try await create("a", document: "recipes")
    let error = await syncError { _ = try await join("b", document: "diary") }
    #expect(error?.code == .documentMissing)
    #expect(error?.remedy.contains("recipes") == true)
    #expect(try !scratch.names().contains("b.db"))
  }

  @Test func joiningAnEmptyDirectoryIsRefused() async throws {
    let error = await syncError { _ = try await join("b") }
    #expect(error?.code == .applicationMissing)
    #expect(try scratch.names() == [])
  }

  @Test func joiningWithoutANameWantsExactlyOneDocument() async throws {
    _ = try await create("a", document: "one")
    _ = try await create("b", document: "two")
    let error = await syncError { _ = try await join("c") }
    #expect(error?.code == .documentAmbiguous)
    let joined = try await join("c", document: "two")
    #expect(joined.binding.documentIdentifier == "two")
  }

  @Test func deletedDocumentCannotBeJoinedAndCanBeBegunAgain() async throws {
    let first = try await create("a")
    let binding = first.binding
    let layout = DirectoryLayout.Document(binding.document)
    directory.put(
      .file([]),
      at: layout.path(of: DeletedName(ordinal: 1, client: binding.client)))
    let joining = await syncError { _ = try await join("b") }
    #expect(joining?.code == .documentMissing)
    let named = await syncError { _ = try await join("b", document: "main") }
    #expect(named?.code == .documentDeleted)
    let syncing = await syncError { try await first.synchronize() }
    #expect(syncing?.code == .documentDeleted)
    let second = try await create("c", rows: 1)
    #expect(second.binding.generationOrdinal == 2)
    #expect(second.binding.document == binding.document)
    #expect(try await join("b").notes() == ["seed-0=body 0"])
  }

  @Test func existingFileIsLeftAloneOrKeptAsBackup() async throws {
    _ = try await create("a")
    let path = try scratch.makeNotes("b", rows: 1)
    let old = try Data(contentsOf: URL(fileURLWithPath: path))
    let error = await syncError { _ = try await join("b") }
    #expect(error?.code == .fileExists)
    #expect(try Data(contentsOf: URL(fileURLWithPath: path)) == old)
    let joined = try await join("b", existing: .replaceKeepingBackup)
    #expect(try joined.notes().count == 3)
    let backup = try DatabaseQueue(path: try #require(joined.backup))
    let rows = try await backup.read { try String.fetchAll($0, sql: "SELECT body FROM notes") }
    #expect(rows == ["body 0"])
    #expect(try await join("c").backup == nil)
  }

  @Test func whatAReplacedStoreHadNotSentGoesOnInTheNewOne() async throws {
    let first = try await create("a")
    let second = try await join("b")
    try second.put("sealed", "1")
    _ = try second.store.seal()
    try second.put("captured", "1")
    try first.put("x", "1")
    try await first.synchronize()
    let former = second.binding.client
    try await second.close()
    let joined = try await join("b", existing: .replaceKeepingBackup)
    let replaced = try #require(joined.replaced)
    #expect(replaced.client == former)
    #expect(replaced.isSameDocument && replaced.unreadable == nil)
    #expect(replaced.unsentChangeSets == 2)
    #expect(try joined.notes().contains("sealed=1"))
    #expect(try joined.notes().contains("captured=1"))
    for _ in 0..<3 { for device in [first, joined] { try await device.synchronize() } }
    #expect(try first.notes() == joined.notes())
    // No device waits for a client that no longer exists.
    let listed = try await first.listClients()
    #expect(listed.first { $0.client == former }?.status == .retired)
    #expect(listed.first { $0.client == joined.binding.client }?.ancestor == former)
    #expect(try await first.verify().findings.filter { $0.severity != .note } == [])
    try first.put("y", "1")
    try await first.synchronize()
    try await joined.synchronize()
    #expect(try await first.vacuum().kept.allSatisfy { $0.member != former })
  }

  /// What it has written would be in the backup alone.
  @Test(arguments: [true, false])
  func programThatWritesWhileItsDatabaseIsReplacedStopsThat(isUnderSync: Bool) async throws {
    let first = try await create("a")
    let path: String
    if isUnderSync {
      let second = try await join("b")
      path = second.store.path
      try await second.close()
    } else {
      path = try scratch.makeNotes("b", rows: 1)
    }
    let hooked = HookedPublication(directory, part: "ClientDevices") {
      do {
        let program = try DatabaseQueue(path: path)
        try program.write { try $0.execute(sql: "UPDATE notes SET body = 'meanwhile'") }
        try program.close()
      } catch {
        Issue.record(error)
      }
    }
    let error = await syncError {
      _ = try await DocumentSyncManager.join(
        storeAt: path, directory: hooked,
        existing: isUnderSync ? .replaceKeepingBackup : .merge(prefer: .document),
        options: .init(client: "b", environment: world.environment))
    }
    #expect(error?.code == .storeBusy)
    #expect(try scratch.names().filter { $0.contains("backup") || $0.contains("tmp") } == [])
    let program = try DatabaseQueue(path: path)
    let bodies = try await program.read {
      try String.fetchSet($0, sql: "SELECT body FROM notes")
    }
    #expect(bodies == ["meanwhile"])
    #expect(try first.notes().allSatisfy { !$0.contains("meanwhile") })
  }

  /// What it holds for the new one would hinder that one for ever.
  @Test(arguments: [
    "DELETE FROM docsync_meta WHERE key = 'configuration'",
    "UPDATE docsync_meta SET value = x'7b' WHERE key = 'configuration'",
    "UPDATE docsync_outbox SET bytes = substr(bytes, 1, length(bytes) - 1)",
    "INSERT INTO docsync_record VALUES ('returning/00000000000000000000', x'00')",
    "INSERT INTO docsync_record VALUES ('ancestors', x'7b')",
    "INSERT INTO docsync_record VALUES ('replaced', x'7b')",
  ])
  func replacedStoreThatCannotBeReadSaysSoAndIsKept(damage: String) async throws {
    let first = try await create("a")
    let second = try await join("b")
    try second.put("unsent", "1")
    _ = try second.store.seal()
    try await second.close()
    try second.edit(damage)
    let joined = try await join("b", existing: .replaceKeepingBackup)
    try await joined.synchronize()
    #expect(try joined.notes() == first.notes())
    let replaced = try #require(joined.replaced)
    #expect(replaced.unreadable?.isEmpty == false)
    #expect(replaced.unsentChangeSets == 0 && !replaced.isSameDocument)
    let backup = try DatabaseQueue(path: try #require(joined.backup))
    #expect(
      try await backup.read {
        try String.fetchAll($0, sql: "SELECT body FROM notes WHERE id = 'unsent'")
      }
        == ["1"])
  }

  @Test func whatAReplacedStoreOfAnotherDocumentHadNotSentStaysInTheBackup() async throws {
    let first = try await create("a")
    let path = try scratch.makeNotes("b", rows: 1)
    let elsewhere = MemoryDirectory(seed: 9)
    let other = try await DocumentSyncManager.create(
      storeAt: path, directory: elsewhere, document: "another",
      options: .init(environment: world.environment))
    try other.put("unsent", "1")
    try await other.close()
    let joined = try await join("b", existing: .replaceKeepingBackup)
    #expect(try joined.notes() == first.notes())
    #expect(joined.replaced?.document == "another")
    #expect(joined.replaced?.isSameDocument == false)
    #expect(joined.replaced?.unsentChangeSets == 1)
    let listed = try await first.listClients()
    #expect(Set(listed.map(\.client)) == [first.binding.client, joined.binding.client])
  }

  /// As after joining was interrupted when the store was in its place.
  @Test func joiningWhereTheStoreIsAlreadySaysHowToGoOn() async throws {
    _ = try await create("a")
    let joined = try await join("b")
    try await joined.close()
    let error = await syncError { _ = try await join("b") }
    #expect(error?.code == .fileExists)
    #expect(error?.remedy.actions.contains(.synchronize) == true)
  }

  @Test func joinedStoreHasTheUsualPermissionsOrThoseOfTheFileItReplaces() async throws {
    func permissions(_ path: String) throws -> Int? {
      try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
    }
    _ = try await create("a")
    let plain = scratch.path + "/plain"
    let descriptor = open(plain, O_CREAT | O_WRONLY, 0o666)
    try #require(descriptor >= 0 && close(descriptor) == 0)
    let joined = try await join("b")
    #expect(try permissions(joined.store.path) == permissions(plain))
    let path = try scratch.makeNotes("c")
    try FileManager.default.setAttributes([.posixPermissions: 0o640], ofItemAtPath: path)
    _ = try await join("c", existing: .replaceKeepingBackup)
    #expect(try permissions(path) == 0o640)
  }

  @Test func damagedWholeStoreIsPassedOverForAnOlderOne() async throws {
    let first = try await create("a")
    try first.put("x", "1")
    let uploaded = try await first.uploadWholeStore()
    #expect(uploaded.number == 2)
    let newest = try #require(
      directory.items.keys.first { $0.name.hasPrefix("2.") && $0.name.hasSuffix(".store") })
    var bytes = try directory.bytes(at: newest)
    bytes[bytes.count / 2] ^= 1
    directory.put(.file(bytes), at: newest)
    let second = try await join("b")
    #expect(try second.notes() == first.notes())
  }

  @Test func noWholeStoreLeavesNothingBehind() async throws {
    _ = try await create("a")
    for path in directory.items.keys where path.name.hasSuffix(".store") {
      directory.put(.file([1, 2, 3]), at: path)
    }
    let error = await syncError { _ = try await join("b") }
    #expect(error?.code == .wholeStoreMissing)
    #expect(try scratch.names().filter { $0.hasPrefix("b.db") && $0 != "b.db-docsync-lock" } == [])
  }

  @Test func whoLosesWhileCreatingHasTheDatabaseAsItWas() async throws {
    var (call, lost) = (0, 0)
    while true {
      call += 1
      let (scratch, world) = (try Scratch(), World(seed: UInt64(call)))
      let (here, there) = (MemoryDirectory(seed: 1), MemoryDirectory(seed: 2))
      try await ApplicationSyncManager(
        directory: here, applicationIdentifier: "notes", environment: world.environment
      ).register(.random(), description: "x", createIfMissing: true)
      there.takeOver(here.items)
      func create(_ path: String, in directory: any SharedDirectory) async throws {
        try await DocumentSyncManager.create(
          storeAt: path, directory: directory, document: "main",
          options: .init(application: "notes", environment: world.environment)
        ).close()
      }
      try await create(try scratch.makeNotes("other"), in: there)
      let path = try scratch.makeNotes("mine", rows: 2)
      let before = try Scratch.contents(of: path)
      // The other's document arrives before one call or another.
      let hooked = HookedDirectory(here, beforeCall: call) { here.takeOver(there.items) }
      do {
        try await create(path, in: hooked)
      } catch let error as SyncError {
        #expect(error.code == .documentExists)
        #expect(try Scratch.contents(of: path) == before)
        let again = await syncError { try await create(path, in: here) }
        #expect(again?.code == .documentExists)
        lost += 1
        let joined = try await DocumentSyncManager.join(
          storeAt: scratch.store("joined"), directory: here,
          options: .init(environment: world.environment))
        #expect(try joined.notes().isEmpty)
      }
      guard hooked.wasCalled else { break }
    }
    #expect(lost > 3 && call > lost)
  }

  @Test func clientIsDescribedAgainOnlyWhereItSaysSomethingElse() async throws {
    let applications = ApplicationSyncManager(
      directory: directory, applicationIdentifier: "notes", environment: world.environment)
    let client = ClientIdentifier.random()
    let first = try await applications.register(client, description: "desk", createIfMissing: true)
    #expect(first.created)
    let items = directory.items
    let again = try await applications.register(client, description: "desk", createIfMissing: true)
    #expect(!again.created)
    #expect(again.root == first.root)
    #expect(directory.items == items)
    try await applications.register(client, description: "attic", createIfMissing: false)
    #expect(try await applications.listClients().map(\.description) == ["attic"])
    #expect(
      Set(directory.items.keys.map(\.name)).isSuperset(of: ["\(client).1.json", "\(client).2.json"])
    )
  }

  @Test func ofTwoApplicationFilesTheLowestRootCounts() async throws {
    let other = MemoryDirectory(seed: 2)
    var roots: [RootIdentifier] = []
    for directory in [directory, other] {
      roots.append(
        try await ApplicationSyncManager(
          directory: directory, applicationIdentifier: "notes", environment: world.environment
        ).register(.random(), description: "x", createIfMissing: true).root)
    }
    directory.takeOver(other.items)
    let third = try await ApplicationSyncManager(
      directory: directory, environment: world.environment
    ).register(.random(), description: "y", createIfMissing: false)
    #expect(third.root == roots.min())
    #expect(roots[0] != roots[1])
  }

  @Test func documentIsFoundByItsIdentifier() async throws {
    let created = try await create("a", document: "recipes")
    let applications = ApplicationSyncManager(
      directory: directory, environment: world.environment)
    #expect(try await applications.findDocument().name == created.binding.document)
    #expect(try await applications.findDocument("recipes").ordinal == 1)
    let error = await syncError { _ = try await applications.findDocument("diary") }
    #expect(error?.code == .documentMissing)
  }

  @Test func newerFeaturesAskForANewerVersion() async throws {
    _ = try await create("a")
    let path = try #require(directory.items.keys.first { $0.name.hasPrefix("application.") })
    struct Newer: Encodable {
      var formatVersion = 1
      var application = "notes"
      var root: String
      var leastReaderVersion = 2
      var requiredFeatures = ["teleportation"]
      var creator: ClientIdentifier
      var createdMilliseconds = 0
    }
    let root = String(path.name.split(separator: ".")[1])
    directory.put(
      .file(
        try Envelope.encodeJSON(
          Newer(root: root, creator: .random()), type: .application)), at: path)
    let error = await syncError { _ = try await join("b") }
    #expect(error?.code == .newerVersionNeeded)
    #expect(error?.detail?.contains("teleportation") == true)
  }
}
