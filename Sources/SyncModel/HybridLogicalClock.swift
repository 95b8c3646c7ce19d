/// A hybrid logical time: milliseconds since 1970 in the upper 48 bits and a counter in the lower
/// 16, so that comparing the words compares the times.
///
/// Kulkarni et al., “Logical Physical Clocks and Consistent Snapshots in Globally Distributed
/// Databases”, 2014. ``maximum`` is the greatest time that an edit may have; its ``next`` is
/// itself.
package struct HybridTime: Hashable, Comparable, Sendable, Codable, RawRepresentable {
  /// The word.
  package let rawValue: UInt64

  /// Wraps a word.
  package init(rawValue: UInt64) { self.rawValue = rawValue }

  /// Creates the time `milliseconds` after 1970, clamped to the valid range, with `counter`.
  package init(milliseconds: Int64, counter: UInt16 = 0) {
    let clamped = UInt64(min(max(milliseconds, 0), Self.greatestMilliseconds))
    rawValue = clamped << 16 | UInt64(counter)
  }

  /// The largest number of milliseconds: the year 6429. It has 47 bits, so that
  /// the word stays positive as a signed integer.
  package static let greatestMilliseconds: Int64 = 1 << 47 - 1

  /// The time of everything that existed before syncing began; less than the time of any edit.
  package static let zero = HybridTime(rawValue: 0)

  /// The greatest time.
  package static let maximum = HybridTime(
    milliseconds: greatestMilliseconds, counter: .max)

  /// Milliseconds since 1970.
  package var milliseconds: Int64 { Int64(rawValue >> 16) }

  /// The counter among edits of one millisecond.
  package var counter: UInt16 { UInt16(truncatingIfNeeded: rawValue) }

  /// The least time after this one; ``maximum`` stays as it is.
  package var next: HybridTime {
    self >= .maximum ? .maximum : HybridTime(rawValue: rawValue + 1)
  }

  /// Orders times.
  package static func < (left: HybridTime, right: HybridTime) -> Bool {
    left.rawValue < right.rawValue
  }
}

/// A hybrid time, then a client identifier: a total order over all changes.
package struct Stamp: Hashable, Comparable, Sendable, Codable {
  /// The time of the change.
  package var time: HybridTime
  /// The client that made the change.
  package var client: ClientIdentifier

  /// Creates a stamp from a time and a client.
  package init(time: HybridTime, client: ClientIdentifier) {
    self.time = time
    self.client = client
  }

  /// The stamp of everything that existed before syncing began.
  package static let zero = Stamp(
    time: .zero, client: ClientIdentifier(bits: Bits128(high: 0, low: 0)))

  /// Orders stamps by time, then by client.
  package static func < (left: Stamp, right: Stamp) -> Bool {
    left.time == right.time ? left.client < right.client : left.time < right.time
  }
}
