import DocumentSyncTesting
import Foundation
import SyncDirectory
import SyncModel
import SyncStore
import Testing

@testable import DocumentSync

/// Copies of stores, and older states of them.
@Suite struct IncarnationTests {
  /// Two devices with one note each of their own, everything exchanged, whose
  /// stores notice where they are.
  private func makeFleet() async throws -> TestFleet {
    let fleet = try await TestFleet(2)
    for manager in fleet.managers { try await manager.close() }
    return fleet
  }

  private func environment(_ fleet: TestFleet, machine: String = "one") -> SyncEnvironment {
    var environment = fleet.world.environment
    environment.store.places = StorePlaces(
      machine: machine, folder: fleet.scratch.path + "/tokens of " + machine)
    return environment
  }

  private func open(
    _ fleet: TestFleet, _ store: String, machine: String = "one",
    _ directory: (any SharedDirectory)? = nil
  ) async throws -> DocumentSyncManager {
    try await DocumentSyncManager.open(
      storeAt: fleet.scratch.store(store), directory: directory ?? fleet.memory,
      options: .init(environment: environment(fleet, machine: machine)))
  }

  /// Synchronizes until nothing moves; all devices then show one digest.
  private func settle(_ managers: [DocumentSyncManager]) async throws {
    for round in 0..<8 {
      var isIdle = true
      for manager in managers {
        let report = try await manager.synchronize()
        if !report.sent.isEmpty || !report.applied.isEmpty { isIdle = false }
        if round == 7 { #expect(report.waiting.isEmpty) }
      }
      if isIdle, round > 4 { break }
    }
    let digests = try managers.map { try $0.store.digest() }
    #expect(Set(digests).count == 1)
  }

  private func copy(_ fleet: TestFleet, _ from: String, to: String) throws {
    try FileManager.default.copyItem(
      atPath: fleet.scratch.store(from), toPath: fleet.scratch.store(to))
  }

  private func overwrite(_ fleet: TestFleet, _ store: String, with other: String) throws {
    for suffix in ["-wal", "-shm", "-journal"]
    where FileManager.default.fileExists(atPath: fleet.scratch.store(store) + suffix) {
      try FileManager.default.removeItem(atPath: fleet.scratch.store(store) + suffix)
    }
    // Into the same file, as `cp` does.
    let content = try Data(contentsOf: URL(fileURLWithPath: fleet.scratch.store(other)))
    let handle = try FileHandle(
      forWritingTo: URL(fileURLWithPath: fleet.scratch.store(store)))
    try handle.truncate(atOffset: 0)
    try handle.write(contentsOf: content)
    try handle.close()
  }

  @Test func storeThatIsOpenedWhereItWasStaysTheClientThatItWas() async throws {
    let fleet = try await makeFleet()
    let client = try await open(fleet, "0")
    let before = client.binding.client
    try client.put("a", "1")
    try await client.synchronize()
    try await client.close()
    let again = try await open(fleet, "0")
    #expect(again.binding.client == before)
    #expect(try await again.synchronize().incarnations.isEmpty)
    try await again.close()
  }

  /// What it has sealed under the name that it had in between is published
  /// under that name, which is told as well.
  @Test func copyThatSealsAndIsMovedTellsWhoItWas() async throws {
    let fleet = try await makeFleet()
    let original = try await open(fleet, "0")
    try copy(fleet, "0", to: "copy")
    let copied = try await open(fleet, "copy", machine: "another")
    try copied.put("c", "of the copy")
    try copied.store.setPolicies { $0.document = .localWins }
    let between = copied.binding.client
    #expect(between != original.binding.client)
    try await copied.close()
    try copy(fleet, "copy", to: "moved")
    try FileManager.default.removeItem(atPath: fleet.scratch.store("copy"))
    let moved = try await open(fleet, "moved", machine: "another")
    #expect(try moved.store.ancestralChangeSets().map(\.client) == [between])
    try await moved.synchronize()
    #expect(try await moved.verify().findings.filter { $0.severity != .note } == [])
    try await settle([original, moved])
    #expect(try original.notes().contains("c=of the copy"))
    let clients = try await original.listClients()
    #expect(clients.first { $0.client == between }?.status == .retired)
    #expect(clients.first { $0.client == moved.binding.client }?.ancestor == between)
    let all = try await ApplicationSyncManager(
      directory: fleet.memory, environment: environment(fleet)
    ).listClients()
    #expect(all.first { $0.client == between }?.status == .retired)
    #expect(all.filter { $0.status == .member }.count == 3)
    #expect(try await original.verify().findings.filter { $0.severity != .note } == [])
    try await moved.close()
    try await original.close()
  }

  /// It cannot tell the others yet that it is a new client.
  @Test func newClientReceivesFromAFullDirectory() async throws {
    let fleet = try await makeFleet()
    let original = try await open(fleet, "0")
    try await open(fleet, "1").close()
    try copy(fleet, "1", to: "moved")
    try FileManager.default.removeItem(atPath: fleet.scratch.store("1"))
    try original.put("other", "1")
    try await original.synchronize()
    fleet.memory.capacity = 0
    let moved = try await open(fleet, "moved")
    _ = try await moved.fetchChanges()
    #expect(try moved.notes().contains("other=1"))
    fleet.memory.capacity = .max
    try original.put("another", "1")
    try await original.synchronize()
    fleet.memory.capacity = 0
    let error = await syncError { _ = try await moved.synchronize() }
    #expect(error?.code == .noSharedSpace)
    #expect(try moved.notes().contains("another=1"))
    fleet.memory.capacity = .max
    #expect(try await moved.synchronize().incarnations.count == 1)
    try await settle([original, moved])
  }

  /// Whom it was before it has retired itself; but it was retired before that,
  /// and has nothing to say.
  @Test func clientThatIsRemovedSaysAgainWhoIsNoMore() async throws {
    let fleet = try await makeFleet()
    let original = try await open(fleet, "0")
    try await open(fleet, "1").close()
    let first = try LocalStore.open(at: fleet.scratch.store("1")).binding.client
    try copy(fleet, "1", to: "moved")
    try FileManager.default.removeItem(atPath: fleet.scratch.store("1"))
    try await original.synchronize()
    let moved = try await open(fleet, "moved")
    let second = moved.binding.client
    #expect(second != first)
    // The clock of who moved is ahead, and what it says of its former self
    // arrives late.
    fleet.world.advance(60_000)
    try await moved.synchronize()
    fleet.world.advance(-60_000)
    let commands = fleet.memory.items.keys.filter {
      $0.components.contains("SyncCommands") && $0.components.contains("\(second)")
    }.filter { fleet.memory.items[$0] != .folder }
    let late = try commands.map { ($0, try #require(fleet.memory.items[$0])) }
    #expect(late.count == 1)
    for (path, _) in late { fleet.memory.take(path) }
    try await original.retire(.client(second, .removed))
    for (path, file) in late { fleet.memory.put(file, at: path) }
    try await original.synchronize()
    let listed = try await original.listClients()
    #expect(listed.first { $0.client == first }?.status == .member)
    #expect(listed.first { $0.client == second }?.status == .removed)
    #expect(
      await syncError { _ = try await moved.synchronize() }?.code == .clientRemoved)
    moved.setDelegate(Answering(.rejoin))
    try await settle([original, moved])
    #expect(try await original.synchronize().waiting.isEmpty)
    let retired = try #require(try StoreRecords(original.store).ownMarker()).content.retired
    #expect(Set(retired.map(\.client)) == [first, second])
    try await moved.close()
    try await original.close()
  }

  /// As by a scheduler, or with another `XDG_STATE_HOME`.
  @Test func storeThatIsUsedWithDifferentHomesStaysTheClientThatItIs() async throws {
    let fleet = try await makeFleet()
    let client = try await open(fleet, "0").binding.client
    func openAtHome(_ home: String) async throws -> DocumentSyncManager {
      var environment = environment(fleet)
      environment.store.places?.folder = fleet.scratch.path + "/" + home
      return try await DocumentSyncManager.open(
        storeAt: fleet.scratch.store("0"), directory: fleet.memory,
        options: .init(environment: environment))
    }
    for round in 0..<2 {
      for home in ["tokens of one", "another home"] {
        // Looking draws no token.
        try await openAtHome(home).close()
        let manager = try await openAtHome(home)
        try manager.put("\(round) \(home)", "1")
        #expect(try await manager.synchronize().incarnations.isEmpty)
        #expect(manager.binding.client == client)
        try await manager.close()
      }
    }
    // An older state shows in either.
    try copy(fleet, "0", to: "older")
    for home in ["another home", "tokens of one"] {
      let manager = try await openAtHome(home)
      try manager.put("later \(home)", "1")
      try await manager.synchronize()
      try await manager.close()
    }
    for home in ["another home", "tokens of one"] {
      try overwrite(fleet, "0", with: "older")
      let restored = try await openAtHome(home)
      #expect(restored.binding.client != client)
      try await restored.close()
    }
  }

  @Test(arguments: ["one", "another"])
  func copyOnThisOrAnotherMachineIsANewClientAndAllEditsArrive(machine: String) async throws {
    let fleet = try await makeFleet()
    let original = try await open(fleet, "0")
    try original.put("a", "unpublished when copied")
    try copy(fleet, "0", to: "copy")
    try original.put("b", "of the original")
    let other = try await open(fleet, "copy", machine: machine)
    try other.put("c", "of the copy")
    #expect(other.binding.client != original.binding.client)
    #expect(other.binding.ancestor == original.binding.client)
    let third = try await open(fleet, "1")
    let report = try await other.synchronize()
    #expect(report.incarnations.map(\.reason) == [.copied])
    #expect(report.incarnations.map(\.isAncestorGone) == [false])
    try await settle([original, other, third])
    #expect(
      try third.notes().filter { !$0.hasPrefix("seed") } == [
        "a=unpublished when copied", "b=of the original", "c=of the copy",
      ])
    let clients = try await third.listClients()
    #expect(
      clients.first { $0.client == other.binding.client }?.ancestor == original.binding.client)
    for manager in [original, other, third] { try await manager.close() }
  }

