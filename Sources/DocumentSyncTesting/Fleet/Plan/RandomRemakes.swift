/// Random migrations that recreate tables, as frameworks do. After such a migration no trigger
/// captures edits of the table until the device synchronizes.
struct RandomRemakes {
  private var dice: Dice
  private let features: FleetFeatures

  /// - Parameter seed: The seed of the history.
  init(seed: UInt64, features: FleetFeatures) {
    dice = Dice(seed: seed ^ 0x7265_6D61_6B65)
    self.features = features
  }

  /// - Parameter migrates: Whether devices also make other migrations, so that only the device
  ///   knows the form of the table at that time.
  mutating func draw(
    into steps: inout [FleetStep], _ devices: [Int], _ schema: FleetSchema, migrates: Bool
  ) {
    guard dice.chance(60), !schema.synchronized.isEmpty else { return }
    // A store reads the former state of a table from files that the device has seen.
    steps.removeAll { if case .hide = $0 { true } else { false } }
    for _ in 0..<(1 + dice.below(5)) {
      let device = dice.pick(devices)
      let index = dice.below(steps.count + 1)
      let time = Self.time(of: device, in: steps[..<index])
      let table = dice.pick(schema.synchronized)
      let remake = FleetRemake(
        table: table.name, dropsFirst: !dice.chance(50), time: time, salt: dice.word())
      guard features.contains(.numberedRemakes) || !Self.dependsOnNumbers(table, schema) else {
        continue
      }
      if migrates {
        steps.insert(.remake(device: device, remake), at: index)
      } else {
        let others =
          table.sql.dropFirst() + schema.triggers.filter { $0.hasBytes(" ON \(table.name.sql) ") }
        let edit = remake.edit(table, create: table.sql[0], others: Array(others))
        steps.insert(.edit(device: device, edit), at: index)
      }
    }
  }

  /// Returns whether rows of a table are identified by declared columns, or refer to such rows in
  /// their keys. After the table is recreated, a store does not know which number a row had.
  static func dependsOnNumbers(_ table: FleetTable, _ schema: FleetSchema) -> Bool {
    table.localKey != nil
      || table.key.contains { column in
        schema.keyTable(of: column, in: table).flatMap(schema.table)?.localKey != nil
      }
  }

  /// Returns the last time of a device's clock, in milliseconds since 1970.
  static func time(of device: Int, in steps: ArraySlice<FleetStep>) -> Int64 {
    for step in steps.reversed() where step.device == device {
      switch step {
      case .edit(_, let edit): return edit.time
      case .sync(_, let time, _): return time
      default: continue
      }
    }
    return 1_700_000_000_000
  }
}
