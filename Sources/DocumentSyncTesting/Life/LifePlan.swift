import SyncModel
import SyncStore

/// A history: the devices at the beginning, and the steps.
struct LifePlan: Sendable {
  var seed: UInt64
  /// The number of devices at the beginning. They are numbered 0, 1 ….
  var devices: Int
  /// The random tables, in addition to the tables that every history has.
  var schema = FleetSchema(tables: [])
  /// The statements that fill the random tables before syncing begins.
  var start: [String] = []
  /// The policies of devices that do not decide conflicts by stamps.
  var policies: [Int: SyncPolicies] = [:]
  /// Whether some of the rows that stay on their device are rows with NULL in their key.
  var losesKeys = false
  /// Whether some of the rows that stay on their device are in a table without a primary key, which
  /// a program creates when it inserts the first of them.
  var hasLooseTables = false
  /// Whether a program has a database open while the database joins with its rows.
  var hasOpenPrograms = false
  /// Whether managers are asked while they synchronize.
  var asksQuestions = false
  /// Whether change sets carry so little that programs write what does not fit into one.
  var hasLargeEdits = false
  /// The deletions that a synchronization makes without being told to; `nil` for any number.
  var deletionLimit: DeletionLimit?
  /// The number of migrations that the newest version of the application has.
  var migrations = 0
  var steps: [LifeStep]

  /// The greatest number of stores in one history.
  static let maximum = 8

  static func random(seed: UInt64, features: LifeFeatures, steps: Int) -> LifePlan {
    var dice = SeededRandom(seed: seed)
    let devices = 1 + Int(dice.next() % 3)
    var known = devices
    var plan = LifePlan(seed: seed, devices: devices, steps: [])
    // Not every history draws every rare kind of step, so that a history with such steps has few
    // other kinds.
    let kinds = LifeFeatures.names.map(\.feature).filter {
      LifeFeatures.former.contains($0)
    }
    let enabled = kinds.reduce(into: LifeFeatures()) {
      if features.contains($1), dice.next() % 3 > 0 { $0.insert($1) }
    }
    let count = 5 + Int(dice.next() % UInt64(max(1, steps)))
    while plan.steps.count < count {
      let device = Int(dice.next() % UInt64(known))
      let salt = dice.next() >> 16
      switch dice.next() % 100 {
      case 0..<38:
        let edits = LifeStep.Edit.usual
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
        let other = Int(dice.next() % UInt64(known))
        let reasons = LifeStep.Retirement.allCases
        plan.steps.append(
          salt % 5 > 2
            ? .absence(device: device, days: 3 + Int(salt / 5 % 4), retires: salt / 20 % 4 > 0)
            : .retire(device: device, other: other, reasons[Int(salt % 5)]))
      case 97 where enabled.contains(.resets):
        plan.steps.append(.reset(device: device))
      case 98..<100 where enabled.contains(.clocks):
        let years = Int64(dice.next() % 9) - 4
        plan.steps.append(
          .clock(device: device, milliseconds: years * 31_536_000_000 + Int64(salt % 100_000)))
      default: break
      }
    }
    if features.contains(.schemas) {
      plan.addSchema(
        features.contains(.functions) ? .all : .all.subtracting(.functions),
        hasHostileNames: features.contains(.hostileNames))
    }
    // With dice of its own, so that the rest of the history stays the same.
    var ownDice = Dice(seed: seed &* 0x9e37_79b9_7f4a_7c15 ^ 0x6e75_6c6c)
    plan.losesKeys = ownDice.chance(40) && features.contains(.missingKeys)
    if features.contains(.updates) { plan.addUpdates() }
    var looseDice = Dice(seed: seed &* 0x9e37_79b9_7f4a_7c15 ^ 0x6c6f_6f73)
    plan.hasLooseTables = looseDice.chance(40) && features.contains(.looseTables)
    var openDice = Dice(seed: seed &* 0x9e37_79b9_7f4a_7c15 ^ 0x6f70_656e)
    plan.hasOpenPrograms = openDice.chance(50) && features.contains(.openPrograms)
    var askingDice = Dice(seed: seed &* 0x9e37_79b9_7f4a_7c15 ^ 0x6173_6b73)
    plan.asksQuestions = askingDice.chance(40) && features.contains(.questions)
    if features.contains(.halves) { plan.drawHalves() }
    if features.contains(.heldEdits) { plan.addLargeEdits() }
    if features.contains(.deletionLimits) { plan.drawDeletionLimit() }
    return plan
  }

