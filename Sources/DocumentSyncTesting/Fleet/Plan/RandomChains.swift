import SyncModel

/// Draws a table with a unique column that is a reference, and one that refers to that column: what
/// the column shows changes without an edit of its row. It has dice of its own, so that it does not
/// change histories without them.
struct RandomChains {
  private var dice: Dice
  private let isDrawn: Bool

  init(seed: UInt64, options: Fleet.Options) {
    dice = Dice(seed: seed &* 0x9e37_79b9_7f4a_7c15 ^ 0x6368_6169)
    let isChosen = dice.chance(12) || options.always.contains(.chains)
    isDrawn = isChosen && options.features.isSuperset(of: [.chains, .references, .unique])
  }

  /// Adds the tables to a schema. In most histories they replace it, with a table that they refer to:
  /// a row, one that refers to it and one that refers to that are seldom there together otherwise.
  mutating func draw(_ schema: inout FleetSchema) {
    guard isDrawn else { return }
    if dice.chance(75) { schema = FleetSchema(tables: [root()]) }
    let parents = schema.synchronized.filter { table in
      [.integer, .text].contains(table.columns[Self.key(of: table)].type)
        && (table.integerKey != nil || table.key.count == 1)
    }
    guard !parents.isEmpty else { return }
    let parent = dice.pick(parents)
    let isComposite = dice.chance(50)
    let link = link(to: parent, isComposite: isComposite)
    schema.tables.append(link)
    schema.tables.append(child(of: link, isComposite: isComposite))
  }

  private mutating func root() -> FleetTable {
    var table = FleetTable(
      name: "t1",
      columns: [FleetColumn(name: "id", type: .integer), FleetColumn(name: "a", type: .text)],
      key: [0])
    table.hasSurrogateKey = dice.chance(60)
    if !table.hasSurrogateKey {
      table.columns[0] = FleetColumn(name: "k", type: .text, isNotNull: true)
    }
    if dice.chance(50) {
      table.uniques = [FleetUnique(name: "t1_u1", terms: [.column(1, .binary)])]
    }
    return table
  }

  private static func key(of table: FleetTable) -> Int { table.integerKey ?? table.key[0] }

  private mutating func link(to parent: FleetTable, isComposite: Bool) -> FleetTable {
    let key = parent.columns[Self.key(of: parent)]
    var table = FleetTable(
      name: "chain1",
      columns: [
        FleetColumn(name: "id", type: .integer), FleetColumn(name: "a", type: .text),
        FleetColumn(name: "r1", type: key.type, collation: key.collation),
      ], key: [0])
    table.hasSurrogateKey = true
    table.columns[1].isNotNull = isComposite
    if dice.chance(40) { table.columns[2].defaultValue = dice.pick(RandomEdit.keys(key)) }
    table.references = [
      reference(
        [2], to: parent, at: [Self.key(of: parent)],
        onDelete: [.setNull, .setNull, .setDefault, .cascade, .noAction])
    ]
    let terms = [FleetUnique.Term.column(2, key.collation), .column(1, .binary)]
    table.uniques = [
      FleetUnique(name: "chain1_u1", terms: isComposite ? terms : Array(terms.prefix(1)))
    ]
    return table
  }

  private mutating func child(of link: FleetTable, isComposite: Bool) -> FleetTable {
    var table = FleetTable(
      name: "chain2",
      columns: [FleetColumn(name: "id", type: .integer), FleetColumn(name: "b", type: .text)],
      key: [0])
    table.hasSurrogateKey = true
    let targets = isComposite ? [2, 1] : [2]
    for (name, target) in zip(["r1x", "r1y"] as [SQLName], targets) {
      var column = link.columns[target]
      (column.name, column.defaultValue, column.isNotNull) = (name, nil, false)
      table.columns.append(column)
    }
    if isComposite, dice.chance(35) {
      // The key consists of the reference.
      table.columns.removeFirst()
      table.key = [1, 2]
      table.hasSurrogateKey = false
      for position in table.key { table.columns[position].isNotNull = true }
    }
    let first = table.columns.count - targets.count
    table.references = [
      reference(
        Array(first..<table.columns.count), to: link, at: targets,
        onDelete: [.noAction, .restrict, .cascade, .setNull, .setDefault])
    ]
    return table
  }

  private mutating func reference(
    _ columns: [Int], to parent: FleetTable, at targets: [Int],
    onDelete: [FleetReference.Action]
  ) -> FleetReference {
    FleetReference(
      columns: columns, parent: parent.name, parentColumns: targets,
      parentNames: targets.map { parent.columns[$0].name }, onDelete: dice.pick(onDelete),
      onUpdate: dice.pick([.cascade, .cascade, .noAction, .setNull]), isDeferred: dice.chance(25))
  }
}
