import DocumentSyncTesting
import Foundation
import GRDB
import SyncDirectory
import SyncModel
import Testing

@testable import DocumentSync

struct VerifyDirectoryTests {
  @Test func busyDirectoryThatIsWholeGivesNothing() async throws {
    let directory = try await DamagedDirectory()
    let report = try await directory.verify()
    #expect(report.findings == [])
    #expect(report.leftOut == [])
    #expect(report.fileCount > 20)
    #expect(report.byteCount > 0)
  }

  /// What a document's folder says of its generations, whatever the order in which it is listed.
  @Test func generationsAreToldByTheirKeys() {
    let (first, second) = (IntegrityKey.random(), IntegrityKey.random())
    var document = DirectoryInventory.Document()
    #expect(!document.isDeleted(first))
    for ordinal: UInt64 in [2, 1] { document.insert(GenerationName(ordinal: ordinal, key: first)) }
    document.insert(GenerationName(ordinal: 3, key: second))
    #expect(document.counting?.key == second)
    #expect(document.ordinals == [first: 1...2, second: 3...3])
    document.insert(DeletedName(ordinal: 1, client: .random()))
    #expect(!document.isDeleted(first), "a later file of it is there")
    document.insert(DeletedName(ordinal: 2, client: .random()))
    #expect(document.isDeleted(first))
    #expect(!document.isDeleted(second))
    #expect(!document.isDeleted(.random()))
  }

  @Test(
    arguments: fileDamage + nameDamage + documentDamage + changeDamage + markerDamage
      + wholeStoreDamage + commandDamage + segmentDamage)
  func damageGivesExactlyItsFinding(_ damage: Damage) async throws {
    let directory = try await DamagedDirectory()
    let expected = try damage.make(directory)
    let before = directory.memory.items
    let report = try await directory.verify()
    #expect(Set(report.findings.map(Found.init)) == Set(expected), "\(report.findings)")
    for finding in report.findings {
      #expect(!finding.remedy.isEmpty && !finding.message.isEmpty)
      #expect(finding.severity == finding.kind.severity)
    }
    #expect(directory.memory.items == before)
  }

  @Test func everythingIsFoundAtOnce() async throws {
    let directory = try await DamagedDirectory()
    var expected: Set<Found> = []
    for damage in nameDamage { expected.formUnion(try damage.make(directory)) }
    try directory.flip(directory.changeSet(2, of: 0))
    expected.insert(Found(.damaged, try directory.changeSet(2, of: 0)))
    try directory.cut(directory.wholeStore(of: 1))
    expected.insert(Found(.truncated, try directory.wholeStore(of: 1)))
    let report = try await directory.verify()
    #expect(expected.isSubset(of: report.findings.map(Found.init)))
    let severities = report.findings.map(\.severity)
    #expect(severities == severities.sorted(by: >))
  }

