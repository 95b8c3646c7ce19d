import Testing

@testable import DocumentSync

/// What a store remembers of its directory.
struct StoreRecordsTests {
  /// Some say all that they say by being there.
  @Test(
    arguments: StoreRecords.ofOneLife.filter {
      !StoreRecords.withoutContent.contains($0)
    })
  func everyRecordThatCannotBeReadIsDamage(_ key: String) {
    #expect(StoreRecords.damage(in: [key: [0x7b]]).map(\.key) == [key])
  }

  @Test func presenceIsNoDamage() {
    let keys = StoreRecords.withoutContent
    #expect(keys.sorted() == ["client.rejoins", "client.unfinished", "client.wentOver", "setUp"])
    #expect(
      StoreRecords.damage(in: Dictionary(uniqueKeysWithValues: keys.map { ($0, [1]) })).isEmpty)
  }
}
