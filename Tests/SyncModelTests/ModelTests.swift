import Foundation
import Testing

@testable import SyncModel

struct HybridTimeTests {
  @Test func partsComeBackAndAreClamped() {
    let time = HybridTime(milliseconds: 1_790_000_000_123, counter: 7)
    #expect(time.milliseconds == 1_790_000_000_123)
    #expect(time.counter == 7)
    #expect(HybridTime(milliseconds: -5, counter: 0) == .zero)
    #expect(HybridTime(milliseconds: .max, counter: .max) == .maximum)
    #expect(HybridTime.maximum.rawValue == UInt64(Int64.max))
  }

  @Test func nextCarriesIntoMillisecondsAndStopsAtTheMaximum() {
    let full = HybridTime(milliseconds: 5, counter: .max)
    #expect(full.next == HybridTime(milliseconds: 6, counter: 0))
    #expect(HybridTime.maximum.next == .maximum)
    #expect(HybridTime(rawValue: HybridTime.maximum.rawValue - 1).next == .maximum)
  }

  @Test func stampsOrderByTimeThenClient() {
    let early = HybridTime(milliseconds: 1)
    let late = HybridTime(milliseconds: 1, counter: 1)
    let low = ClientIdentifier(bits: Bits128(high: 0, low: .max))
    let high = ClientIdentifier(bits: Bits128(high: 1, low: 0))
    let stamps = [
      Stamp.zero, Stamp(time: early, client: low), Stamp(time: early, client: high),
      Stamp(time: late, client: low),
    ]
    #expect(stamps.shuffled().sorted() == stamps)
    #expect(!(stamps[1] < stamps[1]))
  }
}

struct VersionVectorTests {
  private let clients = (1...3).map { ClientIdentifier(bits: Bits128(high: UInt64($0), low: 0)) }

  private func vector(_ numbers: [UInt64]) -> VersionVector {
    var vector = VersionVector()
    for (client, number) in zip(clients, numbers) where number > 0 {
      vector[client] = VersionVector.Entry(number: number, hash: ContentHash(of: [1]))
    }
    return vector
  }

  @Test func containsComparesEveryClient() {
    #expect(vector([2, 1, 0]).contains(vector([1, 1, 0])))
    #expect(vector([2, 1, 0]).contains(vector([])))
    #expect(!vector([2, 1, 0]).contains(vector([1, 1, 1])))
    #expect(!vector([2, 1]).contains(vector([3, 1])))
  }

  @Test func missingNamesTheClientsThatAreAheadInOrder() {
    #expect(vector([1, 5, 0]).missing(from: vector([2, 5, 1])) == [clients[0], clients[2]])
    #expect(vector([1]).missing(from: vector([1])).isEmpty)
    #expect(vector([1]).number(of: clients[2]) == 0)
  }

  @Test func jsonIsAnObjectOfClients() throws {
    let vector = vector([4, 0, 9])
    let encoder = JSONEncoder()
    encoder.outputFormatting = .sortedKeys
    let data = try encoder.encode(vector)
    #expect(try JSONDecoder().decode(VersionVector.self, from: data) == vector)
    let hash = ContentHash(of: [1])
    #expect(
      String(decoding: data, as: UTF8.self)
        == #"{"\#(clients[0])":{"hash":"\#(hash)","number":4},"#
        + #""\#(clients[2])":{"hash":"\#(hash)","number":9}}"#)
    #expect(throws: DecodingError.self) {
      try JSONDecoder().decode(VersionVector.self, from: Data(#"{"x":{"number":1}}"#.utf8))
    }
    #expect(vector.sorted.map(\.client) == [clients[0], clients[2]])
  }
}

struct TextFormTests {
  // RFC 4648, section 10, in lower case and without padding.
  @Test(arguments: [
    ("", ""), ("f", "my"), ("fo", "mzxq"), ("foo", "mzxw6"), ("foob", "mzxw6yq"),
    ("fooba", "mzxw6ytb"), ("foobar", "mzxw6ytboi"),
  ])
  func base32GivesTheVectorsOfTheRFC(plain: String, text: String) {
    #expect(Base32.encode(plain.utf8) == text)
    #expect(Base32.decode(text) == Array(plain.utf8))
  }