  @Test(arguments: [DirectoryError.Operation.read, .list, .download])
  func whatCannotBeReadIsNamedAndTheRestIsLookedAt(
    operation: DirectoryError.Operation
  ) async throws {
    let directory = try await DamagedDirectory()
    let faulty = FaultyDirectory(directory.memory)
    let path: RelativePath
    switch operation {
    case .list: path = directory.layout.syncChanges(of: directory.original.clients[0])
    case .download: path = try directory.wholeStore(of: 1)
    default: path = try directory.changeSet(2, of: 0)
    }
    let part = "\(try #require(path.parent).name)/\(path.name)"
    for occurrence in 1...9 {
      faulty.script(
        .init(.fail(.notReadable), on: operation, pathPart: part, occurrence: occurrence))
    }
    let report = try await directory.verify(through: faulty)
    let found = Set(report.findings.map(Found.init))
    #expect(found.contains(Found(.unreadable, path)))
    // Of a folder that cannot be listed nothing is there, as the marker of its client shows.
    let besides = found.subtracting([Found(.unreadable, path)])
    #expect(
      besides.map(\.kind) == (operation == .list ? [.markerWithoutFiles] : []), "\(found)")
    #expect(report.fileCount > 10)
  }

  @Test func whatIsPublishedMeanwhileIsNoDamage() async throws {
    let directory = try await DamagedDirectory()
    let missing = try directory.changeSet(2, of: 0)
    let bytes = try directory.bytes(missing)
    directory.take(missing)
    // Its folder was listed, and the file comes when others are read.
    let late = HookedDirectory(directory.memory, beforeCall: 40) {
      directory.memory.put(.file(bytes), at: missing)
    }
    let report = try await directory.verify(through: late)
    #expect(late.wasCalled)
    #expect(report.findings == [])
    #expect(report.leftOut == [])
  }

  @Test func directoryThatIsAwayIsAnError() async throws {
    let directory = try await DamagedDirectory()
    directory.memory.isAway = true
    #expect(await syncError { _ = try await directory.verify() }?.code == .directoryAway)
  }

  @Test func cancellationStopsIt() async throws {
    let directory = try await DamagedDirectory()
    let operation = VerifyDirectoryOperation(directory: directory.memory)
    operation.observe { [weak operation] progress in
      if progress.phase == .verifying, progress.completedCount > 5 { operation?.cancel() }
    }
    let error = await syncError { _ = try await OperationQueue().run(operation) }
    #expect(error?.code == .cancelled)
  }

  @Test func directoryOfAnotherApplicationIsSaidToBe() async throws {
    let directory = try await DamagedDirectory()
    #expect(try await directory.verify(application: "docsync").findings == [])
    let found = try await directory.verify(application: "other").findings.map(Found.init)
    #expect(found == [Found(.applicationOther, try directory.application)])
  }
}

// MARK: - Any file

