import Foundation
import Testing

@testable import SyncStore

/// The tokens of a store that is used with several homes.
@Suite struct PlaceRecordTests {
  /// As an earlier version has written it, which knew one folder.
  private func record(withToken token: String) throws -> PlaceRecord {
    let json = """
      {"place": {"machine": "one", "inode": 1, "path": "/store"}, "token": "\(token)"}
      """
    return try JSONDecoder().decode(PlaceRecord.self, from: Data(json.utf8))
  }

  @Test func tokenOfAnEarlierVersionIsGivenUpByTheFolderThatHoldsIt() throws {
    var record = try record(withToken: "former")
    // Another home comes first.
    record.note("of b", in: "/b", held: [])
    #expect(!record.isOlder(than: ["of b"], in: "/b"))
    #expect(!record.isOlder(than: ["former"], in: "/a"))
    record.note("of a", in: "/a", held: ["former"])
    #expect(!record.isOlder(than: ["of a"], in: "/a"))
    #expect(record.isOlder(than: ["former"], in: "/a"))
    #expect(!record.isOlder(than: nil, in: "/c"))
    // A folder that knows the client, in a record that does not know the folder.
    #expect(record.isOlder(than: ["something"], in: "/c"))
  }
}
