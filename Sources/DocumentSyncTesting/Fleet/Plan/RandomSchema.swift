import SyncModel

/// A random schema: few tables with few columns, and some of everything that SQLite allows.
struct RandomSchema {
  private var dice: Dice
  private let features: FleetFeatures
  private var tables: [FleetTable] = []

  init(seed: UInt64, features: FleetFeatures) {
    dice = Dice(seed: seed)
    self.features = features
  }

  mutating func draw() -> FleetSchema {
    if features.contains(.references), features.contains(.unique), dice.chance(18) {
      return dice.chance(45) ? twice() : tight()
    }
    let count = 1 + dice.below(4)
    for number in 1...count {
      tables.append(table(number > 2 ? Self.equivalents[number % 2] : "t\(number)"))
    }
    if features.contains(.references) {
      for index in tables.indices {
        for _ in 0..<dice.pick([0, 1, 1, 1, 2]) { addReference(to: index) }
      }
    }
    for index in tables.indices {
      if features.contains(.generated), dice.chance(20) { addGenerated(to: index) }
      if features.contains(.conditions), dice.chance(35) { addCheck(to: index) }
      if features.contains(.unique) {
        for _ in 0..<dice.pick([0, 1, 1, 2]) { addUnique(to: index) }
      }
    }
    if features.contains(.local), dice.chance(20) {
      var local = table("stays")
      local.isLocal = true
      tables.append(local)
    }
    return FleetSchema(tables: tables)
  }

  /// Draws one or two tables with many collisions: a reference by which a row can keep its parent
  /// from deletion, and a value that must be unique. So rows are often hidden while the rows to
  /// which they refer are deleted and edited.
  private mutating func tight() -> FleetSchema {
    let isAlone = dice.chance(25)
    var parent = FleetTable(name: "t1", columns: [FleetColumn(name: "k", type: .text)], key: [0])
    parent.columns[0].isNotNull = true
    if dice.chance(40) {
      parent.columns[0] = FleetColumn(name: "id", type: .integer)
      parent.hasSurrogateKey = true
    }
    parent.columns.append(FleetColumn(name: "a", type: .integer))
    var child = parent
    if !isAlone {
      child.name = "t2"
      child.hasSurrogateKey = dice.chance(40)
      child.columns[0] =
        child.hasSurrogateKey
        ? FleetColumn(name: "id", type: .integer)
        : FleetColumn(name: "k", type: .text, isNotNull: true)
    }
    child.columns.append(FleetColumn(name: "r1", type: parent.columns[0].type))
    child.references = [
      FleetReference(
        columns: [2], parent: "t1", parentColumns: [0], parentNames: [parent.columns[0].name],
        onDelete: dice.pick([.restrict, .restrict, .noAction, .cascade]),
        onUpdate: dice.pick([.noAction, .cascade]), isDeferred: dice.chance(25))
    ]
    if dice.chance(70) {
      child.uniques = [FleetUnique(name: "\(child.name)_u1", terms: [.column(1, .binary)])]
    }
    return FleetSchema(tables: isAlone ? [child] : [parent, child])
  }

