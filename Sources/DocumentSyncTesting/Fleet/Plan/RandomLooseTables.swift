import SyncModel

/// Draws tables that cannot be synchronized, since they have no primary key: their rows stay where
/// they were made. One is there before syncing begins, and excluded; programs create, edit and drop
/// others on single devices. One of them may be made again with a primary key, and is synchronized
/// from then on. It has dice of its own, so that it does not change histories without such tables.
struct RandomLooseTables {
  private var dice: Dice
  /// Whether a history has such tables.
  let isDrawn: Bool
  /// The name of the table that may get a key.
  private let keyed: SQLName
  private let others: [SQLName]

  init(seed: UInt64, options: Fleet.Options, _ names: inout RandomNames) {
    dice = Dice(seed: seed &* 0x9e37_79b9_7f4a_7c15 ^ 0x6c6f_6f73)
    let isChosen = dice.chance(12) || options.always.contains(.looseTables)
    isDrawn = isChosen && options.features.contains(.looseTables)
    keyed = names.migrated("u1")
    others = [names.migrated("u2"), names.migrated("u3")]
  }

  /// Adds a table that is excluded.
  mutating func draw(_ schema: inout FleetSchema) {
    guard isDrawn, dice.chance(60) else { return }
    schema.looseTables = [
      FleetSchema.LooseTable(
        name: "u0", sql: "CREATE TABLE u0 (\(dice.pick(["a", "a TEXT NOT NULL", "a UNIQUE"])), b)")
    ]
  }

  /// Statements that fill it before syncing begins.
  mutating func start() -> [String] {
    guard isDrawn else { return [] }
    return (0..<dice.below(4)).map { _ in insertion(into: "u0") }
  }

  /// Draws that the table gets a key.
  mutating func migration() -> FleetMigration? {
    guard isDrawn, dice.chance(60) else { return nil }
    var table = FleetTable(
      name: keyed,
      columns: [
        FleetColumn(name: "a", type: .text), FleetColumn(name: "b", type: .integer),
      ], key: [0])
    if dice.chance(60) {
      table.columns.insert(FleetColumn(name: "k", type: .integer), at: 0)
      table.hasSurrogateKey = true
    } else {
      table.columns[0].isNotNull = true
      table.isWithoutRowid = dice.chance(50)
    }
    return .addTable(table)
  }

  /// Adds edits of such tables to the steps.
  mutating func draw(into steps: inout [FleetStep], _ devices: [Int], _ schema: FleetSchema) {
    guard isDrawn else { return }
    for _ in 0..<(4 + dice.below(12)) {
      let device = dice.pick(devices)
      let index = dice.below(steps.count + 1)
      let edit = FleetEdit(
        statements: (0..<dice.pick([1, 1, 2, 3])).map { _ in statement(schema) },
        hasForeignKeys: true, time: RandomRemakes.time(of: device, in: steps[..<index]),
        salt: dice.word())
      steps.insert(.edit(device: device, edit), at: index)
    }
  }

  private mutating func statement(_ schema: FleetSchema) -> String {
    let columns = "(a, b)"
    switch dice.below(100) {
    case 0..<14: return "CREATE TABLE \(keyed.sql) \(dice.pick([columns, "(a TEXT, b INTEGER)"]))"
    case 14..<20:
      let source = dice.pick(schema.tables)
      let column = source.columns[dice.pick(source.settable)].name.sql
      return "CREATE TABLE \(keyed.sql) AS SELECT \(column) AS a, 1 AS b FROM \(source.name.sql)"
    case 20..<40: return insertion(into: keyed)
    case 40..<46: return "UPDATE \(keyed.sql) SET b = \(number())"
    case 46..<50: return "DELETE FROM \(keyed.sql) WHERE b = \(number())"
    default: return otherStatement(schema)
    }
  }

  /// Draws a statement about a table that never gets a key.
  private mutating func otherStatement(_ schema: FleetSchema) -> String {
    let name = dice.pick(others + [others[0], "u0"])
    let isKept = name == "u0"
    switch dice.below(100) {
    case 0..<14: return "CREATE TABLE \(name.sql) (a UNIQUE, b)"
    case 14..<30:
      return "CREATE TABLE \(name.sql) AS SELECT * FROM \(dice.pick(schema.tables).name.sql)"
    case 30..<60: return insertion(into: name)
    case 60..<70: return "UPDATE \(name.sql) SET b = \(number())"
    case 70..<78: return "DELETE FROM \(name.sql) WHERE b = \(number())"
    case 78..<84 where !isKept: return "DROP TABLE \(name.sql)"
    case 84..<88 where !isKept:
      return "ALTER TABLE \(others[0].sql) RENAME TO \(others[1].sql)"
    case 88..<92: return "ALTER TABLE \(name.sql) ADD COLUMN c"
    case 92..<96: return "CREATE INDEX i\(dice.below(3)) ON \(name.sql) (b)"
    default: return "INSERT INTO \(name.sql) SELECT * FROM \(name.sql)"
    }
  }

  private mutating func insertion(into name: SQLName) -> String {
    let text = dice.pick(["'a'", "'b'", "'\u{E9}'", "NULL"])
    return "INSERT OR IGNORE INTO \(name.sql) (a, b) VALUES (\(text), \(number()))"
  }

  private mutating func number() -> String { dice.pick(["1", "2", "3"]) }
}
