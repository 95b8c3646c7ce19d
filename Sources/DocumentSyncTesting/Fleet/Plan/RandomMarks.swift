import SyncModel

/// Draws excluded tables that refer to synchronized ones: bookmarks of notes, for example. They have
/// dice of their own, so that they do not change histories without them.
struct RandomMarks {
  private var dice: Dice
  private let isDrawn: Bool
  private let names: [SQLName]

  init(seed: UInt64, options: Fleet.Options) {
    dice = Dice(seed: seed &* 0x9e37_79b9_7f4a_7c15 ^ 0x6d61_726b)
    let isChosen = dice.chance(12) || options.always.contains(.marks)
    isDrawn = isChosen && options.features.isSuperset(of: [.marks, .references])
    names = dice.chance(20) ? ["mark \"1", "mark'2"] : ["mark1", "mark2"]
  }

  /// Adds the tables. The second of them may refer to the first, or to itself.
  mutating func draw(_ schema: inout FleetSchema) {
    guard isDrawn else { return }
    let parents = schema.synchronized.filter { table in
      table.integerKey != nil || table.key.count == 1
    }
    guard !parents.isEmpty else { return }
    let parent = dice.pick(parents)
    let key = parent.columns[parent.integerKey ?? parent.key[0]].name
    schema.markTables = [mark(names[0], to: parent.name, key)]
    switch dice.below(3) {
    case 0: schema.markTables.append(mark(names[1], to: names[0], "id"))
    case 1: schema.markTables.append(mark(names[1], to: names[1], "id"))
    default: break
    }
  }

  private mutating func mark(
    _ name: SQLName, to parent: SQLName, _ key: SQLName
  ) -> FleetSchema.MarkTable {
    FleetSchema.MarkTable(
      name: name, parent: parent, parentKey: key,
      onDelete: dice.pick([.cascade, .cascade, .setNull, .setDefault, .noAction]),
      onUpdate: dice.pick([.cascade, .cascade, .setNull, .noAction]),
      isWithoutRowid: dice.chance(25))
  }

  /// Adds edits of the tables to the steps, if the other tables stay as they are.
  mutating func draw(
    into steps: inout [FleetStep], _ devices: [Int], _ schema: FleetSchema, migrates: Bool
  ) {
    guard isDrawn, !migrates, !schema.markTables.isEmpty else { return }
    for _ in 0..<(6 + dice.below(16)) {
      let device = dice.pick(devices)
      let index = dice.below(steps.count + 1)
      let edit = FleetEdit(
        statements: (0..<dice.pick([1, 2, 3])).map { _ in statement(dice.pick(schema.markTables)) },
        hasForeignKeys: dice.chance(80), time: RandomRemakes.time(of: device, in: steps[..<index]),
        salt: dice.word())
      steps.insert(.edit(device: device, edit), at: index)
    }
  }

  private mutating func statement(_ table: FleetSchema.MarkTable) -> String {
    let name = table.name.sql
    let key = table.parentKey.sql
    let parent =
      "(SELECT \(key) FROM \(table.parent.sql) ORDER BY \(key) LIMIT 1 OFFSET \(dice.below(6)))"
    switch dice.below(100) {
    case 0..<70:
      return "INSERT OR IGNORE INTO \(name) (id, p) VALUES (\(1 + dice.below(12)), \(parent))"
    case 70..<85: return "UPDATE \(name) SET p = \(parent) WHERE id = \(1 + dice.below(12))"
    default: return "DELETE FROM \(name) WHERE id = \(1 + dice.below(12))"
    }
  }
}