private let fileDamage: [Damage] = [
  Damage("a changed byte in the application file") {
    try $0.flip($0.application)
    return [Found(.damaged, try $0.application)]
  },
  Damage("an application file that ends early") {
    try $0.cut($0.application)
    return [Found(.truncated, try $0.application)]
  },
  Damage("an application file of a newer version") {
    $0.put(try $0.newer($0.application), at: try $0.application)
    return [Found(.newerVersion, try $0.application)]
  },
  Damage("an application file that wants a newer reader") {
    let content = try $0.json($0.application, as: ApplicationFile.self, .application) {
      $0.leastReaderVersion = 99
    }
    $0.put(content, at: try $0.application)
    return [Found(.newerVersion, try $0.application)]
  },
  Damage("an application file of another root") {
    let content = try $0.json($0.application, as: ApplicationFile.self, .application) {
      $0.root = RootIdentifier(bits: Bits128(high: 1, low: 2))
    }
    $0.put(content, at: try $0.application)
    return [Found(.misplaced, try $0.application)]
  },
  Damage("text in place of a client's description") {
    $0.put(Array("{}".utf8), at: $0.description(of: 1))
    return [Found(.wrongType, $0.description(of: 1))]
  },
  Damage("a client's description that is no JSON") {
    let content = try Envelope(type: .clientDevice, body: Array("hello".utf8)).encoded()
    $0.put(content, at: $0.description(of: 1))
    return [Found(.malformed, $0.description(of: 1))]
  },
  Damage("a client's description under another's name") {
    $0.put(try $0.bytes($0.description(of: 1)), at: $0.description(of: 2))
    return [Found(.misplaced, $0.description(of: 2))]
  },
  Damage("a generation's file with a changed byte") {
    try $0.flip($0.generation)
    return [Found(.damaged, try $0.generation)]
  },
  Damage("a generation's file of another document") {
    let content = try $0.json($0.generation, as: GenerationFile.self, .generation) {
      $0.document = DocumentName(bits: Bits128(high: 1, low: 2))
    }
    $0.put(content, at: try $0.generation)
    return [Found(.misplaced, try $0.generation)]
  },
  Damage("a changed byte in a change set") {
    try $0.flip($0.changeSet(2, of: 0))
    return [Found(.damaged, try $0.changeSet(2, of: 0))]
  },
  Damage("a change set that ends early") {
    try $0.cut($0.changeSet(3, of: 1))
    return [Found(.truncated, try $0.changeSet(3, of: 1))]
  },
  Damage("an empty change set file") {
    $0.put([], at: try $0.changeSet(2, of: 2))
    return [Found(.truncated, try $0.changeSet(2, of: 2))]
  },
  Damage("a change set of a newer version") {
    let path = try $0.changeSet(2, of: 0)
    return [Found(.newerVersion, try $0.replace(path, by: $0.newer(path)))]
  },
  Damage("a marker under the name of a change set") {
    let path = try $0.changeSet(2, of: 0)
    return [Found(.wrongType, try $0.replace(path, by: $0.bytes($0.marker(of: 0))))]
  },
  Damage("a marker with a changed byte") {
    try $0.flip($0.marker(of: 2))
    return [Found(.damaged, try $0.marker(of: 2))]
  },
  Damage("a marker that ends early") {
    try $0.cut($0.marker(of: 2))
    return [Found(.truncated, try $0.marker(of: 2))]
  },
  Damage("a marker of a newer version") {
    let path = try $0.marker(of: 1)
    return [Found(.newerVersion, try $0.replace(path, by: $0.newer(path)))]
  },
  Damage("a whole store with a changed byte") {
    try $0.flip($0.wholeStore(of: 1))
    return [Found(.damaged, try $0.wholeStore(of: 1))]
  },
  Damage("a whole store that ends early") {
    try $0.cut($0.wholeStore(of: 1))
    return [Found(.truncated, try $0.wholeStore(of: 1))]
  },
  Damage("a whole store of a newer version") {
    let path = try $0.wholeStore(of: 0)
    return [Found(.newerVersion, try $0.replace(path, by: $0.newer(path)))]
  },
  Damage("a change set under the name of another hash") {
    let path = try $0.changeSet(2, of: 0)
    let content = try $0.bytes(path)
    $0.take(path)
    return [Found(.misnamed, $0.put(content, at: try $0.renamed(path, for: [1])))]
  },
  Damage("a whole store under the name of another hash") {
    let path = try $0.wholeStore(of: 0)
    let content = try $0.bytes(path)
    $0.take(path)
    return [Found(.misnamed, $0.put(content, at: try $0.renamed(path, for: [1])))]
  },
  Damage("another client's change set") {
    let path = try $0.changeSet(2, of: 0)
    return [Found(.misplaced, try $0.replace(path, by: $0.bytes($0.changeSet(2, of: 1))))]
  },
  Damage("a marker whose name says more than it") {
    let path = try $0.marker(of: 0)
    guard var name = MarkerName(path.name) else { return [] }
    name.changeHead += 1
    let content = try $0.bytes(path)
    $0.take(path)
    return [Found(.misplaced, $0.put(content, at: $0.layout.path(of: name)))]
  },
  Damage("a leftover") {
    let folder = DirectoryLayout.temporary(of: $0.original.clients[0])
    return [Found(.leftover, $0.put([1, 2], at: folder / "k7qx2f"))]
  },
]

// MARK: - Names

