import DocumentSync
import SyncModel
import SyncStore

/// The execution of one plan, with checks of the invariants after each step.
final class FleetRun {
  struct Outcome: Sendable {
    var failure: FleetFailure?
    /// The steps of the run, with a step for each file that became visible.
    var steps: [FleetStep] = []
    var acceptedStatements = 0
    var refusedStatements = 0
    var syncs = 0
    var rounds = 0
    /// The number of rows that existed and were not shown at the end.
    var hiddenRows = 0
    var size = Fleet.Size()
    /// The rows that were shown in the end, as text.
    var result = ""
  }

  let plan: FleetPlan
  var outcome = Outcome()

  init(_ plan: FleetPlan) { self.plan = plan }

  /// Runs a plan. Reports an error of the product as a failure.
  static func carryOut(_ plan: FleetPlan) async throws -> Outcome {
    try await FleetRun(plan).run()
  }

  private func run() async throws -> Outcome {
    do {
      let world = try await FleetWorld(plan)
      do {
        for device in world.devices.values { noteRows(of: device) }
        try await play(world)
        try await settle(world)
      } catch let failure {
        note(failure)
      }
      world.ledger.count(into: &outcome.size)
      try await world.close()
    } catch let error {
      note(error)
    }
    return outcome
  }

  private func note(_ error: any Error) {
    guard outcome.failure == nil else { return }
    outcome.failure =
      error as? FleetFailure ?? FleetFailure(throwing: error)
  }

  /// Records the rows that a device shows.
  private func noteRows(of device: FleetDevice) {
    let tables = Dictionary(grouping: device.shown.keys, by: \.table)
    outcome.size.rows = max(outcome.size.rows, device.shown.count)
    outcome.size.heldEdits = max(outcome.size.heldEdits, device.held.count)
    outcome.size.rowsInOneTable = max(
      outcome.size.rowsInOneTable, tables.values.map(\.count).max() ?? 0)
  }

  // MARK: - Steps

  private func play(_ world: FleetWorld) async throws {
    for (index, step) in plan.steps.enumerated() {
      guard let device = world.devices[step.device] else { continue }
      do {
        try await play(step, on: device, in: world)
      } catch var failure as FleetFailure {
        failure.step = index
        throw failure
      }
    }
  }

  /// Records that a table is recreated. If devices remove whole stores, there may be no whole store
  /// left that precedes the changes of other devices and serves for comparison.
  private func noteRemake(of table: SQLName?, on device: FleetDevice) {
    guard let table else { return }
    device.leave.unseen.insert(table)
    guard plan.circumstances.borders != nil else { return }
    device.leave.remade.insert(table)
    device.overwritten.insert(table)
  }

  /// Makes the next migration of a device, if it can be made now.
  private func migrate(_ device: FleetDevice, at time: Int64) throws {
    let migrated = device.migrated
    try device.migrate(plan.migrations, at: time)
    if device.migrated > migrated { noteRemake(of: plan.migrations[migrated].remade, on: device) }
  }

  private func play(_ step: FleetStep, on device: FleetDevice, in world: FleetWorld) async throws {
    switch step {
    case .edit(_, let edit):
      noteRemake(of: edit.remade, on: device)
      let accepted: [String]
      do {
        accepted = try device.edit(edit)
      } catch {
        outcome.steps.append(step)
        throw error
      }
      outcome.acceptedStatements += accepted.count
      outcome.refusedStatements += edit.statements.count - accepted.count
      guard !accepted.isEmpty else { return }
      var kept = edit
      kept.statements = accepted
      outcome.steps.append(.edit(device: device.number, kept))
    case .sync(_, let time, let salt):
      device.clock.time = time
      outcome.steps.append(step)
      _ = try await FleetInvariants(world).synchronize(device, salt: salt)
      outcome.syncs += 1
      noteRows(of: device)
    case .half(_, let time, let salt, let extent):
      device.clock.time = time
      outcome.steps.append(step)
      _ = try await FleetInvariants(world).synchronize(device, salt: salt, extent)
      outcome.syncs += 1
      noteRows(of: device)
    case .kill(_, let time, let salt, let point, let extent):
      device.clock.time = time
      outcome.steps.append(step)
      _ = try await FleetInvariants(world).synchronize(
        device, salt: salt, extent, killedAfter: point)
      outcome.syncs += 1
      noteRows(of: device)
    case .restart:
      // Stored values of an added column arrive when the store is opened. The check could not tell
      // the edits of programs from them.
      guard device.arrived.isEmpty else { return }
      outcome.steps.append(step)
      try await device.restart()
    case .migrate(_, let time):
      outcome.steps.append(step)
      try migrate(device, at: time)
    case .remake(_, let remake):
      outcome.steps.append(step)
      noteRemake(of: remake.table, on: device)
      try device.remake(remake)
    case .arrivals(_, let percent, let salt):
      var dice = Dice(seed: salt)
      for file in world.ledger.files where dice.chance(percent) { show(file, on: device) }
    case .see(_, let file): show(file, on: device)
    case .hide(_, let salt):
      let seen = device.directory.seen.sorted()
      guard !seen.isEmpty else { return }
      var dice = Dice(seed: salt)
      device.directory.hide(dice.pick(seen))
      outcome.steps.append(step)
    }
  }

  private func show(_ file: FleetFile, on device: FleetDevice) {
    guard device.directory.show(file) else { return }
    outcome.steps.append(.see(device: device.number, file))
  }

  // MARK: - The end

  /// Makes all files visible, then synchronizes all devices until none has anything to do. Programs
  /// then make large values small.
  private func settle(_ world: FleetWorld) async throws {
    let devices = world.devices.values.sorted { $0.number < $1.number }
    for device in devices {
      device.directory.isOpen = true
    }
    let invariants = FleetInvariants(world)
    for device in devices {
      while device.migrated < plan.migrations.count {
        let migrated = device.migrated
        try migrate(device, at: device.clock.time)
        if device.migrated == migrated {
          _ = try await invariants.synchronize(device, salt: plan.seed)
        }
      }
    }
    try await rest(devices, invariants)
    for _ in 0..<3 where devices.contains(where: { !$0.held.isEmpty }) {
      for device in devices { try device.shrink() }
      try await rest(devices, invariants)
    }
    outcome.size.lastingHeldEdits = devices.reduce(0) { $0 + $1.held.count }
    outcome.hiddenRows = try invariants.checkEnd(devices)
    outcome.result = devices.first.map { FleetInvariants.text($0.shown) } ?? ""
    try await invariants.checkIdleSyncs(devices)
    if plan.undoes { try await undo(devices, invariants) }
  }

  /// Synchronizes all devices until none has anything to do.
  func rest(_ devices: [FleetDevice], _ invariants: FleetInvariants) async throws {
    // If devices compact and remove files, which no report counts as work, a device may wait for
    // its turn to do so.
    let turns = plan.circumstances.borders == nil ? 1 : devices.count + 3
    let bound = outcome.rounds + 4 + 2 * devices.count + 2 * (turns - 1)
    var idle = 0
    while idle < turns {
      guard outcome.rounds < bound else {
        throw FleetFailure(.restless, "not at rest after \(outcome.rounds) rounds")
      }
      let written = try invariants.written(by: devices)
      var isIdle = true
      for device in devices {
        let wasIdle = try await invariants.synchronize(device, salt: plan.seed)
        isIdle = isIdle && wasIdle
        noteRows(of: device)
      }
      if turns > 1, try invariants.written(by: devices) != written { isIdle = false }
      idle = isIdle ? idle + 1 : 0
      outcome.rounds += 1
    }
  }
}
