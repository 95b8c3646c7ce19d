import SyncModel

/// Draws edits that no change set can carry, in histories whose devices have small caps. It has dice
/// of its own, so that it does not change histories without such edits.
struct RandomHeldEdits {
  /// The bytes of memory that a change set may take in such a history: one carries 8 KiB of values.
  static let memoryBytes = 16 << 10

  private var dice: Dice
  private let features: FleetFeatures
  /// Whether a history has such edits.
  let isDrawn: Bool
  /// How many of a hundred edits are followed or replaced by a large one.
  private let share: Int

  init(seed: UInt64, options: Fleet.Options) {
    features = options.features
    dice = Dice(seed: seed &* 0x9e37_79b9_7f4a_7c15 ^ 0x6865_6c64)
    let isChosen = dice.chance(12) || options.always.contains(.heldEdits)
    isDrawn = isChosen && options.features.contains(.heldEdits)
    share = dice.pick([15, 35])
  }

  /// Adds large values to those that are there before syncing begins: all devices have them.
  mutating func add(to start: inout [String], _ schema: FleetSchema) {
    guard isDrawn, !start.isEmpty else { return }
    let edits = RandomEdit(schema: schema, features: features, large: .values)
    for _ in 0..<dice.below(3) { start.append(edits.insertion(&dice)) }
  }

  /// Returns whether a statement writes a large value, or looks for one.
  static func isLarge(_ statement: String) -> Bool { statement.contains("printf('%.*c'") }

  /// Adds a large edit to the statements of a program, or replaces them with one.
  mutating func enlarged(_ statements: [String], _ edits: RandomEdit) -> [String] {
    guard isDrawn, dice.chance(share) else { return statements }
    let enlarged = edits.with(large: .valuesAndKeys)
    var large = enlarged.draw(&dice)
    for _ in 0..<8 where !large.contains(where: Self.isLarge) { large = enlarged.draw(&dice) }
    return dice.chance(50) ? large : statements + large
  }
}

extension RandomEdit {
  /// The columns in which values can be larger than a change set, or a half of it.
  enum Large {
    case values
    case valuesAndKeys

    /// The sizes: two of the first do not fit into one change set.
    static let sizes = [5_000, 5_000, 9_000]
    /// A value with more bytes is a large one.
    static let threshold = 2_000

    /// Draws a large value for a column; `nil` if it is to have a usual one.
    func value(_ column: Int, of table: FleetTable, _ dice: inout Dice) -> String? {
      let isKey = table.key.contains(column)
      guard dice.chance(isKey ? 10 : 70), !isKey || self == .valuesAndKeys else { return nil }
      let text = "printf('%.*c', \(dice.pick(Self.sizes)), '\(dice.pick(["y", "z"]))')"
      switch table.columns[column].type {
      case .integer, .real: return nil
      case .text: return text
      case .blob: return "CAST(\(text) AS BLOB)"
      case .any: return dice.chance(50) ? text : "CAST(\(text) AS BLOB)"
      }
    }
  }
}