private let nameDamage: [Damage] = [
  Damage("a conflicted copy of a change set") {
    let path = try $0.changeSet(1, of: 0)
    let copy = path.name.replacingOccurrences(of: ".syncchg", with: " (1).syncchg")
    let folder = $0.layout.syncChanges(of: $0.original.clients[0])
    return [Found(.conflictedCopy, $0.put([1], at: folder / copy))]
  },
  Damage("another program's unfinished file") {
    [Found(.temporaryFile, $0.put([1], at: $0.layout.recentSyncs / ".syncthing.marker.tmp"))]
  },
  Damage("a file that is in the cloud") {
    [Found(.placeholder, $0.put([1], at: $0.layout.wholeStores / ".1.abc.store.icloud"))]
  },
  Damage("a backup") {
    [Found(.backupFile, $0.put([1], at: DirectoryLayout.clientDevices / "a.json~"))]
  },
  Damage("a hidden file") { [Found(.hiddenFile, $0.put([1], at: .root / ".stfolder"))] },
  Damage("an operating system's file") {
    [Found(.systemFile, $0.put([1], at: DirectoryLayout.documents / "desktop.ini"))]
  },
  Damage("a link in place of a client's folder") {
    let folder = $0.layout.syncCommands / $0.original.clients[0].description
    $0.memory.put(.other, at: folder)
    return [Found(.wrongKind, folder)]
  },
  Damage("a link in place of the folder of assets") {
    $0.memory.put(.other, at: $0.layout.assets)
    return [Found(.wrongKind, $0.layout.assets)]
  },
  Damage("a folder that is none of ours") {
    $0.memory.put(.folder, at: $0.layout.folder / "Pictures")
    return [Found(.unknownName, $0.layout.folder / "Pictures")]
  },
  Damage("a file in a reserved folder") {
    [Found(.unknownName, $0.put([1], at: DirectoryLayout.encryption / "slot"))]
  },
]

// MARK: - Applications, clients, documents

private let documentDamage: [Damage] = [
  Damage("no application file") {
    let path = try $0.application
    $0.take(path)
    return [Found(.applicationMissing, path)]
  },
  Damage("no application file, and nothing that says which it was") {
    $0.take(try $0.application)
    try $0.flip($0.generation)
    return [
      Found(.applicationMissing, .root / "application.….json"), Found(.damaged, try $0.generation),
    ]
  },
  Damage("two application files") {
    let root = RootIdentifier(bits: Bits128(high: .max, low: 1))
    let content = try $0.json($0.application, as: ApplicationFile.self, .application) {
      $0.root = root
    }
    let path = DirectoryLayout.path(of: ApplicationName(root: root))
    return [Found(.applicationRivals, $0.put(content, at: path))]
  },
  Damage("a client without a description") {
    $0.take($0.description(of: 2))
    return [Found(.clientUndescribed, $0.description(of: 2))]
  },
  Damage("an empty document folder") {
    let name = DocumentName(bits: Bits128(high: 5, low: 5))
    $0.memory.put(.folder, at: DirectoryLayout.Document(name).folder)
    return [Found(.documentEmpty, DirectoryLayout.Document(name).folder)]
  },
  Damage("a generation without a file") {
    $0.take(try $0.generation)
    return [Found(.generationFileMissing, $0.layout.document.folder)]
  },
  Damage("a folder of an unknown generation") {
    let key = IntegrityKey(bits: Bits128(high: 7, low: 7))
    $0.memory.put(.folder, at: $0.layout.document.generation(key).folder)
    return [Found(.generationFileMissing, $0.layout.document.folder)]
  },
  Damage("a generation without a folder") {
    $0.take($0.layout.folder)
    return [Found(.generationFolderMissing, $0.layout.folder)]
  },
  Damage("a tombstone, and files that are still there") {
    let file = TombstoneFile(
      root: RootIdentifier(bits: Bits128(high: 1, low: 1)), document: $0.original.document,
      ordinal: 1, client: $0.original.clients[1], deletedMilliseconds: 5)
    let name = DeletedName(ordinal: 1, client: $0.original.clients[1])
    $0.put(
      try Envelope.encodeJSON(file, type: .tombstone), at: $0.layout.document.path(of: name))
    return [Found(.deletedNotCleared, $0.layout.folder)]
  },
]

// MARK: - Change sets

