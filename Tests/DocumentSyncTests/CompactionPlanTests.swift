import DocumentSyncTesting
import Testing

@testable import DocumentSync

/// Which change sets become segments.
struct CompactionPlanTests {
  private func plan(
    loose: Set<UInt64> = [], existing: [ClosedRange<UInt64>] = [], bytes: Int = 100
  ) -> [ClosedRange<UInt64>] {
    CompactionPlan(loose: loose, existing: existing) { _ in bytes }.segments
  }

  /// Ranges that begin every 24 numbers.
  private func neighbours(
    _ count: UInt64, length: UInt64, from first: UInt64 = 1
  ) -> [ClosedRange<UInt64>] {
    (0..<count).map { index in
      let start = first + index * 24
      return start...(start + length - 1)
    }
  }

  @Test func fewLooseFilesStayAsTheyAre() {
    #expect(plan(loose: Set(1...31)) == [])
  }

  @Test func manyLooseFilesBecomeOneSegmentExceptTheLast() {
    #expect(plan(loose: Set(1...32)) == [1...24])
    #expect(plan(loose: Set(101...140)) == [101...132])
  }

  @Test func segmentsHaveNoGap() {
    #expect(plan(loose: Set(Array(1...20) + Array(22...50))) == [1...20, 22...42])
    // One alone is no segment.
    #expect(plan(loose: Set([5] + Array(8...45))) == [8...37])
  }

  @Test func segmentsAreNotTooLong() {
    let made = plan(loose: Set(1...40), bytes: 1 << 20)
    #expect(made == [1...8, 9...16, 17...24, 25...32])
    #expect(plan(loose: Set(1...40), bytes: 5 << 20) == [])
  }

  @Test func eightNeighboursOfASizeBecomeOne() {
    let seven = neighbours(7, length: 24)
    #expect(plan(existing: seven) == [])
    let eight = seven + [169...192]
    #expect(plan(existing: eight) == [1...192])
    // Greater ones before them stay.
    let later = neighbours(8, length: 24, from: 2_001)
    #expect(plan(existing: [1...2_000] + later) == [2_001...2_192])
    // What a greater one contains is about to go, and counts no more.
    #expect(plan(existing: eight + [1...192]) == [])
  }

  @Test func neighboursWithAGapDoNotBecomeOne() {
    let eight = neighbours(8, length: 23)
    #expect(plan(existing: eight) == [])
  }

  @Test(arguments: 1...4 as ClosedRange<UInt64>)
  func numberOfFilesStaysSmallAndEachIsCopiedAFewTimes(seed: UInt64) {
    var random = SeededRandom(seed: seed)
    let size: [Int] = (0...6_001).map { _ in
      Int(random.next() % 100) == 0 ? 100_000 : Int(random.next() % 400) + 200
    }
    var existing: [ClosedRange<UInt64>] = []
    var loose: Set<UInt64> = []
    var copied = 0
    var most = 0
    for number in 1...6_000 as ClosedRange<UInt64> {
      loose.insert(number)
      guard number.isMultiple(of: 24) else { continue }
      for made in CompactionPlan(loose: loose, existing: existing, byteCount: { size[Int($0)] })
        .segments
      {
        copied += made.reduce(0) { $0 + size[Int($1)] }
        existing.removeAll { made.contains($0.lowerBound) }
        existing.append(made)
        loose.subtract(made)
      }
      most = max(most, existing.count + loose.count)
    }
    let total = size.dropFirst().reduce(0, +)
    #expect(most <= 150, "\(most) files")
    #expect(copied <= total * 8, "\(copied / total) times")
    let covered = existing.reduce(0) { $0 + $1.count } + loose.count
    #expect(covered == 6_000)
  }
}
