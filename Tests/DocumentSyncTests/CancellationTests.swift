import DocumentSync
import DocumentSyncTesting
import Foundation
import SyncDirectory
import SyncModel
import SyncStore
import Testing

/// Every operation, cancelled before each of its calls on the directory: it
/// finishes once, leaves nothing by halves, and the next run completes.
@Suite struct CancellationTests {
  private func turns(_ fleet: TestFleet) -> SyncTurns {
    SyncTurns(environment: fleet.environment)
  }

  private func application(_ fleet: TestFleet) -> ApplicationSyncManager {
    ApplicationSyncManager(directory: fleet.memory, environment: fleet.environment)
  }

  @Test func uploadingTheWholeStore() async throws {
    try await Cancelling.sweep(least: 8) { fleet in
      try fleet[1].put("x", "1")
    } make: { fleet, directory in
      UploadWholeStoreOperation(
        store: fleet[1].store, directory: directory, turns: turns(fleet),
        environment: fleet.environment)
    } check: { fleet, _ in
      // A marker that is published late is no work of its own.
      for _ in 0..<2 { try await fleet.settle() }
      try fleet.expectEqual()
      // The next run clears away what the cancelled one left.
      try await fleet[1].uploadWholeStore()
      let joined = try await DocumentSyncManager.join(
        storeAt: fleet.scratch.store("j"), directory: fleet.memory,
        options: .init(environment: fleet.environment))
      #expect(try joined.notes() == fleet[1].notes())
    }
  }

  @Test func creatingADocument() async throws {
    try await Cancelling.sweep(least: 10, devices: 1) { fleet in
      _ = try fleet.scratch.makeNotes("new", rows: 3)
    } make: { fleet, directory in
      CreateDocumentOperation(
        storeAt: fleet.scratch.store("new"), directory: directory, application: "docsync",
        document: "new", turns: turns(fleet), environment: fleet.environment)
    } check: { fleet, _ in
      let manager = try await DocumentSyncManager.register(
        storeAt: fleet.scratch.store("new"), directory: fleet.memory, document: "new",
        options: .init(environment: fleet.environment))
      #expect(try manager.notes().count == 3)
      #expect(try await manager.synchronize().isIdle)
      let documents = try await application(fleet).listDocuments()
      #expect(documents.map(\.identifier) == ["main", "new"])
    }
  }