private let changeDamage: [Damage] = [
  Damage("a change set missing between others") {
    let path = try $0.changeSet(2, of: 0)
    $0.take(path)
    return [Found(.changeSetMissing, path)]
  },
  Damage("several change sets missing") {
    $0.take(try $0.changeSet(2, of: 1))
    $0.take(try $0.changeSet(3, of: 1))
    return [Found(.changeSetMissing, $0.layout.syncChanges(of: $0.original.clients[1]))]
  },
  Damage("the first change set missing") {
    let path = try $0.changeSet(1, of: 1)
    $0.take(path)
    return [Found(.changeSetMissing, path)]
  },
  Damage("change sets that should have been cleared away") {
    try $0.publishMarker(of: 1) { $0.lowestKept = 3 }
    return [
      Found(.changeSetNotCleared, try $0.changeSet(1, of: 1)),
      Found(.changeSetNotCleared, try $0.changeSet(2, of: 1)),
    ]
  },
  Damage("two files that claim one number") {
    let path = try $0.changeSet(2, of: 0)
    var changeSet = try ChangeSetCodec.decode($0.bytes(path))
    changeSet.schema = ContentHash(of: [1])
    let content = try ChangeSetCodec.encode(changeSet)
    let other = $0.put(content, at: try $0.renamed(path, for: content))
    return [Found(.changeSetClaimedTwice, max(path, other))]
  },
  Damage("a change set that does not continue the one before it") {
    let path = try $0.publishChangeSet(of: 0) { $0.header.previous = ContentHash(of: [1]) }
    return [Found(.chainBroken, path)]
  },
  Damage("a change set that builds on one that is nowhere") {
    let other = $0.original.clients[1]
    let path = try $0.publishChangeSet(of: 0) {
      $0.dependencies[other] = VersionVector.Entry(number: 99, hash: ContentHash(of: [1]))
    }
    return [Found(.dependencyMissing, path)]
  },
  Damage("a change set that builds on an unknown client's") {
    let path = try $0.publishChangeSet(of: 0) {
      $0.dependencies[ClientIdentifier(bits: Bits128(high: 1, low: 1))] = VersionVector.Entry(
        number: 1, hash: ContentHash(of: [1]))
    }
    return [Found(.dependencyMissing, path)]
  },
  Damage("a change set that builds on another content") {
    let other = $0.original.clients[1]
    let path = try $0.publishChangeSet(of: 0) {
      $0.dependencies[other] = VersionVector.Entry(number: 2, hash: ContentHash(of: [1]))
    }
    return [Found(.dependencyDiffers, path)]
  },
  Damage("a change set that does not decode") {
    let last = try $0.changeSet($0.head(of: 0), of: 0)
    let envelope = try Envelope.decode($0.bytes(last), expecting: .changeSet)
    let content = try Envelope(
      type: .changeSet, publicHeader: envelope.publicHeader,
      privateHeader: envelope.privateHeader, body: [1, 2, 3], compression: .stored
    ).encoded()
    let name = ChangeSetName(
      number: try $0.head(of: 0) + 1, hash: HashFragment(ContentHash(of: content)))
    let path = $0.layout.path(of: name, by: $0.original.clients[0])
    return [Found(.malformed, $0.put(content, at: path))]
  },
]

// MARK: - Commands

private let commandDamage: [Damage] = [
  Damage("a command that ends early") {
    let path = try $0.publishCommand(1)
    try $0.cut(path)
    return [Found(.truncated, path)]
  },
  Damage("a command that says nothing of where it belongs") {
    let folder = $0.layout.syncCommands(of: $0.original.clients[0])
    let content = try Envelope(type: .syncCommand, body: Array("{}".utf8)).encoded()
    let name = CommandName(number: 1, hash: HashFragment(ContentHash(of: content)))
    return [Found(.malformed, $0.put(content, at: folder / name.description))]
  },
  Damage("a command of an unknown kind") {
    [Found(.newerVersion, try $0.publishCommand(1, kind: "dance"))]
  },
  Damage("a command without what its kind needs") {
    [Found(.malformed, try $0.publishCommand(1, kind: "retire"))]
  },
  Damage("another client's command") {
    let other = $0.original.clients[1]
    return [Found(.misplaced, try $0.publishCommand(1, client: other))]
  },
  Damage("a command missing between others") {
    let first = try $0.publishCommand(1)
    let second = try $0.publishCommand(2, after: first)
    try $0.publishCommand(3, after: second)
    $0.take(second)
    return [Found(.commandMissing, second)]
  },
  Damage("two files that claim one command") {
    let first = try $0.publishCommand(1)
    let other = try $0.publishCommand(1, name: "other")
    return [Found(.commandClaimedTwice, max(first, other))]
  },
  Damage("a command that does not continue the one before it") {
    try $0.publishCommand(1)
    return [Found(.commandChainBroken, try $0.publishCommand(2))]
  },
]

