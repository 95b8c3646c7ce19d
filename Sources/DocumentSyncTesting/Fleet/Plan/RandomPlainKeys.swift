import SyncModel

/// Draws a table whose key refers to rows without a declaration, with numbers in it that refer to no
/// row. It has dice of its own, so that it does not change histories without such a table.
///
/// Triggers keep rows with such a number apart from rows that refer to a row: the text in the key is
/// `k1` in the former alone. Otherwise a device on which a row has the number could show only one of
/// two rows (`Documentation/Merging.md`).
struct RandomPlainKeys {
  private var dice: Dice
  private let isDrawn: Bool

  init(seed: UInt64, features: FleetFeatures) {
    dice = Dice(seed: seed &* 0x9e37_79b9_7f4a_7c15 ^ 0x706c_6169_6e)
    isDrawn =
      dice.chance(10) && features.isSuperset(of: [.plainKeys, .undeclared, .references])
  }

  mutating func draw(_ schema: inout FleetSchema) {
    let parents = schema.synchronized.filter {
      $0.integerKey != nil && $0.mergeType == .latestWins
    }
    guard isDrawn, !parents.isEmpty else { return }
    let parent = dice.pick(parents)
    let key = parent.integerKey ?? 0
    let number = parent.columns[key].name
    var table = FleetTable(
      name: "q1",
      columns: [
        FleetColumn(name: "n", type: .integer, isNotNull: true),
        FleetColumn(name: "k", type: .text, isNotNull: true),
        FleetColumn(name: "a", type: .text), FleetColumn(name: "b", type: .integer),
      ], key: dice.chance(70) ? [0, 1] : [1, 0])
    table.isWithoutRowid = dice.chance(50)
    table.references = [
      FleetReference(
        columns: [0], parent: parent.name, parentColumns: [key], parentNames: [number],
        onDelete: .setNull, onUpdate: .noAction, isDeferred: false, isEnforced: false)
    ]
    schema.tables.append(table)
    let isWrong =
      "EXISTS (SELECT 1 FROM \(parent.name) WHERE \(number) = NEW.n) = (NEW.k = 'k1')"
    let isTaken = "EXISTS (SELECT 1 FROM q1 WHERE n = NEW.\(number) AND k = 'k1')"
    for (index, (event, condition)) in [
      ("BEFORE INSERT ON q1", isWrong),
      ("BEFORE UPDATE ON q1", "(NEW.n <> OLD.n OR NEW.k <> OLD.k) AND \(isWrong)"),
      ("AFTER INSERT ON \(parent.name)", isTaken),
      ("AFTER UPDATE ON \(parent.name)", "NEW.\(number) <> OLD.\(number) AND \(isTaken)"),
    ].enumerated() {
      schema.triggers.append(
        "CREATE TRIGGER apart\(index) \(event) WHEN \(condition) "
          + "BEGIN SELECT RAISE(ABORT, 'apart'); END")
    }
  }
}
