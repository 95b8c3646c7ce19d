import SyncModel

/// Cells whose edits add up.
extension WorkingSet {
  /// Takes over what a client has added to a counter; false if the cell sets
  /// it instead.
  ///
  /// What was added to a value that has been replaced since is void: who set
  /// the counter said how much it is.
  func add(
    _ cell: (column: Int, value: Value, stamp: LocalStamp), to row: WorkingRow
  ) throws -> Bool {
    let column = session.schema[row.key.table].columns[cell.column]
    guard let value = CounterValue(cell.value) else {
      throw StoreError(
        .malformedChangeSet, path: "",
        message: "A change set has a damaged value for the counter \(quoted(column.name)).",
        remedy: "Update docsync on all devices.")
    }
    guard case .added(let sum, _, let stamp) = value else { return false }
    let since = LocalStamp(
      time: stamp.time.rawValue, client: try session.clients.number(of: stamp.client))
    guard since == row.state.stamp(of: cell.column),
      var counter = row.values[cell.column].flatMap(CounterValue.init)?.counter
    else { return true }
    counter.merge(
      Counter.Sum(sum, at: HybridTime(rawValue: cell.stamp.time)),
      of: session.clients.client(cell.stamp.client))
    row.values[cell.column] = CounterValue.counter(counter).encoded
    return true
  }
}

extension ColumnSchema {
  /// What a table shows of a counter's value.
  func number(_ value: Value) -> Value {
    (CounterValue(value)?.shown ?? .null).stored(with: affinity)
  }
}

extension CounterValue {
  /// The counter that a value is, or begins.
  var counter: Counter? {
    switch self {
    case .plain(let value): Counter(base: value)
    case .counter(let counter): counter
    case .added: nil
    }
  }
}
