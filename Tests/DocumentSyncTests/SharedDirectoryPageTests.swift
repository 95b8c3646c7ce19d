import Foundation
import SyncModel
import SyncStore
import Testing

@testable import DocumentSync

/// The tables of keys on the page on the shared directory.
struct SharedDirectoryPageTests {
  private let page: Page
  private let client = ClientIdentifier.random()
  private let hash = ContentHash(of: [1])
  private let root = RootIdentifier.random()
  private let document = DocumentName.random()
  private let generation = IntegrityKey.random()

  init() throws { page = try Page("Documentation/SharedDirectory.md") }

  private func expect(
    _ heading: String, _ full: some Encodable, _ least: some Encodable,
    sourceLocation: SourceLocation = #_sourceLocation
  ) throws {
    let said = try page.keys(below: heading)
    let made = try Page.keys(full: full, least: least)
    #expect(said == made, "\(heading)", sourceLocation: sourceLocation)
  }

  @Test func filesOfTheRootHaveTheKeysOfTheirTables() throws {
    var application = ApplicationFile(
      application: "x", root: root, creator: client, createdMilliseconds: 1)
    let bare = application
    application.description = "x"
    application.userInfo = [:]
    try expect("`application.", application, bare)

    var described = ClientFile(
      client: client, description: "x", platform: "x", registeredMilliseconds: 1)
    let least = described
    described.ancestor = client
    described.document = document
    described.userInfo = [:]
    described.leftMilliseconds = 1
    try expect("`ClientDevices/<client>.<revision>", described, least)

    let removal = ClientRemovalFile(
      client: client, by: client, byDescription: "x", removedMilliseconds: 1)
    try expect("`ClientDevices/<client>.removed.", removal, removal)
  }

  @Test func filesOfADocumentHaveTheKeysOfTheirTables() throws {
    var file = GenerationFile(
      root: root, document: document, identifier: "x", generation: generation, ordinal: 1,
      description: "x", creator: client, createdMilliseconds: 1)
    let least = file
    file.previous = generation
    file.userInfo = [:]
    try expect("`generation.", file, least)

    var tombstone = TombstoneFile(
      root: root, document: document, ordinal: 1, client: client, deletedMilliseconds: 1)
    let bare = tombstone
    tombstone.clientDescription = "x"
    try expect("`deleted.", tombstone, bare)
  }

  @Test func filesOfAGenerationHaveTheKeysOfTheirTables() throws {
    let store = RecentSyncFile.WholeStore(
      client: client, number: 1, hash: hash, vector: VersionVector(), commands: VersionVector(),
      byteCount: 1)
    let segment = RecentSyncFile.Segment(client: client, first: 1, last: 1, hash: hash)
    let retired = RecentSyncFile.Retired(
      client: client, cut: 1, lowestKept: 1, lowestKeptCommand: 1)
    var marker = RecentSyncFile(
      root: root, document: document, generation: generation, client: client, revision: 1,
      applied: VersionVector(), commandsApplied: VersionVector(), members: [client],
      wholeStores: [store], segments: [segment], lowestKept: 1, lowestKeptCommand: 1,
      retired: [retired], waiting: [], milliseconds: 1)
    let least = marker
    marker.previous = hash
    marker.changeHead = VersionVector.Entry(number: 1, hash: hash)
    marker.commandHead = VersionVector.Entry(number: 1, hash: hash)
    try expect("`RecentSyncs/", marker, least)
    // What its lists hold is named in their rows.
    for (row, keys) in [
      ("wholeStores", try Page.keys(full: store, least: store)),
      ("segments", try Page.keys(full: segment, least: segment)),
      ("retired", try Page.keys(full: retired, least: retired)),
    ] {
      let line = try #require(
        page.text.split(separator: "\n").first { $0.hasPrefix("| `\(row)` | ") })
      for key in keys.keys { #expect(line.dropFirst(row.count + 4).contains("`\(key)`"), "\(key)") }
    }

    let header = WholeStoreHeader(
      root: root, document: document, generation: generation, generationOrdinal: 1,
      client: client, number: 1, vector: VersionVector(), commands: VersionVector(),
      schema: hash, storeByteCount: 1, storeHash: hash, milliseconds: 1)
    try expect("`WholeStore/", header, header)
  }
}
