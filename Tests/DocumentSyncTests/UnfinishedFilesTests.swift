import DocumentSync
import DocumentSyncTesting
import Foundation
import SyncDirectory
import SyncModel
import Testing

/// A process that is killed while it publishes leaves a file below `Temporary`.
struct UnfinishedFilesTests {
  /// A kind of file, and how a device comes to publish one.
  struct Kind: Sendable, CustomTestStringConvertible {
    var testDescription: String
    /// The part of its path by which it is known.
    var folder: String
    var operation = DirectoryError.Operation.publish
    var ending = ""
    /// Makes the device have something to publish.
    var prepare: @Sendable (TestFleet) async throws -> Void = { try $0[0].put("x", "1") }
    var publish: @Sendable (DocumentSyncManager) async throws -> Void = {
      try await $0.synchronize()
    }
  }

  static let kinds = [
    Kind(testDescription: "change set", folder: "SyncChanges"),
    Kind(testDescription: "marker", folder: "RecentSyncs"),
    Kind(testDescription: "command", folder: "SyncCommands") { fleet in
      try await fleet[0].sendCommand(name: "c", payload: [1])
    },
    Kind(testDescription: "segment", folder: "SyncChanges", ending: ".segment") { fleet in
      for number in 0..<8 {
        try fleet[0].put("x", "\(number)")
        try await fleet[0].synchronize()
      }
    } publish: {
      _ = try await $0.vacuum()
    },
    Kind(testDescription: "whole store", folder: "WholeStore", operation: .upload) {
      _ = $0
    } publish: {
      _ = try await $0.uploadWholeStore()
    },
    Kind(testDescription: "description", folder: "ClientDevices") {
      _ = $0
    } publish: {
      try await $0.describeClient("another name")
    },
  ]

  private static func unfinished(_ memory: MemoryDirectory) -> [RelativePath] {
    memory.items.compactMap { path, item in
      if case .file = item, path.components.first == "Temporary" { path } else { nil }
    }
  }

  @Test(arguments: kinds)
  func theNextSynchronizationRemovesWhatAKilledPublicationLeft(_ kind: Kind) async throws {
    var fleet = try await TestFleet(2) { environment in
      environment.thresholds.looseCount = 4
      environment.thresholds.tailCount = 1
      environment.thresholds.ownInterval = 100
    }
    try await fleet.settle()
    try await kind.prepare(fleet)
    fleet.directories[0].script(
      FaultyDirectory.Fault(
        .stopBeforeRename, on: kind.operation,
        pathPart: kind.ending.isEmpty ? kind.folder : kind.ending))
    await #expect(throws: (any Error).self) { try await kind.publish(fleet[0]) }
    #expect(fleet.directories[0].firedFaults.count == 1)
    #expect(Self.unfinished(fleet.memory).count == 1)
    // Others do not touch it.
    try await fleet[1].synchronize()
    #expect(Self.unfinished(fleet.memory).count == 1)
    try await fleet.reopen(0)
    try await fleet[0].synchronize()
    #expect(Self.unfinished(fleet.memory) == [])
    try await fleet.settle()
    fleet.counters[0].reset()
    #expect(try await fleet[0].synchronize().listings == 3)
    #expect(fleet.counters[0].counts.writes == 0)
    try await fleet.reopen(0)
    fleet.counters[0].reset()
    #expect(try await fleet[0].synchronize().listings == 3)
    #expect(fleet.counters[0].counts.removals == 0)
  }

  /// Other operations publish before a synchronization has removed the file of the killed process.
  @Test func theNoteOfAKilledPublicationStaysUntilItsFileIsRemoved() async throws {
    var fleet = try await TestFleet(2)
    try await fleet.settle()
    try fleet[0].put("x", "1")
    // Then the next synchronization has no change set to publish.
    fleet.directories[0].script(
      FaultyDirectory.Fault(.stopBeforeRename, on: .publish, pathPart: "RecentSyncs"))
    await #expect(throws: (any Error).self) { try await fleet[0].synchronize() }
    for name in ["first name", "second name"] {
      try await fleet.reopen(0)
      try await fleet[0].describeClient(name)
      #expect(Self.unfinished(fleet.memory).count == 1)
    }
    try await fleet[0].synchronize()
    #expect(Self.unfinished(fleet.memory) == [])
    // Now the note is gone.
    try await fleet.settle()
    try await fleet.reopen(0)
    fleet.counters[0].reset()
    #expect(try await fleet[0].synchronize().listings == 3)
    #expect(fleet.counters[0].counts.removals == 0)
  }

  /// The process goes on after a publication that failed.
  @Test func aFileOfAFailedPublicationGoesInTheSameProcess() async throws {
    let fleet = try await TestFleet(2)
    try await fleet.settle()
    fleet.directories[0].script(FaultyDirectory.Fault(.stopBeforeRename, on: .upload))
    await #expect(throws: (any Error).self) { _ = try await fleet[0].uploadWholeStore() }
    fleet.directories[0].restart()
    #expect(Self.unfinished(fleet.memory).count == 1)
    try await fleet[0].synchronize()
    #expect(Self.unfinished(fleet.memory) == [])
  }
}