  /// Draws edits that no change set can carry between the other steps, and edits that make them
  /// small, with dice of its own.
  private mutating func addLargeEdits() {
    var dice = Dice(seed: seed &* 0x9e37_79b9_7f4a_7c15 ^ 0x6865_6c64)
    guard dice.chance(30) else { return }
    hasLargeEdits = true
    for _ in 0..<(2 + dice.below(8)) {
      let edit = dice.pick([LifeStep.Edit.large, .large, .shorten])
      steps.insert(
        .edit(device: dice.below(devices + 2), edit, salt: dice.word() >> 16),
        at: dice.below(steps.count + 1))
    }
  }

  /// Draws a limit of deletions, and more deletions, with dice of its own.
  private mutating func drawDeletionLimit() {
    var dice = Dice(seed: seed &* 0x9e37_79b9_7f4a_7c15 ^ 0x6272_616b)
    guard dice.chance(30) else { return }
    var limit = DeletionLimit(share: dice.pick([0, 0.2, 0.5]))
    limit.leastRows = dice.pick([1, 3, 6])
    deletionLimit = limit
    for _ in 0..<dice.below(10) {
      let edit = dice.pick([LifeStep.Edit.insert, .delete])
      steps.insert(
        .edit(device: dice.below(devices + 2), edit, salt: dice.word() >> 16),
        at: dice.below(steps.count + 1))
    }
  }

  /// Replaces synchronizations with one of their halves, with dice of its own.
  private mutating func drawHalves() {
    var dice = Dice(seed: seed &* 0x9e37_79b9_7f4a_7c15 ^ 0x6861_6c76)
    guard dice.chance(33) else { return }
    let share = dice.pick([30, 60, 90])
    steps = steps.map { step in
      guard case .sync(let device) = step, dice.chance(share) else { return step }
      return .half(device: device, dice.chance(50) ? .fetching : .sending)
    }
  }

  /// Draws updates of the application between the other steps, with dice of its own.
  private mutating func addUpdates() {
    var dice = Dice(seed: seed &* 0x9e37_79b9_7f4a_7c15 ^ 0x7570_6474)
    guard dice.chance(30) else { return }
    migrations = 1 + dice.below(3)
    for _ in 0..<(1 + dice.below(3 * migrations)) {
      steps.insert(.update(device: dice.below(devices + 2)), at: dice.below(steps.count + 1))
    }
  }

  /// Returns the statements that fill the random tables of a store that joins with rows.
  func rows(salt: UInt64) -> [String] {
    guard !schema.tables.isEmpty else { return [] }
    var dice = Dice(seed: salt)
    let edits = RandomEdit(schema: schema, features: .all)
    return (0..<dice.below(10)).map { _ in edits.insertion(&dice) }
  }

  /// Draws random tables, and edits of them between the other steps. Uses its own dice, so that the
  /// rest of the history stays the same.
  private mutating func addSchema(_ features: FleetFeatures, hasHostileNames: Bool) {
    var dice = Dice(seed: seed &* 0x9e37_79b9_7f4a_7c15 ^ 0x6c69_6665)
    guard dice.chance(60) else { return }
    var schemas = RandomSchema(seed: dice.word(), features: .all)
    schema = schemas.draw()
    var merging = RandomMerging(seed: dice.word(), features: features)
    merging.drawTypes(&schema)
    var names = RandomNames(seed: seed, percentage: hasHostileNames ? 25 : 0)
    names.draw(&schema)
    // The simulation knows the expected values of the other tables only if stamps decide.
    policies = merging.policies(of: Array(0..<Self.maximum), schema).mapValues { drawn in
      var policies = SyncPolicies()
      for table in schema.synchronized {
        policies.set(drawn.tables[table.name] ?? drawn.document, table: table.name)
      }
      return policies
    }
    start = rows(salt: dice.word())
    let edits = RandomEdit(schema: schema, features: .all)
    var known = devices
    var all: [LifeStep] = []
    for step in steps {
      all.append(step)
      switch step {
      case .join(let device), .joinMerging(let device, _), .copy(_, let device, _):
        known = max(known, device + 1)
      default: break
      }
      guard dice.chance(50) else { continue }
      all.append(
        .work(device: dice.below(known), edits.draw(&dice), hasForeignKeys: dice.chance(88)))
    }
    steps = all
  }
}