// MARK: - Segments

private let segmentDamage: [Damage] = [
  Damage("a segment beside its loose files, which is no damage") {
    try $0.publishSegment(1...3)
    return []
  },
  Damage("a segment in place of its loose files, which is no damage") {
    try $0.publishSegment(1...3)
    for number in 1...3 { $0.take(try $0.changeSet(UInt64(number), of: 0)) }
    return []
  },
  Damage("a segment with a changed byte") {
    let path = try $0.publishSegment(1...3)
    try $0.flip(path)
    return [Found(.damaged, path)]
  },
  Damage("a segment that ends early") {
    let path = try $0.publishSegment(1...3)
    try $0.cut(path)
    return [Found(.truncated, path)]
  },
  Damage("a segment whose index lies") {
    let path = try $0.publishSegment(1...3)
    // The first byte of the first hash, after the number of change sets.
    let content = $0.resealed(try $0.bytes(path)) { $0[88 + 72 + 1] ^= 1 }
    return [Found(.segmentIndex, try $0.replace(path, by: content))]
  },
  Damage("a segment of other numbers than its name") {
    let path = try $0.publishSegment(2...3)
    let content = try $0.bytes(path)
    $0.take(path)
    let name = SegmentName(numbers: 3...4, hash: HashFragment(ContentHash(of: content)))
    let folder = $0.layout.syncChanges(of: $0.original.clients[0])
    return [Found(.misplaced, $0.put(content, at: folder / name.description))]
  },
  Damage("a segment with another content than the loose file") {
    [Found(.segmentDiffers, try $0.publishSegment(2...2) { $0.schema = ContentHash(of: [1]) })]
  },
  Damage("segments that overlap") {
    try $0.publishSegment(1...3)
    return [Found(.segmentOverlap, try $0.publishSegment(2...4))]
  },
]

// MARK: - Markers

