/// A set of columns, by bit.
struct ColumnSet: Hashable {
  /// The number of bits in one mask; further columns go to further masks.
  static let bitsPerMask = 62

  private var first: UInt64 = 0
  /// Words beyond the first, for tables with many columns.
  private var others: [UInt64] = []

  init() {}

  /// Creates a set of one column.
  init(_ column: Int) {
    let (index, bit) = column.quotientAndRemainder(dividingBy: Self.bitsPerMask)
    if index == 0 {
      first = 1 << UInt64(bit)
    } else {
      others = Array(repeating: 0, count: index)
      others[index - 1] = 1 << UInt64(bit)
    }
  }

  /// The set as the text of a log's mask.
  var mask: String { ([first] + others).map(String.init).joined(separator: ",") }

  /// Reads the mask of a log's entry: an integer, or several with commas.
  init(_ statement: SQLStatement, at position: Int) {
    if statement.isText(at: position) {
      let words = statement.text(at: position).split(separator: ",").map { UInt64($0) ?? 0 }
      first = words.first ?? 0
      others = Array(words.dropFirst())
    } else {
      first = UInt64(bitPattern: statement.integer(at: position))
    }
  }

  mutating func formUnion(_ other: ColumnSet) {
    first |= other.first
    for (index, word) in other.others.enumerated() {
      if index < others.count { others[index] |= word } else { others.append(word) }
    }
  }

  var isEmpty: Bool { first == 0 && others.allSatisfy { $0 == 0 } }

  mutating func remove(_ column: Int) {
    let (index, bit) = column.quotientAndRemainder(dividingBy: Self.bitsPerMask)
    if index == 0 {
      first &= ~(1 << UInt64(bit))
    } else if index <= others.count {
      others[index - 1] &= ~(1 << UInt64(bit))
    }
  }

  func isSubset(of other: ColumnSet) -> Bool {
    guard first & ~other.first == 0 else { return false }
    return others.enumerated().allSatisfy { index, word in
      word & ~(index < other.others.count ? other.others[index] : 0) == 0
    }
  }

  func contains(_ column: Int) -> Bool {
    let (index, bit) = column.quotientAndRemainder(dividingBy: Self.bitsPerMask)
    if index == 0 { return first >> UInt64(bit) & 1 != 0 }
    return index <= others.count && others[index - 1] >> UInt64(bit) & 1 != 0
  }
}
