import SyncModel
import Testing

/// Sums of counters.
struct CounterTests {
  private let client = ClientIdentifier(bits: Bits128(high: 1, low: 1))

  private func time(_ milliseconds: Int64) -> HybridTime {
    HybridTime(milliseconds: milliseconds)
  }

  @Test func earlierSumOfAClientChangesNothing() throws {
    var counter = try #require(Counter(base: .integer(10)))
    counter.merge(Counter.Sum(.integer(5), at: time(2)), of: client)
    counter.merge(Counter.Sum(.integer(3), at: time(1)), of: client)
    #expect(counter.total == .integer(15))
    counter.merge(Counter.Sum(.integer(-1), at: time(3)), of: client)
    #expect(counter.total == .integer(9))
  }

  @Test func sumsAreKeptWithTheirTimes() throws {
    var counter = try #require(Counter(base: .real(0.5)))
    let isAdded = counter.add(from: .integer(1), to: .integer(4), by: client, at: time(7))
    let other = ClientIdentifier(bits: Bits128(high: 2, low: 2))
    let isAddedToo = counter.add(from: .integer(1), to: .real(0.5), by: other, at: time(8))
    #expect(isAdded && isAddedToo)
    let read = try #require(CounterValue(CounterValue.counter(counter).encoded))
    #expect(read == .counter(counter))
    #expect(counter.sums[client]?.time == time(7))
  }

  /// What a real loses beside a great one is no addition; what it rounds is.
  @Test(arguments: [
    (Value.real(9.3e18), Value.integer(1), false), (.real(1e17), .real(3.5), false),
    (.real(0.1), .real(0.3), true), (.real(1e15), .real(1e15 + 0.125), true),
  ])
  func aRealThatIsNotReachedByAddingSetsTheCounter(
    base: Value, number: Value, isAddition: Bool
  ) throws {
    var counter = try #require(Counter(base: base))
    let before = counter
    let isAdded = counter.add(from: base, to: number, by: client, at: time(1))
    #expect(isAdded == isAddition)
    #expect((counter == before) != isAddition)
  }

  /// A real is the total, and the program sets an integer: a real holds 2⁵³, not 2⁵³ + 1.
  @Test(arguments: [
    (9.223372036854775808e18, Int64.max, false),
    (9_007_199_254_740_992, 9_007_199_254_740_993, false),
    (9_007_199_254_740_991, 9_007_199_254_740_992, true), (0.5, 3, true),
  ])
  func anIntegerThatNoRealEqualsSetsTheCounter(
    total: Double, number: Int64, isAddition: Bool
  ) throws {
    var counter = try #require(Counter(base: .real(total)))
    let isAdded = counter.add(
      from: .real(total), to: .integer(number), by: client, at: time(1))
    #expect(isAdded == isAddition)
    #expect(counter.sums.isEmpty != isAddition)
  }

  @Test(arguments: [
    (Int64.max - 1, Int64(5), Int64.max), (.min + 1, -5, .min), (.max, -3, .max - 3),
  ])
  func aTotalBeyondWhatIntegersHoldIsTheLastOfThem(base: Int64, sum: Int64, total: Int64) throws {
    var counter = try #require(Counter(base: .integer(base)))
    counter.merge(Counter.Sum(.integer(sum), at: time(1)), of: client)
    #expect(counter.total == .integer(total))
  }

  @Test(arguments: [(Int64.min, Int64(1)), (.max, -2)])
  func aDifferenceBeyondWhatIntegersHoldSetsTheCounter(old: Int64, new: Int64) throws {
    #expect(Counter.difference(from: .integer(old), to: .integer(new)) == nil)
    var counter = try #require(Counter(base: .integer(old)))
    let before = counter
    let isAdded = counter.add(from: .integer(old), to: .integer(new), by: client, at: time(1))
    #expect(!isAdded)
    #expect(counter == before)
  }

  /// The clock may have gone back meanwhile.
  @Test func eachSumOfAClientIsLaterThanTheOneBefore() throws {
    var counter = try #require(Counter(base: .integer(0)))
    for (old, new) in [(0, 2), (2, 5), (5, 4)] {
      let former = counter.sums[client]
      let isAdded = counter.add(
        from: .integer(Int64(old)), to: .integer(Int64(new)), by: client,
        at: time(Int64(9 - new)))
      #expect(isAdded)
      let sum = try #require(counter.sums[client])
      #expect(former.map { $0.time < sum.time } ?? true)
    }
    #expect(counter.total == .integer(4))
  }
}