  @Test func downloadingTheWholeStore() async throws {
    try await Cancelling.sweep(least: 5, devices: 1) { _ in
    } make: { fleet, directory in
      DownloadWholeStoreOperation(
        directory: directory, document: "main", to: fleet.scratch.store("j"), client: .random(),
        environment: fleet.environment)
    } check: { fleet, result in
      switch result {
      case .success(let downloaded): try downloaded.store.close()
      case .failure:
        // A store that has its place is whole.
        if !FileManager.default.fileExists(atPath: fleet.scratch.store("j")) {
          #expect(
            try fleet.scratch.names().filter { $0.hasPrefix("j") && !$0.hasSuffix("lock") } == [])
        }
      }
      let manager = try await DocumentSyncManager.register(
        storeAt: fleet.scratch.store("j"), directory: fleet.memory, document: "main",
        options: .init(environment: fleet.environment))
      #expect(try manager.notes() == fleet[0].notes())
    }
  }

  @Test func leaving() async throws {
    try await Cancelling.sweep(least: 6) { fleet in
      try fleet[1].put("x", "last words")
    } make: { fleet, directory in
      LeaveOperation(
        store: fleet[1].store, directory: directory, turns: turns(fleet),
        environment: fleet.environment)
    } check: { fleet, result in
      if case .failure = result {
        #expect(try LocalStore.isUnderSync(at: fleet[1].store.path))
        try await fleet[1].leave()
      }
      #expect(try !LocalStore.isUnderSync(at: fleet[1].store.path))
      try await fleet[0].synchronize()
      #expect(try fleet[0].notes().contains("x=last words"))
    }
  }

  @Test func deletingADocument() async throws {
    // After how many calls the others can be told, and after how many not.
    var (told, untold) = (0, 0)
    try await Cancelling.sweep(least: 15) { _ in
    } make: { fleet, directory in
      DeleteDocumentOperation(
        directory: directory, document: "main", by: .random(), described: "attic",
        environment: fleet.environment)
    } check: { fleet, _ in
      if try await application(fleet).listDocuments().first?.isDeleted == true {
        told += 1
      } else {
        untold += 1
        #expect(fleet.paths { $0.name.hasSuffix(".store") }.count == 1)
      }
      try await application(fleet).deleteDocument("main", by: .random())
      #expect(
        fleet.paths { $0.description.contains("RecentSyncs") || $0.name.hasSuffix("store") } == [])
      #expect(await syncError { try await fleet[1].synchronize() }?.code == .documentDeleted)
    }
    #expect(told > 3 && untold > 3, "\(told), \(untold)")
  }

  @Test func removingEverything() async throws {
    try await Cancelling.sweep(least: 20) { _ in
    } make: { fleet, directory in
      RemoveAllOperation(
        directory: directory, by: .random(), described: "attic", environment: fleet.environment)
    } check: { fleet, result in
      if case .failure = result {
        do {
          try await application(fleet).removeAll(by: .random())
        } catch let error as SyncError {
          #expect(error.code == .applicationMissing)
        }
      }
      #expect(fleet.paths { _ in true }.count == 2)
    }
  }

  @Test func removingAClient() async throws {
    try await Cancelling.sweep(least: 4) { _ in
    } make: { fleet, directory in
      RemoveClientOperation(
        store: fleet[1].store, directory: directory, turns: turns(fleet),
        client: fleet[0].binding.client,
        environment: fleet.environment)
    } check: { fleet, _ in
      try await fleet[1].removeClient(fleet[0].binding.client)
      #expect(fleet.paths { $0.name.contains(".removed.") }.count == 1)
    }
  }

  @Test func clearingAway() async throws {
    try await Cancelling.sweep(least: 8) { fleet in
      for number in 1...3 {
        try fleet[1].put("x", "\(number)")
        try await fleet[1].synchronize()
      }
      try await fleet[1].uploadWholeStore()
      try await fleet[0].synchronize()
      // The first whole store does not contain them, and is its author's.
      try await fleet[0].vacuum()
    } make: { fleet, directory in
      VacuumOperation(
        store: fleet[1].store, directory: directory, turns: turns(fleet),
        environment: fleet.environment)
    } check: { fleet, _ in
      try await fleet[1].vacuum()
      for _ in 0..<2 { try await fleet.settle() }
      try fleet.expectEqual()
      #expect(fleet.changeSets(of: 1).isEmpty)
      #expect(fleet.paths { $0.name.hasSuffix(".store") }.count == 1)
      let joined = try await DocumentSyncManager.join(
        storeAt: fleet.scratch.store("j"), directory: fleet.memory,
        options: .init(environment: fleet.environment))
      #expect(try joined.notes() == fleet[1].notes())
    }
  }

  @Test func retiringAClient() async throws {
    try await Cancelling.sweep(least: 6) { _ in
    } make: { fleet, directory in
      RetireOperation(
        .client(fleet[0].binding.client, .absent), store: fleet[1].store, directory: directory,
        turns: turns(fleet), environment: fleet.environment)
    } check: { fleet, _ in
      let client = fleet[0].binding.client
      if try await fleet[1].listClients().first(where: { $0.client == client })?.status == .member {
        try await fleet[1].retire(.client(client, .absent))
      }
      let clients = try await fleet[1].listClients()
      #expect(clients.first { $0.client == client }?.status == .retired)
    }
  }

  @Test func creatingADeletedDocumentAgain() async throws {
    try await Cancelling.sweep(least: 12) { fleet in
      try fleet[1].put("x", "not sent")
      try await application(fleet).deleteDocument("main", by: .random())
    } make: { fleet, directory in
      RecreateDocumentOperation(
        store: fleet[1].store, directory: directory, turns: turns(fleet),
        environment: fleet.environment)
    } check: { fleet, _ in
      fleet[1].setDelegate(Answering(.create))
      try await fleet[1].synchronize()
      let joined = try await DocumentSyncManager.join(
        storeAt: fleet.scratch.store("j"), directory: fleet.memory,
        options: .init(environment: fleet.environment))
      #expect(try joined.notes().contains("x=not sent"))
      let found = try await application(fleet).findDocument("main")
      #expect(found.ordinal == 2 && found.generation == fleet[1].binding.generation)
    }
  }

  @Test func registeringAndDescribingAClient() async throws {
    let client = ClientIdentifier.random()
    try await Cancelling.sweep(least: 3) { _ in
    } make: { fleet, directory in
      RegisterApplicationClientOperation(
        directory: directory, applicationIdentifier: nil, client: client, description: "x",
        createIfMissing: true, environment: fleet.environment)
    } check: { fleet, _ in
      try await application(fleet).register(client, description: "x", createIfMissing: false)
      #expect(fleet.paths { $0.name.hasPrefix("\(client).") }.count == 1)
    }
    try await Cancelling.sweep(least: 3) { _ in
    } make: { fleet, directory in
      DescribeClientOperation(
        store: fleet[1].store, directory: directory,
        descriptions: SyncDescriptions(client: "attic"), environment: fleet.environment)
    } check: { fleet, _ in
      try await fleet[1].describeClient("attic")
      #expect(fleet.paths { $0.name.hasPrefix("\(fleet[1].binding.client).2.") }.count == 1)
      #expect(fleet[1].binding.clientDescription == "attic")
    }
  }

  @Test func looking() async throws {
    try await Cancelling.sweep(least: 8) { _ in
    } make: { fleet, directory in
      ListDocumentsOperation(
        directory: directory, measures: true, environment: fleet.environment)
    } check: { fleet, _ in
      let documents = try await application(fleet).listDocuments(measuring: true)
      #expect(documents.count == 1)
    }
    try await Cancelling.sweep(least: 5) { _ in
    } make: { fleet, directory in
      ListClientsOperation(
        directory: directory, store: fleet[1].store, environment: fleet.environment)
    } check: { fleet, _ in
      let clients = try await fleet[1].listClients()
      #expect(clients.count == 2)
    }
    try await Cancelling.sweep(least: 1) { _ in
    } make: { fleet, directory in
      FindStandingOperation(
        directory: directory, binding: fleet[1].binding, environment: fleet.environment)
    } check: { fleet, _ in
      let standing = try await fleet[1].findStanding()
      #expect(standing == .current)
    }
    try await Cancelling.sweep(least: 3) { _ in
    } make: { fleet, directory in
      RegisterDocumentOperation(
        directory: directory, applicationIdentifier: nil, action: .join(identifier: nil),
        environment: fleet.environment)
    } check: { fleet, _ in
      let found = try await application(fleet).findDocument()
      #expect(found.identifier == "main")
    }
    try await Cancelling.sweep(least: 8) { _ in
    } make: { fleet, directory in
      VerifyDirectoryOperation(directory: directory, environment: fleet.environment)
    } check: { fleet, _ in
      let again = try await Cancelling.run(beforeCall: .max, on: fleet.memory) {
        VerifyDirectoryOperation(directory: $0, environment: fleet.environment)
      }
      let report = try again.result.get()
      #expect(report.findings.isEmpty)
    }
    try await Cancelling.sweep(least: 2) { _ in
    } make: { fleet, directory in
      FindApplicationOperation(directory: directory, environment: fleet.environment)
    } check: { fleet, _ in
      let found = try await application(fleet).findApplication()
      #expect(found.identifier == "docsync")
    }
  }
}
