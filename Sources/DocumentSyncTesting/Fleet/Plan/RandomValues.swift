import SyncModel

/// Random odd uses of values in applications: references without a declaration, with 0 and '' for
/// none; tenants in several references; invalid text, and numbers at the limits.
struct RandomValues {
  private var dice: Dice
  private let features: FleetFeatures

  init(seed: UInt64, features: FleetFeatures) {
    dice = Dice(seed: seed &* 0x9e37_79b9_7f4a_7c15 ^ 0x7661_6c75)
    self.features = features
  }

  mutating func draw(_ schema: inout FleetSchema) {
    guard features.contains(.values) else { return }
    schema.hasOddValues = dice.chance(40)
    let isWide = schema.hasOddValues && dice.chance(30)
    schema.isWide = isWide && !schema.tables.contains(where: Self.computesOfBlobs)
    guard features.contains(.references) else { return }
    if dice.chance(5) { schema = tenants() }
    let addsReferences = dice.chance(35)
    if addsReferences, features.contains(.undeclared) {
      for _ in 0..<dice.pick([1, 1, 2]) { addReference(to: &schema) }
    }
    for index in schema.tables.indices where dice.chance(30) { Self.loseKeys(of: index, &schema) }
  }

  /// Returns whether an index or a stored column computes a value from a column that can contain
  /// blobs. In UTF-16 databases SQLite (3.40.1) converts a blob that is bound to a statement to
  /// another text than the same blob in the table.
  private static func computesOfBlobs(_ table: FleetTable) -> Bool {
    let isComputed =
      table.columns.contains { $0.generated != nil && $0.isStored }
      || table.uniques.contains { unique in
        unique.condition != nil
          || unique.terms.contains { term in
            switch term {
            case .expression: true
            case .column(let column, _): table.columns[column].generated != nil
            }
          }
      }
    return isComputed && table.columns.contains { [.any, .blob].contains($0.type) }
  }

  /// Lets keys be NULL in a table that is not connected with another one: rows that are on
  /// one device alone would affect rows of other tables there.
  static func loseKeys(of index: Int, _ schema: inout FleetSchema) {
    let table = schema.tables[index]
    let isReferredTo = schema.tables.contains { other in
      other.references.contains { $0.parent == table.name }
    }
    guard !table.hasSurrogateKey, !table.isWithoutRowid, !table.isStrict, !isReferredTo,
      table.references.isEmpty, table.uniques.isEmpty
    else { return }
    for column in table.key { schema.tables[index].columns[column].isNotNull = false }
  }

  /// Adds a column that refers to another table's key. Only the configuration of the
  /// store declares this reference.
  private mutating func addReference(to schema: inout FleetSchema) {
    let parents = schema.synchronized.filter { table in
      table.key.count == 1
        && (table.hasSurrogateKey
          || table.columns[table.key[0]].type == .text
            && schema.keyTable(of: table.key[0], in: table) == nil)
    }
    guard !parents.isEmpty else { return }
    let parent = dice.pick(parents)
    let index = dice.below(schema.tables.count)
    let table = schema.tables[index]
    guard !table.isLocal else { return }
    let type = parent.columns[parent.key[0]].type
    var column = FleetColumn(name: "n\(table.columns.count)", type: type)
    column.collation = parent.columns[parent.key[0]].collation
    if dice.chance(50) {
      column.isNotNull = true
      if dice.chance(70) { column.defaultValue = type == .text ? "''" : "0" }
    }
    schema.tables[index].references.append(
      FleetReference(
        columns: [table.columns.count], parent: parent.name, parentColumns: parent.key,
        parentNames: [parent.columns[parent.key[0]].name], onDelete: .setNull,
        onUpdate: .noAction, isDeferred: false, isEnforced: false))
    schema.tables[index].columns.append(column)
  }

  /// Draws tables whose keys contain a tenant, and one table that refers to two of them by one
  /// column. One of the two declares no reference to tenants. Triggers refuse to remove a tenant
  /// that it contains, unless tenants are free (``FleetFeatures/freeTenants``).
  private mutating func tenants() -> FleetSchema {
    func number(_ name: SQLName) -> FleetColumn {
      FleetColumn(name: name, type: .integer, isNotNull: true)
    }
    func reference(
      _ columns: [Int], _ parent: FleetTable, _ action: FleetReference.Action
    ) -> FleetReference {
      FleetReference(
        columns: columns, parent: parent.name, parentColumns: parent.key,
        parentNames: parent.key.map { parent.columns[$0].name }, onDelete: action,
        onUpdate: .noAction, isDeferred: false)
    }
    let actions: [FleetReference.Action] = [.noAction, .restrict, .cascade]
    var tenant = FleetTable(
      name: "t1", columns: [FleetColumn(name: "id", type: .integer)], key: [0])
    tenant.hasSurrogateKey = true
    tenant.columns.append(FleetColumn(name: "a", type: .text))
    let columns = [number("l"), number("k"), FleetColumn(name: "b", type: .text)]
    var one = FleetTable(name: "t2", columns: columns, key: [0, 1])
    one.references = [reference([0], tenant, dice.pick(actions))]
    var two = FleetTable(name: "t3", columns: columns, key: [0, 1])
    two.isWithoutRowid = dice.chance(50)
    var both = FleetTable(
      name: "t4", columns: [FleetColumn(name: "id", type: .integer)], key: [0])
    both.hasSurrogateKey = true
    both.columns += ["c", "x", "y"].map { FleetColumn(name: $0, type: .integer) }
    both.references = [
      reference([1, 2], one, dice.pick(actions)), reference([1, 3], two, dice.pick(actions)),
    ]
    var schema = FleetSchema(tables: [tenant, one, two, both])
    if features.contains(.freeTenants) { return schema }
    schema.triggers = ["DELETE ON t1", "UPDATE OF id ON t1"].enumerated().map { index, event in
      "CREATE TRIGGER held\(index) BEFORE \(event) WHEN EXISTS "
        + "(SELECT 1 FROM t3 WHERE l = OLD.id) BEGIN SELECT RAISE(ABORT, 'held'); END"
    }
    return schema
  }
}
