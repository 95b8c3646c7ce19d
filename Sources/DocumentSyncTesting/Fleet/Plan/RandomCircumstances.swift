import DocumentSync
import SyncStore

/// Random settings of devices, and random ends of their processes. They have their own dice, so
/// that the rest of a history does not depend on them.
struct RandomCircumstances {
  private var dice: Dice
  private var managerDice: Dice
  private var limitDice: Dice
  private let features: FleetFeatures

  init(seed: UInt64, features: FleetFeatures) {
    dice = Dice(seed: seed &* 0x9e37_79b9_7f4a_7c15 ^ 0x6369_7263)
    managerDice = Dice(seed: seed &* 0x9e37_79b9_7f4a_7c15 ^ 0x6d61_6e61)
    limitDice = Dice(seed: seed &* 0x9e37_79b9_7f4a_7c15 ^ 0x6c69_6d69)
    self.features = features
  }

  mutating func draw(_ devices: [Int]) -> FleetCircumstances {
    var drawn = FleetCircumstances()
    for device in devices {
      let mode = dice.pick(weighted: [(50, "delete"), (35, "wal"), (8, "truncate"), (7, "persist")])
      if features.contains(.journalModes), mode != "delete" { drawn.journalModes[device] = mode }
    }
    if dice.chance(30), features.contains(.parallelReads) { drawn.parallelReads = 4 }
    if dice.chance(20), features.contains(.borders) { drawn.borders = borders() }
    let entries = dice.pick([0, 1, 3, 10])
    if dice.chance(8), features.contains(.fullJournal) { drawn.conflictEntries = entries }
    if limitDice.chance(30), features.contains(.deletionLimits) {
      var limit = DeletionLimit(share: limitDice.pick([0, 0.2, 0.5]))
      limit.leastRows = limitDice.pick([1, 3, 10])
      drawn.deletionLimit = limit
    }
    return drawn
  }

  /// Whether devices have managers for the sake of these settings: without managers no files are
  /// joined to segments or removed, however small the thresholds.
  mutating func wantsManagers(_ drawn: FleetCircumstances) -> Bool {
    drawn.borders != nil && features.contains(.managedBorders) && managerDice.chance(60)
  }

  private mutating func borders() -> FleetCircumstances.Borders {
    var thresholds = SyncThresholds()
    thresholds.windowCount = dice.pick([1, 2, 5])
    thresholds.ownInterval = dice.pick([1, 2, 4])
    thresholds.appliedInterval = dice.pick([1, 4, 10])
    thresholds.looseCount = dice.pick([2, 3, 5])
    thresholds.tailCount = dice.pick([0, 1, 2])
    thresholds.mergeCount = dice.pick([2, 3])
    thresholds.wholeStoreCount = dice.pick([1, 5, 20])
    thresholds.wholeStoreBytes = dice.pick([1, 1 << 20])
    return FleetCircumstances.Borders(
      rowsPerChangeSet: dice.pick([1, 2, 5, 20_000]),
      bytesPerChangeSet: dice.pick([1, 50, 6 << 20]),
      rowsPerTransaction: dice.pick([1, 3, 100_000]),
      stampBlockBytes: dice.pick([20, 60, 200]),
      fetchWindowBytes: dice.pick([1, 500, 4 << 20]),
      keptChangeSetBytes: dice.pick([0, 500, 1 << 20]), thresholds: thresholds)
  }

  /// Adds ends of processes between the steps, and during some synchronizations.
  mutating func interrupt(_ steps: [FleetStep]) -> [FleetStep] {
    let restarts = dice.chance(40) && features.contains(.restarts)
    let kills = dice.chance(35) && features.contains(.kills)
    var result: [FleetStep] = []
    for step in steps {
      if restarts, dice.chance(6) { result.append(.restart(device: step.device)) }
      let point = dice.chance(50) ? dice.below(12) : dice.below(150)
      if kills, dice.chance(25), case .sync(let device, let time, let salt) = step {
        result.append(.kill(device: device, time: time, salt: salt, point: point))
      } else {
        result.append(step)
      }
    }
    return result
  }
}
