import SyncModel

/// Draws tables that refer to one another in a circle (a person has a default address, and an address
/// its person), to tables outside of it, and from one outside to them.
struct RandomCircles {
  private var dice: Dice
  /// The positions of the tables of the circle, in its order.
  private var circle: [Int] = []
  private var tables: [FleetTable] = []

  init(seed: UInt64) { dice = Dice(seed: seed &* 0x9e37_79b9_7f4a_7c15 ^ 0x6369_7263) }

  /// Draws a schema. The names decide in which order tables are merged that do not depend on one
  /// another.
  mutating func draw() -> FleetSchema {
    let names = dice.shuffled(["a1", "g1", "m1", "s1", "z1"] as [SQLName])
    let length = dice.pick([1, 2, 2, 2, 3])
    let outside = 1 + dice.below(2)
    tables = names.prefix(min(length + outside + dice.below(2), names.count)).map { table($0) }
    circle = Array(0..<length)
    for index in circle {
      refer(from: index, to: circle[(index + 1) % length], isNotNull: dice.chance(20))
      for other in length..<(length + outside) where dice.chance(50) {
        refer(from: index, to: other)
      }
    }
    for child in tables.indices.dropFirst(length + outside) {
      refer(from: child, to: dice.pick(circle))
      if dice.chance(40) { refer(from: child, to: length) }
    }
    for index in tables.indices where dice.chance(70) { addUnique(to: index) }
    return FleetSchema(tables: tables)
  }

  private mutating func table(_ name: SQLName) -> FleetTable {
    var table = FleetTable(name: name, columns: [], key: [0])
    table.hasSurrogateKey = dice.chance(70)
    table.columns = [
      table.hasSurrogateKey
        ? FleetColumn(name: "id", type: .integer)
        : FleetColumn(name: "k", type: .text, isNotNull: true),
      FleetColumn(name: "a", type: .text), FleetColumn(name: "b", type: .integer),
    ]
    table.isWithoutRowid = !table.hasSurrogateKey && dice.chance(40)
    if dice.chance(15) { table.checks = [FleetCheck(condition: "a <> 'b'", columns: [1])] }
    return table
  }

  private mutating func refer(from index: Int, to parent: Int, isNotNull: Bool = false) {
    let key = tables[parent].columns[0]
    let column = tables[index].columns.count
    var reference = FleetColumn(name: SQLName("r\(column)"), type: key.type)
    reference.isNotNull = isNotNull
    tables[index].columns.append(reference)
    tables[index].references.append(
      FleetReference(
        columns: [column], parent: tables[parent].name, parentColumns: [0],
        parentNames: [key.name], onDelete: dice.pick([.noAction, .cascade, .setNull]),
        onUpdate: dice.pick([.noAction, .cascade]), isDeferred: dice.chance(25)))
  }

  private mutating func addUnique(to index: Int) {
    let references = tables[index].references.map { $0.columns[0] }
    var columns = [dice.chance(75) ? 1 : 2]
    if !references.isEmpty, dice.chance(40) { columns.insert(dice.pick(references), at: 0) }
    tables[index].uniques = [
      FleetUnique(
        name: SQLName("\(tables[index].name)_u1"), terms: columns.map { .column($0, .binary) })
    ]
  }

  // MARK: - Rows

  /// Draws statements that insert a row into each table of the circle, each of which refers to the
  /// next.
  mutating func rows() -> String {
    let keys = tables.map { dice.pick(RandomEdit.keys($0.columns[0])) }
    let statements = circle.map { index -> String in
      let table = tables[index]
      let values = table.columns.indices.map { column -> String in
        guard column > 0 else { return keys[index] }
        let type = table.columns[column].type
        guard let reference = table.references.first(where: { $0.columns == [column] }) else {
          return dice.pick(Array(RandomEdit.literals(type).prefix(4)))
        }
        let parent = tables.firstIndex { $0.name == reference.parent } ?? index
        if circle.contains(parent) { return keys[parent] }
        return dice.chance(30) ? "NULL" : dice.pick(RandomEdit.keys(table.columns[column]))
      }
      return "INSERT INTO \(table.name.sql) (\(table.names(Array(table.columns.indices)))) VALUES "
        + "(\(values.joined(separator: ", ")))"
    }
    return (["PRAGMA defer_foreign_keys = ON"] + statements).joined(separator: "; ")
  }
}
