/// Draws references to integer keys from columns that store texts, or whatever a program writes. It
/// has dice of its own, so that it does not change histories without them.
///
/// The columns are in no key and no index: two forms of one number are one value there on the other
/// devices (`Documentation/Reliability.md`).
struct RandomAffinities {
  private var dice: Dice
  private let isDrawn: Bool

  init(seed: UInt64, options: Fleet.Options) {
    dice = Dice(seed: seed &* 0x9e37_79b9_7f4a_7c15 ^ 0x6166_6669)
    let isChosen = dice.chance(15) || options.always.contains(.affinities)
    isDrawn = isChosen && options.features.isSuperset(of: [.affinities, .references])
  }

  mutating func draw(_ schema: inout FleetSchema) {
    guard isDrawn else { return }
    for index in schema.tables.indices {
      for column in schema.tables[index].columns.indices
      where Self.isFree(column, of: schema.tables[index], in: schema) && dice.chance(75) {
        schema.tables[index].columns[column].type = dice.pick([.text, .text, .any])
      }
    }
  }

  /// Returns whether a column is nothing but a reference to a single integer key.
  private static func isFree(
    _ column: Int, of table: FleetTable, in schema: FleetSchema
  ) -> Bool {
    let references = table.references.filter { $0.columns.contains(column) }
    let isReferredTo = schema.tables.contains { other in
      other.references.contains {
        $0.parent == table.name && $0.parentColumns.contains(column)
      }
    }
    let name = table.columns[column].name
    return !references.isEmpty && !isReferredTo && !table.key.contains(column)
      && references.allSatisfy { reference in
        reference.columns == [column]
          && schema.table(reference.parent)?.integerKey == reference.parentColumns[0]
      }
      && !table.uniques.contains { $0.columns.contains(column) || $0.condition != nil }
      && !table.checks.contains { $0.columns.contains(column) }
      && !schema.triggers.contains { $0.contains(name.text) }
  }
}

extension FleetColumn {
  /// Returns an integer key in the forms in which a program may write a reference to it into the
  /// column.
  func forms(of key: String) -> [String] {
    switch type {
    case .integer, .real, .blob: [key]
    case .text: [key, key, "'\(key)'", "' \(key)'", "'0\(key)'", "\(key).0"]
    case .any: [key, key, "'\(key)'", "'0\(key)'", "\(key).0"]
    }
  }
}
