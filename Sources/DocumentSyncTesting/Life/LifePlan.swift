/// A history: the devices that are there from the beginning, and what happens.
struct LifePlan: Hashable, Sendable {
  var seed: UInt64
  /// Devices 0, 1 … are there at the beginning.
  var devices: Int
  var steps: [LifeStep]

  /// The greatest number of stores in one history.
  static let maximum = 8

  /// Draws a history.
  static func random(seed: UInt64, features: LifeFeatures, steps: Int) -> LifePlan {
    var dice = SeededRandom(seed: seed)
    let devices = 1 + Int(dice.next() % 3)
    var known = devices
    var plan = LifePlan(seed: seed, devices: devices, steps: [])
    // Something that happens seldom is not drawn in every history, so that
    // its own histories have little else.
    let enabled = LifeFeatures.names.map(\.feature).reduce(into: LifeFeatures()) {
      if features.contains($1), dice.next() % 3 > 0 { $0.insert($1) }
    }
    let count = 5 + Int(dice.next() % UInt64(max(1, steps)))
    while plan.steps.count < count {
      let device = Int(dice.next() % UInt64(known))
      let salt = dice.next() >> 16
      switch dice.next() % 100 {
      case 0..<38:
        let edits = LifeStep.Edit.allCases
        plan.steps.append(
          .edit(device: device, edits[Int(dice.next() % UInt64(edits.count))], salt: salt))
      case 38..<62: plan.steps.append(.sync(device: device))
      case 62..<72: plan.steps.append(.arrive(device: device, salt: salt))
      case 72..<75: plan.steps.append(.reopen(device: device))
      case 75..<79 where enabled.contains(.joins):
        if dice.next() % 4 == 0 {
          plan.steps.append(.leave(device: device))
        } else if known < maximum {
          plan.steps.append(.join(device: known))
          known += 1
        }
      case 79..<81 where enabled.contains(.merges) && known < maximum:
        plan.steps.append(.joinMerging(device: known, salt: salt))
        known += 1
      case 81..<84 where enabled.contains(.copies):
        if dice.next() % 3 == 0 {
          plan.steps.append(.move(device: device))
        } else if known < maximum {
          plan.steps.append(.copy(device: device, to: known, isElsewhere: salt % 2 == 0))
          known += 1
        }
      case 84..<90 where enabled.contains(.restores):
        switch dice.next() % 5 {
        case 0, 1: plan.steps.append(.backUp(device: device))
        case 2, 3: plan.steps.append(.restore(device: device))
        default: plan.steps.append(.rollBack(device: device))
        }
      case 90..<95 where enabled.contains(.housekeeping):
        plan.steps.append(salt % 3 == 0 ? .upload(device: device) : .vacuum(device: device))
      case 95..<97 where enabled.contains(.retirement):
        plan.steps.append(.retire(device: device, other: Int(dice.next() % UInt64(known))))
      case 97 where enabled.contains(.resets):
        plan.steps.append(.reset(device: device))
      case 98..<100 where enabled.contains(.clocks):
        let years = Int64(dice.next() % 9) - 4
        plan.steps.append(
          .clock(device: device, milliseconds: years * 31_536_000_000 + Int64(salt % 100_000)))
      default: break
      }
    }
    return plan
  }
}
