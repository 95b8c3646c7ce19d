import Foundation

extension [ValueColumn] {
  /// Returns the indexes of the tuples in ascending order: by kind, integers by value, content
  /// bytewise. All columns have the same length.
  package func order() -> [Int] {
    guard let first else { return [] }
    // The first bytes decide most comparisons.
    let prefixes = (0..<first.count).map { first.sortingPrefix(at: $0) }
    return prefixes.indices.sorted { left, right in
      if prefixes[left] != prefixes[right] { return prefixes[left] < prefixes[right] }
      for column in self {
        if let isBefore = column.isBefore(left, right) { return isBefore }
      }
      return left < right
    }
  }
}

extension ValueColumn {
  /// Returns a word that sorts as the value does. Equal words do not mean equal values.
  fileprivate func sortingPrefix(at index: Int) -> UInt64 {
    let kind = UInt64(kinds[index]) << 60
    switch self.kind(at: index) {
    case .null, .real: return kind
    case .integer: return kind | (words[index] ^ 1 << 63) >> 4
    case .text, .blob, .identity:
      var prefix: UInt64 = 0
      let range = contentRange(at: index)
      for offset in 0..<8 {
        prefix <<= 8
        if offset < range.count { prefix |= UInt64(bytes[range.lowerBound + offset]) }
      }
      return kind | prefix >> 4
    }
  }

  /// Returns whether the left value comes first; `nil` if both are the same.
  fileprivate func isBefore(_ left: Int, _ right: Int) -> Bool? {
    if kinds[left] != kinds[right] { return kinds[left] < kinds[right] }
    switch kind(at: left) {
    case .null: return nil
    case .integer, .real:
      let first = Int64(bitPattern: words[left])
      let second = Int64(bitPattern: words[right])
      return first == second ? nil : first < second
    case .text, .blob, .identity:
      let first = bytes[contentRange(at: left)]
      let second = bytes[contentRange(at: right)]
      if first.lexicographicallyPrecedes(second) { return true }
      return second.lexicographicallyPrecedes(first) ? false : nil
    }
  }
}

// MARK: - Tuples that repeat

extension [ValueColumn] {
  /// Whether two tuples have the same bytes. All columns have the same length. For tuples in
  /// ascending order, the usual case, it takes one comparison a tuple.
  var hasRepeatedTuple: Bool {
    guard let count = first?.count, count > 1 else { return false }
    for row in 1..<count {
      let comparison = compare(row - 1, row)
      if comparison == 0 { return true }
      if comparison > 0 { return hasRepeatedTupleInAnyOrder }
    }
    return false
  }

  private var hasRepeatedTupleInAnyOrder: Bool {
    let count = self[0].count
    var capacity = 16
    while capacity < 2 * count { capacity *= 2 }
    // Slots by hash; 0 is free, other values are the row plus one.
    var slots = [UInt32](repeating: 0, count: capacity)
    for row in 0..<count {
      var slot = Int(truncatingIfNeeded: hash(row)) & (capacity - 1)
      while slots[slot] != 0 {
        if compare(Int(slots[slot]) - 1, row) == 0 { return true }
        slot = (slot + 1) & (capacity - 1)
      }
      slots[slot] = UInt32(row + 1)
    }
    return false
  }

  private func compare(_ left: Int, _ right: Int) -> Int {
    for column in self {
      let comparison = column.compare(left, right)
      if comparison != 0 { return comparison }
    }
    return 0
  }

  /// Returns the hash of a tuple. `Hasher` has another seed in each run, so that an attacker cannot
  /// make tuples collide.
  private func hash(_ row: Int) -> Int {
    var hasher = Hasher()
    for column in self { column.hash(row, into: &hasher) }
    return hasher.finalize()
  }
}

extension ValueColumn {
  /// Returns a negative number if the left value comes first, 0 if both have the same bytes.
  fileprivate func compare(_ left: Int, _ right: Int) -> Int {
    if kinds[left] != kinds[right] { return kinds[left] < kinds[right] ? -1 : 1 }
    switch kind(at: left) {
    case .null: return 0
    case .integer, .real:
      let first = Int64(bitPattern: words[left])
      let second = Int64(bitPattern: words[right])
      return first == second ? 0 : first < second ? -1 : 1
    case .text, .blob, .identity:
      let first = contentRange(at: left)
      let second = contentRange(at: right)
      let common = bytes.withUnsafeBytes { content in
        guard let start = content.baseAddress else { return Int32(0) }
        return memcmp(
          start + first.lowerBound, start + second.lowerBound, min(first.count, second.count))
      }
      return common != 0 ? Int(common) : first.count - second.count
    }
  }

  fileprivate func hash(_ row: Int, into hasher: inout Hasher) {
    hasher.combine(kinds[row])
    switch kind(at: row) {
    case .null: break
    case .integer, .real: hasher.combine(words[row])
    case .text, .blob, .identity:
      let range = contentRange(at: row)
      hasher.combine(range.count)
      bytes.withUnsafeBytes {
        hasher.combine(bytes: UnsafeRawBufferPointer(rebasing: $0[range]))
      }
    }
  }

  /// Whether one of the values is a NaN.
  var hasRealThatIsNoNumber: Bool {
    guard kinds.contains(ValueKind.real.rawValue) else { return false }
    return kinds.indices.contains {
      kinds[$0] == ValueKind.real.rawValue && Double(bitPattern: words[$0]).isNaN
    }
  }
}
