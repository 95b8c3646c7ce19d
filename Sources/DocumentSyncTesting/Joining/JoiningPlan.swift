import SyncModel

/// The plan of one joining: a schema, and the statements that fill both databases. It is a pure
/// function of the seed.
struct JoiningPlan: Sendable {
  let seed: UInt64
  /// The schema, with a token in each row of a synchronized table.
  private(set) var schema: FleetSchema
  /// The statements that fill the document's database before it is put under sync.
  private(set) var start: [String]
  /// The statements that programs then run on the document's device.
  private(set) var edits: [String]
  /// The statements that fill or edit the database that joins.
  private(set) var formerEdits: [String]
  /// The statements by which programs without foreign keys then delete rows of it to which others
  /// refer.
  private(set) var careless: [String] = []
  /// Whether the database that joins is a copy of the document's as it was before the edits.
  let isCopy: Bool
  let prefersDocument: Bool
  /// Whether the database is a document of its own that its device created without seeing the other
  /// one, so that one of the two devices goes over to the document of the other with its rows.
  let isCreatedTwice: Bool

  init(seed: UInt64, features: FleetFeatures) throws {
    var dice = Dice(seed: seed &* 0x9e37_79b9_7f4a_7c15 ^ 0x6d65_7267)
    var options = Fleet.Options()
    // Migrations and what programs do over a long time are a matter of fleets.
    options.features = features.subtracting([
      .triggers, .remakes, .alters, .missingKeys, .heldEdits, .large, .long, .looseTables,
      .mergeTypes, .policies,
    ])
    options.devices = 1
    options.steps = 1
    if dice.chance(30) { options.always.insert(.marks) }
    if dice.chance(10) { options.always.insert(.chains) }
    var plans = RandomPlan(seed: seed, options: options)
    let drawn = try plans.draw()
    self.seed = seed
    isCopy = dice.chance(60)
    prefersDocument = dice.chance(60)
    isCreatedTwice = dice.chance(25)
    var circles = RandomCircles(seed: seed)
    let hasCircles = features.contains(.references) && dice.chance(35)
    schema = hasCircles ? circles.draw() : drawn.schema
    start = hasCircles ? [] : drawn.start
    let editing = RandomEdit(schema: schema, features: options.features)
    start += (0..<(2 + dice.below(12))).map { _ in editing.insertion(&dice) }
    edits = (0..<dice.below(8)).flatMap { _ in editing.draw(&dice) }
    formerEdits =
      isCopy
      ? [] : (0..<(4 + dice.below(20))).map { _ in editing.insertion(&dice) }
    formerEdits += (0..<(2 + dice.below(10))).flatMap { _ in editing.draw(&dice) }
    for index in schema.markTables.indices {
      schema.markTables[index].isUnique = dice.chance(30)
      let table = schema.markTables[index]
      formerEdits += (1...(2 + dice.below(8))).map { Self.mark(table, $0, &dice) }
    }
    if hasCircles {
      start += (0..<(1 + dice.below(4))).map { _ in circles.rows() }
      formerEdits += (0..<(2 + dice.below(5))).map { _ in circles.rows() }
    }
    if dice.chance(15), !isCreatedTwice,
      let reference = schema.synchronized.flatMap(\.references).first
    {
      let column = reference.parentNames[0].sql
      careless = ["DELETE FROM \(reference.parent.sql) WHERE \(column) IN (1, 2, 'k1')"]
    }
    schema.addTokens()
  }

  /// Returns a statement that inserts a row of an excluded table that refers to some row.
  private static func mark(
    _ table: FleetSchema.MarkTable, _ number: Int, _ dice: inout Dice
  ) -> String {
    let key = table.parentKey.sql
    return "INSERT OR IGNORE INTO \(table.name.sql) (id, p) VALUES (\(number), "
      + "(SELECT \(key) FROM \(table.parent.sql) ORDER BY \(key) LIMIT 1 "
      + "OFFSET \(dice.below(8))))"
  }

  // MARK: - Shorter plans

  var statementCount: Int { start.count + edits.count + formerEdits.count + careless.count }

  /// Returns the plan without one of its statements.
  func without(_ index: Int) -> JoiningPlan {
    var plan = self
    if index < start.count {
      plan.start.remove(at: index)
    } else if index < start.count + edits.count {
      plan.edits.remove(at: index - start.count)
    } else if index < start.count + edits.count + formerEdits.count {
      plan.formerEdits.remove(at: index - start.count - edits.count)
    } else {
      plan.careless = []
    }
    return plan
  }

  /// The plan for people, one statement on each line.
  var script: [String] {
    schema.sql + ["-- \(schema.configuration)"]
      + ["-- The document"] + start + ["-- Edits of the document"] + edits
      + [isCopy ? "-- Edits of a copy of the first database" : "-- The other database"]
      + formerEdits + careless + ["-- \(way)"]
  }

  /// How the database comes to the document.
  private var way: String {
    if isCreatedTwice { return "both are documents; one device goes over to the other's" }
    return prefersDocument ? "merge, prefer document" : "merge, prefer local"
  }
}

extension FleetSchema {
  /// The column that contains the token of a row.
  static let token: SQLName = "token"

  /// Adds a column to each synchronized table by which rows can be recognized.
  fileprivate mutating func addTokens() {
    for index in tables.indices where !tables[index].isLocal {
      tables[index].columns.append(FleetColumn(name: Self.token, type: .text))
    }
  }
}
