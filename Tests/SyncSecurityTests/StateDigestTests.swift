import SyncModel
import Testing

@testable import SyncSecurity

@Suite struct StateDigestTests {
  private static let generation = IntegrityKey(bits: Bits128(high: 1, low: 2))

  private static func rows(_ generator: inout SeededGenerator) -> [StateDigest.Row] {
    (0..<200).map { index in
      StateDigest.Row(
        table: "t\(index % 5)", identity: generator.bytes(16),
        stamps: generator.bytes(generator.below(40)))
    }
  }

  @Test func orderAndHistoryDoNotMatter() {
    var generator = SeededGenerator(seed: 1)
    let rows = Self.rows(&generator)
    var forward = StateDigest(generation: Self.generation)
    for row in rows { forward.add(row) }
    var other = StateDigest(generation: Self.generation)
    let passing = Self.rows(&generator)
    for (row, extra) in zip(rows.reversed(), passing) {
      other.add(extra)
      other.add(row)
    }
    #expect(other != forward)
    for row in passing { other.remove(row) }
    #expect(other == forward)
    var empty = forward
    for row in rows.shuffled(using: &generator) { empty.remove(row) }
    #expect(empty == StateDigest(generation: Self.generation))
    // It goes on from what was stored.
    var half = StateDigest(generation: Self.generation)
    for row in rows.prefix(100) { half.add(row) }
    var rest = StateDigest(generation: Self.generation, sum: half.sum)
    for row in rows.dropFirst(100) { rest.add(row) }
    #expect(rest == forward)
  }

  @Test func everyPartOfARowMatters() {
    let row = StateDigest.Row(table: "ab", identity: [1, 2], stamps: [3, 4])
    var others = [row, row, row, row]
    others[0].table = "a"
    others[1].identity = [1, 3]
    others[2].stamps = [3]
    // The borders between the parts matter too.
    others[3] = .init(table: "a", identity: Array("b".utf8) + [1, 2], stamps: [3, 4])
    var digest = StateDigest(generation: Self.generation)
    digest.add(row)
    for other in others {
      var changed = StateDigest(generation: Self.generation)
      changed.add(other)
      #expect(changed.sum != digest.sum)
    }
    var elsewhere = StateDigest(generation: IntegrityKey(bits: Bits128(high: 1, low: 3)))
    elsewhere.add(row)
    #expect(elsewhere.sum != digest.sum)
  }

  @Test func rowThatIsThereTwiceIsNoticed() {
    let row = StateDigest.Row(table: "a", identity: [1], stamps: [2])
    var digest = StateDigest(generation: Self.generation)
    digest.add(row)
    digest.add(row)
    #expect(digest.sum != Bits128(high: 0, low: 0))
  }
}
