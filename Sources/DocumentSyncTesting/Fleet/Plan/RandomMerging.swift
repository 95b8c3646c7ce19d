import SyncModel

/// Random merge types of tables and policies of devices. They have their own dice, so that the rest
/// of a history does not depend on them.
struct RandomMerging {
  private var dice: Dice
  private var otherDice: Dice
  private var functionDice: Dice
  private let features: FleetFeatures
  /// Whether devices decide most conflicts by functions of the library.
  private let prefersFunctions: Bool

  init(seed: UInt64, features: FleetFeatures, always: FleetFeatures = []) {
    prefersFunctions =
      always.contains(.functions) && features.isSuperset(of: [.functions, .policies])
    dice = Dice(seed: seed &* 0x9e37_79b9_7f4a_7c15 ^ 0x6d65_7267)
    otherDice = Dice(seed: seed &* 0x9e37_79b9_7f4a_7c15 ^ 0x626f_7468)
    functionDice = Dice(seed: seed &* 0x9e37_79b9_7f4a_7c15 ^ 0x6675_6e63)
    self.features = features
  }

  /// Returns whether rows can be copied: a device chooses their key, or their key is a single text,
  /// which can be varied.
  private func canKeepBoth(_ table: FleetTable) -> Bool {
    table.hasSurrogateKey
      || table.localKey == nil && table.key.count == 1
        && table.columns[table.key[0]].type == .text
  }

  /// Gives some tables and columns another merge type, and turns off stand-ins in some tables.
  mutating func drawTypes(_ schema: inout FleetSchema) {
    defer { drawStandIns(&schema) }
    guard features.contains(.mergeTypes), dice.chance(40) else { return }
    for index in schema.tables.indices where !schema.tables[index].isLocal {
      schema.tables[index].mergeType = dice.pick(weighted: [
        (60, .latestWins), (25, .editWins), (15, .wholeRow),
      ])
      if canKeepBoth(schema.tables[index]), otherDice.chance(20) {
        schema.tables[index].mergeType = .keepBoth
      }
      guard !schema.tables[index].hasWholeRows else { continue }
      for column in schema.tables[index].columns.indices
      where dice.chance(30) && canCount(column, in: schema.tables[index], schema) {
        schema.tables[index].columns[column].isCounter = true
      }
    }
  }

  private mutating func drawStandIns(_ schema: inout FleetSchema) {
    guard features.contains(.mergeTypes), features.contains(.unique) else { return }
    for index in schema.tables.indices where !schema.tables[index].isLocal {
      schema.tables[index].hasStandIns = !dice.chance(10)
    }
  }

  /// Returns whether a column can be a counter: a number without other constraints.
  private func canCount(_ column: Int, in table: FleetTable, _ schema: FleetSchema) -> Bool {
    let isReferredTo = schema.tables.contains { other in
      other.references.contains { $0.parent == table.name && $0.parentColumns.contains(column) }
    }
    return [.integer, .real].contains(table.columns[column].type) && !isReferredTo
      && table.shared.contains(column) && !table.key.contains(column)
      && !table.references.contains { $0.columns.contains(column) }
      && !table.checks.contains { $0.columns.count > 1 && $0.columns.contains(column) }
      && !table.columns.contains {
        $0.generated?.contains(table.columns[column].name.text) ?? false
      }
  }

  /// The functions by which devices decide.
  static let resolvers: [(name: String, resolver: ConflictResolver)] = [
    ("greater", { $0.local.sqlDescription < $0.remote.sqlDescription ? $0.remote : $0.local }),
    ("base", { $0.base ?? .null }),
    (
      "fails",
      { values in
        if case .integer = values.local { return values.remote }
        throw FleetFailure(.error("resolver"), "as it is meant to")
      }
    ),
  ]

  /// Draws the policies of the devices; most devices let stamps decide.
  mutating func policies(of devices: [Int], _ schema: FleetSchema) -> [Int: SyncPolicies] {
    let isChosen = features.contains(.policies) && dice.chance(35)
    guard isChosen || prefersFunctions else { return [:] }
    var result: [Int: SyncPolicies] = [:]
    for device in devices {
      var policies = SyncPolicies()
      policies.document = policy()
      for table in schema.synchronized where dice.chance(30) {
        policies.set(policy(), table: table.name)
      }
      if policies != SyncPolicies() { result[device] = policies }
    }
    return result
  }

  private mutating func policy() -> ConflictPolicy {
    let policy: ConflictPolicy = dice.pick(weighted: [
      (25, .latestWins), (25, .localWins), (20, .remoteWins), (10, .ask),
      (20, .resolve(Self.resolvers[dice.below(Self.resolvers.count)].name)),
    ])
    guard features.contains(.functions) else { return policy }
    if prefersFunctions {
      guard functionDice.chance(75) else { return policy }
    } else {
      guard case .resolve = policy, functionDice.chance(50) else { return policy }
    }
    let functions = ShippedFunction.allCases
    return .resolve(functions[functionDice.below(functions.count)].rawValue)
  }
}
