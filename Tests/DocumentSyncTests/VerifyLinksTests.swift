import DocumentSyncTesting
import Foundation
import SyncDirectory
import SyncModel
import Testing

@testable import DocumentSync

/// What verifying finds of files that lead to one another, and what it says
/// is to be done about files that their authors do not put back.
struct VerifyLinksTests {
  @Test(
    arguments: removalDamage + rootDamage + chainDamage + generationDamage + listedSegmentDamage
      + ordinalDamage)
  func damageGivesExactlyItsFinding(_ damage: Damage) async throws {
    let directory = try await DamagedDirectory()
    let expected = try damage.make(directory)
    let before = directory.memory.items
    let report = try await directory.verify()
    #expect(Set(report.findings.map(Found.init)) == Set(expected), "\(report.findings)")
    #expect(directory.memory.items == before)
  }

  @Test(arguments: remedies)
  func remedyIsOfUseForSuchAFile(_ damage: Damage, _ part: String) async throws {
    let directory = try await DamagedDirectory()
    let expected = try damage.make(directory)
    let found = try await directory.verify().findings.filter {
      expected.contains(Found($0))
    }
    #expect(found.count == expected.count)
    for finding in found {
      #expect(finding.remedy.contains(part), "\(finding)")
      let isThorough = finding.remedy.actions.contains(.synchronizeThoroughly)
      #expect(isThorough == part.contains("thoroughly"), "\(finding)")
    }
  }
}

// MARK: - Removals

private let removalDamage: [Damage] = [
  Damage("the word of a removal, which is no damage") {
    try $0.publishRemoval()
    return []
  },
  Damage("the word of a removal with a changed byte") {
    let path = try $0.publishRemoval()
    try $0.flip(path)
    return [Found(.damaged, path)]
  },
  Damage("garbage in place of the word of a removal") {
    let path = try $0.publishRemoval()
    $0.put(Array("hello".utf8), at: path)
    return [Found(.wrongType, path)]
  },
  Damage("the word of a removal under the name of another hash") {
    let path = try $0.publishRemoval()
    let content = try $0.bytes(path)
    $0.take(path)
    return [Found(.misnamed, $0.put(content, at: try $0.renamed(path, for: [1])))]
  },
  Damage("the word of another client's removal") {
    let other = $0.original.clients[1]
    return [Found(.misplaced, try $0.publishRemoval { $0.client = other })]
  },
]

// MARK: - Roots

private let rootDamage: [Damage] = [
  Damage("another application's file in place of the document's") {
    let path = try $0.application
    $0.put(try $0.otherApplication().bytes, at: try $0.otherApplication().path)
    $0.take(path)
    return [Found(.rootMissing, path)]
  },
  Damage("another application's file, and the document deleted") {
    let path = try $0.application
    $0.put(try $0.otherApplication().bytes, at: try $0.otherApplication().path)
    $0.take(path)
    try $0.publishTombstone()
    return [Found(.deletedNotCleared, $0.layout.folder)]
  },
]

// MARK: - The chain

private let chainDamage: [Damage] = [
  Damage("a new incarnation that continues its ancestor, which is no damage") {
    let last = try $0.head(of: 0)
    let entry = VersionVector.Entry(
      number: last, hash: ContentHash(of: try $0.bytes($0.changeSet(last, of: 0))))
    try $0.publishIncarnation(of: 0) { changeSet, ancestor in
      changeSet.header.previous = entry.hash
      changeSet.dependencies[ancestor] = entry
    }
    return []
  },
  Damage("a new incarnation that continues what it does not build on") {
    let path = try $0.publishIncarnation(of: 0) { changeSet, _ in
      changeSet.header.previous = ContentHash(of: [1])
    }
    return [Found(.chainBroken, path)]
  },
  Damage("a new incarnation that continues another content of its ancestor's") {
    let path = try $0.publishIncarnation(of: 0) { changeSet, ancestor in
      changeSet.header.previous = ContentHash(of: [1])
      changeSet.dependencies[ancestor] = VersionVector.Entry(
        number: 2, hash: ContentHash(of: [1]))
    }
    return [Found(.dependencyDiffers, path)]
  },
]

// MARK: - Generations and tombstones

