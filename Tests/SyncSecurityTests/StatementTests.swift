import SyncModel
import Testing

@testable import SyncSecurity

/// The bytes of statements: canonical and bounded.
@Suite struct StatementTests {
  /// One statement of each kind.
  static func samples() throws -> [Statement] {
    var world = try TestWorld(seed: 5)
    var owner = try world.owner()
    let epoch = try world.makeEpoch(by: &owner)
    try world.makeEpoch(by: &owner)
    let guest = try world.device()
    let key = try #require(world.keyRing.key(of: epoch))
    let person = try SealedPerson(
      "Ada", of: guest.device, under: key, epoch, using: &world.generator)
    var documents = [world.document, .random(using: &world.generator)]
    documents.sort()
    world.statements.append(
      try owner.state(
        .grant(
          .init(
            keys: guest.keys.publicKeys, role: .writer, documents: documents,
            newest: .init(client: owner.client, revision: 7, hash: ContentHash(of: [1])),
            person: person))))
    try world.remove(guest, by: &owner, from: documents)
    try world.remove(guest, by: &owner)
    world.statements.append(
      try owner.state(
        .file(.init(kind: .tombstone, document: world.document, hash: ContentHash(of: [3])))))
    try world.removeOwner(owner, head: owner.last)
    try world.removeOwner(guest, head: nil)
    return world.statements
  }

  @Test func everyKindIsReadAsItWasWritten() throws {
    let samples = try Self.samples()
    for statement in samples {
      let bytes = statement.encoded()
      #expect(try Statement(decoding: bytes) == statement)
      #expect(ContentHash(bytes: bytes.dropLast(68).suffix(32)) == statement.hash)
    }
    #expect(samples.count == 9)
  }

  @Test func everyChangedByteIsRefusedOrLeavesAWrongSignature() throws {
    var generator = SeededGenerator(seed: 3)
    for statement in try Self.samples() {
      let bytes = statement.encoded()
      let positions =
        Array(0..<min(300, bytes.count)) + Array(max(0, bytes.count - 150)..<bytes.count)
        + (0..<100).map { _ in generator.below(bytes.count) }
      for position in positions {
        var changed = bytes
        changed[position] ^= UInt8(1 + generator.below(255))
        do {
          let found = try Statement(decoding: changed)
          // Only the signature is not covered by the hash.
          #expect(found.hash == statement.hash && found.signature != statement.signature)
        } catch is CodecError {
          continue
        }
      }
    }
  }

  @Test func everyShorterAndLongerFileIsRefused() throws {
    for statement in try Self.samples() {
      let bytes = statement.encoded()
      for count in [0, 1, 87, 88, 124, bytes.count / 2, bytes.count - 1] {
        #expect(throws: CodecError.self) { try Statement(decoding: Array(bytes.prefix(count))) }
      }
      #expect(throws: CodecError.self) { try Statement(decoding: bytes + [0]) }
    }
  }

  /// Encodes a body with a right hash, so that only the reader of bodies can refuse it.
  private func file(_ body: [UInt8]) -> [UInt8] {
    OuterForm(
      type: .statement, body: body, signature: [UInt8](repeating: 0, count: 64)
    ).encoded()
  }

