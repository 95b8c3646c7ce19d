import Testing

@testable import DocumentSync

/// What a store remembers of its directory.
struct StoreRecordsTests {
  /// Some say all that they say by being there.
  @Test(
    arguments: StoreRecords.ofOneLife.filter {
      !["setUp", "client.rejoins", "client.unfinished"].contains($0)
    })
  func everyRecordThatCannotBeReadIsDamage(_ key: String) {
    #expect(StoreRecords.damage(in: [key: [0x7b]]).map(\.key) == [key])
  }

  @Test func presenceIsNoDamage() {
    #expect(
      StoreRecords.damage(in: ["setUp": [1], "client.rejoins": [1], "client.unfinished": [1]])
        .isEmpty)
  }
}