private let generationDamage: [Damage] = [
  Damage("a generation in place of one that is nowhere") {
    let content = try $0.json($0.generation, as: GenerationFile.self, .generation) {
      $0.previous = IntegrityKey(bits: Bits128(high: 9, low: 9))
    }
    return [Found(.generationPreviousMissing, $0.put(content, at: try $0.generation))]
  },
  Damage("a generation in place of itself") {
    let content = try $0.json($0.generation, as: GenerationFile.self, .generation) {
      $0.previous = $0.generation
    }
    return [Found(.generationPreviousMissing, $0.put(content, at: try $0.generation))]
  },
  Damage("a generation in place of one of which only the file is left, which is no damage") {
    let former = IntegrityKey(bits: Bits128(high: 9, low: 9))
    let binding = try Envelope.decodeJSON(
      GenerationFile.self, from: $0.bytes($0.generation), type: .generation)
    var successor = binding
    successor.ordinal = 2
    successor.previous = former
    var first = binding
    first.generation = former
    $0.take(try $0.generation)
    $0.take($0.layout.folder)
    for file in [first, successor] {
      let name = GenerationName(ordinal: file.ordinal, key: file.generation)
      $0.put(
        try Envelope.encodeJSON(file, type: .generation), at: $0.layout.document.path(of: name))
    }
    return [Found(.generationFolderMissing, $0.layout.folder)]
  },
  Damage("a generation's file that wants a newer reader") {
    let content = try $0.json($0.generation, as: GenerationFile.self, .generation) {
      $0.leastReaderVersion = 99
    }
    return [Found(.newerVersion, $0.put(content, at: try $0.generation))]
  },
  Damage("a generation's file that wants what this version does not know") {
    let content = try $0.json($0.generation, as: GenerationFile.self, .generation) {
      $0.requiredFeatures = ["telepathy"]
    }
    return [Found(.newerVersion, $0.put(content, at: try $0.generation))]
  },
  Damage("a tombstone with a changed byte") {
    let path = try $0.publishTombstone()
    try $0.flip(path)
    return [Found(.damaged, path), Found(.deletedNotCleared, $0.layout.folder)]
  },
  Damage("a tombstone that ends early") {
    let path = try $0.publishTombstone()
    try $0.cut(path)
    return [Found(.truncated, path), Found(.deletedNotCleared, $0.layout.folder)]
  },
  Damage("another client's tombstone") {
    let other = $0.original.clients[2]
    let path = try $0.publishTombstone { $0.client = other }
    return [Found(.misplaced, path), Found(.deletedNotCleared, $0.layout.folder)]
  },
  Damage("another document's tombstone") {
    let path = try $0.publishTombstone {
      $0.document = DocumentName(bits: Bits128(high: 1, low: 2))
    }
    return [Found(.misplaced, path), Found(.deletedNotCleared, $0.layout.folder)]
  },
]

// MARK: - Segments that markers list

private let listedSegmentDamage: [Damage] = [
  Damage("a segment missing that its author lists") {
    let segment = $0.segment(1...3)
    try $0.publishMarker(of: 0) { $0.segments = [segment] }
    return [Found(.markerSegmentMissing, $0.path(of: segment))]
  },
  Damage("a segment missing in place of its loose files") {
    let segment = $0.segment(1...3)
    try $0.publishMarker(of: 1) { $0.segments = [segment] }
    for number in 1...3 { $0.take(try $0.changeSet(UInt64(number), of: 0)) }
    return [Found(.markerSegmentMissing, $0.path(of: segment))]
  },
  Damage("a segment missing with all there was of its author") {
    let segment = $0.segment(1...(try $0.head(of: 0)))
    try $0.publishMarker(of: 1) { $0.segments = [segment] }
    $0.take($0.layout.syncChanges(of: $0.original.clients[0]))
    return [Found(.markerSegmentMissing, $0.path(of: segment))]
  },
  Damage("a segment that its author has dropped, which is no damage") {
    let segment = $0.segment(1...3)
    try $0.publishMarker(of: 1) { $0.segments = [segment] }
    return []
  },
  Damage("a segment that was cleared away, which is no damage") {
    let segment = $0.segment(1...3)
    try $0.publishMarker(of: 0) { $0.lowestKept = 4 }
    try $0.publishMarker(of: 1) { $0.segments = [segment] }
    for number in 1...3 { $0.take(try $0.changeSet(UInt64(number), of: 0)) }
    return []
  },
]

// MARK: - The generation of a whole store

private let ordinalDamage: [Damage] = [
  Damage("a whole store that says another ordinal") {
    [Found(.misplaced, try $0.publishWholeStore(of: 1, header: { $0.generationOrdinal = 7 }))]
  }
]

// MARK: - Remedies

