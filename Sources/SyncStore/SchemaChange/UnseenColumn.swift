import SyncModel

/// What is known of a new column whose values no trigger has seen, and which other devices have given
/// values before: see ``UnseenCells``.
struct UnseenColumn {
  /// What a value is that differs from another device's.
  enum Fate {
    /// An edit that is to be made again.
    case edit
    /// A value that gives way, and that a user may have typed.
    case lost
    /// A value that a migration has filled in.
    case filledIn
  }

  /// The most different values that are told apart.
  private static let distinctCount = 1_000
  /// The longest values that are counted.
  private static let countedLength = 1_000
  /// If no more rows differ, each value that gives way is entered in the journal.
  private static let fewRows = 20

  /// The number of cells that differ, and do not have their default.
  private(set) var differingCount = 0
  /// The number of rows for which another device's value is of 1970.
  private var filledCount = 0
  /// The number of those that have this value here, too.
  private var sameCount = 0
  /// The number of the others that have a value here, by value.
  private var filledHere: [Value: Int] = [:]
  /// What other devices' migrations have filled in.
  private var filled: Set<Value> = []
  /// How many rows have which value here, and which one was first.
  private var counts: [Value: (count: Int, order: Int)] = [:]

  mutating func add(_ value: Value, _ remote: Value, isFilled: Bool, isDefault: Bool) {
    let isSame = value == remote
    if !isSame, !isDefault { differingCount += 1 }
    if isFilled {
      filledCount += 1
      if isSame { sameCount += 1 }
      if filled.count < Self.distinctCount, remote.contentCount <= Self.countedLength {
        filled.insert(remote)
      }
    }
    guard value.contentCount <= Self.countedLength,
      counts.count < Self.distinctCount || counts[value] != nil
    else { return }
    let order = counts.count
    counts[value, default: (0, order)].count += 1
    if isFilled, !isSame { filledHere[value, default: 0] += 1 }
  }

  /// The most frequent value here: what the migration has filled in. Of two, the one that other
  /// devices have, or else the first. `nil` if no two rows have the same.
  private var usual: Value? {
    let best = counts.max { one, other in
      (one.value.count, filled.contains(one.key) ? 1 : 0, -one.value.order)
        < (other.value.count, filled.contains(other.key) ? 1 : 0, -other.value.order)
    }
    return best.flatMap { $0.value.count > 1 || filled.contains($0.key) ? $0.key : nil }
  }

  /// Returns what a value is that differs from another device's.
  func fate(of value: Value, isFilled: Bool) -> Fate {
    let usual = usual
    let isFew = differingCount <= Self.fewRows
    // Half of the rows show that both migrations fill in the same.
    if isFilled, 2 * sameCount >= filledCount { return .edit }
    let filledAlike = sameCount + (usual.flatMap { filledHere[$0] } ?? 0)
    let isAlike = filledCount > 0 ? 2 * filledAlike >= filledCount : usual != nil
    if value == usual { return isFilled && isFew && sameCount > 0 ? .lost : .filledIn }
    if isFilled, isAlike { return .edit }
    return isFew || isAlike && !filled.contains(value) ? .lost : .filledIn
  }
}
