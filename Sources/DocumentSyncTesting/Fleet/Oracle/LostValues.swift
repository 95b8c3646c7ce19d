import SyncModel

/// The values that lost against a concurrent change: published values that no table shows, and that
/// no client that knew them has replaced or deleted.
///
/// By I1 they must be in the conflict journal.
struct LostValues {
  struct Loss: Hashable, CustomStringConvertible {
    var row: OracleKey
    var column: SQLName
    var value: Value

    var description: String { "\(row): \(column) = \(value.sqlDescription)" }
  }

  private struct Said {
    var value: Value
    var stamp: Stamp
    var set: Int
  }

  private let sets: [SyncChangeSet]
  private let schema: FleetSchema
  private var cells: [OracleKey: [SQLName: [Said]]] = [:]
  /// The change sets that delete a row.
  private var deletions: [OracleKey: [Int]] = [:]

  init(_ sets: [SyncChangeSet], schema: FleetSchema) {
    self.sets = sets
    self.schema = schema
    for (index, set) in sets.enumerated() {
      for changes in set.tables { add(changes, of: index, by: set.header.client) }
    }
  }

  private mutating func add(_ changes: TableChanges, of set: Int, by author: ClientIdentifier) {
    let collations = schema.table(changes.table)?.keyCollations ?? []
    var cursors = [Int](repeating: 0, count: changes.columns.count)
    for index in 0..<changes.count {
      let key = changes.oracleKey(index, collations: collations)
      let exceptions = changes.exceptions.filter { $0.row == index }
      let stamp = Stamp(time: changes.times[index], client: author)
      if RowAction(rawValue: changes.actions[index])?.isDeletion == true {
        deletions[key, default: []].append(set)
      }
      for column in changes.shapes[Int(changes.rowShapes[index])] {
        cells[key, default: [:]][changes.columns[column], default: []].append(
          Said(
            value: changes.cells[column][cursors[column]],
            stamp: exceptions.first { $0.column == column }?.stamp ?? stamp, set: set))
        cursors[column] += 1
      }
    }
  }

  /// Returns whether the author of one change set had seen another.
  private func knows(_ set: Int, _ other: Int) -> Bool {
    let header = sets[other].header
    if sets[set].header.client == header.client { return sets[set].header.number >= header.number }
    return sets[set].dependencies.number(of: header.client) >= header.number
  }

  /// Returns the lost values, given the merged state and the rows shown at the end.
  func lost(in state: LogicalState, shown: Set<OracleKey>) -> [Loss] {
    cells.sorted { $0.key < $1.key }.flatMap { key, columns -> [Loss] in
      guard let row = state.rows[key] else { return [] }
      let isGone = row.existence == .deleted && !shown.contains(key)
      return columns.sorted { $0.key < $1.key }.flatMap { name, said -> [Loss] in
        // No addition to a counter can lose.
        let column = schema.table(key.table)?.columns.first { $0.name == name }
        if column?.isCounter == true { return [] }
        return said.filter { isLost($0, among: said, row.cells[name]?.value, isGone: isGone, key) }
          .map {
            Loss(row: key, column: name, value: $0.value)
          }
      }
    }
  }

  private func isLost(
    _ one: Said, among all: [Said], _ winner: Value?, isGone: Bool, _ key: OracleKey
  ) -> Bool {
    let isGivenUp =
      all.contains { $0.stamp > one.stamp && knows($0.set, one.set) }
      || deletions[key, default: []].contains { knows($0, one.set) }
    // Two equal values are no conflict.
    let isAlone = all.filter { $0.value == one.value }.count == 1
    return !isGivenUp && isAlone && (isGone || one.value != winner)
  }
}