  /// The marker of the original may arrive late: then it has files to get all the same.
  @Test(arguments: ["copied", "forked"])
  func copyClearsNothingAwayThatTheOriginalHasNotApplied(how: String) async throws {
    let fleet = try await TestFleet(1)
    try await fleet[0].close()
    func open(_ store: String) async throws -> DocumentSyncManager {
      // Without a place, a copy is the same client until the directory shows another state of it.
      var environment = environment(fleet)
      if how == "forked" { environment.store.places = nil }
      return try await DocumentSyncManager.open(
        storeAt: fleet.scratch.store(store), directory: fleet.memory,
        options: .init(environment: environment))
    }
    let first = try await open("0")
    try first.put("a", "unpublished when copied")
    try await first.close()
    try copy(fleet, "0", to: "copy")
    let original = try await open("0")
    let client = original.binding.client
    try await original.synchronize()
    try await original.uploadWholeStore()
    // The first whole store goes first, and with the second time what it did not contain.
    _ = try await original.vacuum()
    #expect(try await original.vacuum().removed.map(\.kind) == [.changeSets])
    try original.put("b", "of the original")
    try await original.synchronize()
    let markers = fleet.markers(of: client)
    #expect(markers.count > 0)
    let late = try markers.map { ($0, try #require(fleet.memory.items[$0])) }
    for (path, _) in late { fleet.memory.take(path) }

    let other = try await open("copy")
    try other.put("c", "of the copy")
    let report = try await other.synchronizeThoroughly()
    #expect(report.incarnations.map(\.reason.rawValue) == [how])
    try await other.uploadWholeStore()
    let kept = try await other.vacuum().kept.filter { $0.kind == .changeSets }
    #expect(kept.map(\.member) == [client])
    #expect(kept.map(\.client) == [other.binding.client])
    for (path, file) in late { fleet.memory.put(file, at: path) }
    try await settle([original, other])
    #expect(
      try original.notes().filter { !$0.hasPrefix("seed") } == [
        "a=unpublished when copied", "b=of the original", "c=of the copy",
      ])
    for manager in [original, other] { try await manager.close() }
  }

  @Test func storeThatWasMovedIsTheOnlyOneOfItsAncestor() async throws {
    let fleet = try await makeFleet()
    let first = try await open(fleet, "0")
    try await first.close()
    try copy(fleet, "0", to: "moved")
    try FileManager.default.removeItem(atPath: fleet.scratch.store("0"))
    let moved = try await open(fleet, "moved")
    #expect(try await moved.synchronize().incarnations.map(\.isAncestorGone) == [true])
    try await moved.close()
  }

  @Test(arguments: [true, false])
  func whatAKilledProcessHasLeftGoesIfItsStoreWasMovedAndStaysIfItWasCopied(
    isMoved: Bool
  ) async throws {
    let fleet = try await makeFleet()
    let faulty = FaultyDirectory(fleet.memory)
    let original = try await open(fleet, "0", faulty)
    try original.put("x", "1")
    faulty.script(FaultyDirectory.Fault(.stopBeforeRename, on: .publish, pathPart: "SyncChanges"))
    _ = await syncError { try await original.synchronize() }
    func unfinished() -> [RelativePath] {
      fleet.memory.items.compactMap { path, item in
        if case .file = item, path.components.first == "Temporary" { path } else { nil }
      }
    }
    #expect(unfinished().count == 1)
    try await original.close()
    try copy(fleet, "0", to: "elsewhere")
    if isMoved { try FileManager.default.removeItem(atPath: fleet.scratch.store("0")) }
    let other = try await open(fleet, "elsewhere")
    #expect(try await other.synchronize().incarnations.map(\.reason) == [.copied])
    #expect(unfinished().count == (isMoved ? 0 : 1))
    try await other.close()
  }

  @Test func changeSetThatWasSealedBeforeTheCopyIsPublishedOnceByteForByte() async throws {
    let fleet = try await makeFleet()
    let original = try await open(fleet, "0")
    try original.put("a", "sealed")
    _ = try original.store.seal()
    try copy(fleet, "0", to: "copy")
    let other = try await open(fleet, "copy")
    let report = try await other.synchronize()
    #expect(report.sent.map(\.client) == [original.binding.client])
    let files = fleet.memory.items
    try await original.synchronize()
    #expect(
      fleet.memory.items.keys.filter { $0.description.hasSuffix("syncchg") }.sorted {
        $0.description < $1.description
      }
        == files.keys.filter { $0.description.hasSuffix("syncchg") }.sorted {
          $0.description < $1.description
        })
    let third = try await open(fleet, "1")
    try await settle([original, other, third])
    for manager in [original, other, third] { try await manager.close() }
  }

