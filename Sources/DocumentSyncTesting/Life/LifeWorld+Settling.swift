import Foundation
import DocumentSync
import SyncDirectory
import SyncModel
import SyncStore

/// The end of a life.
extension LifeWorld {
  /// Updates the applications and settles, until no database is older: a device that takes over a
  /// whole store has the schema of this. Returns the number of rounds.
  func settleWithNewestVersion() async throws -> Int {
    var rounds = 0
    for _ in 0..<10 {
      let all = devices.values.sorted { $0.number < $1.number }
      let isUpdated = try all.map { try update($0, inOneStep: true) }
      if rounds > 0, !isUpdated.contains(true) { return rounds }
      rounds += try await settle()
    }
    throw FleetFailure(.restless, "the schema is old again after each synchronization")
  }

  /// Makes all files arrive, then synchronizes all devices until nothing changes. Returns the
  /// number of rounds.
  func settle() async throws -> Int {
    isSettling = true
    for device in devices.values { device.directory.isOpen = true }
    try await retireWhoIsNoMore()
    let patience = try roundsUntilEverythingWasLookedAt()
    let limit = 10 + 4 * devices.count + patience
    var quiet = 0
    for round in 1...limit {
      var isIdle = true
      var waiting: [String] = []
      for device in devices.values.sorted(by: { $0.number < $1.number }) {
        let report = try await synchronize(device)
        waiting += report.waiting.map { "device \(device.number): \($0)" }
        if !report.isIdle || report.publishedMarker { isIdle = false }
      }
      // A device lists one client's folder at each synchronization, in turn.
      quiet = isIdle ? quiet + 1 : 0
      guard quiet > max(patience, devices.count + 2) || (quiet > patience && waiting.isEmpty)
      else { continue }
      if let first = waiting.first {
        throw FleetFailure(.unexplained, "waits in the end: \(first)")
      }
      return round
    }
    throw FleetFailure(.restless, "not at rest after \(limit) rounds")
  }

  /// Returns the number of rounds until the devices have listed all folders that no marker names:
  /// folders of former generations, folders of former clients that a device does not know, and, for
  /// a device that others treated as absent, its own folders, from which they have removed files.
  private func roundsUntilEverythingWasLookedAt() throws -> Int {
    let generations = memory.items.keys.filter { $0.name.hasPrefix("generation.") }
    let authors = Set(
      memory.items.keys.compactMap { path in
        let parts = path.components
        return parts.count == 6 && parts[3] == "SyncChanges" ? parts[4] : nil
      })
    let isUnknown = try devices.values.contains { device in
      let known = try device.manager.store.vector().entries.keys.map(\.description)
      return !authors.subtracting(known).isEmpty
    }
    let hasReturned = devices.values.contains {
      takenForAbsent.contains($0.manager.binding.client)
    }
    guard generations.count > 1 || isUnknown || hasReturned else { return 1 }
    // One folder in each round: the clients' folders, the device's own two folders, and two others.
    return try devices.values.map { try $0.manager.store.vector().entries.count + 5 }.max() ?? 1
  }

  /// Retires the members that have no store any more, because a restored backup has replaced it. A
  /// user would do the same at some time.
  private func retireWhoIsNoMore() async throws {
    let all = devices.values.sorted { $0.number < $1.number }
    for _ in 0..<2 { for device in all { _ = try await synchronize(device) } }
    guard let first = all.first else { return }
    let alive = Set(all.map(\.manager.binding.client))
    for client in try await first.manager.listClients()
    where client.status == .member && !alive.contains(client.client) {
      do {
        try await first.manager.retire(.client(client.client, .absent))
      } catch let error as SyncError where error.code == .clientUnknown {
        // The client is already being retired.
        continue
      }
    }
  }

  /// Lets programs make everything small that no change set could carry. Returns the number of rounds
  /// until all devices have it.
  func settleLargeEdits() async throws -> Int {
    var rounds = 0
    for device in devices.values { try device.checkHeld(ledger) }
    for _ in 0..<3 {
      let all = devices.values.sorted { $0.number < $1.number }
      let areShort = try all.map { try $0.shortenAll(ledger, clock: clock($0.number)) }
      guard areShort.contains(true) else { return rounds }
      rounds += try await settleWithNewestVersion()
    }
    throw FleetFailure(.restless, "values are large again after each synchronization")
  }

  func joinAtTheEnd() async throws -> LifeDevice {
    let device = try await join(LifePlan.maximum + 1)
    device.directory.isOpen = true
    if plan.deletionLimit != nil { try await synchronize(device) }
    return device
  }
}
