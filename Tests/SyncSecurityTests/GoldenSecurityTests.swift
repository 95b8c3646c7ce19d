import Foundation
import SyncModel
import Testing

@testable import SyncSecurity

/// The files in Fixtures/Security, which stay for ever.
///
/// With `DOCSYNC_WRITE_FIXTURES=1` in the environment they are written again, which is right only
/// while a format version is being made.
@Suite(.serialized) struct GoldenSecurityTests {
  private static let directory = URL(filePath: #filePath)
    .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
    .appending(path: "Fixtures/Security/v1")

  private let golden: GoldenSecurity

  /// Writes the files, if the environment asks for it.
  init() throws {
    golden = try GoldenSecurity()
    guard ProcessInfo.processInfo.environment["DOCSYNC_WRITE_FIXTURES"] != nil else { return }
    try Self.write(Self.json(golden.answers()), "answers.json")
    for (name, slot) in try golden.slots() { try Self.write(slot.encoded(), name) }
    for (index, statement) in golden.statements.enumerated() {
      try Self.write(statement.encoded(), "statements/\(index + 1)")
    }
    try Self.write(golden.request, "request")
    try Self.write(golden.stored.encoded(), "stored-keys")
    var entries: [GoldenSecurity.File] = []
    var generator = SeededGenerator(seed: 101)
    for sample in golden.samples {
      let (bytes, hash) = try golden.seal(sample, salt: generator.bytes(16))
      try Self.write(bytes, "sealed/\(sample.name)")
      entries.append(golden.entry(sample, hash: hash))
    }
    try Self.write(Self.json(entries), "files.json")
  }

  private static func json(_ value: some Encodable) throws -> [UInt8] {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .prettyPrinted, .withoutEscapingSlashes]
    return [UInt8](try encoder.encode(value)) + [10]
  }

  private static func write(_ bytes: [UInt8], _ name: String) throws {
    let file = directory.appending(path: name)
    try FileManager.default.createDirectory(
      at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
    try Data(bytes).write(to: file)
  }

  private static func read(_ name: String) throws -> [UInt8] {
    [UInt8](try Data(contentsOf: directory.appending(path: name)))
  }

  private static func decoded<Value: Decodable>(
    _ type: Value.Type, _ name: String
  ) throws -> Value {
    try JSONDecoder().decode(Value.self, from: Data(read(name)))
  }

  private static func statements() throws -> [Statement] {
    let folder = directory.appending(path: "statements").path
    let count = try FileManager.default.contentsOfDirectory(atPath: folder).count
    return try (1...count).map { try Statement(decoding: read("statements/\($0)")) }
  }

  // MARK: Known answers

  @Test func everyDerivationGivesItsKnownAnswer() throws {
    let expected = try Self.decoded([String: String].self, "answers.json")
    let found = try golden.answers()
    #expect(Set(found.keys) == Set(expected.keys))
    for (name, answer) in found { #expect(answer == expected[name], "\(name)") }
  }

  @Test func labelsDiffer() {
    #expect(Set(Label.allCases.map(\.rawValue)).count == Label.allCases.count)
    #expect(Label.root.transcript([1], [2, 3]) != Label.root.transcript([1, 2], [3]))
    #expect(Label.root.transcript([], [1]) != Label.root.transcript([1], []))
  }

  @Test func slotsAreTheSameAndOpen() throws {
    let credentials: [Slot.Credential] = [
      .passphrase(.init(existing: GoldenSecurity.passphrase)), .recoveryKey(golden.recoveryKey),
    ]
    for ((name, slot), credential) in zip(try golden.slots(), credentials) {
      let bytes = try Self.read(name)
      #expect(try slot.encoded() == bytes)
      #expect(
        try Slot.open([Slot(decoding: bytes)], with: credential, root: golden.world.root)
          == golden.world.secret)
    }
  }

  @Test func statementsHaveTheSameContentAndTheirSignaturesVerify() throws {
    let statements = try Self.statements()
    #expect(statements.count == golden.statements.count)
    for (index, (read, made)) in zip(statements, golden.statements).enumerated() {
      #expect(read.encoded() == (try Self.read("statements/\(index + 1)")))
      #expect(read.author == made.author && read.number == made.number)
      if case .keys(let keys) = read.content, case .keys(let others) = made.content {
        #expect(keys.epoch == others.epoch && keys.former == others.former)
        #expect(keys.recipients.map(\.device) == others.recipients.map(\.device))
      } else {
        #expect(read.content == made.content)
      }
    }
    let participants = Participants(of: statements, in: golden.world.application)
    #expect(participants.refusedCount == 0 && participants.missing.isEmpty)
    #expect(participants.counted.count == statements.count)
    let document = golden.world.document
    #expect(
      participants.participants(in: document)
        == [golden.owner.device: .owner, golden.writer.device: .writer])
  }

