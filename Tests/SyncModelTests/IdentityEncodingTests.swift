import Testing

@testable import SyncModel

struct IdentityEncodingTests {
  private func bytes(_ values: Value..., collations: [KeyCollation] = []) -> [UInt8] {
    IdentityEncoding.encode(values, collations: collations).bytes
  }

  @Test func bytesAreThoseOfTheFormat() {
    #expect(bytes(.null) == [0])
    #expect(bytes(.integer(1)) == [1, 0x80, 0, 0, 0, 0, 0, 0, 1])
    #expect(bytes(.integer(-1)) == [1, 0x7F, 255, 255, 255, 255, 255, 255, 255])
    #expect(bytes(.real(0.5)) == [2, 0xBF, 0xE0, 0, 0, 0, 0, 0, 0])
    #expect(bytes(.real(-0.5)) == [2, 0x40, 0x1F, 255, 255, 255, 255, 255, 255])
    #expect(bytes(.text("ab"), .blob([7])) == [3, 2, 97, 98, 4, 1, 7])
    #expect(bytes(.identity(RowIdentity(bytes: [9, 9]))) == [5, 2, 9, 9])
    #expect(bytes(.blob([UInt8](repeating: 0, count: 200))).prefix(3) == [4, 200, 1])
  }

  @Test func realThatIsAnIntegerIsThatInteger() {
    #expect(bytes(.real(1)) == bytes(.integer(1)))
    #expect(bytes(.real(-0.0)) == bytes(.integer(0)))
    #expect(bytes(.real(-9_223_372_036_854_775_808)) == bytes(.integer(.min)))
    #expect(bytes(.real(9_223_372_036_854_775_808)) != bytes(.integer(.max)))
    #expect(bytes(.real(.infinity))[0] == 2)
  }

  @Test func textIsFoldedByItsCollation() {
    #expect(
      bytes(.text("Ab Z[é "), collations: [.nocase]) == bytes(.text("ab z[é ")))
    #expect(bytes(.text("a b  "), collations: [.rtrim]) == bytes(.text("a b")))
    #expect(bytes(.text("   "), collations: [.rtrim]) == bytes(.text("")))
    #expect(bytes(.text("A  ")) != bytes(.text("a")))
    #expect(
      bytes(.text("A"), .text("A"), collations: [.nocase]) == bytes(.text("a"), .text("A")))
    let long = String(repeating: "X", count: 300)
    #expect(bytes(.text(long), collations: [.nocase]) == bytes(.text(long.lowercased())))
    #expect(bytes(.blob(Array("A".utf8)), collations: [.nocase]) == bytes(.blob([65])))
  }

  @Test func integersAndRealsSortAsNumbers() {
    let integers: [Int64] = [.min, -256, -1, 0, 1, 255, 256, .max]
    let encoded = integers.map { IdentityEncoding.encode([.integer($0)]) }
    #expect(encoded == encoded.sorted())
    let reals = [-Double.infinity, -1e300, -0.5, 0.25, 0.5, 1e300, .infinity].map {
      IdentityEncoding.encode([.real($0)])
    }
    #expect(reals == reals.sorted { $0 < $1 })
  }

  @Test func valuesComeBackAndDifferentTuplesDiffer() throws {
    var generator = SeededGenerator(seed: 3)
    var seen: [RowIdentity: [Value]] = [:]
    for _ in 0..<3000 {
      let values = (0..<1 + generator.below(3)).map { _ -> Value in
        switch generator.below(6) {
        case 0: .null
        case 1: .integer(Int64(generator.below(4)) - 2)
        case 2: .real(Double(generator.below(9)) + 0.5)
        case 3: .text(generator.bytes(generator.below(3)).map { $0 & 3 })
        case 4: .blob(generator.bytes(generator.below(3)).map { $0 & 3 })
        default: .identity(RowIdentity(bytes: generator.bytes(generator.below(2)).map { $0 & 3 }))
        }
      }
      let identity = IdentityEncoding.encode(values)
      #expect(try IdentityEncoding.decode(identity, count: values.count) == values)
      if let other = seen[identity] { #expect(other == values) }
      seen[identity] = values
    }
  }

  @Test(
    arguments: [
      [], [6], [1, 0, 0], [3, 5, 97], [3, 0x80, 0, 97], [0, 0],
      [2, 0xBF, 0xF0, 0, 0, 0, 0, 0, 0], [3, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1],
    ] as [[UInt8]])
  func bytesThatNoTupleGivesAreRefused(bytes: [UInt8]) {
    #expect(throws: CodecError.self) {
      try IdentityEncoding.decode(RowIdentity(bytes: bytes), count: 1)
    }
  }
}
