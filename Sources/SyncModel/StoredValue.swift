/// A value that a store keeps as JSON in its own bookkeeping, to which any program may have written.
///
/// Once such a value was read and checked, code may increment, add and convert the numbers in it
/// without a trap.
package protocol StoredValue: Decodable {
  /// Throws ``StoredNumbers/OutOfBounds`` if the value holds a number that the program never writes.
  func checkNumbers() throws
}

/// The bounds of the numbers in the bookkeeping of a store.
package enum StoredNumbers {
  /// A number that the program never writes.
  package struct OutOfBounds: Error, CustomStringConvertible {
    /// The name of the number, and the number.
    package var description: String

    /// Describes it.
    package init(_ description: String) { self.description = description }
  }

  /// The greatest number of a file, a generation or a revision: one more is still a signed integer.
  package static let greatest = VersionVector.greatestNumber
  /// The greatest count, length or time: a thousand of them can be added up.
  package static let greatestCount: Int64 = 1 << 53

  /// Checks the number of a file, a generation or a revision.
  package static func check(
    _ name: String, _ number: UInt64?, from least: UInt64 = 0
  ) throws {
    guard let number else { return }
    guard number >= least, number <= greatest else { throw outOfBounds(name, number) }
  }

  /// Checks a count or a length.
  package static func check(_ name: String, count: Int?, from least: Int = 0) throws {
    guard let count else { return }
    guard count >= least, count <= greatestCount else { throw outOfBounds(name, count) }
  }

  /// Checks a number that counts down from -1.
  package static func check(_ name: String, negative number: Int) throws {
    guard number < 0, number >= -greatestCount else { throw outOfBounds(name, number) }
  }

  /// Checks a time in milliseconds, before or after 1970.
  package static func check(_ name: String, milliseconds: Int64?) throws {
    guard let milliseconds else { return }
    guard (-greatestCount...greatestCount).contains(milliseconds) else {
      throw outOfBounds(name, milliseconds)
    }
  }

  private static func outOfBounds(_ name: String, _ number: some BinaryInteger) -> OutOfBounds {
    OutOfBounds("\(name) is \(number)")
  }
}

extension UInt64: StoredValue {
  /// Checks it as the number of a file, a generation or a revision.
  package func checkNumbers() throws { try StoredNumbers.check("a number", self) }
}

extension Int: StoredValue {
  /// Checks it as a count.
  package func checkNumbers() throws { try StoredNumbers.check("a count", count: self) }
}

extension String: StoredValue {
  /// Throws nothing: it contains no numbers.
  package func checkNumbers() throws {}
}

extension Array: StoredValue where Element: StoredValue {
  /// Checks the numbers of all elements.
  package func checkNumbers() throws { for element in self { try element.checkNumbers() } }
}

extension Set: StoredValue where Element: StoredValue {
  /// Checks the numbers of all elements.
  package func checkNumbers() throws { for element in self { try element.checkNumbers() } }
}

extension Dictionary: StoredValue where Key == String, Value: StoredValue {
  /// Checks the numbers of all values.
  package func checkNumbers() throws {
    for (key, value) in self {
      do {
        try value.checkNumbers()
      } catch let error as StoredNumbers.OutOfBounds {
        throw StoredNumbers.OutOfBounds("\(key): \(error)")
      }
    }
  }
}

extension ClientIdentifier: StoredValue {
  /// Throws nothing: it contains no numbers.
  package func checkNumbers() throws {}
}

extension IntegrityKey: StoredValue {
  /// Throws nothing: it contains no numbers.
  package func checkNumbers() throws {}
}

extension SyncWarning: StoredValue {
  /// Checks the counts, which are added up.
  package func checkNumbers() throws {
    try StoredNumbers.check("count", count: count)
    try StoredNumbers.check("milliseconds", milliseconds: milliseconds)
  }
}
