import SyncModel

/// The change sets of a client that should become segments: a pure function of
/// the files in its folder.
///
/// Segments grow like the digits of a counter: eight neighbours of one size or
/// smaller become one. So the number of segments stays small, and each change
/// set is copied only a few times.
struct CompactionPlan {
  /// The most bytes of a segment.
  static let greatestByteCount = 8 << 20
  /// A segment of this many bytes is final.
  static let finalByteCount = 1 << 20

  /// The numbers of the segments to make, without overlaps.
  private(set) var segments: [ClosedRange<UInt64>] = []

  /// - Parameters:
  ///   - loose: The numbers that have a file of their own, are in no segment,
  ///     and cannot be removed.
  ///   - existing: The existing segments.
  ///   - byteCount: Returns the length of a change set.
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
    // A segment within a larger one is about to be removed.
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
      // Larger ones are merged another time, after these exist.
      if !found.isEmpty {
        segments += found
        return
      }
    }
  }

  /// Joins neighbours to ranges that are no longer than a segment may be; drops
  /// single ones.
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

  /// Returns a class of sizes that differ by less than a factor of eight.
  private static func sizeClass(_ byteCount: Int) -> Int {
    (Int.bitWidth - max(1, byteCount).leadingZeroBitCount - 1) / 3
  }
}
