extension [ValueColumn] {
  /// The indexes of the tuples that columns of one length make, in ascending
  /// order: kinds in their order, integers by value, content bytewise.
  public func order() -> [Int] {
    guard let first else { return [] }
    // The first bytes decide most comparisons, without looking at the rest.
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
  /// A word that is smaller for a value that comes earlier, as far as a word
  /// can tell.
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

  /// Whether the left value comes first; `nil` if they are the same.
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
