import SyncModel

/// Draws tables whose keys can be NULL, and rows with NULL in their key that are there before syncing
/// begins. It has dice of its own, so that it does not change histories without them.
struct RandomMissingKeys {
  private var dice: Dice
  private let isDrawn: Bool

  init(seed: UInt64, features: FleetFeatures) {
    dice = Dice(seed: seed &* 0x9e37_79b9_7f4a_7c15 ^ 0x6c_6f63_616c)
    isDrawn = dice.chance(10) && features.contains(.missingKeys)
  }

  /// Adds a table with such keys, and lets keys be NULL in some tables that are not connected with
  /// others.
  mutating func draw(_ schema: inout FleetSchema) {
    guard isDrawn else { return }
    for index in schema.tables.indices where dice.chance(70) {
      RandomValues.loseKeys(of: index, &schema)
    }
    var table = FleetTable(name: "m1", columns: [FleetColumn(name: "k", type: .text)], key: [0])
    if dice.chance(50) {
      table.columns.append(FleetColumn(name: "l", type: .integer))
      table.columns[0].isNotNull = dice.chance(30)
      table.key = [0, 1]
    }
    table.columns.append(FleetColumn(name: "a", type: .integer))
    table.columns.append(FleetColumn(name: "b", type: .text))
    schema.tables.append(table)
  }

  /// Statements that insert such rows.
  mutating func rows(_ schema: FleetSchema, _ edits: RandomEdit) -> [String] {
    guard isDrawn else { return [] }
    var statements: [String] = []
    for table in schema.synchronized where table.canLoseKeys {
      for _ in 0..<(1 + dice.below(3)) {
        statements.append(edits.insertionWithoutKey(into: table, &dice))
      }
    }
    return statements
  }
}