private let markerDamage: [Damage] = [
  Damage("the last change set missing") {
    $0.take(try $0.changeSet($0.head(of: 2), of: 2))
    return [Found(.markerAhead, try $0.marker(of: 2))]
  },
  Damage("all change sets of a client missing") {
    $0.take($0.layout.syncChanges(of: $0.original.clients[2]))
    return [Found(.markerWithoutFiles, try $0.marker(of: 2))]
  },
  Damage("a command missing that a marker announces") {
    let path = try $0.publishMarker(of: 0) {
      $0.commandHead = VersionVector.Entry(number: 2, hash: ContentHash(of: [1]))
    }
    return [Found(.markerWithoutFiles, path)]
  },
  Damage("a processed command that no client has published") {
    let other = $0.original.clients[1]
    let path = try $0.publishMarker(of: 0) {
      $0.commandsApplied[other] = VersionVector.Entry(number: 2, hash: ContentHash(of: [1]))
    }
    return [Found(.markerAppliedBeyond, path)]
  },
  Damage("a retired client of which some had not come to who cleared it away") {
    let client = $0.original.clients[2]
    let head = try $0.head(of: 2)
    for number in 2...head { $0.take(try $0.changeSet(number, of: 2)) }
    try $0.publishMarker(of: 0) {
      $0.retired = [
        RecentSyncFile.Retired(
          client: client, cut: head, lowestKept: head + 1, lowestKeptCommand: 1)
      ]
    }
    return [Found(.changeSetNotCleared, try $0.changeSet(1, of: 2))]
  },
  Damage("a retired client whose last commands were cleared away") {
    let client = $0.original.clients[2]
    let names = try $0.names($0.layout.syncCommands(of: client), as: CommandName.self)
    for name in names where name.number > 1 { $0.take($0.layout.path(of: name, by: client)) }
    try $0.publishMarker(of: 0) {
      $0.retired = [
        RecentSyncFile.Retired(client: client, cut: 4, lowestKept: 1, lowestKeptCommand: 4)
      ]
    }
    // Neither of the whole stores has processed them.
    return [Found(.joinImpossible, $0.layout.wholeStores)]
  },
  Damage("two markers of one revision") {
    let path = try $0.marker(of: 0)
    let content = try $0.json(path, as: RecentSyncFile.self, .recentSync) { $0.milliseconds += 1 }
    let other = $0.put(content, at: try $0.renamed(path, for: content))
    return [Found(.markerClaimedTwice, max(path, other))]
  },
  Damage("a marker that does not continue the one before it") {
    [Found(.markerDiffers, try $0.publishMarker(of: 0) { $0.previous = ContentHash(of: [1]) })]
  },
  Damage("a marker that names another content of its last change set") {
    [
      Found(
        .markerDiffers, try $0.publishMarker(of: 0) { $0.changeHead?.hash = ContentHash(of: [1]) })
    ]
  },
  Damage("a marker that has applied another content") {
    let other = $0.original.clients[1]
    return [
      Found(
        .markerDiffers,
        try $0.publishMarker(of: 0) { $0.applied[other]?.hash = ContentHash(of: [1]) })
    ]
  },
  Damage("a marker that has applied more than there is") {
    let other = $0.original.clients[1]
    return [
      Found(
        .markerAppliedBeyond, try $0.publishMarker(of: 0) { $0.applied[other]?.number += 40 })
    ]
  },
  Damage("a whole store missing that a marker lists") {
    let path = try $0.wholeStore(of: 1)
    $0.take(path)
    return [Found(.markerWholeStoreMissing, path)]
  },
]

// MARK: - Whole stores

private let wholeStoreDamage: [Damage] = [
  Damage("a whole store whose database is damaged") {
    let path = try $0.publishWholeStore(of: 1) { database in
      var content = try Data(contentsOf: URL(fileURLWithPath: database))
      for index in 4_096..<content.count { content[index] = 0xA5 }
      try content.write(to: URL(fileURLWithPath: database))
    }
    return [Found(.wholeStoreDamaged, path)]
  },
  Damage("a whole store that holds no database") {
    let path = try $0.publishWholeStore(of: 1) { database in
      try Data("hello".utf8).write(to: URL(fileURLWithPath: database))
    }
    return [Found(.wholeStoreDamaged, path)]
  },
  Damage("a whole store without bookkeeping") {
    [Found(.wholeStoreDamaged, try $0.publishWholeStore(of: 1, sql: "DROP TABLE docsync_kept"))]
  },
  Damage("a whole store with a trigger of ours") {
    let sql =
      "CREATE TRIGGER docsync_1_ai AFTER INSERT ON notes BEGIN DELETE FROM docsync_meta; END"
    return [Found(.wholeStoreDamaged, try $0.publishWholeStore(of: 1, sql: sql))]
  },
  Damage("a whole store of another schema than it names") {
    [
      Found(
        .wholeStoreSchema,
        try $0.publishWholeStore(of: 1, header: { $0.schema = ContentHash(of: [1]) }))
    ]
  },
  Damage("a whole store that contains less than it says") {
    let client = $0.original.clients[0]
    return [
      Found(
        .wholeStoreVector,
        try $0.publishWholeStore(
          of: 1,
          sql: "UPDATE docsync_client SET number = 1 WHERE client = x'\(hexadecimal(client))'"))
    ]
  },
  Damage("a whole store that contains more than there is") {
    let client = $0.original.clients[0]
    return [
      Found(
        .wholeStoreAhead,
        try $0.publishWholeStore(
          of: 1,
          sql: "UPDATE docsync_client SET number = 99 WHERE client = x'\(hexadecimal(client))'",
          header: { $0.vector[client]?.number = 99 }))
    ]
  },
  Damage("a whole store with a client's identity") {
    let sql = "INSERT INTO docsync_meta VALUES ('binding', x'00')"
    return [Found(.wholeStorePrivate, try $0.publishWholeStore(of: 1, sql: sql))]
  },
  Damage("a whole store with a log") {
    let sql = "INSERT INTO docsync_log_1 (op, at, k0) VALUES (0, 1, 'a')"
    return [Found(.wholeStorePrivate, try $0.publishWholeStore(of: 1, sql: sql))]
  },
  Damage("no whole store that anybody could join from") {
    let path = try $0.wholeStore(of: 1)
    $0.take(path)
    $0.take(try $0.wholeStore(of: 0))
    return [
      Found(.markerWholeStoreMissing, path),
      Found(.markerWholeStoreMissing, try $0.wholeStoreOriginal(of: 0)),
      Found(.joinImpossible, $0.layout.wholeStores),
    ]
  },
]

