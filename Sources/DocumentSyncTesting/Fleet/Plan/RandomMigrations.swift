import SyncModel

/// Random migrations by ALTER, and random times at which each device makes them. They have their
/// own dice, so that they do not change histories without migrations.
struct RandomMigrations {
  private var dice: Dice
  /// Draws what concerns tables whose rows are one register, so that it does not change the other
  /// migrations of a history.
  private var registerDice: Dice
  private let features: FleetFeatures
  /// The migrations drawn so far.
  private(set) var migrations: [FleetMigration] = []
  /// The number of migrations that each device has made.
  private var made: [Int: Int] = [:]
  private var versions: [Int: FleetVersion] = [:]

  init(seed: UInt64, features: FleetFeatures) {
    dice = Dice(seed: seed &* 0x9e37_79b9_7f4a_7c15 ^ 0x616c_7465)
    registerDice = Dice(seed: seed &* 0x9e37_79b9_7f4a_7c15 ^ 0x7265_6769)
    self.features = features
  }

  /// Draws the migrations of a schema.
  ///
  /// - Parameter canDrop: Whether columns may be dropped. They may not if a store may have no whole
  ///   store for comparison.
  mutating func draw(
    _ schema: FleetSchema, _ devices: [Int], canDrop: Bool, _ names: inout RandomNames
  ) {
    guard features.contains(.alters), !schema.synchronized.isEmpty else { return }
    let hasMigrations = dice.chance(30)
    let hasRegisterColumns =
      features.contains(.registerColumns) && schema.synchronized.contains(where: \.hasWholeRows)
      && (registerDice.chance(60) || hasMigrations)
    guard hasMigrations || hasRegisterColumns else { return }
    for device in devices { versions[device] = FleetVersion(schema) }
    var version = FleetVersion(schema)
    if hasMigrations { drawMigrations(schema, &version, devices, canDrop: canDrop, &names) }
    if hasRegisterColumns { drawRegisterColumns(&version, canDrop: canDrop) }
  }

  private mutating func drawMigrations(
    _ schema: FleetSchema, _ version: inout FleetVersion, _ devices: [Int], canDrop: Bool,
    _ names: inout RandomNames
  ) {
    for number in 1...dice.pick([1, 2, 3, 4]) {
      let table = dice.pick(version.shared.synchronized)
      let only = dice.chance(40) ? dice.pick(devices) : nil
      // Do not rename an added column, since it keeps the name by which a store first notices it.
      let column = dice.pick(schema.table(table.name)?.columns ?? table.columns).name
      let migration: FleetMigration? =
        switch dice.below(100) {
        case 0..<40: addition(names.migrated("x\(number)"), to: table, version.shared)
        case 40..<60: canDrop ? removal(from: table, version.shared) : nil
        case 60..<80:
          .renameColumn(column, table: table.name, to: names.migrated("c\(number)"), device: only)
        default: .renameTable(table.name, to: names.migrated("s\(number)"), device: only)
        }
      guard let migration else { continue }
      migrations.append(migration)
      version.carryOut(migration)
    }
  }

  /// Adds columns to tables whose rows are one register, and drops them: there are few such tables,
  /// so that the migrations above seldom concern one.
  private mutating func drawRegisterColumns(_ version: inout FleetVersion, canDrop: Bool) {
    let names = version.shared.synchronized.filter(\.hasWholeRows).map(\.name)
    for (index, name) in names.enumerated() {
      if canDrop, registerDice.chance(80), let table = version.shared.table(name),
        let removal = Self.removal(from: table, version.shared, &registerDice)
      {
        migrations.append(removal)
        version.carryOut(removal)
      }
      if registerDice.chance(70), let table = version.shared.table(name) {
        let addition = Self.addition(
          "x\(10 + index)", to: table, version.shared, features, &registerDice)
        migrations.append(addition)
        version.carryOut(addition)
      }
    }
  }

  /// Puts migrations between the others.
  mutating func mix(_ more: [FleetMigration], _ schema: FleetSchema, _ devices: [Int]) {
    if more.isEmpty { return }
    if migrations.isEmpty { for device in devices { versions[device] = FleetVersion(schema) } }
    for migration in more {
      migrations.insert(migration, at: dice.below(migrations.count + 1))
    }
  }

