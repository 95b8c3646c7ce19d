import SyncModel

// Honest authors use a stamp for one change only. If two files contain
// different changes with one stamp, the result must not depend on which came
// first.

extension Value {
  /// Whether another value with the same stamp wins over this one.
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

  /// The value as a table keeps it, so that what is known of a cell does not
  /// depend on whether it has been in the table.
  func kept(in column: ColumnSchema) -> Value {
    switch (column.domain, self) {
    case (.key, .identity): return self
    // In a key's column that refers to nothing an identity is bytes; in others it waits.
    case (.plain, .identity(let row)): return .blob(row.bytes)
    case (.counter, .identity(let row)): return CounterValue.plain(.blob(row.bytes)).encoded
    case (.counter, .blob):
      // A counter to which nothing was added is the number.
      if case .counter(let counter) = CounterValue(self), counter.sums.isEmpty {
        return counter.base.kept(in: column)
      }
      return CounterValue(self)?.encoded ?? self
    case (.plain, _), (.key, _), (.counter, _):
      return applying(column.affinity).stored(with: column.affinity)
    }
  }
}

extension RowState.Existence {
  /// Settles two changes of a row's existence with one stamp: the deletion
  /// wins, and the greater of two identities under which the row lives on.
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
