import DocumentSync
import DocumentSyncTesting
import Foundation
import GRDB
import SyncDirectory
import SyncModel
import SyncStore
import Testing

/// Operations that exchange what a store has, or that only look, cancelled
/// before each of their calls on the directory.
@Suite struct CancelledExchangeTests {
  private func turns(_ fleet: TestFleet) -> SyncTurns {
    SyncTurns(environment: fleet.environment)
  }

  private func synchronizing(
    _ index: Int, _ fleet: TestFleet, _ directory: any SharedDirectory
  ) -> SynchronizeOperation {
    SynchronizeOperation(
      store: fleet[index].store, directory: directory, turns: turns(fleet),
      environment: fleet.environment)
  }

  /// What was downloaded goes with the exchange that came to nothing.
  private func expectNothingBesideStores(_ fleet: TestFleet) throws {
    #expect(try fleet.scratch.names().filter { $0.contains("-docsync-tmp") } == [])
  }

  /// Brings everyone to rest, and expects all to have some notes.
  private func expectOneDocument(_ fleet: TestFleet, with notes: [String]) async throws {
    // A marker that is published late is no work of its own.
    for _ in 0..<3 { try await fleet.settle() }
    try fleet.expectEqual()
    let shown = try fleet[0].notes()
    for note in notes { #expect(shown.contains(note), "\(note)") }
    let copies = try fleet.scratch.names().filter { $0.contains(".before-") }
    #expect(copies.count <= 1, "\(copies)")
    let joined = try await DocumentSyncManager.join(
      storeAt: fleet.scratch.store("late"), directory: fleet.memory,
      options: .init(environment: fleet.environment))
    #expect(try joined.notes() == shown)
  }

  @Test func beginningTheDocumentAgain() async throws {
    try await Cancelling.sweep(least: 15) { fleet in
      try fleet[0].put("x", "not sent by 0")
      try fleet[1].put("y", "not sent by 1")
    } make: { fleet, directory in
      ResetOperation(
        store: fleet[1].store, directory: directory, turns: turns(fleet),
        environment: fleet.environment)
    } check: { fleet, result in
      do {
        // Others go on meanwhile, or wait for the whole store.
        try await fleet[0].synchronize()
      } catch let error as SyncError {
        #expect(error.code == .wholeStoreMissing)
        #expect(fleet[0].binding.generationOrdinal == 1)
      }
      if case .failure = result { try await fleet[1].reset() }
      #expect(fleet[1].binding.generationOrdinal == 2)
      try await expectOneDocument(fleet, with: ["x=not sent by 0", "y=not sent by 1"])
      #expect(fleet[0].binding.generation == fleet[1].binding.generation)
    }
  }

  @Test func goingOverToAGenerationThatBeganAgain() async throws {
    try await Cancelling.sweep(least: 15) { fleet in
      try fleet[1].put("seen", "1")
      try await fleet.settle()
      // Published, and not seen by the device that resets.
      let before = fleet.memory.items
      try fleet[1].put("unseen", "2")
      try await fleet[1].synchronize()
      let after = fleet.memory.items
      for path in after.keys where before[path] == nil { fleet.memory.take(path) }
      fleet.memory.takeOver(before)
      try await fleet[0].reset()
      fleet.memory.takeOver(after)
      try fleet[1].put("unsent", "3")
    } make: { fleet, directory in
      synchronizing(1, fleet, directory)
    } check: { fleet, _ in
      try expectNothingBesideStores(fleet)
      #expect(try fleet[1].notes().contains("unsent=3"))
      try await fleet[1].synchronize()
      #expect(fleet[1].binding.generation == fleet[0].binding.generation)
      try await expectOneDocument(fleet, with: ["seen=1", "unseen=2", "unsent=3"])
    }
  }

  @Test func takingOverAWholeStoreWhereHistoryWasClearedAway() async throws {
    try await Cancelling.sweep(least: 15, devices: 3) { fleet in
      try await fleet.settle()
      try fleet[2].put("mine", "kept")
      try await fleet[0].retire(.client(fleet[2].binding.client, .absent))
      for number in 1...3 {
        try fleet[0].put("cleared", "\(number)")
        _ = try fleet[0].store.seal()
      }
      for _ in 0..<3 { for index in 0...1 { try await fleet[index].synchronize() } }
      _ = try await fleet[1].uploadWholeStore()
      for index in [0, 1, 0, 1, 0] { _ = try await fleet[index].vacuum() }
      #expect(fleet.changeSets(of: 0).isEmpty)
    } make: { fleet, directory in
      synchronizing(2, fleet, directory)
    } check: { fleet, _ in
      try expectNothingBesideStores(fleet)
      #expect(try fleet[2].notes().contains("mine=kept"))
      let report = try await fleet[2].synchronize()
      #expect(report.waiting.isEmpty)
      try await expectOneDocument(fleet, with: ["mine=kept", "cleared=3"])
    }
  }

  @Test func joiningWithTheRowsThatAreThere() async throws {
    try await Cancelling.sweep(least: 6, devices: 1) { fleet in
      let queue = try DatabaseQueue(path: fleet.scratch.makeNotes("j", rows: 1))
      try queue.write { try $0.execute(sql: "INSERT INTO notes VALUES('own', 'row')") }
      try queue.close()
    } make: { fleet, directory in
      DownloadWholeStoreOperation(
        directory: directory, document: "main", to: fleet.scratch.store("j"), client: .random(),
        existing: .merge(prefer: .document), environment: fleet.environment)
    } check: { fleet, result in
      let path = fleet.scratch.store("j")
      let manager: DocumentSyncManager
      switch result {
      case .success(let downloaded):
        try downloaded.store.close()
        manager = try await DocumentSyncManager.open(
          storeAt: path, directory: fleet.memory, options: .init(environment: fleet.environment))
        try await manager.synchronize()
      case .failure:
        #expect(try !LocalStore.isUnderSync(at: path))
        #expect(
          try fleet.scratch.names().filter { $0.hasPrefix("j.") && !$0.hasSuffix("lock") }
            == ["j.db"])
        manager = try await DocumentSyncManager.join(
          storeAt: path, directory: fleet.memory, existing: .merge(prefer: .document),
          options: .init(environment: fleet.environment))
      }
      try await fleet[0].synchronize()
      #expect(try manager.notes() == ["own=row", "seed-0=body 0", "seed-1=body 1"])
      #expect(try manager.notes() == fleet[0].notes())
    }
  }

