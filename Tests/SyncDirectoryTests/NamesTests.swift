import DocumentSyncTesting
import SyncDirectory
import SyncModel
import Testing

@Suite struct NamesTests {
  /// Whether `name` is written as `text` and `text` read as `name`.
  private func expect<Name: DirectoryName>(
    _ name: Name, isWritten text: String, sourceLocation: SourceLocation = #_sourceLocation
  ) {
    #expect(name.description == text, sourceLocation: sourceLocation)
    #expect(Name(text) == name, sourceLocation: sourceLocation)
    #expect(text.utf8.count <= RelativePath.componentLimit, sourceLocation: sourceLocation)
  }

  private let alice = Sample.alice.description
  private let hash = Sample.hash.description

  @Test func everyKindOfNameIsWrittenAndRead() {
    #expect(hash.utf8.count == 10)
    expect(ApplicationName(root: Sample.root), isWritten: "application.\(Sample.root).json")
    expect(ClientDeviceName(client: Sample.alice, revision: 12), isWritten: "\(alice).12.json")
    expect(
      GenerationName(ordinal: 2, key: Sample.key), isWritten: "generation.2.\(Sample.key).json")
    expect(DeletedName(ordinal: 2, client: Sample.alice), isWritten: "deleted.2.\(alice).json")
    expect(
      MarkerName(
        client: Sample.alice, changeHead: 10, commandHead: 0, revision: 345, hash: Sample.hash),
      isWritten: "\(alice).10.0.345.\(hash)")
    expect(ChangeSetName(number: 1, hash: Sample.hash), isWritten: "1.\(hash).syncchg")
    expect(CommandName(number: 20, hash: Sample.hash), isWritten: "20.\(hash).synccmd")
    expect(WholeStoreName(number: 3, hash: Sample.hash), isWritten: "3.\(hash).store")
    expect(SegmentName(numbers: 1...999, hash: Sample.hash), isWritten: "1-999.\(hash).segment")
    expect(SegmentName(numbers: 5...5, hash: Sample.hash), isWritten: "5-5.\(hash).segment")
  }

  @Test func theTreeIsThatOfTheDesign() {
    let document = "Documents/aaaaaaaaaaaaaaaaaaaaaaaaaa"
    let life = "\(document)/\(Sample.key)"
    let generation = Sample.generation
    let change = ChangeSetName(number: 4, hash: Sample.hash)
    let segment = SegmentName(numbers: 1...4, hash: Sample.hash)
    let marker = MarkerName(
      client: Sample.alice, changeHead: 1, commandHead: 2, revision: 3, hash: Sample.hash)
    let paths: [(RelativePath, String)] = [
      (DirectoryLayout.readme, "README.txt"),
      (
        DirectoryLayout.path(of: ApplicationName(root: Sample.root)),
        "application.\(Sample.root).json"
      ),
      (DirectoryLayout.encryption, "Encryption"),
      (
        DirectoryLayout.path(of: ClientDeviceName(client: Sample.alice, revision: 1)),
        "ClientDevices/\(alice).1.json"
      ),
      (DirectoryLayout.temporary(of: Sample.alice), "Temporary/\(alice)"),
      (DirectoryLayout.documents, "Documents"),
      (Sample.document.folder, document),
      (
        Sample.document.path(of: GenerationName(ordinal: 1, key: Sample.key)),
        "\(document)/generation.1.\(Sample.key).json"
      ),
      (
        Sample.document.path(of: DeletedName(ordinal: 1, client: Sample.alice)),
        "\(document)/deleted.1.\(alice).json"
      ),
      (generation.folder, life),
      (generation.path(of: marker), "\(life)/RecentSyncs/\(alice).1.2.3.\(hash)"),
      (
        generation.path(of: change, by: Sample.alice),
        "\(life)/SyncChanges/\(alice)/4.\(hash).syncchg"
      ),
      (
        generation.path(of: segment, by: Sample.alice),
        "\(life)/SyncChanges/\(alice)/1-4.\(hash).segment"
      ),
      (
        generation.path(of: CommandName(number: 1, hash: Sample.hash), by: Sample.alice),
        "\(life)/SyncCommands/\(alice)/1.\(hash).synccmd"
      ),
      (
        generation.path(of: WholeStoreName(number: 1, hash: Sample.hash), by: Sample.alice),
        "\(life)/WholeStore/\(alice)/1.\(hash).store"
      ),
      (generation.assets, "\(life)/Assets"),
    ]
    for (path, text) in paths {
      #expect(path.description == text)
      #expect(path.isPublishable)
    }
  }

  @Test func greatestNumbersKeepEveryPathWithinItsLimit() {
    let greatest: UInt64 = 999_999_999_999_999
    let segment = SegmentName(numbers: greatest...greatest, hash: Sample.hash)
    #expect(SegmentName(segment.description) == segment)
    #expect(Sample.generation.path(of: segment, by: Sample.alice).isPublishable)
    #expect(ChangeSetName("1000000000000000.\(hash).syncchg") == nil)
    let marker = MarkerName(
      client: Sample.alice, changeHead: 9_999_999_999, commandHead: 99_999,
      revision: 999_999_999, hash: Sample.hash)
    #expect(marker.description.utf8.count == 64)
    #expect(MarkerName(marker.description) == marker)
    var tooLong = marker
    tooLong.revision += 1
    #expect(MarkerName(tooLong.description) == nil)
    #expect(!Sample.generation.path(of: tooLong).isPublishable)
  }