  @Test func commandThatWasNotPublishedIsSentByTheNewClientUnderItsOwnNumber() async throws {
    let fleet = try await makeFleet()
    let faulty = FaultyDirectory(fleet.memory)
    let original = try await open(fleet, "0", faulty)
    for name in ["published", "sealed"] { try await original.sendCommand(name: name) }
    faulty.script(
      FaultyDirectory.Fault(.stop, on: .publish, pathPart: "SyncCommands", occurrence: 2))
    _ = await syncError { try await original.synchronize() }
    #expect(faulty.isStopped)
    let former = original.binding.client
    try await original.close()
    try copy(fleet, "0", to: "moved")
    try FileManager.default.removeItem(atPath: fleet.scratch.store("0"))
    let moved = try await open(fleet, "moved")
    let other = try await open(fleet, "1")
    try await settle([moved, other])
    let pending = try await other.pendingCommands().sorted { $0.name < $1.name }
    #expect(pending.map(\.name) == ["published", "sealed"])
    #expect(pending.map(\.client) == [former, moved.binding.client])
    #expect(pending.map(\.number) == [1, 1])
    #expect(try await other.verify().findings.filter { $0.severity != .note } == [])
    for manager in [moved, other] { try await manager.close() }
  }

  /// Once all devices have stopped at what is applied, none applies what arrives late.
  @Test func formerClientIsRetiredWhenAllThatItPublishedHasArrived() async throws {
    let fleet = try await makeFleet()
    let manager = try await open(fleet, "0")
    try await manager.synchronize()
    try await manager.close()
    try copy(fleet, "0", to: "backup")
    let used = try await open(fleet, "0")
    try used.put("late", "1")
    try await used.synchronize()
    let former = used.binding.client
    let path = try #require(
      fleet.paths { $0.components.contains("\(former)") && $0.name.hasSuffix(".syncchg") }.last)
    let file = try #require(fleet.memory.items[path])
    try await used.close()
    try overwrite(fleet, "0", with: "backup")
    fleet.memory.take(path)

