import SyncModel

/// Random keys that are references or declared columns: `INTEGER PRIMARY KEY`s that are references,
/// as in one-to-one relations; identities by declared columns in tables with an integer key; and
/// tables that refer to both in and outside of their own keys. They have their own dice, so that
/// they do not change histories without such keys.
struct RandomKeys {
  private var dice: Dice
  private let features: FleetFeatures
  private var schema = FleetSchema(tables: [])

  init(seed: UInt64, features: FleetFeatures) {
    dice = Dice(seed: seed &* 0x9e37_79b9_7f4a_7c15 ^ 0x6b65_7973)
    self.features = features
  }

  /// Adds such tables to a schema, or replaces it with a small one that has few others.
  mutating func draw(_ drawn: inout FleetSchema) {
    let isDrawn = dice.chance(features.contains(.references) ? 40 : 0)
    guard isDrawn, features.contains(.oneToOne) || features.contains(.identities) else { return }
    schema = drawn
    if dice.chance(60) {
      schema.tables = [root("t1")]
      if dice.chance(40) { schema.tables.append(root("t2")) }
    } else if features.contains(.identities) {
      for index in schema.tables.indices where dice.chance(50) { declareIdentity(of: index) }
    }
    let parents = schema.synchronized.filter { $0.integerKey != nil }
    guard !parents.isEmpty else { return }
    if features.contains(.oneToOne) {
      for number in 1...dice.pick([1, 1, 2, 3]) { addOneToOne("o\(number)") }
    }
    if dice.chance(45) { addJoin() }
    if dice.chance(50) { addChild() }
    drawn = schema
  }

  // MARK: - Identities by declared columns

  /// Draws a table with an integer key, and often with an identity by declared columns.
  private mutating func root(_ name: SQLName) -> FleetTable {
    var table = FleetTable(
      name: name, columns: [FleetColumn(name: "id", type: .integer)], key: [0])
    table.hasSurrogateKey = true
    table.isAutoincrement = dice.chance(20)
    table.isStrict = dice.chance(10)
    table.columns.append(FleetColumn(name: "a", type: dice.chance(60) ? .text : .integer))
    if table.columns[1].type == .text, features.contains(.looseKeys), dice.chance(25) {
      table.columns[1].collation = .nocase
    }
    table.columns.append(FleetColumn(name: "b", type: dice.chance(50) ? .text : .integer))
    guard features.contains(.identities), dice.chance(65) else {
      if features.contains(.unique), dice.chance(30) {
        table.uniques = [
          FleetUnique(name: "\(name)_u1", terms: [.column(1, table.columns[1].collation)])
        ]
      }
      return table
    }
    table.declare(dice.chance(75) ? [1] : dice.pick([[1, 2], [2, 1]]))
    if features.contains(.unique), dice.chance(25), !table.key.contains(2) {
      table.uniques = [FleetUnique(name: "\(name)_u1", terms: [.column(2, .binary)])]
    }
    return table
  }

  /// Declares columns as the identity of a table with an integer key, if it has columns without
  /// other constraints.
  private mutating func declareIdentity(of index: Int) {
    let table = schema.tables[index]
    guard table.hasSurrogateKey, !table.isLocal else { return }
    let free = table.shared.filter { column in
      let declared = table.columns[column]
      return [.text, .integer].contains(declared.type) && declared.generated == nil
        && !table.checks.contains { $0.columns.contains(column) }
        && (!table.references.contains { $0.columns.contains(column) }
          || isReference(column, of: table))
    }
    guard !free.isEmpty else { return }
    schema.tables[index].declare(Array(dice.shuffled(free).prefix(dice.chance(70) ? 1 : 2)))
  }

  /// Returns whether all references of a column are single-column foreign keys to earlier tables,
  /// so that it can be a part of the identity.
  private func isReference(_ column: Int, of table: FleetTable) -> Bool {
    table.references.allSatisfy { reference in
      !reference.columns.contains(column)
        || reference.columns == [column] && reference.isEnforced
          && schema.position(of: reference.parent) ?? .max
            < schema.position(of: table.name) ?? 0
    }
  }

  // MARK: - Tables that refer to them

  /// Adds a table whose key is a reference to another table's key, often to a key that is itself
  /// such a reference.
  private mutating func addOneToOne(_ name: SQLName) {
    let candidates = schema.synchronized.filter { $0.integerKey != nil || $0.hasRowidKey }
    let chained = candidates.filter(\.hasRowidKey)
    let parent = chained.isEmpty || dice.chance(45) ? dice.pick(candidates) : dice.pick(chained)
    var table = FleetTable(
      name: name,
      columns: [
        FleetColumn(name: "id", type: .integer), FleetColumn(name: "a", type: .text),
      ], key: [0])
    table.columns[1].isNotNull = features.contains(.conditions) && dice.chance(15)
    table.references = [reference([0], to: parent)]
    if features.contains(.unique), dice.chance(30) {
      table.uniques = [FleetUnique(name: "\(name)_u1", terms: [.column(1, .binary)])]
    }
    if dice.chance(25) {
      table.columns.append(FleetColumn(name: "r1", type: .integer))
      table.references.append(reference([2], to: dice.pick(candidates)))
    }
    schema.tables.append(table)
  }

