/// A hybrid logical time: milliseconds since 1970 in the upper 48 bits and a
/// counter in the lower 16, so that comparing the words compares the times.
///
/// Kulkarni et al., “Logical Physical Clocks and Consistent Snapshots in
/// Globally Distributed Databases”, 2014. The greatest time that an edit may
/// carry is ``maximum``; adding to it gives itself.
public struct HybridTime: Hashable, Comparable, Sendable, Codable, RawRepresentable {
  /// The word.
  public let rawValue: UInt64

  /// Wraps a word.
  public init(rawValue: UInt64) { self.rawValue = rawValue }

  /// The time `milliseconds` after 1970 with `counter`; clamped into range.
  public init(milliseconds: Int64, counter: UInt16 = 0) {
    let clamped = UInt64(min(max(milliseconds, 0), Self.greatestMilliseconds))
    rawValue = clamped << 16 | UInt64(counter)
  }

  /// The largest number of milliseconds: the year 6429. It has 47 bits, so that
  /// the word stays positive as a signed integer.
  public static let greatestMilliseconds: Int64 = 1 << 47 - 1

  /// The time of everything from before syncing began, less than the time of any edit.
  public static let zero = HybridTime(rawValue: 0)

  /// The greatest time.
  public static let maximum = HybridTime(
    milliseconds: greatestMilliseconds, counter: .max)

  /// Milliseconds since 1970.
  public var milliseconds: Int64 { Int64(rawValue >> 16) }

  /// The counter among edits of one millisecond.
  public var counter: UInt16 { UInt16(truncatingIfNeeded: rawValue) }

  /// The least time after this one; ``maximum`` stays as it is.
  public var next: HybridTime {
    self >= .maximum ? .maximum : HybridTime(rawValue: rawValue + 1)
  }

  /// Order in time.
  public static func < (left: HybridTime, right: HybridTime) -> Bool {
    left.rawValue < right.rawValue
  }
}

/// A hybrid time, then a client identifier: a total order over all changes.
public struct Stamp: Hashable, Comparable, Sendable, Codable {
  /// The time of the change.
  public var time: HybridTime
  /// The client that made the change.
  public var client: ClientIdentifier

  /// Creates a stamp from a time and a client.
  public init(time: HybridTime, client: ClientIdentifier) {
    self.time = time
    self.client = client
  }

  /// The stamp of everything that existed before syncing began.
  public static let zero = Stamp(
    time: .zero, client: ClientIdentifier(bits: Bits128(high: 0, low: 0)))

  /// Time first, then client.
  public static func < (left: Stamp, right: Stamp) -> Bool {
    left.time == right.time ? left.client < right.client : left.time < right.time
  }
}
