import SyncModel
import Testing

@testable import SyncSecurity

/// Epochs: who gets which key, and under which files are sealed.
@Suite struct KeyRingTests {
  @Test func everyParticipantAndTheOwnerKeyOpenAnEpoch() throws {
    var world = try TestWorld()
    var owner = try world.owner()
    let reader = try world.guest(.reader, by: &owner)
    let epoch = try world.makeEpoch(by: &owner)
    for device in [owner, reader] {
      #expect(world.keyRing(of: device).key(of: epoch) == world.keyRing.key(of: epoch))
    }
    var ring = KeyRing(root: world.root)
    ring.open(world.participants, as: nil, with: try world.secret.ownerKey())
    #expect(ring.key(of: epoch) == world.keyRing.key(of: epoch))
    let stranger = try world.device()
    #expect(world.keyRing(of: stranger).keys.isEmpty)
  }

  @Test func laterKeyGivesTheKeysBefore() throws {
    var world = try TestWorld()
    var owner = try world.owner()
    let first = try world.makeEpoch(by: &owner)
    let second = try world.makeEpoch(by: &owner)
    let guest = try world.guest(.writer, by: &owner)
    let third = try world.makeEpoch(by: &owner)
    #expect([first, second, third].map(\.number) == [1, 2, 3])
    let ring = world.keyRing(of: guest)
    #expect(Set(ring.keys.keys) == [first, second, third])
    #expect(ring.keys == world.keyRing.keys)
  }

  @Test func removalIsPublishedAfterItsEpochAndShutsOut() throws {
    var world = try TestWorld()
    var owner = try world.owner()
    let writer = try world.guest(.writer, by: &owner)
    let old = try world.makeEpoch(by: &owner)
    let new = try world.makeEpoch(by: &owner, leaving: [writer.device])
    try world.remove(writer, by: &owner)
    #expect(Set(world.keyRing(of: writer).keys.keys) == [old])
    let (epoch, _) = try world.keyRing.keyForWriting(
      world.document, in: world.generation, world.participants)
    #expect(epoch == new)
  }

