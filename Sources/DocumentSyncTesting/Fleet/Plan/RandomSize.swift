/// Draws which histories are long, and lets these reach 200 rows and 60 change sets. It has dice of
/// its own for that, so that what a long history began with stays as it was.
struct RandomSize {
  /// The rows of one device, and the change sets of all, that a long history reaches.
  static let rows = 200
  static let changeSets = 60

  private var dice: Dice
  private let isLarge: Bool
  /// The tables that accept new rows, by position.
  private var accepting: [Int] = []

  init(seed: UInt64, features: FleetFeatures) {
    dice = Dice(seed: seed &* 0x9e37_79b9_7f4a_7c15 ^ 0x6c61_7267)
    isLarge = features.contains(.large)
  }

  /// The share of the histories that are long, in percent. Some of them miss the sizes, such as
  /// those whose conditions refuse most rows.
  var percentage: Int { isLarge ? 13 : 10 }

  /// The inserts that fill the store of a long history as far as its schema accepts them.
  mutating func inserts(
    into schema: FleetSchema, besides start: [String], _ edits: RandomEdit
  ) throws -> [String] {
    let tables = schema.tables.indices.filter {
      !schema.tables[$0].isLocal && !schema.hasPlainKeys(schema.tables[$0])
    }
    guard isLarge, !tables.isEmpty else { return [] }
    let database = try FleetSQLite(":memory:")
    defer { database.close() }
    try schema.make(in: database, filledBy: start)
    var count = try schema.rowCount(in: database)
    var inserts: [String] = []
    for attempt in 1...40 where count < Self.rows {
      let table = dice.pick(tables)
      let bulk = edits.bulk(
        of: 20 + dice.below(60), in: schema.tables[table], after: 100 * attempt, &dice)
      try schema.fill(database, by: bulk)
      let former = count
      count = try schema.rowCount(in: database)
      guard count > former else { continue }
      inserts.append(bulk)
      accepting.append(table)
    }
    return inserts
  }

  /// Inserts of a new row, most of which the schema accepts.
  ///
  /// - Parameter number: Differs from that of every other call.
  mutating func insertsOfOneRow(_ edits: RandomEdit, number: Int) -> [String] {
    guard !accepting.isEmpty else { return [] }
    return (0..<2).map { _ in
      edits.bulk(of: 1, in: edits.tables[dice.pick(accepting)], after: 10_000 + 100 * number, &dice)
    }
  }

  /// Whether a long history goes on. Statements are refused, and edits change nothing, so that not
  /// every synchronization brings a change set. Where change sets carry little, some bring several.
  func goesOn(after steps: [FleetStep], _ circumstances: FleetCircumstances) -> Bool {
    let brings = circumstances.dividesEdits ? 2.0 : 2.0 / 3
    return isLarge && Double(Self.exchanges(in: steps)) * brings < Double(Self.changeSets)
  }

  /// The number of synchronizations of devices that have edits to send.
  private static func exchanges(in steps: [FleetStep]) -> Int {
    var edited: Set<Int> = []
    return steps.count { step in
      switch step {
      case .edit(let device, _):
        edited.insert(device)
        return false
      case .sync(let device, _, _): return edited.remove(device) != nil
      default: return false
      }
    }
  }
}
