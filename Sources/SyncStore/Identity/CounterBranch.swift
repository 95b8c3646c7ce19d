import SyncModel

/// The additions to counters that one state of a client's store has made since it parted from
/// another state. They become a sum of the new client that this state has become.
///
/// The former client's sum belongs to the other state, which continues it. Both sums together
/// contain the additions before the states parted, and those of each state since.
final class CounterBranch {
  private let session: StoreSession
  private let former: ClientIdentifier
  private let new: ClientIdentifier
  private var branches: [Place: Branch] = [:]

  /// A counter since it was set.
  private struct Place: Hashable {
    var row: RowKey
    var column: Int
    var since: Stamp
  }

  private struct Branch {
    /// The former client's sum when the states parted; `nil` for none.
    var common: Counter.Sum?
    /// The former client's sum in this state.
    var former: Counter.Sum
    /// What this state has added since.
    var added: Counter.Sum
  }

  init(session: StoreSession, former: ClientIdentifier, new: ClientIdentifier) {
    self.session = session
    self.former = former
    self.new = new
  }

  /// Returns the changes with the new client's sums in place of the former client's. All stamps in
  /// `changes` must be exceptions.
  func move(_ changes: TableChanges) throws -> TableChanges {
    guard let table = session.schema.table(wireName: changes.table) else { return changes }
    let counters = changes.columns.map { name in
      table.counters.first { table.columns[$0].wireName == name }
    }
    guard counters.contains(where: { $0 != nil }) else { return changes }
    let access = try session.access(table.id)
    var moved = changes
    for (index, column) in counters.enumerated() {
      if column != nil { moved.cells[index] = ValueColumn() }
    }
    var stamps: [Int: [Int: Int]] = [:]
    for (position, exception) in changes.exceptions.enumerated() {
      if let column = exception.column {
        stamps[exception.row, default: [:]][column] = position
      }
    }
    var cursors = [Int](repeating: 0, count: changes.columns.count)
    for row in 0..<changes.count {
      for index in changes.shapes[Int(changes.rowShapes[row])] {
        let cell = cursors[index]
        cursors[index] += 1
        guard let column = counters[index] else { continue }
        let value = changes.cells[index][cell]
        guard case .added(let sum, let before, let since) = CounterValue(value),
          let exception = stamps[row]?[index],
          changes.exceptions[exception].stamp.client == former
        else {
          moved.cells[index].append(value)
          continue
        }
        let place = Place(
          row: RowKey(table: table.id, identity: access.identity(of: row, in: changes)),
          column: column, since: since)
        let time = changes.exceptions[exception].stamp.time
        moved.cells[index].append(add(Counter.Sum(sum, at: time), before, place).encoded)
        moved.exceptions[exception].stamp.client = new
      }
    }
    return moved
  }

  private func add(
    _ sum: Counter.Sum, _ before: Counter.Sum?, _ place: Place
  ) -> CounterValue {
    let known = branches[place]
    let common = known == nil ? before : known?.common
    let difference = Counter.difference(from: common?.value ?? .integer(0), to: sum.value)
    let added = Counter.Sum(difference ?? sum.value, at: sum.time)
    branches[place] = Branch(common: common, former: sum, added: added)
    return .added(sum: added.value, before: known?.added, since: place.since)
  }

  /// Changes the counters in the store in the same way.
  func settle() throws {
    let rounded = WorkingSet(session: session)
    for (place, branch) in branches {
      guard var kept = try session.keptRows.row(place.row),
        let position = kept.cells.firstIndex(where: { $0.column == place.column }),
        case .counter(var counter) = CounterValue(kept.cells[position].value),
        counter.sums[former] == branch.former
      else { continue }
      let total = counter.total
      counter.sums[former] = branch.common
      counter.sums[new] = branch.added
      kept.cells[position].value = CounterValue.counter(counter).encoded
      try session.keptRows.replaceCells(of: place.row, with: kept.cells)
      // The sum of reals may differ in the last bit. The edits in the log count
      // from the value that is shown.
      if counter.total != total, try !isEdited(place.row.table) { try rounded.row(place.row) }
    }
    _ = try Materializer(set: rounded).run()
  }

  private func isEdited(_ table: Int) throws -> Bool {
    let statement = try session.access(table).statement(
      "SELECT 1 FROM \(session.schema[table].logName) LIMIT 1")
    defer { statement.reset() }
    return try statement.step()
  }
}
