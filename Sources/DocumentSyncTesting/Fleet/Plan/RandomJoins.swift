import SyncModel

/// Random small schemas with rows that people create twice, since their names are unique, and with
/// tables whose keys consist of references to such rows: join tables, parts of a whole, and tables
/// that refer to them. They have their own dice, so that they do not change histories without such
/// schemas.
struct RandomJoins {
  private var dice: Dice
  private let features: FleetFeatures

  init(seed: UInt64, features: FleetFeatures) {
    dice = Dice(seed: seed &* 0x9e37_79b9_7f4a_7c15 ^ 0x6a6f_696e)
    self.features = features
  }

  /// Replaces the schema of some histories.
  mutating func draw(_ schema: inout FleetSchema) {
    guard features.isSuperset(of: [.joins, .references, .unique]), dice.chance(8) else { return }
    var tables = [named("t1"), named("t2")]
    if dice.chance(30) {
      // Tags in tags, or items that also have a tag.
      let parent = tables[dice.chance(50) ? 0 : 1]
      tables[1].columns.append(FleetColumn(name: "r1", type: parent.columns[0].type))
      tables[1].references = [reference([3], to: parent)]
    }
    var join = FleetTable(
      name: "j1",
      columns: [
        keyColumn("x", of: tables[0]),
        dice.chance(75) ? keyColumn("y", of: tables[1]) : FleetColumn(name: "y", type: .text),
        FleetColumn(name: "a", type: .text),
      ], key: dice.chance(60) ? [0, 1] : [1, 0])
    join.columns[1].isNotNull = true
    join.isWithoutRowid = dice.chance(50)
    join.references = [reference([0], to: tables[0])]
    if join.columns[1].type == tables[1].columns[0].type {
      join.references.append(reference([1], to: tables[1]))
    }
    addLimits(to: &join)
    tables.append(join)
    if dice.chance(50) { tables.append(mark(of: join)) }
    if dice.chance(25) { tables.append(child(of: join)) }
    if dice.chance(30) { tables.append(part(of: tables[0])) }
    schema = FleetSchema(tables: tables)
  }

  /// Draws a table of rows with a name, which often must be unique.
  private mutating func named(_ name: SQLName) -> FleetTable {
    var table = FleetTable(name: name, columns: [], key: [0])
    table.hasSurrogateKey = dice.chance(60)
    table.columns = [
      table.hasSurrogateKey
        ? FleetColumn(name: "id", type: .integer)
        : FleetColumn(name: "k", type: .text, isNotNull: true),
      FleetColumn(name: "a", type: .text), FleetColumn(name: "b", type: .integer),
    ]
    if dice.chance(85) {
      table.uniques = [FleetUnique(name: "\(name)_u1", terms: [.column(1, .binary)])]
    }
    if dice.chance(25) {
      table.uniques.append(FleetUnique(name: "\(name)_u2", terms: [.column(2, .binary)]))
    }
    return table
  }

  /// Draws a table whose key consists of the key of the join table and often a number.
  private mutating func mark(of join: FleetTable) -> FleetTable {
    var table = FleetTable(
      name: "j2",
      columns: [
        join.columns[0], join.columns[1], FleetColumn(name: "n", type: .integer, isNotNull: true),
        FleetColumn(name: "a", type: .text),
      ], key: dice.chance(70) ? [0, 1, 2] : [0, 1])
    table.isWithoutRowid = dice.chance(50)
    table.references = [reference([0, 1], to: join)]
    if dice.chance(25) {
      table.uniques = [FleetUnique(name: "j2_u1", terms: [.column(3, .binary)])]
    }
    return table
  }

  /// Draws a table that refers to the join table outside of its key.
  private mutating func child(of join: FleetTable) -> FleetTable {
    var table = FleetTable(
      name: "c1",
      columns: [
        FleetColumn(name: "k", type: .text, isNotNull: true), FleetColumn(name: "a", type: .text),
        FleetColumn(name: "r1x", type: join.columns[0].type),
        FleetColumn(name: "r1y", type: join.columns[1].type),
      ], key: [0])
    table.references = [reference([2, 3], to: join)]
    if dice.chance(30) {
      // As in ``RandomKeys``: integers are keys of a table.
      let columns = join.columns[0].type == .integer ? [2, 3] : [2]
      table.uniques = [
        FleetUnique(name: "c1_u1", terms: columns.map { .column($0, .binary) })
      ]
    }
    return table
  }

  /// Draws a table of parts, in which the key of a part is the key of its whole.
  private mutating func part(of whole: FleetTable) -> FleetTable {
    var table = FleetTable(
      name: "p1", columns: [keyColumn("k", of: whole), FleetColumn(name: "a", type: .text)],
      key: [0])
    // A single integer key would be a rowid.
    table.isWithoutRowid = table.columns[0].type == .integer
    table.references = [reference([0], to: whole)]
    if dice.chance(30) {
      table.uniques = [FleetUnique(name: "p1_u1", terms: [.column(1, .binary)])]
    }
    return table
  }

  private func keyColumn(_ name: SQLName, of table: FleetTable) -> FleetColumn {
    FleetColumn(name: name, type: table.columns[0].type, isNotNull: true)
  }

  private mutating func addLimits(to join: inout FleetTable) {
    switch dice.below(100) {
    case 0..<20: join.uniques = [FleetUnique(name: "j1_u1", terms: [.column(2, .binary)])]
    case 20..<40:
      join.uniques = [
        FleetUnique(name: "j1_u1", terms: [.column(1, .binary), .column(2, .binary)])
      ]
    case 40..<50 where features.contains(.conditions):
      join.checks = [FleetCheck(condition: "a <> 'b'", columns: [2])]
    default: break
    }
  }

  private mutating func reference(_ columns: [Int], to parent: FleetTable) -> FleetReference {
    let target = columns.count == 1 ? [parent.key[0]] : [0, 1]
    return FleetReference(
      columns: columns, parent: parent.name, parentColumns: target,
      parentNames: target.map { parent.columns[$0].name },
      onDelete: dice.pick(weighted: [
        (15, .noAction), (15, .restrict), (55, .cascade), (10, .setNull), (5, .setDefault),
      ]),
      onUpdate: dice.pick(weighted: [(40, .noAction), (60, .cascade)]),
      isDeferred: dice.chance(25))
  }
}