  @Test func epochKeysOpen() throws {
    let participants = Participants(of: try Self.statements(), in: golden.world.application)
    let root = golden.world.root
    for device in [golden.owner, golden.writer] {
      var ring = KeyRing(root: root)
      #expect(
        ring.open(participants, as: device.device, with: device.keys.opening).isEmpty)
      #expect(ring.keys == golden.world.keyRing.keys)
    }
    var ring = KeyRing(root: root)
    ring.open(participants, as: nil, with: try golden.world.secret.ownerKey())
    #expect(ring.keys == golden.world.keyRing.keys)
  }

  @Test func requestAndStoredKeysAreRead() throws {
    let request = try InvitationRequest(
      opening: Self.read("request"), for: golden.invitation)
    #expect(request.person == "Zoë")
    #expect(try StoredKeys(decoding: Self.read("stored-keys")) == golden.stored)
    #expect(try Self.read("stored-keys") == golden.stored.encoded())
  }

  @Test func sealedFilesAreTheSameButForTheirSignatures() throws {
    for sample in golden.samples {
      let bytes = try Self.read("sealed/\(sample.name)")
      let (again, hash) = try golden.seal(sample, salt: Array(bytes[24..<40]))
      #expect(again.dropLast(68) == bytes.dropLast(68), "\(sample.name)")
      #expect(ContentHash(bytes: bytes.dropLast(68).suffix(32)) == hash)
    }
  }

  @Test func sealedFilesOpen() throws {
    let entries = try Self.decoded([GoldenSecurity.File].self, "files.json")
    #expect(entries.map(\.name) == golden.samples.map(\.name))
    var statements = try Self.statements()
    var owner = golden.owner
    for (sample, entry) in zip(golden.samples, entries) {
      let bytes = try Self.read("sealed/\(sample.name)")
      var place = golden.place(sample)
      let hash = try #require(ContentHash(bytes: bytes.dropLast(68).suffix(32)))
      #expect(golden.entry(sample, hash: hash) == entry)
      if let kind = Statement.CountedFile.Kind(rawValue: sample.type.rawValue) {
        statements.append(
          try owner.state(
            .file(.init(kind: kind, document: golden.world.document, hash: hash))))
        // The fixtures' own chain has other hashes.
        statements += golden.statements
      }
      if place.pathAfterHash != nil { place.fragment = hash.nameFragment }
      let participants = Participants(of: statements, in: golden.world.application)
      var ring = KeyRing(root: golden.world.root)
      ring.open(participants, as: golden.writer.device, with: golden.writer.keys.opening)
      let found = try Opener(participants: participants, keys: ring).open(bytes, at: place)
      #expect(found.body == sample.stored)
      #expect(found.opened.privateHeader == sample.privateHeader)
      #expect(found.opened.isCompressed == sample.isCompressed)
      #expect(found.opened.bodyByteCount == sample.bodyByteCount)
      #expect(found.checked.publicRest == sample.publicRest)
    }
  }

  // MARK: The second reader

  /// Once with the packages that the machine has, once without any.
  @Test(arguments: [[], ["alone"]])
  func readerWrittenFromThePageAloneGivesTheSame(arguments: [String]) throws {
    let tool = URL(filePath: #filePath).deletingLastPathComponent()
      .appending(path: "read_sealed.py")
    let process = Process()
    process.executableURL = URL(filePath: "/usr/bin/env")
    process.arguments = ["python3", tool.path, Self.directory.path] + arguments
    let pipe = Pipe()
    process.standardOutput = pipe
    try process.run()
    let output = try pipe.fileHandleForReading.readToEnd() ?? Data()
    process.waitUntilExit()
    #expect(process.terminationStatus == 0)

    struct Report: Decodable {
      var answers: [String: String]
      var files: [GoldenSecurity.File]
      var refused: [String: Int]
    }
    let report = try JSONDecoder().decode(Report.self, from: output)
    let expected = try Self.decoded([String: String].self, "answers.json")
    for (name, answer) in report.answers { #expect(answer == expected[name], "\(name)") }
    #expect(report.answers.count >= 20)
    #expect(report.files == (try Self.decoded([GoldenSecurity.File].self, "files.json")))
    // It refuses what was changed, too.
    for (name, count) in report.refused { #expect(count > 0, "\(name)") }
    #expect(report.refused.count == golden.samples.count)
  }
}
