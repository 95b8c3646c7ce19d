import Testing

@testable import SyncModel

struct SipHashTests {
  // The vectors of the reference implementation (vectors_sip128): key 00…0f,
  // input 00, 01, 02….
  @Test(arguments: [
    (0, "a3817f04ba25a8e66df67214c7550293"), (1, "da87c1d86b99af44347659119b22fc45"),
    (7, "a1f1ebbed8dbc153c0b84aa61ff08239"), (8, "3b62a9ba6258f5610f83e264f31497b4"),
    (15, "5493e99933b0a8117e08ec0f97cfc3d9"), (63, "5150d1772f50834a503e069a973fbd7c"),
  ])
  func hashIsThatOfTheReference(count: Int, digits: String) throws {
    let hash = try #require(SipHash(key: Array(0..<16)))
    let result = hash.hash((0..<count).map { UInt8($0) })
    #expect(ChangeSetJSON.hex(result.bytes) == digits)
  }

  @Test func keyDecidesAndHasSixteenBytes() throws {
    #expect(SipHash(key: [1, 2, 3]) == nil)
    let one = SipHash(key: (1, 2))
    #expect(one.hash([1]) != SipHash(key: (2, 1)).hash([1]))
    #expect(SipHash(key: [1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0]) == one)
  }
}