  /// Adds a migration after the others.
  mutating func add(_ migration: FleetMigration, _ schema: FleetSchema, _ devices: [Int]) {
    if migrations.isEmpty { for device in devices { versions[device] = FleetVersion(schema) } }
    migrations.append(migration)
  }

  /// The schema of a device as far as it has migrated; `nil` if it never does.
  func version(of device: Int) -> FleetVersion? { versions[device] }

  /// Draws whether a device makes its next migration now; if so, records the migration.
  mutating func isTime(for device: Int) -> Bool {
    guard made[device, default: 0] < migrations.count, dice.chance(20) else { return false }
    let migration = migrations[made[device, default: 0]]
    if migration.remade != nil || versions[device]?.statement(migration, on: device) != nil {
      versions[device]?.carryOut(migration)
    }
    made[device, default: 0] += 1
    return true
  }

  // MARK: - Columns

  /// Draws the addition of a column. The rows of the table must not be one register: a device
  /// without the column could not write all of such a row.
  private mutating func addition(
    _ name: SQLName, to table: FleetTable, _ schema: FleetSchema
  ) -> FleetMigration? {
    table.hasWholeRows ? nil : Self.addition(name, to: table, schema, features, &dice)
  }

  private static func addition(
    _ name: SQLName, to table: FleetTable, _ schema: FleetSchema, _ features: FleetFeatures,
    _ dice: inout Dice
  ) -> FleetMigration {
    var column = FleetColumn(
      name: name,
      type: dice.pick(weighted: [(40, .integer), (40, .text), (10, .real), (10, .any)]))
    if column.type == .text, dice.chance(20) { column.collation = .nocase }
    let parents = schema.synchronized.filter { $0.hasSurrogateKey }
    if dice.chance(25), features.contains(.references), !parents.isEmpty {
      let parent = dice.pick(parents)
      column.type = .integer
      column.collation = .binary
      return .addColumn(
        column, table: table.name,
        FleetReference(
          columns: [table.columns.count], parent: parent.name, parentColumns: parent.key,
          parentNames: parent.key.map { parent.columns[$0].name },
          onDelete: dice.pick([.setNull, .setNull, .cascade, .restrict, .noAction]),
          onUpdate: dice.pick([.cascade, .noAction]), isDeferred: dice.chance(25)))
    }
    if dice.chance(60) { column.defaultValue = dice.pick(RandomEdit.literals(column.type)) }
    column.isNotNull =
      column.defaultValue != nil && features.contains(.conditions) && dice.chance(40)
    return .addColumn(column, table: table.name, nil)
  }

  /// Draws the removal of a column that SQLite can drop, judging by the column's table.
  private mutating func removal(from table: FleetTable, _ schema: FleetSchema) -> FleetMigration? {
    table.hasWholeRows ? nil : Self.removal(from: table, schema, &dice)
  }

  /// Drops a column that SQLite can drop, as far as its table tells.
  private static func removal(
    from table: FleetTable, _ schema: FleetSchema, _ dice: inout Dice
  ) -> FleetMigration? {
    guard !RandomRemakes.dependsOnNumbers(table, schema) else { return nil }
    let texts =
      table.checks.map(\.condition) + table.columns.compactMap(\.generated) + schema.triggers
      + table.uniques.flatMap { unique in
        [unique.condition ?? ""]
          + unique.terms.map { if case .expression(let text) = $0 { text } else { "" } }
      }
    let free = table.columns.indices.filter { column in
      let name = table.columns[column].name
      return !table.key.contains(column) && table.localKey != column
        && table.columns[column].generated == nil
        && !table.references.contains { $0.columns.contains(column) }
        && !table.uniques.contains { $0.columns.contains(column) }
        && !schema.tables.contains { other in
          other.references.contains {
            $0.parent == table.name && $0.parentColumns.contains(column)
          }
        }
        && !texts.contains {
          words(of: $0).contains(name) || $0.hasBytes(name.sql) && name.sql != name.text
        }
    }
    guard free.count > 1 else { return nil }
    return .dropColumn(table.columns[dice.pick(free)].name, table: table.name)
  }

  /// Returns the names and other words in an expression.
  private static func words(of text: String) -> Set<SQLName> {
    Set(
      text.utf8.split { byte in
        byte < 128 && byte != UInt8(ascii: "_") && !(48...57).contains(byte)
          && !(65...90).contains(byte & 0xDF)
      }.map { SQLName(String(decoding: $0, as: UTF8.self)) })
  }
}
