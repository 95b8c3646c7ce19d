import SyncModel

/// Counters: cells whose edits add up.
extension WorkingSet {
  /// Merges a client's additions to a counter; returns false if the cell sets the counter instead.
  ///
  /// Additions to a value that has been replaced since are void: the edit that set the counter
  /// determines its value.
  func add(
    _ cell: (column: Int, value: Value, stamp: LocalStamp), to row: WorkingRow
  ) throws -> Bool {
    let column = session.schema[row.key.table].columns[cell.column]
    guard let value = CounterValue(cell.value) else {
      throw StoreError(
        .malformedChangeSet, path: "",
        message: "A change set has a damaged value for the counter \(quoted(column.name)).",
        remedy: "Update DocumentSync on all devices.")
    }
    guard case .added(let sum, _, let stamp) = value else { return false }
    let since = LocalStamp(
      time: stamp.time.rawValue, client: try session.clients.number(of: stamp.client))
    let said = Counter.Sum(sum, at: HybridTime(rawValue: cell.stamp.time))
    let known = row.state.stamp(of: cell.column)
    if session.clients.precedes(known, since) {
      try session.early.store(
        said, of: cell.stamp.client, since: since, cell.column, row.key)
    } else if since == known {
      merge([cell.stamp.client: said], into: cell.column, of: row)
    }
    return true
  }

  /// Merges a value to which a counter was set with the stamp that the cell has already; the values
  /// may differ. Returns false if the cell has another stamp.
  func settle(
    _ cell: (column: Int, value: Value, stamp: LocalStamp), of row: WorkingRow
  ) throws -> Bool {
    guard cell.stamp == row.state.stamp(of: cell.column) else { return false }
    guard cell.stamp != .zero, cell.stamp != row.state.erasureStamp,
      let value = row.values[cell.column], value != cell.value
    else { return true }
    let (known, other) = (CounterValue(value)?.counter, CounterValue(cell.value)?.counter)
    switch (known, other) {
    case (.some(var counter), .some(let other)):
      counter.merge(other)
      let isNumber = counter.sums.isEmpty
      row.values[cell.column] =
        isNumber ? counter.base : CounterValue.counter(counter).encoded
    // A value that is no number, to which nothing can be added, wins over a number.
    case (nil, .some): break
    case (.some, nil): row.values[cell.column] = cell.value
    case (nil, nil):
      if value.yields(to: cell.value) { row.values[cell.column] = cell.value }
    }
    return true
  }

  /// Adds the additions that arrived early to a counter that has now been set.
  func addEarly(to column: Int, of row: WorkingRow) throws {
    merge(
      try session.early.take(since: row.state.stamp(of: column), column, row.key),
      into: column, of: row)
  }

  /// Merges the sums of clients into a counter. Adds nothing to a value that is not a number.
  private func merge(_ sums: [Int32: Counter.Sum], into column: Int, of row: WorkingRow) {
    guard !sums.isEmpty,
      var counter = row.values[column].flatMap(CounterValue.init)?.counter
    else { return }
    for (client, sum) in sums { counter.merge(sum, of: session.clients.client(client)) }
    row.values[column] = CounterValue.counter(counter).encoded
  }
}

extension ColumnSchema {
  /// Returns the value that a table shows for a counter.
  func number(_ value: Value) -> Value {
    (CounterValue(value)?.shown ?? .null).stored(with: affinity)
  }
}

extension CounterValue {
  /// The counter that the value is, or that begins with it; `nil` for an addition.
  var counter: Counter? {
    switch self {
    case .plain(let value): Counter(base: value)
    case .counter(let counter): counter
    case .added: nil
    }
  }
}
