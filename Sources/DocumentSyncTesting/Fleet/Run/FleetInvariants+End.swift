import SyncModel
import SyncStore

/// The invariants that hold when all files have arrived.
extension FleetInvariants {
  /// Checks I1: every value that lost against a concurrent change is in the journal of every
  /// device.
  private func checkJournals(_ devices: [FleetDevice]) throws {
    guard let first = devices.first else { return }
    if let bound = plan.circumstances.conflictEntries { try checkBounds(of: devices, bound) }
    let lost = LostValues(world.ledger.changeSets, schema: plan.schema).lost(
      in: first.state, shown: Set(first.shown.keys)
    ).filter { loss in
      // A store stores the values of columns that it does not have, but does not compare them.
      !plan.migrations.contains {
        $0.table == loss.row.table && ($0.column == loss.column || $0.isNewTable)
      }
    }
    guard !lost.isEmpty else { return }
    for device in devices {
      let journaled = try device.journaled()
      // The device may have replaced them by edits that no change set can carry, and that no other
      // device knows. These may have lost at once.
      let large = journaled.filter { $0.isLarge(device.limit ?? .max) }
      let heldBack = device.everHeld.union(large.map(\.row))
      let missing = lost.filter {
        !journaled.contains($0) && !device.overwritten.contains($0.row.table)
          && !heldBack.contains($0.row)
      }
      guard missing.isEmpty else {
        throw FleetFailure(
          .lost,
          "the journal of device \(device.number) does not have:\n  "
            + missing.map(\.description).joined(separator: "\n  "))
      }
    }
  }

  /// Checks that no store has more entries than the bound of the journal, apart from open questions.
  /// Every store may have one. The older entries are in the files beside the stores.
  private func checkBounds(of devices: [FleetDevice], _ bound: Int) throws {
    for device in devices {
      let closed = try device.store.conflicts().filter { $0.status != .open }.count
      guard closed <= max(bound, 1) else {
        throw FleetFailure(
          .bookkeeping, "the journal of device \(device.number) has \(closed) closed entries")
      }
    }
  }

  /// Checks I1, I2 and I4: all devices have all change sets and show the same rows, no file has
  /// changed, and all values that lost are in the journals. Returns the number of rows that exist
  /// and are not shown.
  func checkEnd(_ devices: [FleetDevice]) throws -> Int {
    guard let first = devices.first else { return 0 }
    let digest = try first.store.digest()
    let holdsEdits = devices.contains { !$0.held.isEmpty }
    for device in devices {
      let waiting = try device.store.waiting()
      guard
        device.state.vector.filter({ $0.value > 0 })
          == first.state.vector.filter({ $0.value > 0 }), waiting.isEmpty
      else {
        throw FleetFailure(.restless, "device \(device.number) does not have everything")
      }
      let other = try device.store.digest()
      try checkBookkeeping(device)
      // Each device has been compared with the oracle.
      if holdsEdits { continue }
      if other.visible != digest.visible {
        throw FleetFailure(.visible, "devices \(first.number) and \(device.number)")
      }
      if other.logical != digest.logical, !hasDeletionsOfEitherForm(first) {
        throw FleetFailure(.logical, "devices \(first.number) and \(device.number)")
      }
    }
    try checkJournals(devices)
    let violations = world.ledger.violations(in: world.memory)
    if !violations.isEmpty {
      throw FleetFailure(.changedFile, violations.joined(separator: "\n"))
    }
    return try Materialization(
      of: first.state, schema: first.version.shared, scratch: first.scratch
    ).hidden.count
  }

  /// Whether rows were deleted whose key has got another form: a device that deleted one before that
  /// has a tombstone of another form than a device that learnt of it later, which
  /// `Documentation/Reliability.md` names.
  private func hasDeletionsOfEitherForm(_ device: FleetDevice) -> Bool {
    device.state.rows.contains { key, row in
      row.existence == .deleted && device.version.shared.table(key.table)?.changesForm == true
    }
  }

  /// Checks I5: a synchronization with nothing to do writes nothing to the directory or the store.
  func checkIdleSyncs(_ devices: [FleetDevice]) async throws {
    for device in devices {
      let before = try written(by: [device])
      _ = try await device.synchronize(salt: plan.seed)
      if plan.hasHalves {
        _ = try await device.synchronize(salt: plan.seed, .fetching)
        _ = try await device.synchronize(salt: plan.seed, .sending)
      }
      guard try written(by: [device]) == before else {
        throw FleetFailure(.wroteWhenIdle, "device \(device.number)")
      }
    }
  }

  /// Returns the number of publications and the versions of the devices' stores. Writing a store
  /// changes its version.
  func written(by devices: [FleetDevice]) throws -> [Value] {
    try [.integer(Int64(world.ledger.publications))]
      + devices.flatMap { try $0.program.rows("PRAGMA data_version").flatMap { $0 } }
  }
}
