import DocumentSync

/// Draws synchronizations of which a device makes one half, and programs that hear of changed rows. It
/// has dice of its own, so that it does not change the rest of a history.
struct RandomHalves {
  private var dice: Dice
  private let features: FleetFeatures

  init(seed: UInt64, features: FleetFeatures) {
    dice = Dice(seed: seed &* 0x9e37_79b9_7f4a_7c15 ^ 0x6861_6c76)
    self.features = features
  }

  /// Whether the programs of a history hear of changed rows.
  mutating func hearsOfRows() -> Bool { dice.chance(33) && features.contains(.halves) }

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