  @Test func segmentOfMoreChangeSetsThanOneMayHoldIsNotOurs() {
    #expect(SegmentName("5-65540.\(hash).segment") != nil)
    #expect(SegmentName("5-65541.\(hash).segment") == nil)
    #expect(SegmentName("1-999999999999999.\(hash).segment") == nil)
  }

  @Test func whatIsNotExactlyOursIsNotParsed() {
    let changes = [
      "", ".", "1", "1.\(hash)", "0.\(hash).syncchg", "01.\(hash).syncchg", "+1.\(hash).syncchg",
      "-1.\(hash).syncchg", " 1.\(hash).syncchg", "1.\(hash).syncchg ", "1..syncchg",
      "1.\(hash.uppercased()).syncchg", "1.\(hash)a.syncchg", "1.\(hash.dropLast()).syncchg",
      "1.\(hash).SYNCCHG", "1.\(hash).syncchg.tmp", ".1.\(hash).syncchg", "1.\(hash).syncchg~",
      "1.\(hash).synccmd", "1 (1).\(hash).syncchg", "1.\(hash) (conflicted copy).syncchg",
      "1.\(hash).sync-conflict-20260101-120000-ABCDEFG.syncchg", "١.\(hash).syncchg",
      "1.\(hash).syncchg\u{0301}", "1.\u{fffd}\u{fffd}.syncchg", "1.0123456789.syncchg",
      "99999999999999999999999999.\(hash).syncchg", String(repeating: "1", count: 300),
      "1.\(hash).syncchg\0", "a/1.\(hash).syncchg",
    ]
    for text in changes { #expect(ChangeSetName(text) == nil, "\(text)") }
    for text in [
      "2-1.\(hash).segment", "1.\(hash).segment", "1-2-3.\(hash).segment",
      "-2.\(hash).segment", "0-2.\(hash).segment", "1-.\(hash).segment", "1-02.\(hash).segment",
    ] {
      #expect(SegmentName(text) == nil, "\(text)")
    }
    for text in [
      "\(alice).1.2.3", "\(alice).1.2.3.\(hash).json", "\(alice.uppercased()).1.2.3.\(hash)",
      "\(alice.dropLast()).1.2.3.\(hash)", "\(alice).1.2.-3.\(hash)", "\(alice).01.2.3.\(hash)",
      "\(alice)b.1.2.3.\(hash)", "..1.2.3.",
    ] {
      #expect(MarkerName(text) == nil, "\(text)")
    }
    #expect(RootName("readme.txt") == nil)
    #expect(RootName("documents") == nil)
    #expect(GenerationEntryName("recentSyncs") == nil)
    #expect(DocumentEntryName("generation.1.\(Sample.key).JSON") == nil)
    // The last character of an identifier carries three bits only.
    #expect(ClientIdentifier(String(repeating: "7", count: 26)) == nil)
  }

  @Test func randomTextIsNeverParsedIntoSomethingItIsNot() {
    var random = SeededRandom(seed: 42)
    let pieces = [
      alice, hash, "generation", "deleted", "application", "json", "syncchg", "segment", "store",
      "1", "0", "17", "-", ".", "..", "~", " (1)", "é", "\u{0}", "\u{1F600}", "SyncChanges",
    ]
    func expectExact<Name: DirectoryName>(_ type: Name.Type, _ text: String) {
      if let name = Name(text) { #expect(Array(name.description.utf8) == Array(text.utf8)) }
    }
    for _ in 0..<20_000 {
      let count = Int.random(in: 0...7, using: &random)
      let parts = (0..<count).map { _ in pieces.randomElement(using: &random) ?? "" }
      let text = parts.joined(separator: Bool.random(using: &random) ? "." : "")
      expectExact(RootName.self, text)
      expectExact(ClientDeviceName.self, text)
      expectExact(DocumentEntryName.self, text)
      expectExact(GenerationEntryName.self, text)
      expectExact(MarkerName.self, text)
      expectExact(ChangeFileName.self, text)
      expectExact(CommandName.self, text)
      expectExact(WholeStoreName.self, text)
      #expect(!ForeignName(name: text).description.isEmpty)
    }
  }

  @Test func ofTwoGenerationsTheHigherOrdinalThenTheLowerKeyCounts() {
    let low = IntegrityKey(bits: Bits128(high: 1, low: 0))
    let high = IntegrityKey(bits: Bits128(high: 2, low: 0))
    let names = [
      GenerationName(ordinal: 2, key: high), GenerationName(ordinal: 10, key: high),
      GenerationName(ordinal: 10, key: low), GenerationName(ordinal: 9, key: low),
    ]
    #expect(names.max() == GenerationName(ordinal: 10, key: low))
  }
}