  /// Draws tables of rows that people create twice: folders in folders, with unique names, and rows
  /// in them, with values that are sometimes unique in their folder.
  private mutating func twice() -> FleetSchema {
    var folder = FleetTable(name: "t1", columns: [], key: [0])
    folder.hasSurrogateKey = dice.chance(60)
    folder.columns = [
      folder.hasSurrogateKey
        ? FleetColumn(name: "id", type: .integer)
        : FleetColumn(name: "k", type: .text, isNotNull: true),
      FleetColumn(name: "a", type: .text), FleetColumn(name: "b", type: .integer),
    ]
    let key = folder.columns[0]
    func reference(_ dice: inout Dice, _ column: Int) -> FleetReference {
      FleetReference(
        columns: [column], parent: "t1", parentColumns: [0], parentNames: [key.name],
        onDelete: dice.pick([.cascade, .cascade, .restrict, .noAction, .setNull, .setDefault]),
        onUpdate: dice.pick([.noAction, .cascade]), isDeferred: dice.chance(25))
    }
    let isNested = dice.chance(50)
    if isNested {
      folder.columns.append(FleetColumn(name: "r1", type: key.type))
      folder.references = [reference(&dice, 3)]
    }
    let name = FleetUnique.Term.column(1, .binary)
    folder.uniques = [
      FleetUnique(
        name: "t1_u1",
        terms: isNested && dice.chance(50) ? [.column(3, .binary), name] : [name])
    ]
    if dice.chance(25) {
      folder.uniques.append(FleetUnique(name: "t1_u2", terms: [.column(2, .binary)]))
    }
    var note = FleetTable(name: "t2", columns: [], key: [0])
    note.hasSurrogateKey = dice.chance(50)
    note.columns = [
      note.hasSurrogateKey
        ? FleetColumn(name: "id", type: .integer)
        : FleetColumn(name: "k", type: .text, isNotNull: true),
      FleetColumn(name: "a", type: .text), FleetColumn(name: "r1", type: key.type),
    ]
    note.references = [reference(&dice, 2)]
    switch dice.below(100) {
    case 0..<45:
      note.uniques = [
        FleetUnique(name: "t2_u1", terms: [.column(2, .binary), .column(1, .binary)])
      ]
    case 45..<60: note.uniques = [FleetUnique(name: "t2_u1", terms: [.column(2, .binary)])]
    case 60..<70 where features.contains(.conditions):
      note.checks = [FleetCheck(condition: "a <> 'b'", columns: [1])]
    default: break
    }
    return FleetSchema(tables: [folder, note])
  }

  // MARK: - Tables and columns

  /// Names that are equal by Unicode and different for SQLite.
  private static let equivalents: [SQLName] = ["\u{E9}", "e\u{301}"]

  private mutating func table(_ name: SQLName) -> FleetTable {
    var table = FleetTable(name: name, columns: [], key: [])
    table.isStrict = dice.chance(20)
    switch dice.below(100) {
    case 0..<50:
      table.columns = [FleetColumn(name: "id", type: .integer)]
      table.key = [0]
      table.hasSurrogateKey = true
      table.isAutoincrement = dice.chance(25)
    case 50..<75:
      table.columns = [keyColumn("k", types: [.text, .text, .text, .real, .any])]
      table.key = [0]
      table.isWithoutRowid = dice.chance(50)
    default:
      table.columns = [
        keyColumn("k", types: [.text, .integer]), keyColumn("l", types: [.integer, .blob]),
      ]
      table.key = dice.chance(30) ? [1, 0] : [0, 1]
      table.isWithoutRowid = dice.chance(50)
    }
    let names = name == "t1" ? ["a", "b", "c", "d"] : ["a"] + Self.equivalents + ["d"]
    for name in names.prefix(1 + dice.below(4)) {
      table.columns.append(column(name))
    }
    return table
  }

  private mutating func keyColumn(_ name: SQLName, types: [FleetColumn.DataType]) -> FleetColumn {
    var column = FleetColumn(name: name, type: dice.pick(types))
    if !features.contains(.looseKeys), column.type == .any || column.type == .blob {
      column.type = .text
    }
    column.isNotNull = true
    if column.type == .text, features.contains(.looseKeys), dice.chance(30) {
      column.collation = dice.chance(80) ? .nocase : .rtrim
    }
    return column
  }