  @Test func bodiesThatNoWriterMakesAreRefused() throws {
    let world = try TestWorld(seed: 6)
    let device = DeviceIdentifier(bits: Bits128(high: 1, low: 2))
    let documents = [
      DocumentName(bits: Bits128(high: 1, low: 0)), DocumentName(bits: Bits128(high: 2, low: 0)),
    ]
    let good = Statement.body(
      world.root, device, 1, nil, .removal(.init(device: device, documents: documents)))
    #expect(throws: Never.self) { try Statement(decoding: file(good)) }
    let first = good.count - 32
    func changed(_ range: Range<Int>, _ bytes: [UInt8]) -> [UInt8] {
      var body = good
      body.replaceSubrange(range, with: bytes)
      return body
    }
    let one = Array(good[first..<first + 16])
    let other = Array(good[(first + 16)...])
    var bad: [(String, [UInt8])] = []
    bad.append(("version", changed(0..<1, [2])))
    bad.append(("kind", changed(1..<2, [9])))
    bad.append(("kind of the enrolment key", changed(1..<2, [2])))
    bad.append(("author is the enrolment key", changed(18..<34, world.root.bits.bytes)))
    bad.append(("number 0", changed(34..<35, [0])))
    bad.append(("number 2 without a statement before", changed(34..<35, [2])))
    bad.append(("optional value of 2", changed(42..<43, [2])))
    bad.append(("documents in another order", changed(first..<good.count, other + one)))
    bad.append(("one document twice", changed(first..<good.count, one + one)))
    bad.append(("too few documents", changed(first - 4..<first, [3, 0, 0, 0])))
    bad.append(("too many documents", changed(first - 4..<first, [0xFF, 0xFF, 0xFF, 0xFF])))
    bad.append(("bytes left over", good + [0]))
    for (name, body) in bad {
      #expect(throws: CodecError.self, "\(name)") { try Statement(decoding: file(body)) }
    }
  }

  @Test func kindsOfTheEnrolmentKeyAreItsOwn() throws {
    var world = try TestWorld(seed: 9)
    let device = try world.device()
    let keys = device.keys.publicKeys
    let contents: [(Statement.Content, isOfEnrolment: Bool)] = [
      (.ownerGrant(.init(keys: keys)), true),
      (.ownerRemoval(.init(device: device.device, head: nil)), true),
      (.grant(.init(keys: keys, role: .writer, documents: [world.document])), false),
      (.removal(.init(device: device.device)), false),
      (
        .file(.init(kind: .generation, document: world.document, hash: ContentHash(of: [1]))), false
      ),
    ]
    for (content, isOfEnrolment) in contents {
      let byDevice = Statement.body(world.root, device.device, 1, nil, content)
      let byKey = Statement.body(world.root, .enrolment(of: world.root), 0, nil, content)
      let (good, bad) = isOfEnrolment ? (byKey, byDevice) : (byDevice, byKey)
      #expect(throws: Never.self) { try Statement(decoding: file(good)) }
      #expect(throws: CodecError.self) { try Statement(decoding: file(bad)) }
    }
  }

  @Test func grantOfTheRoleOfOwnerByADeviceIsRefused() throws {
    var world = try TestWorld(seed: 7)
    let device = try world.device()
    for role in [Role.owner, .writer] {
      let body = Statement.body(
        world.root, device.device, 1, nil,
        .grant(.init(keys: device.keys.publicKeys, role: role, documents: [world.document])))
      if role == .owner {
        #expect(throws: CodecError.self) { try Statement(decoding: file(body)) }
      } else {
        #expect(throws: Never.self) { try Statement(decoding: file(body)) }
      }
    }
  }

  @Test func epochWithoutRecipientsOrWithAWrongNumberIsRefused() throws {
    var world = try TestWorld(seed: 8)
    var owner = try world.owner()
    try world.makeEpoch(by: &owner)
    let statement = try #require(world.statements.last)
    guard case .keys(let keys) = statement.content else { return }
    let good = keys.encoded()
    func changed(_ range: Range<Int>, _ bytes: [UInt8]) -> [UInt8] {
      var changed = good
      changed.replaceSubrange(range, with: bytes)
      return changed
    }
    var bad: [(String, [UInt8])] = []
    bad.append(("number 0", changed(32..<33, [0])))
    bad.append(("number 2 without a key before", changed(32..<33, [2])))
    bad.append(("no recipients", Array(good[..<69]) + [0, 0, 0, 0]))
    for (name, bytes) in bad {
      var reader = CanonicalReader(bytes, name: "keys")
      #expect(throws: CodecError.self, "\(name)") { try EpochKeys(reading: &reader) }
    }
  }
}
