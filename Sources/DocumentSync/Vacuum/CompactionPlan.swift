import SyncModel

/// Which change sets of a client should become one segment: a pure function
/// of what is in its folder.
///
/// Segments grow like the numbers of a counter: whenever there are eight
/// neighbours of a size or smaller, they become one. So their number stays
/// small, and each change set is copied only a few times.
struct CompactionPlan {
  /// The most bytes of a segment.
  static let greatestByteCount = 8 << 20
  /// A segment of so many bytes stays as it is.
  static let finalByteCount = 1 << 20

  /// The numbers of the segments to make, none overlapping.
  private(set) var segments: [ClosedRange<UInt64>] = []

  /// - Parameters:
  ///   - loose: The numbers that have a file of their own, are in no segment,
  ///     and cannot be removed.
  ///   - existing: The segments that there are.
  ///   - byteCount: The length of a change set.
  init(
    loose: Set<UInt64>, existing: [ClosedRange<UInt64>],
    thresholds: SyncThresholds = SyncThresholds(), byteCount: (UInt64) -> Int
  ) {
    if loose.count >= thresholds.looseCount {
      let numbers = loose.sorted().dropLast(thresholds.tailCount)
      var run: [ClosedRange<UInt64>] = []
      for number in numbers {
        if let last = run.last, last.upperBound + 1 != number {
          segments += Self.joined(run, byteCount)
          run = []
        }
        run.append(number...number)
      }
      segments += Self.joined(run, byteCount)
    }
    merge(existing, thresholds.mergeCount, byteCount)
  }

  private mutating func merge(
    _ existing: [ClosedRange<UInt64>], _ mergeCount: Int, _ byteCount: (UInt64) -> Int
  ) {
    // A segment that a greater one contains is about to be removed.
    let sorted = existing.filter { one in
      !existing.contains { $0 != one && $0.contains(one.lowerBound) && $0.contains(one.upperBound) }
    }.map { range in
      (range: range, bytes: range.reduce(0) { $0 + byteCount($1) })
    }.filter { $0.bytes < Self.finalByteCount }.sorted {
      $0.range.lowerBound < $1.range.lowerBound
    }
    let classes = sorted.map { Self.sizeClass($0.bytes) }
    for limit in Set(classes).sorted() {
      var run: [ClosedRange<UInt64>] = []
      func close() -> [ClosedRange<UInt64>] {
        defer { run = [] }
        return run.count >= mergeCount ? Self.joined(run, byteCount) : []
      }
      var found: [ClosedRange<UInt64>] = []
      for (range, size) in zip(sorted.map(\.range), classes) {
        if size > limit || run.last.map({ $0.upperBound + 1 != range.lowerBound }) ?? false {
          found += close()
        }
        if size <= limit { run.append(range) }
      }
      found += close()
      // Greater ones are merged another time, when these are there.
      if !found.isEmpty {
        segments += found
        return
      }
    }
  }

  /// Neighbours as ranges of several each, none longer than a segment may be.
  private static func joined(
    _ run: [ClosedRange<UInt64>], _ byteCount: (UInt64) -> Int
  ) -> [ClosedRange<UInt64>] {
    var joined: [ClosedRange<UInt64>] = []
    var current: (range: ClosedRange<UInt64>, bytes: Int, parts: Int)?
    func keep() { if let current, current.parts > 1 { joined.append(current.range) } }
    for range in run {
      let bytes = range.reduce(0) { $0 + byteCount($1) }
      if let last = current, last.bytes + bytes <= greatestByteCount,
        range.upperBound - last.range.lowerBound < UInt64(SegmentCodec.greatestCount)
      {
        current = (
          last.range.lowerBound...range.upperBound, last.bytes + bytes, last.parts + 1
        )
      } else {
        keep()
        current = (range, bytes, 1)
      }
    }
    keep()
    return joined
  }

  /// Sizes that differ by less than a factor of eight are alike.
  private static func sizeClass(_ byteCount: Int) -> Int {
    (Int.bitWidth - max(1, byteCount).leadingZeroBitCount - 1) / 3
  }
}