  private mutating func column(_ name: SQLName) -> FleetColumn {
    var column = FleetColumn(
      name: name,
      type: dice.pick(weighted: [
        (40, .integer), (35, .text), (5, .real), (5, .blob), (15, .any),
      ]))
    if column.type == .text, dice.chance(20) { column.collation = .nocase }
    if dice.chance(30) { column.defaultValue = dice.pick(RandomEdit.literals(column.type)) }
    if features.contains(.conditions), dice.chance(20) {
      column.isNotNull = true
      if dice.chance(50) { column.defaultValue = dice.pick(RandomEdit.literals(column.type)) }
    } else if features.contains(.local), dice.chance(8) {
      column.isLocal = true
    }
    return column
  }

  // MARK: - References

  private mutating func addReference(to index: Int) {
    let parent = tables[dice.chance(25) ? index : dice.below(tables.count)]
    let position = tables.firstIndex { $0.name == parent.name } ?? index
    var target = parent.key
    if dice.chance(15), features.contains(.unique) {
      target = uniqueTarget(position) ?? target
    }
    let number = tables[index].references.count + 1
    var columns = dice.chance(8) ? sharedColumn(index, parent, target) : []
    for (term, column) in target.enumerated() where columns.count < target.count {
      // The key of a join table consists of references.
      if target.count == 1, dice.chance(15), !tables[index].hasSurrogateKey,
        let free = tables[index].key.first(where: { canRefer($0, in: tables[index]) }),
        parent.name != tables[index].name
      {
        tables[index].columns[free].type = parent.columns[column].type
        tables[index].columns[free].collation = parent.columns[column].collation
        // A single integer key would be a rowid.
        if parent.columns[column].type == .integer { tables[index].isWithoutRowid = true }
        columns.append(free)
        continue
      }
      var made = FleetColumn(
        name: "r\(number)\(target.count > 1 ? ["x", "y"][term % 2] : "")",
        type: parent.columns[column].type)
      made.collation = dice.chance(85) ? parent.columns[column].collation : .binary
      if features.contains(.conditions), dice.chance(15) { made.isNotNull = true }
      if dice.chance(25) {
        made.defaultValue = dice.pick(RandomEdit.keys(parent.columns[column]))
      }
      columns.append(tables[index].columns.count)
      tables[index].columns.append(made)
    }
    let action: [(weight: Int, value: FleetReference.Action)] = [
      (20, .noAction), (15, .restrict), (25, .cascade), (25, .setNull), (15, .setDefault),
    ]
    let updating: [(weight: Int, value: FleetReference.Action)] = [
      (35, .noAction), (5, .restrict), (40, .cascade), (10, .setNull), (10, .setDefault),
    ]
    tables[index].references.append(
      FleetReference(
        columns: columns, parent: parent.name, parentColumns: target,
        parentNames: target.map { tables[position].columns[$0].name },
        onDelete: dice.pick(weighted: action), onUpdate: dice.pick(weighted: updating),
        isDeferred: dice.chance(25)))
  }

  /// Returns a column that already refers to another table and can also refer to this one; empty if
  /// there is none.
  private func sharedColumn(_ index: Int, _ parent: FleetTable, _ target: [Int]) -> [Int] {
    let schema = FleetSchema(tables: tables)
    guard target.count == 1, schema.keyTable(of: target[0], in: parent) == nil else { return [] }
    let shared = tables[index].references.first { reference in
      reference.columns.count == 1
        && schema.keyTable(of: reference.columns[0], in: tables[index]) == nil
        && tables[index].columns[reference.columns[0]].type == parent.columns[target[0]].type
    }
    return shared?.columns ?? []
  }

  private func canRefer(_ column: Int, in table: FleetTable) -> Bool {
    let isReferredTo = tables.contains { other in
      other.references.contains {
        $0.parent == table.name && $0.parentColumns.contains(column)
      }
    }
    return !isReferredTo && !table.references.contains { $0.columns.contains(column) }
  }