    let restored = try await open(fleet, "0")
    let other = try await open(fleet, "1")
    for _ in 0..<2 { for manager in [restored, other] { try await manager.synchronize() } }
    #expect(restored.binding.ancestor == former)
    func status() async throws -> ClientDescription.Status? {
      try await other.listClients().first { $0.client == former }?.status
    }
    #expect(try await status() == .member)
    #expect(try StoreRecords(restored.store).replaced() == [former])
    fleet.memory.put(file, at: path)
    try await settle([restored, other])
    #expect(try await status() == .retired)
    // As it was sent, and by no other device.
    for manager in [restored, other] {
      #expect(try manager.store.appliedVector().number(of: former) == 1)
      #expect(try manager.notes().contains("late=1"))
    }
    for manager in [restored, other] { try await manager.close() }
  }

  @Test func storeRestoredFromABackupTenChangeSetsOldKeepsEverything() async throws {
    let fleet = try await makeFleet()
    let manager = try await open(fleet, "0")
    try manager.put("a", "0")
    try await manager.synchronize()
    try await manager.close()
    try copy(fleet, "0", to: "backup")
    let used = try await open(fleet, "0")
    for number in 1...10 {
      try used.put("a", "\(number)")
      try used.put("n\(number)", "x")
      try await used.synchronize()
    }
    let former = used.binding.client
    try await used.close()
    try overwrite(fleet, "0", with: "backup")

    let restored = try await open(fleet, "0")
    #expect(restored.binding.client != former)
    try restored.put("after", "restore")
    let report = try await restored.synchronize()
    #expect(report.incarnations.map(\.reason) == [.restored])
    #expect(report.applied.count == 10)
    let other = try await open(fleet, "1")
    try await settle([restored, other])
    #expect(try other.notes().contains("a=10"))
    #expect(try other.notes().contains("n10=x"))
    #expect(try other.notes().contains("after=restore"))
    for manager in [restored, other] { try await manager.close() }
  }

  /// Copies a store, and the tokens of its machine.
  private func backUp(_ fleet: TestFleet, _ store: String) throws {
    try copy(fleet, store, to: "backup")
    let tokens = fleet.scratch.path + "/tokens of one"
    try FileManager.default.copyItem(atPath: tokens, toPath: tokens + " then")
  }

  private func rollTokensBack(_ fleet: TestFleet) throws {
    let tokens = fleet.scratch.path + "/tokens of one"
    try FileManager.default.removeItem(atPath: tokens)
    try FileManager.default.moveItem(atPath: tokens + " then", toPath: tokens)
  }

  /// Backs up the first device, which then sends three change sets. Returns its client.
  private func backUpAndGoOn(_ fleet: TestFleet) async throws -> ClientIdentifier {
    try backUp(fleet, "0")
    let used = try await open(fleet, "0")
    for number in 1...3 {
      try used.put("n\(number)", "x")
      try await used.synchronize()
    }
    try await used.close()
    return used.binding.client
  }

  @Test func homeThatWasRolledBackAsAWholeIsNoticedByItsMarkers() async throws {
    let fleet = try await makeFleet()
    let manager = try await open(fleet, "0")
    try manager.put("a", "0")
    try await manager.synchronize()
    try await manager.close()
    let former = try await backUpAndGoOn(fleet)
    try overwrite(fleet, "0", with: "backup")
    try rollTokensBack(fleet)

    let restored = try await open(fleet, "0")
    #expect(restored.binding.client == former)
    try restored.put("after", "restore")
    // Sealed before anybody could notice: it has a number that was used.
    _ = try restored.store.seal()
    let before = fleet.memory.items
    let report = try await restored.synchronize()
    #expect(report.incarnations.map(\.reason) == [.forked])
    #expect(report.sent.map(\.client) == [restored.binding.client])
    for (path, item) in before where path.description.contains(former.description) {
      #expect(fleet.memory.items[path] == item)
    }
    let other = try await open(fleet, "1")
    try await settle([restored, other])
    #expect(try other.notes().contains("n3=x"))
    #expect(try other.notes().contains("after=restore"))
    for manager in [restored, other] { try await manager.close() }
  }

  /// Its former client is retired, and the other devices have another change set of that number.
  @Test func changeSetThatARolledBackStoreSealedIsSentByItsNewClient() async throws {
    let fleet = try await makeFleet()
    let device = try await open(fleet, "0")
    try await device.synchronize()
    try await device.close()
    let former = try await backUpAndGoOn(fleet)
    try overwrite(fleet, "0", with: "backup")

    let restored = try await open(fleet, "0")
    let other = try await open(fleet, "1")
    try await settle([restored, other])
    // It removes the former client's marker.
    for manager in [restored, other] { _ = try await manager.vacuum() }
    #expect(try await other.listClients().first { $0.client == former }?.status == .retired)
    try await restored.close()
    try overwrite(fleet, "0", with: "backup")
    try rollTokensBack(fleet)

    let rolledBack = try await open(fleet, "0")
    #expect(rolledBack.binding.client == former)
    try rolledBack.put("after", "rolling back")
    _ = try rolledBack.store.seal()
    let report = try await rolledBack.synchronize()
    #expect(report.incarnations.map(\.reason) == [.retired])
    #expect(report.sent.map(\.client) == [rolledBack.binding.client])
    try await settle([rolledBack, other])
    #expect(try other.notes().contains("n3=x"))
    #expect(try other.notes().contains("after=rolling back"))
    for manager in [rolledBack, other] { try await manager.close() }
  }

  /// Its store is a new client by then, which no other device knows.
  @Test(arguments: ["copied", "moved", "restored", "rolled back"])
  func removedDeviceIsToldAlsoIfItsStoreIsSomewhereElseOrOlder(how: String) async throws {
    let fleet = try await makeFleet()
    let remover = try await open(fleet, "0")
    let device = try await open(fleet, "1")
    let former = device.binding.client
    try backUp(fleet, "1")
    try device.put("sent", "1")
    try await device.synchronize()
    try device.put("sealed", "1")
    _ = try device.store.seal()
    try await remover.synchronize()
    try await remover.removeClient(former)
    try await device.close()
    var store = "1"
    switch how {
    case "copied", "moved":
      store = "elsewhere"
      try copy(fleet, "1", to: store)
      if how == "moved" { try FileManager.default.removeItem(atPath: fleet.scratch.store("1")) }
    default:
      try overwrite(fleet, "1", with: "backup")
      if how == "rolled back" { try rollTokensBack(fleet) }
    }

    let returned = try await open(fleet, store)
    try returned.put("kept", "1")
    let before = fleet.memory.items
    for _ in 0..<2 {
      let error = await syncError { try await returned.synchronize() }
      #expect(error?.code == .clientRemoved)
      #expect(returned.state == .removed)
      #expect(returned.binding.client != former)
    }
    #expect(fleet.memory.items == before)
    let delegate = Answering(.rejoin)
    returned.setDelegate(delegate)
    let report = try await returned.synchronize()
    #expect(delegate.questions == [.clientRemoved(identifier: "main")])
    #expect(report.incarnations.map(\.ancestor) == [former])
    returned.setDelegate(nil)
    try await settle([remover, returned])
    let notes = try remover.notes()
    #expect(notes.contains("kept=1") && notes.contains("sent=1"))
    if store != "1" { #expect(notes.contains("sealed=1")) }
    #expect(returned.state == .registered)
    for manager in [remover, returned] { try await manager.close() }
  }

  /// Two machines cloned with all that they have, which publish before they
  /// see each other: nothing but the directory can tell.
  @Test(arguments: 0..<4)
  func twoStatesThatPublishedOneNumberBothEndInTheDocument(variant: Int) async throws {
    let fleet = try await TestFleet(2)
    try await fleet[0].close()
    let copied = fleet.scratch.store("copy")
    try FileManager.default.copyItem(atPath: fleet.scratch.store("0"), toPath: copied)
    let elsewhere = MemoryDirectory(seed: 9)
    elsewhere.takeOver(fleet.memory.items)
    let environment = fleet.world.environment
    let first = try await DocumentSyncManager.open(
      storeAt: fleet.scratch.store("0"), directory: fleet.memory,
      options: .init(environment: environment))
    let second = try await DocumentSyncManager.open(
      storeAt: copied, directory: elsewhere, options: .init(environment: environment))
    try first.put("x", "one \(variant)")
    try first.put("y", "of the first")
    try second.put("x", "two")
    try second.put("z", "of the second")
    try await first.synchronize()
    try await second.synchronize()
    try second.put("z", "of the second, again")
    try await second.synchronize()
    // The third has seen one of them, or none.
    if variant % 2 == 0 { try await fleet[1].synchronize() }
    fleet.memory.takeOver(fleet.memory.items.merging(elsewhere.items) { first, _ in first })
    try await second.close()
    let joined = try await DocumentSyncManager.open(
      storeAt: copied, directory: fleet.memory, options: .init(environment: environment))
    if variant < 2 { try await joined.synchronize() } else { try await fleet[1].synchronize() }
    try await settle([first, joined, fleet[1]])
    let notes = try fleet[1].notes()
    #expect(notes.contains("y=of the first"))
    #expect(notes.contains("z=of the second, again"))
    #expect(Set([first, joined, fleet[1]].map(\.binding.client)).count == 3)
    for manager in [first, joined] { try await manager.close() }
  }
}