private func hexadecimal(_ client: ClientIdentifier) -> String {
  client.bits.bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
}

extension DamagedDirectory {
  /// Publishes a command of the first device.
  @discardableResult
  fileprivate func publishCommand(
    _ number: UInt64, kind: String = "application", name: String = "name",
    client: ClientIdentifier? = nil,
    after last: RelativePath? = nil
  ) throws -> RelativePath {
    let file = try Envelope.decodeJSON(
      GenerationFile.self, from: bytes(generation), type: .generation)
    var command = SyncCommand(SyncCommand.Application(name: name, payload: Data()))
    if kind != "application" { command.kind = kind }
    let content = try Envelope.encodeJSON(
      SyncCommandFile(
        root: file.root, document: file.document, generation: file.generation,
        client: client ?? original.clients[0], number: number,
        previous: try last.map { ContentHash(of: try bytes($0)) }, stamp: .zero,
        command: command),
      type: .syncCommand)
    let name = CommandName(number: number, hash: HashFragment(ContentHash(of: content)))
    return put(content, at: layout.path(of: name, by: original.clients[0]))
  }

  /// Publishes a segment of the first device's change sets.
  @discardableResult
  fileprivate func publishSegment(
    _ numbers: ClosedRange<UInt64>, _ change: ((inout SyncChangeSet) -> Void)? = nil
  ) throws -> RelativePath {
    let parts = try numbers.map { number in
      var content = try bytes(changeSet(number, of: 0))
      if let change {
        var changeSet = try ChangeSetCodec.decode(content)
        change(&changeSet)
        content = try ChangeSetCodec.encode(changeSet)
      }
      return Segment.Part(hash: ContentHash(of: content), bytes: content)
    }
    let header = try ChangeSetCodec.decodeHeader(parts[0].bytes)
    let content = try SegmentCodec.encode(
      Segment(
        root: header.root, document: header.document, generation: header.generation,
        client: header.client, first: numbers.lowerBound, parts: parts))
    let name = SegmentName(numbers: numbers, hash: HashFragment(ContentHash(of: content)))
    return put(content, at: layout.path(of: name, by: original.clients[0]))
  }

  /// Publishes a whole store whose database was changed by SQL.
  fileprivate func publishWholeStore(
    of index: Int, sql: String, header: (inout WholeStoreHeader) -> Void = { _ in }
  ) throws -> RelativePath {
    try publishWholeStore(
      of: index,
      database: { path in
        let queue = try DatabaseQueue(path: path)
        try queue.write { try $0.execute(sql: sql) }
        try queue.close()
      }, header: header)
  }

  /// Where a whole store of one device was.
  fileprivate func wholeStoreOriginal(of index: Int) throws -> RelativePath {
    let folder = layout.wholeStores(of: original.clients[index])
    return try #require(original.items.keys.filter { $0.parent == folder }.max())
  }
}