  /// Returns a plain column that is unique, for references that do not use the key.
  private mutating func uniqueTarget(_ index: Int) -> [Int]? {
    let table = tables[index]
    for unique in table.uniques where table.isPlain(unique) && unique.terms.count == 1 {
      let column = unique.columns[0]
      if unique.collation(unique.terms[0]) == table.columns[column].collation { return [column] }
    }
    let free = table.shared.filter { column in
      !table.key.contains(column) && table.columns[column].type != .any
        && !table.references.contains { $0.columns.contains(column) }
    }
    guard !free.isEmpty else { return nil }
    let column = dice.pick(free)
    tables[index].uniques.append(
      FleetUnique(
        name: "\(table.name)_u\(table.uniques.count + 1)",
        terms: [.column(column, table.columns[column].collation)]))
    return [column]
  }

  // MARK: - Constraints

  /// Returns the columns that expressions may read: no keys that differ from device to device, and
  /// no columns that stay on one.
  private func readable(_ index: Int) -> [Int] {
    let schema = FleetSchema(tables: tables)
    return tables[index].shared.filter { schema.keyTable(of: $0, in: tables[index]) == nil }
  }

  private mutating func addGenerated(to index: Int) {
    let columns = readable(index)
    guard !columns.isEmpty else { return }
    let name = tables[index].columns[dice.pick(columns)].name
    var column = FleetColumn(name: "g", type: .any)
    (column.type, column.generated) = dice.pick([
      (.text, "lower(\(name))"), (.integer, "length(\(name))"), (.text, "\(name) || '!'"),
    ])
    column.isStored = dice.chance(40)
    tables[index].columns.append(column)
  }

  private mutating func addCheck(to index: Int) {
    let columns = readable(index).filter { tables[index].columns[$0].type != .blob }
    guard !columns.isEmpty else { return }
    let first = dice.pick(columns)
    let second = dice.pick(columns)
    let (a, b) = (tables[index].columns[first].name, tables[index].columns[second].name)
    let one = ["length(\(a)) < 3", "\(a) <> 2", "\(a) <> 'b'"]
    let two = [
      "\(a) <= \(b)", "\(a) <> \(b)", "\(a) IS NULL OR \(b) IS NOT NULL", "\(a) = 1 OR \(b) < 3",
    ]
    if first == second {
      tables[index].checks.append(FleetCheck(condition: dice.pick(one), columns: [first]))
    } else {
      tables[index].checks.append(FleetCheck(condition: dice.pick(two), columns: [first, second]))
    }
  }

  private mutating func addUnique(to index: Int) {
    let table = tables[index]
    let plain = table.shared.filter { !table.key.contains($0) }
    let readable = readable(index).filter { !table.key.contains($0) }
    guard !plain.isEmpty else { return }
    var unique = FleetUnique(name: "\(table.name)_u\(table.uniques.count + 1)", terms: [])
    var documented: SQLName?
    let chosen = Array(dice.shuffled(plain).prefix(dice.chance(35) ? 2 : 1))
    unique.terms = chosen.map { column in
      let own = table.columns[column].collation
      return .column(column, dice.chance(15) && table.columns[column].type == .text ? .nocase : own)
    }
    if !readable.isEmpty, dice.chance(20) {
      let name = table.columns[dice.pick(readable)].name
      let expression = dice.pick(["lower(\(name))", "\(name) + 0", "abs(\(name))"])
      unique.terms = [.expression(expression)]
      // The expression fails if the condition does not hold.
      documented = expression.hasPrefix("abs") ? name : nil
    }
    if !readable.isEmpty, dice.chance(20) {
      let name = table.columns[dice.pick(readable)].name
      unique.condition = dice.pick(["\(name) IS NOT NULL", "\(name) > 1", "\(name) = 'a'"])
    } else if let documented {
      unique.terms = [.expression("json_extract(\(documented), '$')")]
      unique.condition = "json_valid(\(documented))"
    }
    if let generated = table.columns.firstIndex(where: { $0.generated != nil }), dice.chance(25) {
      unique.terms = [.column(generated, .binary)]
    }
    tables[index].uniques.append(unique)
  }
}