  @Test func withoutANewEpochNothingIsSealed() throws {
    var world = try TestWorld()
    var owner = try world.owner()
    let writer = try world.guest(.writer, by: &owner)
    try world.makeEpoch(by: &owner)
    try world.remove(writer, by: &owner)
    let error = #expect(throws: SecurityError.self) {
      try world.keyRing.keyForWriting(world.document, in: world.generation, world.participants)
    }
    #expect(error?.code == .noFitEpoch)
  }

  @Test func epochOfARecipientTooManyIsNotFit() throws {
    var world = try TestWorld()
    var owner = try world.owner()
    var stolen = try world.owner()
    let good = try world.makeEpoch(by: &owner)
    // The stolen device seals a later epoch to a friend that takes no part.
    let friend = try world.device()
    let key = EpochKey.random(using: &world.generator)
    let reference = key.reference(
      root: world.root, document: world.document, generation: world.generation, number: 2)
    let former = try #require(world.keyRing.key(of: good))
    let keys = try EpochKeys(
      sealing: key, of: reference, former: (good, former),
      to: [
        owner.device: owner.keys.publicKeys.sealing,
        friend.device: friend.keys.publicKeys.sealing,
      ], author: stolen.device, root: world.root)
    world.statements.append(try stolen.state(.keys(keys)))
    #expect(world.participants.epochs.count == 2)
    #expect(
      world.participants.fitEpoch(of: world.document, in: world.generation)?.reference == good)
  }

  @Test func epochThatARemovedOwnerMadeIsNotFitThoughItWasNotSealedToIt() throws {
    var world = try TestWorld()
    let owner = try world.owner()
    var stolen = try world.owner()
    let key = EpochKey.random(using: &world.generator)
    let reference = key.reference(
      root: world.root, document: world.document, generation: world.generation, number: 1)
    let keys = try EpochKeys(
      sealing: key, of: reference, former: nil,
      to: [owner.device: owner.keys.publicKeys.sealing], author: stolen.device, root: world.root)
    world.statements.append(try stolen.state(.keys(keys)))
    #expect(
      world.participants.fitEpoch(of: world.document, in: world.generation)?.reference
        == reference)
    try world.removeOwner(stolen, head: stolen.last)
    #expect(world.participants.epochs[reference] != nil)
    #expect(world.participants.fitEpoch(of: world.document, in: world.generation) == nil)
  }

  @Test func ofTwoFitEpochsOfOneNumberTheLowerIdentifierCounts() throws {
    var world = try TestWorld()
    var first = try world.owner()
    var second = try world.owner()
    let rings = world.keyRing
    let one = try world.makeEpoch(by: &first)
    let seen = world.statements
    world.statements.removeLast()
    world.keyRing = rings
    let two = try world.makeEpoch(by: &second)
    world.statements = seen + [try #require(second.last)]
    #expect(one.number == 1 && two.number == 1)
    let lower = [one, two].min {
      $0.identifier.bytes.lexicographicallyPrecedes($1.identifier.bytes)
    }
    #expect(
      world.participants.fitEpoch(of: world.document, in: world.generation)?.reference == lower)
    // A guest that comes later gets both: files may be sealed under either.
    world.keyRing.open(world.participants, as: second.device, with: second.keys.opening)
    let guest = try world.guest(.reader, by: &first)
    let made = try world.keyRing.sealings(
      lackingIn: world.document, world.generation, world.participants, author: second.device)
    for keys in made { world.statements.append(try second.state(.keys(keys))) }
    #expect(Set(world.keyRing(of: guest).keys.keys) == [one, two])
    #expect(world.participants.lackingSealings(of: world.document, in: world.generation).isEmpty)
  }

  @Test func epochOfANumberWithAJumpDoesNotCount() throws {
    var world = try TestWorld()
    var owner = try world.owner()
    let key = EpochKey.random(using: &world.generator)
    let reference = key.reference(
      root: world.root, document: world.document, generation: world.generation, number: .max)
    let before = key.reference(
      root: world.root, document: world.document, generation: world.generation, number: .max - 1)
    let keys = try EpochKeys(
      sealing: key, of: reference, former: (before, key),
      to: [owner.device: owner.keys.publicKeys.sealing], author: owner.device, root: world.root)
    world.statements.append(try owner.state(.keys(keys)))
    #expect(world.participants.epochs.isEmpty)
    // Nor if it names none before it, which the bytes of a statement cannot say.
    let alone = try EpochKeys(
      sealing: key, of: reference, former: nil,
      to: [owner.device: owner.keys.publicKeys.sealing], author: owner.device, root: world.root)
    world.statements.append(try owner.state(.keys(alone)))
    #expect(world.participants.epochs.isEmpty)
    #expect(throws: CodecError.self) {
      try Statement(decoding: world.statements[2].encoded())
    }
    #expect(try world.makeEpoch(by: &owner).number == 1)
  }

  @Test func twoDevicesCannotBeGivenDifferentKeysOfOneEpoch() throws {
    var world = try TestWorld()
    var owner = try world.owner()
    let guest = try world.guest(.writer, by: &owner)
    let key = EpochKey.random(using: &world.generator)
    let other = EpochKey.random(using: &world.generator)
    let reference = key.reference(
      root: world.root, document: world.document, generation: world.generation, number: 1)
    // The owner's device seals another key under the name of the first one.
    let lie = try EpochKeys(
      sealing: other, of: reference, former: nil,
      to: [guest.device: guest.keys.publicKeys.sealing], author: owner.device, root: world.root)
    world.statements.append(try owner.state(.keys(lie)))
    var ring = KeyRing(root: world.root)
    let problems = ring.open(world.participants, as: guest.device, with: guest.keys.opening)
    #expect(ring.keys.isEmpty)
    #expect(problems == [KeyRing.Problem(epoch: reference, author: owner.device)])
    let error = #expect(throws: SecurityError.self) {
      try ring.keyForWriting(world.document, in: world.generation, world.participants)
    }
    #expect(error?.code == .noEpochKey)
  }

  @Test func sealingIsBoundToItsStatement() throws {
    var world = try TestWorld()
    let owner = try world.owner()
    let other = try world.owner()
    let key = EpochKey.random(using: &world.generator)
    let reference = key.reference(
      root: world.root, document: world.document, generation: world.generation, number: 1)
    let keys = try EpochKeys(
      sealing: key, of: reference, former: nil,
      to: [
        owner.device: owner.keys.publicKeys.sealing, other.device: other.keys.publicKeys.sealing,
      ], author: owner.device, root: world.root)
    let opening = owner.keys.opening
    #expect(
      try keys.open(for: owner.device, with: opening, author: owner.device, root: world.root)
        == key)
    // Another author, another root, another recipient.
    #expect(throws: SecurityError.self) {
      try keys.open(for: owner.device, with: opening, author: other.device, root: world.root)
    }
    let root = RootIdentifier.random(using: &world.generator)
    #expect(throws: SecurityError.self) {
      try keys.open(for: owner.device, with: opening, author: owner.device, root: root)
    }
    #expect(throws: SecurityError.self) {
      try keys.open(for: other.device, with: opening, author: owner.device, root: world.root)
    }
    // Fewer recipients than it was made for.
    var bytes = keys.encoded()
    let recipient = 16 + SealedKey.encapsulatedByteCount + SealedKey.ciphertextByteCount
    bytes.removeLast(recipient)
    bytes.replaceSubrange(
      bytes.count - recipient - 4..<bytes.count - recipient, with: [1, 0, 0, 0])
    var reader = CanonicalReader(bytes, name: "keys")
    let cut = try EpochKeys(reading: &reader)
    let left = try #require(cut.recipients.first?.device)
    let device = left == owner.device ? owner : other
    #expect(throws: SecurityError.self) {
      try cut.open(
        for: left, with: device.keys.opening, author: owner.device, root: world.root)
    }
  }

  @Test func missingStatementStopsSealing() throws {
    var world = try TestWorld()
    var owner = try world.owner()
    try world.makeEpoch(by: &owner)
    #expect(throws: Never.self) {
      try world.keyRing.keyForWriting(world.document, in: world.generation, world.participants)
    }
    let error = #expect(throws: SecurityError.self) {
      try world.keyRing.keyForWriting(
        world.document, in: world.generation, world.participants,
        missing: [ContentHash(of: [1])])
    }
    #expect(error?.code == .statementMissing)
  }

  @Test func epochWithoutAUsefulKeyDoesNotStopTheNext() throws {
    var world = try TestWorld()
    var owner = try world.owner()
    var stolen = try world.owner()
    let good = try world.makeEpoch(by: &owner)
    let former = try #require(world.keyRing.key(of: good))
    // Later epochs of which the stolen device gave the key to itself alone.
    let key = EpochKey.random(using: &world.generator)
    let reference = key.reference(
      root: world.root, document: world.document, generation: world.generation, number: 2)
    let keys = try EpochKeys(
      sealing: key, of: reference, former: (good, former),
      to: [stolen.device: stolen.keys.publicKeys.sealing], author: stolen.device,
      root: world.root)
    world.statements.append(try stolen.state(.keys(keys)))
    let head = stolen.last
    try world.removeOwner(stolen, head: head)
    let next = try world.makeEpoch(by: &owner)
    #expect(
      world.participants.fitEpoch(of: world.document, in: world.generation)?.reference == next)
  }

  @Test func namesOfPeopleAreReadByParticipantsAlone() throws {
    var world = try TestWorld()
    var owner = try world.owner()
    let epoch = try world.makeEpoch(by: &owner)
    let key = try #require(world.keyRing.key(of: epoch))
    let sealed = try SealedPerson(
      "Zoë", of: owner.device, under: key, epoch, using: &world.generator)
    #expect(try sealed.open(of: owner.device, with: key) == "Zoë")
    #expect(sealed.epochIdentifier == epoch.identifier)
    let other = try world.device()
    #expect(throws: SecurityError.self) { try sealed.open(of: other.device, with: key) }
    #expect(throws: SecurityError.self) {
      try sealed.open(of: owner.device, with: .random(using: &world.generator))
    }
    let long = try SealedPerson(
      String(repeating: "x", count: 255), of: owner.device, under: key, epoch,
      using: &world.generator)
    #expect(long.bytes.count == sealed.bytes.count)
  }
}
