import DocumentSync

/// Draws synchronizations of which a device makes one half, and programs that hear of changed rows. It
/// has dice of its own, so that it does not change the rest of a history.
struct RandomHalves {
  private var dice: Dice
  /// Draws the processes that end, so that it does not change the other halves of a history.
  private var killDice: Dice
  private let features: FleetFeatures
  private let hasAlwaysKills: Bool

  init(seed: UInt64, options: Fleet.Options) {
    dice = Dice(seed: seed &* 0x9e37_79b9_7f4a_7c15 ^ 0x6861_6c76)
    killDice = Dice(seed: seed &* 0x9e37_79b9_7f4a_7c15 ^ 0x6b69_6c6c)
    features = options.features
    hasAlwaysKills = options.always.contains(.killedHalves)
  }

  /// Whether the programs of a history hear of changed rows.
  mutating func hearsOfRows() -> Bool { dice.chance(33) && features.contains(.halves) }

  /// Lets processes end in halves of a synchronization: in some of those that end in a whole one, and
  /// in some that did not end.
  mutating func kill(_ steps: [FleetStep]) -> [FleetStep] {
    guard killDice.chance(25) || hasAlwaysKills, features.contains(.killedHalves) else {
      return steps
    }
    return steps.map { step in
      let extent: SynchronizeOperation.Extent = killDice.chance(50) ? .fetching : .sending
      let point = killDice.chance(60) ? killDice.below(15) : killDice.below(120)
      switch step {
      case .kill(let device, let time, let salt, let point, .all) where killDice.chance(60):
        return .kill(device: device, time: time, salt: salt, point: point, extent)
      case .half(let device, let time, let salt, let extent) where killDice.chance(40):
        return .kill(device: device, time: time, salt: salt, point: point, extent)
      case .sync(let device, let time, let salt) where killDice.chance(20):
        return .kill(device: device, time: time, salt: salt, point: point, extent)
      default: return step
      }
    }
  }

  /// Replaces synchronizations of some devices with one of their halves.
  mutating func halve(_ steps: [FleetStep], _ devices: [Int]) -> [FleetStep] {
    guard dice.chance(33), features.contains(.halves) else { return steps }
    let chances = Dictionary(
      uniqueKeysWithValues: devices.map { ($0, dice.pick([0, 30, 60, 90])) })
    return steps.map { step in
      guard case .sync(let device, let time, let salt) = step,
        dice.chance(chances[device] ?? 0)
      else { return step }
      return .half(
        device: device, time: time, salt: salt, dice.chance(50) ? .fetching : .sending)
    }
  }
}
