import DocumentSync
import Foundation
import SyncModel
import SyncStore

/// One history of a document's life, from its beginning to its checks.
struct LifeRun {
  struct Outcome {
    var failure: FleetFailure?
    var syncs = 0
    var rounds = 0
    var edits = 0
    /// The number of steps that failed because files had not arrived.
    var passedOver = 0
    var result = ""
  }

  static func carryOut(_ plan: LifePlan) async throws -> Outcome {
    var outcome = Outcome()
    let world: LifeWorld
    do {
      world = try await LifeWorld(plan)
    } catch {
      outcome.failure = FleetFailure(throwing: error, "at the beginning: ")
      return outcome
    }
    do {
      try await LifeRun(world: world).run(plan, &outcome)
    } catch let failure as FleetFailure {
      outcome.failure = failure
    } catch {
      outcome.failure = FleetFailure(throwing: error)
    }
    outcome.syncs = world.syncs
    outcome.edits = world.ledger.edits.count + world.statements
    try await world.close()
    return outcome
  }

  let world: LifeWorld

  private func run(_ plan: LifePlan, _ outcome: inout Outcome) async throws {
    for (index, step) in plan.steps.enumerated() {
      do {
        try await world.carryOut(step)
      } catch let error as SyncError
        where Self.passes(error.code) || isOfAnotherVersion(error, step)
        || holdsEdits(error, step)
      {
        // Files that the step needs have not arrived. A later step tries again.
        outcome.passedOver += 1
        continue
      } catch {
        var failure =
          error as? FleetFailure ?? FleetFailure(throwing: error, "step \(index + 1), \(step): ")
        failure.step = index
        throw failure
      }
    }
    outcome.rounds = try await world.settleWithNewestVersion()
    if plan.hasLargeEdits { outcome.rounds += try await world.settleLargeEdits() }
    let hasBadClocks = plan.steps.contains { if case .clock = $0 { true } else { false } }
    for device in world.devices.values.sorted(by: { $0.number < $1.number }) {
      try LifeChecks(world: world, device: device, hasBadClocks: hasBadClocks).run()
    }
    try checkDigests()
    try world.oracle?.check(world.devices.values.sorted { $0.number < $1.number }, world.ledger)
    if let violation = world.ledger.violations(in: world.memory).first {
      throw FleetFailure(.changedFile, violation)
    }
    try await verify(world.devices.values.sorted { $0.number < $1.number })
    // The stores of the other devices do not change.
    let late = try await world.joinAtTheEnd()
    // On this device a version may become a row whose row the others refused, because another row
    // held a unique value then. That is an edit, which the others must receive.
    let isUpdated = try world.update(late, inOneStep: true)
    if try isUpdated || late.manager.store.status().head > 0 {
      _ = try await world.settleWithNewestVersion()
    }
    try checkDigests()
    try await verify([late])
    outcome.result = try world.devices.values.first.map { "\(try $0.manager.store.digest())" } ?? ""
  }

  /// Throws if verifying finds a fault in a store or in the directory. Ignores notes, such as those
  /// about files that are not removed yet.
  private func verify(_ devices: [LifeDevice]) async throws {
    for device in devices {
      let found = try await device.manager.verify().findings.filter { $0.severity != .note }
      guard found.isEmpty else {
        throw FleetFailure(
          .bookkeeping,
          "device \(device.number):\n  " + found.map(\.description).joined(separator: "\n  "))
      }
    }
  }

  /// Returns whether a device with rows cannot join, since the document has been migrated.
  private func isOfAnotherVersion(_ error: SyncError, _ step: LifeStep) -> Bool {
    guard case .joinMerging = step else { return false }
    return world.plan.migrations > 0 && error.code == .storeUnsuitable
  }

  /// Returns whether a device uploads no whole store, since other devices would not have what it keeps
  /// back.
  private func holdsEdits(_ error: SyncError, _ step: LifeStep) -> Bool {
    guard case .upload = step else { return false }
    return world.plan.hasLargeEdits && error.code == .unpublishedEdits
  }

  /// Returns whether a device may get this error while files are late.
  private static func passes(_ code: SyncError.Code) -> Bool {
    [.wholeStoreMissing, .generationMissing, .clientRemoved].contains(code)
  }

  private func checkDigests() throws {
    var first: (device: LifeDevice, digest: StoreDigest)?
    for device in world.devices.values.sorted(by: { $0.number < $1.number }) {
      let digest = try device.manager.store.digest()
      guard let known = first else {
        first = (device, digest)
        continue
      }
      let differing = "devices \(known.device.number) and \(device.number)"
      if known.digest.visible != digest.visible {
        let difference = try difference(known.device, device)
        throw FleetFailure(.visible, "\(differing)\n  \(difference)")
      }
      if known.digest != digest { throw FleetFailure(.logical, differing) }
    }
  }

  /// Returns a text with a few of the rows that only one of two devices shows.
  private func difference(_ left: LifeDevice, _ right: LifeDevice) throws -> String {
    let made = world.plan.schema.synchronized.map { table in
      let columns = table.shared.map { "coalesce(quote(\(table.columns[$0].name)), '?')" }
      return " UNION SELECT '\(table.name) ' || \(columns.joined(separator: " || ' ' || ")) "
        + "FROM \(table.name)"
    }.joined()
    func rows(_ device: LifeDevice) throws -> Set<String> {
      let program = try FleetSQLite(device.path)
      let rows = try program.rows(
        "SELECT 'note ' || quote(id) || quote(body) || quote(shared) FROM note UNION "
          + "SELECT 'item ' || quote(note) || quote(token) FROM item UNION "
          + "SELECT 'tally ' || quote(name) || quote(n) FROM tally" + made)
      return Set(
        rows.compactMap { row in
          if case .text(let text) = row[0] { String(decoding: text, as: UTF8.self) } else { nil }
        })
    }
    let (here, there) = (try rows(left), try rows(right))
    return
      (here.subtracting(there).sorted().prefix(3).map { "device \(left.number): \($0)" }
      + there.subtracting(here).sorted().prefix(3).map { "device \(right.number): \($0)" })
      .joined(separator: "\n  ")
  }
}