  @Test(arguments: ["MY", "m", "mz1", "my======", "mz", "mzxw6yr", "aaa", "a a"])
  func otherTextIsNoBase32(text: String) {
    #expect(Base32.decode(text) == nil)
  }

  @Test func identifiersAreTwentySixCharactersAndOrderedByTheirBits() throws {
    var generator = SeededGenerator(seed: 9)
    let identifiers = (0..<200).map { _ in ClientIdentifier.random(using: &generator) }
    for identifier in identifiers {
      #expect(identifier.description.utf8.count == 26)
      #expect(ClientIdentifier(identifier.description) == identifier)
      #expect(Bits128(bytes: identifier.bits.bytes) == identifier.bits)
    }
    let sorted = identifiers.sorted()
    #expect(zip(sorted, sorted.dropFirst()).allSatisfy { $0.bits < $1.bits })
    let texts = sorted.map(\.description)
    #expect(ClientIdentifier(texts[0].uppercased()) == nil)
    #expect(ClientIdentifier(String(repeating: "b", count: 26)) == nil)
  }

  @Test func contentHashIsSHA256() throws {
    let hash = ContentHash(of: Array("abc".utf8))
    #expect(
      hash.description == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")
    #expect(ContentHash(of: AnySequence(Array("abc".utf8))) == hash)
    #expect(ContentHash(hash.description) == hash)
    #expect(ContentHash(hash.description.uppercased()) == nil)
    #expect(ContentHash(String(hash.description.dropLast())) == nil)
    #expect(ContentHash(bytes: hash.bytes.dropLast()) == nil)
    #expect(hash.nameFragment == "xj4bnp4pah")
    #expect(
      try JSONDecoder().decode([ContentHash].self, from: JSONEncoder().encode([hash])) == [hash])
  }
}

struct ValueColumnTests {
  private let values: [Value] = [
    .integer(.min), .text("héllo"), .null, .real(-0.0), .blob([]), .text(""), .blob([1, 2]),
    .identity(RowIdentity(bytes: [7])), .integer(.max),
  ]

  @Test func appendedValuesComeBack() {
    var column = ValueColumn()
    column.reserve(values.count, byteCount: 10)
    for value in values { column.append(value) }
    #expect(column.count == values.count)
    #expect((0..<column.count).map { column[$0] } == values)
    #expect(values.indices.map { column.kind(at: $0) } == values.map(\.kind))
    #expect(column.contentRange(at: 1) == 0..<6)
    #expect(column.contentRange(at: 6) == 6..<8)
    #expect(column.byteCount == 9 + 9 * values.count)
  }

  @Test func arraysThatFitTogetherMakeAColumn() throws {
    var column = ValueColumn()
    for value in values { column.append(value) }
    let copy = try ValueColumn(kinds: column.kinds, words: column.words, bytes: column.bytes)
    #expect(copy == column)
  }

  @Test func arraysThatDoNotFitAreRefused() {
    let cases: [(kinds: [UInt8], words: [UInt64], bytes: [UInt8])] = [
      ([0], [], []), ([6], [0], []), ([3], [1], []), ([4], [1 << 32 | 2], [1, 2]),
      ([5], [.max], [1]),
    ]
    for (kinds, words, bytes) in cases {
      #expect(throws: ValueColumn.Malformed.self) {
        try ValueColumn(kinds: kinds, words: words, bytes: bytes)
      }
    }
  }

  @Test func timeRangeSpansRowsAndExceptions() {
    #expect(ChangeSetSamples.empty.timeRange == nil)
    #expect(ChangeSetSamples.exceptionsAndMoves.timeRange == .zero ... .maximum)
    let time = ChangeSetSamples.time(5)
    #expect(ChangeSetSamples.oneRow.timeRange == time...time)
  }
}