  /// Adds a table whose key consists of references to two others, or of a reference and a number.
  private mutating func addJoin() {
    let candidates = schema.synchronized.filter { $0.integerKey != nil || $0.hasRowidKey }
    var table = FleetTable(
      name: "j1",
      columns: [
        FleetColumn(name: "x", type: .integer, isNotNull: true),
        FleetColumn(name: "y", type: .integer, isNotNull: true),
        FleetColumn(name: "a", type: .text),
      ], key: dice.chance(70) ? [0, 1] : [1, 0])
    table.isWithoutRowid = dice.chance(50)
    table.references = [reference([0], to: dice.pick(candidates))]
    if dice.chance(60) { table.references.append(reference([1], to: dice.pick(candidates))) }
    schema.tables.append(table)
    guard dice.chance(25) else { return }
    var mark = FleetTable(name: "j2", columns: table.columns, key: [0, 1])
    mark.columns.append(FleetColumn(name: "n", type: .integer, isNotNull: true))
    if dice.chance(50) { mark.key.append(3) }
    mark.references = [reference([0, 1], to: table)]
    mark.references[0].parentColumns = [0, 1]
    mark.references[0].parentNames = ["x", "y"]
    schema.tables.append(mark)
  }

  /// Adds a table that refers to such rows by columns outside of its key.
  private mutating func addChild() {
    let candidates = schema.synchronized.filter {
      $0.integerKey != nil || $0.hasRowidKey
        || $0.name == "j1" || $0.localKey != nil && $0.key.count == 1
    }
    let parent = dice.pick(candidates)
    var table = FleetTable(
      name: "c1", columns: [FleetColumn(name: "id", type: .integer)], key: [0])
    table.hasSurrogateKey = dice.chance(70)
    if !table.hasSurrogateKey {
      table.columns[0] = FleetColumn(name: "k", type: .text, isNotNull: true)
    }
    table.columns.append(FleetColumn(name: "a", type: .text))
    if parent.name == "j1" {
      table.columns += [
        FleetColumn(name: "r1x", type: .integer), FleetColumn(name: "r1y", type: .integer),
      ]
      table.references = [reference([2, 3], to: parent)]
    } else if parent.localKey != nil, parent.key.count == 1, dice.chance(30) {
      // The table refers by the declared value instead of the number.
      var column = parent.columns[parent.key[0]]
      (column.name, column.isNotNull, column.defaultValue) = ("r1", false, nil)
      table.columns.append(column)
      table.references = [reference([2], to: parent, at: parent.key)]
    } else {
      table.columns.append(FleetColumn(name: "r1", type: .integer))
      if dice.chance(20) { table.columns[2].defaultValue = dice.pick(["1", "2", "3"]) }
      if features.contains(.conditions), dice.chance(20) { table.columns[2].isNotNull = true }
      table.references = [reference([2], to: parent)]
    }
    if features.contains(.unique), dice.chance(30) {
      // A number that refers to no row can be shown if another column is NULL, and then looks like
      // a reference to the row that has this number on some device.
      let columns = parent.name == "j1" ? table.references[0].columns : [2]
      table.uniques = [
        FleetUnique(name: "c1_u1", terms: columns.map { .column($0, .binary) })
      ]
    }
    schema.tables.append(table)
  }

  private mutating func reference(
    _ columns: [Int], to parent: FleetTable, at target: [Int]? = nil
  ) -> FleetReference {
    let target = target ?? parent.integerKey.map { [$0] } ?? parent.key
    return FleetReference(
      columns: columns, parent: parent.name, parentColumns: target,
      parentNames: target.map { parent.columns[$0].name },
      onDelete: dice.pick(weighted: [
        (20, .noAction), (15, .restrict), (40, .cascade), (15, .setNull), (10, .setDefault),
      ]),
      onUpdate: dice.pick(weighted: [
        (20, .noAction), (5, .restrict), (60, .cascade), (10, .setNull), (5, .setDefault),
      ]),
      isDeferred: dice.chance(30))
  }
}

extension FleetTable {
  /// Makes columns the identity of a table that has an integer key.
  fileprivate mutating func declare(_ identity: [Int]) {
    localKey = key[0]
    hasSurrogateKey = false
    key = identity
    for column in identity {
      columns[column].isNotNull = true
      columns[column].isLocal = false
    }
    // An index over the same columns adds nothing.
    uniques = uniques.filter { !isPlain($0) || Set($0.columns) != Set(identity) }
  }
}