  @Test func beginningADocumentThatAStoreIsBoundTo() async throws {
    func creation(
      _ fleet: TestFleet, _ directory: any SharedDirectory
    ) -> RegisterDocumentOperation {
      var binding = fleet[0].binding
      binding.documentIdentifier = "second"
      binding.document = DocumentName(bits: Bits128(high: 1, low: 2))
      binding.generation = IntegrityKey(bits: Bits128(high: 3, low: 4))
      return RegisterDocumentOperation(
        directory: directory, applicationIdentifier: nil,
        action: .create(binding, description: "the second"), environment: fleet.environment)
    }
    try await Cancelling.sweep(least: 5, devices: 1) { _ in
    } make: { fleet, directory in
      creation(fleet, directory)
    } check: { fleet, _ in
      let again = try await Cancelling.run(beforeCall: .max, on: fleet.memory) {
        creation(fleet, $0)
      }
      #expect(try again.result.get().identifier == "second")
      let application = ApplicationSyncManager(
        directory: fleet.memory, environment: fleet.environment)
      let documents = try await application.listDocuments()
      #expect(documents.map(\.identifier) == ["main", "second"])
      #expect(fleet.paths { $0.name.hasPrefix("generation.") }.count == 2)
    }
  }

  @Test func verifyingAStoreChangesNothing() async throws {
    try await Cancelling.sweep(least: 10, devices: 1) { fleet in
      try fleet[0].put("x", "not sent")
    } make: { fleet, directory in
      VerifyStoreOperation(
        storeAt: fleet[0].store.path, directory: directory, environment: fleet.environment)
    } check: { fleet, _ in
      let items = fleet.memory.items
      let report = try await fleet[0].verify()
      #expect(report.findings.isEmpty)
      #expect(fleet.memory.items == items)
      #expect(try await fleet[0].synchronize().sent.count == 1)
    }
  }
}
