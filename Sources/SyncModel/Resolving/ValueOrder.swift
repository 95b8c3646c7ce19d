extension Value {
  /// Returns which of two values SQLite puts last, or first: NULL comes before numbers, these before text, and
  /// that before blobs. Text is compared byte by byte. Of an integer and a real that are equal, it is the integer.
  /// Returns `nil` if one of them is a reference.
  static func extreme(_ left: Value, _ right: Value, isGreatest: Bool) -> Value? {
    guard left.kind != .identity, right.kind != .identity else { return nil }
    if left.precedes(right) { return isGreatest ? right : left }
    if right.precedes(left) { return isGreatest ? left : right }
    return left.kind == .integer ? left : right
  }

  private func precedes(_ other: Value) -> Bool {
    switch (self, other) {
    case (.integer(let left), .integer(let right)): left < right
    case (.real(let left), .real(let right)): left < right
    case (.integer(let left), .real(let right)): Self.order(left, right) < 0
    case (.real(let left), .integer(let right)): Self.order(right, left) > 0
    case (.text(let left), .text(let right)), (.blob(let left), .blob(let right)):
      left.lexicographicallyPrecedes(right)
    default: rank < other.rank
    }
  }

  private var rank: Int {
    switch self {
    case .null: 0
    case .integer, .real: 1
    case .text: 2
    case .blob, .identity: 3
    }
  }

  /// Returns a number below zero if the integer is less than the real, above zero if it is greater.
  private static func order(_ integer: Int64, _ real: Double) -> Int {
    guard real >= -0x1p63, real < 0x1p63 else { return real > 0 ? -1 : 1 }
    let whole = Int64(real)
    if integer != whole { return integer < whole ? -1 : 1 }
    let rest = real - Double(whole)
    return rest > 0 ? -1 : rest < 0 ? 1 : 0
  }
}
