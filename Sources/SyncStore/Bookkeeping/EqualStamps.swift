import SyncModel

// Honest authors use a stamp for one change only. If two files contain different changes with one
// stamp, the result must not depend on the order of their arrival.

extension Value {
  /// Returns whether another value with the same stamp wins over this one.
  func yields(to other: Value) -> Bool {
    if kind != other.kind { return kind.rawValue < other.kind.rawValue }
    switch (self, other) {
    case (.integer(let left), .integer(let right)): return left < right
    case (.real(let left), .real(let right)): return left.bitPattern < right.bitPattern
    case (.text(let left), .text(let right)), (.blob(let left), .blob(let right)):
      return left.lexicographicallyPrecedes(right)
    case (.identity(let left), .identity(let right)):
      return left.bytes.lexicographicallyPrecedes(right.bytes)
    default: return false
    }
  }

  /// Returns the value as the column would store it, so that the known value of a cell does not
  /// depend on whether it has been in its table.
  func kept(in column: ColumnSchema) -> Value {
    switch (column.domain, self) {
    case (.key, .identity): return self
    // In a key column that refers to nothing, an identity is bytes; in other plain columns it
    // waits.
    case (.plain, .identity(let row)): return .blob(row.bytes)
    case (.counter, .identity(let row)): return CounterValue.plain(.blob(row.bytes)).encoded
    case (.counter, .blob):
      // A counter without additions is stored as its number.
      if case .counter(let counter) = CounterValue(self), counter.sums.isEmpty {
        return counter.base.kept(in: column)
      }
      return CounterValue(self)?.encoded ?? self
    case (.plain, _), (.key, _), (.counter, _):
      return converted(to: column.affinity)
    }
  }
}

extension RowState.Existence {
  /// Decides between two changes of a row's existence with one stamp: a deletion wins, and between
  /// two deletions the greater identity to which the row moved.
  static func settle(
    _ existence: inout RowState.Existence, _ destination: inout RowIdentity?,
    with other: RowState.Existence, _ otherDestination: RowIdentity?
  ) {
    guard other == .deleted else { return }
    guard existence == .deleted else {
      existence = other
      destination = otherDestination
      return
    }
    guard let otherDestination else { return }
    if destination?.bytes.lexicographicallyPrecedes(otherDestination.bytes) ?? true {
      destination = otherDestination
    }
  }
}