private let remedies: [(Damage, String)] = [
  (
    Damage("a removal") {
      let path = try $0.publishRemoval()
      try $0.flip(path)
      return [Found(.damaged, path)]
    }, "“Remove the device” again"
  ),
  (
    Damage("an application file") {
      try $0.flip($0.application)
      return [Found(.damaged, try $0.application)]
    }, "any device that has the document run “Synchronize thoroughly”"
  ),
  (
    Damage("a generation's file") {
      try $0.cut($0.generation)
      return [Found(.truncated, try $0.generation)]
    }, "any device that has the document run “Synchronize thoroughly”"
  ),
  (
    Damage("a tombstone") {
      let path = try $0.publishTombstone()
      try $0.flip(path)
      return [Found(.damaged, path)]
    }, "You need not do anything"
  ),
  (
    Damage("a client's description") {
      try $0.flip($0.description(of: 1))
      return [Found(.damaged, $0.description(of: 1))]
    }, "let its author run “Synchronize thoroughly”"
  ),
  (
    Damage("a whole store") {
      try $0.flip($0.wholeStore(of: 1))
      return [Found(.damaged, try $0.wholeStore(of: 1))]
    }, "“Upload the whole database”"
  ),
  (
    Damage("a whole store that says another ordinal") {
      [Found(.misplaced, try $0.publishWholeStore(of: 1, header: { $0.generationOrdinal = 7 }))]
    }, "“Upload the whole database”"
  ),
  (
    Damage("another application's file") {
      let path = try $0.application
      $0.put(try $0.otherApplication().bytes, at: try $0.otherApplication().path)
      $0.take(path)
      return [Found(.rootMissing, path)]
    }, "restore the file from another device's copy"
  ),
]

extension DamagedDirectory {
  /// Says that the third device was removed by the first.
  @discardableResult
  fileprivate func publishRemoval(
    _ change: (inout ClientRemovalFile) -> Void = { _ in }
  ) throws -> RelativePath {
    var file = ClientRemovalFile(
      client: original.clients[2], by: original.clients[0], byDescription: "0",
      removedMilliseconds: 5)
    change(&file)
    let content = try Envelope.encodeJSON(file, type: .clientDevice)
    let name = ClientRemovalName(
      client: original.clients[2], hash: HashFragment(ContentHash(of: content)))
    return put(content, at: DirectoryLayout.path(of: name))
  }

  /// The file of the same application in another directory.
  fileprivate func otherApplication() throws -> (bytes: [UInt8], path: RelativePath) {
    let root = RootIdentifier(bits: Bits128(high: .max, low: 1))
    let content = try json(
      DirectoryLayout.path(of: ApplicationName(root: try generationRoot)),
      as: ApplicationFile.self, .application
    ) { $0.root = root }
    return (content, DirectoryLayout.path(of: ApplicationName(root: root)))
  }

  private var generationRoot: RootIdentifier {
    get throws {
      try Envelope.decodeJSON(
        GenerationFile.self, from: bytes(generation), type: .generation
      ).root
    }
  }

  /// Publishes a tombstone of the second device.
  @discardableResult
  fileprivate func publishTombstone(
    _ change: (inout TombstoneFile) -> Void = { _ in }
  ) throws -> RelativePath {
    let client = original.clients[1]
    var file = TombstoneFile(
      root: RootIdentifier(bits: Bits128(high: 1, low: 1)), document: original.document,
      ordinal: 1, client: client, deletedMilliseconds: 5)
    change(&file)
    return put(
      try Envelope.encodeJSON(file, type: .tombstone),
      at: layout.document.path(of: DeletedName(ordinal: 1, client: client)))
  }

  /// Publishes the first change set of a client that continues a device.
  @discardableResult
  fileprivate func publishIncarnation(
    of index: Int, _ change: (inout SyncChangeSet, ClientIdentifier) -> Void
  ) throws -> RelativePath {
    let client = ClientIdentifier(bits: Bits128(high: 6, low: 6))
    let described = try json(description(of: index), as: ClientFile.self, .clientDevice) {
      $0.client = client
      $0.ancestor = original.clients[index]
    }
    put(described, at: DirectoryLayout.path(of: ClientDeviceName(client: client, revision: 1)))
    var changeSet = try ChangeSetCodec.decode(bytes(changeSet(head(of: index), of: index)))
    changeSet.header.client = client
    changeSet.header.number = 1
    changeSet.header.previous = nil
    change(&changeSet, original.clients[index])
    let content = try ChangeSetCodec.encode(changeSet)
    let name = ChangeSetName(number: 1, hash: HashFragment(ContentHash(of: content)))
    return put(content, at: layout.path(of: name, by: client))
  }

  /// A segment of the first device's change sets that is nowhere.
  fileprivate func segment(_ numbers: ClosedRange<UInt64>) -> RecentSyncFile.Segment {
    RecentSyncFile.Segment(
      client: original.clients[0], first: numbers.lowerBound, last: numbers.upperBound,
      hash: ContentHash(of: [7]))
  }

  fileprivate func path(of segment: RecentSyncFile.Segment) -> RelativePath {
    layout.path(of: segment.name, by: segment.client)
  }
}
