import SyncModel

/// Draws migrations by which a key gets another affinity: `bigint` becomes `varchar`, or the other
/// way round. It has dice of its own, so that it does not change histories without them.
///
/// Programs write only whole numbers into the key and the columns that refer to it, so that no two
/// values are one in either form. `KeyFormTests` has keys of which that is not true.
struct RandomForms {
  private var dice: Dice
  private let isDrawn: Bool
  private var places: [Place] = []

  init(seed: UInt64, options: Fleet.Options) {
    dice = Dice(seed: seed &* 0x9e37_79b9_7f4a_7c15 ^ 0x666f_726d)
    let isChosen = dice.chance(15) || options.always.contains(.keyForms)
    isDrawn = isChosen && options.features.isSuperset(of: [.keyForms, .alters, .remakes])
  }

  // A single `INTEGER PRIMARY KEY` would be a rowid.
  private static let numberTypes = ["INT", "BIGINT"]
  private static let textTypes = ["TEXT", "VARCHAR(20)", "CLOB"]

  /// A column of a table.
  private struct Place: Hashable {
    var table: SQLName
    var column: Int
  }

  /// Chooses a key, and gives it and what refers to it their first types.
  mutating func draw(_ schema: inout FleetSchema) {
    guard isDrawn else { return }
    let candidates = schema.synchronized.filter { $0.localKey == nil && !$0.hasSurrogateKey }
      .flatMap { table in
        table.key.filter { schema.keyTable(of: $0, in: table) == nil }
          .map { Self.related(Place(table: table.name, column: $0), in: schema) }
      }.filter { places in places.allSatisfy { Self.canChange($0, of: schema) } }
    guard !candidates.isEmpty else { return }
    places = dice.pick(candidates)
    for place in places {
      guard let index = schema.position(of: place.table) else { continue }
      var column = schema.tables[index].columns[place.column]
      (column.type, column.collation, column.changesForm) = (.integer, .binary, true)
      column.declaredType = type(isText: dice.chance(40))
      if column.defaultValue != nil { column.defaultValue = dice.pick(["1", "2", "3"]) }
      schema.tables[index].columns[place.column] = column
    }
  }

  private mutating func type(isText: Bool) -> String {
    dice.pick(isText ? Self.textTypes : Self.numberTypes)
  }

  /// Draws the migrations.
  ///
  /// - Parameter migrations: The other migrations. If they rename one of the columns, there are none.
  mutating func migrations(
    _ schema: FleetSchema, besides migrations: [FleetMigration]
  ) -> [FleetMigration] {
    var changes: [FleetMigration] = []
    for place in places {
      guard let table = schema.table(place.table) else { continue }
      let column = table.columns[place.column]
      let isRenamed = migrations.contains {
        if case .renameColumn(column.name, table.name, _, _) = $0 { true } else { false }
      }
      if isRenamed { continue }
      var isText = column.declaredType.map(Self.textTypes.contains) ?? false
      let isKey = table.key.contains(place.column)
      for _ in 0..<(isKey ? dice.pick([1, 1, 2, 3]) : dice.pick([0, 1, 1])) {
        isText.toggle()
        changes.append(
          .changeForm(
            FleetFormChange(
              table: place.table, column: column.name, declaredType: type(isText: isText),
              dropsFirst: dice.chance(50), salt: dice.word())))
      }
    }
    return changes
  }

  /// Returns a column and all that refer to it, or to which it refers, directly or not.
  private static func related(_ start: Place, in schema: FleetSchema) -> [Place] {
    var found = [start]
    var next = 0
    while next < found.count {
      let place = found[next]
      next += 1
      for table in schema.tables {
        for reference in table.references {
          for (own, other) in zip(reference.columns, reference.parentColumns) {
            let ends = [
              Place(table: table.name, column: own), Place(table: reference.parent, column: other),
            ]
            guard ends.contains(place) else { continue }
            found += ends.filter { !found.contains($0) }
          }
        }
      }
    }
    return found
  }

  /// Returns whether a column can hold nothing but whole numbers, and no expression reads it.
  private static func canChange(_ place: Place, of schema: FleetSchema) -> Bool {
    guard let table = schema.table(place.table) else { return false }
    let column = table.columns[place.column]
    let texts =
      table.checks.map(\.condition) + table.columns.compactMap(\.generated)
      + table.uniques.flatMap { unique in
        [unique.condition ?? ""]
          + unique.terms.map { if case .expression(let text) = $0 { text } else { "" } }
      }
    let isBinary = table.uniques.flatMap(\.terms).allSatisfy { term in
      if case .column(place.column, let collation) = term { collation == .binary } else { true }
    }
    return [.integer, .text].contains(column.type) && !column.isLocal && !column.isCounter
      && column.generated == nil && !table.isLocal && !table.isStrict && !table.hasRowidKey
      && table.integerKey != place.column && isBinary
      // It needs a text.
      && table.mergeType != .keepBoth
      && !(table.localKey != nil && table.key.contains(place.column))
      && table.references.allSatisfy { $0.isEnforced || !$0.columns.contains(place.column) }
      && (table.key.contains(place.column)
        || table.references.contains { $0.columns.contains(place.column) })
      && !texts.contains { $0.hasBytes(column.name.text) || $0.hasBytes(column.name.sql) }
      && !RandomRemakes.dependsOnNumbers(table, schema)
  }
}

/// The migration that gives a column of a key, or one that refers to it, another type. It recreates
/// the table.
struct FleetFormChange: Hashable, Sendable {
  /// The names in change sets.
  var table: SQLName
  var column: SQLName
  /// The new type, as SQL.
  var declaredType: String
  /// As in ``FleetRemake``.
  var dropsFirst: Bool
  var salt: UInt64
}
