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
  /// How many rows have which value of 1970 on another device. Most of them are what a migration has filled in.
  private var filled: [Value: Int] = [:]
  /// How many rows have which value here, and which one was first.
  private var counts: [Value: (count: Int, order: Int)] = [:]

  mutating func add(_ value: Value, _ remote: Value, isFilled: Bool, isDefault: Bool) {
    let isSame = value == remote
    if !isSame, !isDefault { differingCount += 1 }
    if isFilled {
      filledCount += 1
      if isSame { sameCount += 1 }
      if remote.contentCount <= Self.countedLength,
        filled.count < Self.distinctCount || filled[remote] != nil
      {
        filled[remote, default: 0] += 1
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
      (one.value.count, filled[one.key] != nil ? 1 : 0, -one.value.order)
        < (other.value.count, filled[other.key] != nil ? 1 : 0, -other.value.order)
    }
    return best.flatMap { $0.value.count > 1 || filled[$0.key] != nil ? $0.key : nil }
  }

  /// Whether a value of 1970 on another device may be an edit that was made there before that device noticed
  /// the column: no other row has it, and it is not what the migration has filled in here.
  func mayBeEdit(remote: Value) -> Bool {
    differingCount <= Self.fewRows && filled[remote] == 1 && remote != usual
  }

  /// Returns what a value is that differs from another device's.
  func fate(of value: Value, instead remote: Value, isFilled: Bool) -> Fate {
    let usual = usual
    let isFew = differingCount <= Self.fewRows
    // Half of the rows show that both migrations fill in the same.
    if isFilled, 2 * sameCount >= filledCount {
      return value == usual && mayBeEdit(remote: remote) ? .lost : .edit
    }
    let filledAlike = sameCount + (usual.flatMap { filledHere[$0] } ?? 0)
    let isAlike = filledCount > 0 ? 2 * filledAlike >= filledCount : usual != nil
    if value == usual { return isFilled && isFew && sameCount > 0 ? .lost : .filledIn }
    if isFilled, isAlike { return .edit }
    return isFew || isAlike && filled[value] == nil ? .lost : .filledIn
  }
}
