import SyncModel
import Testing

@testable import SyncSecurity

/// The three passes, one rule at a time.
@Suite struct ParticipantsTests {
  @Test func enrolmentKeyGrantsOwnersInAllDocuments() throws {
    var world = try TestWorld()
    let owner = try world.owner()
    let other = DocumentName.random(using: &world.generator)
    #expect(world.participants.role(of: owner.device, in: world.document) == .owner)
    #expect(world.participants.role(of: owner.device, in: other) == .owner)
  }

  @Test func ownerGrantsRolesInNamedDocuments() throws {
    var world = try TestWorld()
    var owner = try world.owner()
    let writer = try world.guest(.writer, by: &owner)
    let reader = try world.guest(.reader, by: &owner)
    let other = DocumentName.random(using: &world.generator)
    #expect(world.participants.role(of: writer.device, in: world.document) == .writer)
    #expect(world.participants.role(of: reader.device, in: world.document) == .reader)
    #expect(world.participants.standing(of: writer.device, in: other) == .unknown)
    #expect(
      world.participants.participants(in: world.document)
        == [owner.device: .owner, writer.device: .writer, reader.device: .reader])
  }

  @Test func ofSeveralRolesTheGreatestCounts() throws {
    var world = try TestWorld()
    var owner = try world.owner()
    let guest = try world.guest(.writer, by: &owner)
    try world.grant(.reader, to: guest, by: &owner)
    #expect(world.participants.role(of: guest.device, in: world.document) == .writer)
  }

  @Test func removalIsFinalEvenIfAGrantFollows() throws {
    var world = try TestWorld()
    var owner = try world.owner()
    let guest = try world.guest(.writer, by: &owner)
    try world.remove(guest, by: &owner, from: [world.document])
    try world.grant(.writer, to: guest, by: &owner)
    #expect(
      world.participants.standing(of: guest.device, in: world.document) == .removed(.writer))
  }

  @Test func removalFromOneDocumentLeavesOthers() throws {
    var world = try TestWorld()
    var owner = try world.owner()
    let other = DocumentName.random(using: &world.generator)
    let guest = try world.guest(.writer, by: &owner)
    try world.grant(.reader, to: guest, by: &owner, in: other)
    try world.remove(guest, by: &owner, from: [world.document])
    #expect(world.participants.role(of: guest.device, in: world.document) == nil)
    #expect(world.participants.role(of: guest.device, in: other) == .reader)
    try world.remove(guest, by: &owner)
    #expect(world.participants.role(of: guest.device, in: other) == nil)
  }

  @Test func writerAndReaderStateNothing() throws {
    var world = try TestWorld()
    var owner = try world.owner()
    var writer = try world.guest(.writer, by: &owner)
    let before = world.participants
    let friend = try world.guest(.writer, by: &writer)
    try world.remove(owner, by: &writer)
    #expect(world.participants.standing(of: friend.device, in: world.document) == .unknown)
    #expect(world.participants.role(of: owner.device, in: world.document) == .owner)
    #expect(world.participants.refusedCount == 2)
    #expect(world.participants.heads == before.heads)
  }

  @Test func strangerStatesNothing() throws {
    var world = try TestWorld()
    let owner = try world.owner()
    var stranger = try world.device()
    try world.grant(.writer, to: stranger, by: &stranger)
    #expect(world.participants.standing(of: stranger.device, in: world.document) == .unknown)
    #expect(world.participants.owners == [owner.device])
  }

  @Test func ownersDeviceSaysNothingOfOwners() throws {
    var world = try TestWorld()
    let first = try world.owner()
    var stolen = try world.owner()
    try world.remove(first, by: &stolen)
    #expect(world.participants.role(of: first.device, in: world.document) == .owner)
    // Nor can it sign as the enrolment key.
    let friend = try world.device()
    let forged = Statement(
      root: world.root, author: .enrolment(of: world.root), number: 0, previous: nil,
      content: .ownerGrant(.init(keys: friend.keys.publicKeys)),
      signature: try stolen.keys.signing.signature(of: [1]))
    world.statements.append(forged)
    #expect(!world.participants.owners.contains(friend.device))
  }

  @Test func statementsOfAnotherApplicationCountForNothing() throws {
    var world = try TestWorld()
    let owner = try world.owner()
    var other = try TestWorld(seed: 2)
    let stranger = try other.owner()
    world.statements += other.statements
    #expect(world.participants.owners == [owner.device])
    #expect(world.participants.keys(of: stranger.device) == nil)
  }

  // MARK: Removed owners

  @Test func removedOwnerKeepsWhatItStatedUpToTheHead() throws {
    var world = try TestWorld()
    var owner = try world.owner()
    let before = try world.guest(.writer, by: &owner)
    let head = owner.last
    let after = try world.guest(.writer, by: &owner)
    try world.removeOwner(owner, head: head)
    let found = world.participants
    #expect(found.standing(of: owner.device, in: world.document) == .removed(.owner))
    #expect(found.role(of: before.device, in: world.document) == .writer)
    #expect(found.standing(of: after.device, in: world.document) == .void(.writer))
    #expect(found.beyond == [try #require(owner.last)])
  }

  @Test func removedOwnersForkBelowTheHeadIsBeyond() throws {
    var world = try TestWorld()
    var owner = try world.owner()
    let first = try world.guest(.writer, by: &owner)
    var fork = owner
    _ = try world.guest(.writer, by: &owner)
    try world.removeOwner(owner, head: owner.last)
    // Backdated: it continues the first statement, as the second did.
    let friend = try world.guest(.writer, by: &fork)
    try world.remove(first, by: &fork)
    let found = world.participants
    #expect(found.standing(of: friend.device, in: world.document) == .void(.writer))
    #expect(found.role(of: first.device, in: world.document) == .writer)
    #expect(found.beyond.count == 2)
    #expect(found.forked == [owner.device])
  }

  @Test func removedOwnersSecondFirstStatementIsBeyond() throws {
    var world = try TestWorld()
    var owner = try world.owner()
    var fresh = owner
    _ = try world.guest(.writer, by: &owner)
    try world.removeOwner(owner, head: owner.last)
    let friend = try world.guest(.writer, by: &fresh)
    #expect(
      world.participants.standing(of: friend.device, in: world.document) == .void(.writer))
  }

  @Test func ofTwoRemovalsBothHeadsLimit() throws {
    var world = try TestWorld()
    var owner = try world.owner()
    let first = try world.guest(.writer, by: &owner)
    let low = owner.last
    let second = try world.guest(.writer, by: &owner)
    try world.removeOwner(owner, head: owner.last)
    #expect(world.participants.role(of: second.device, in: world.document) == .writer)
    try world.removeOwner(owner, head: low)
    #expect(world.participants.role(of: first.device, in: world.document) == .writer)
    #expect(world.participants.role(of: second.device, in: world.document) == nil)
    try world.removeOwner(owner, head: nil)
    #expect(world.participants.role(of: first.device, in: world.document) == nil)
  }

  @Test func removedOwnerDoesNotReturnByAGrant() throws {
    var world = try TestWorld()
    var owner = try world.owner()
    let other = try world.owner()
    try world.removeOwner(other, head: nil)
    try world.grant(.reader, to: other, by: &owner)
    world.statements.append(
      try world.enrolment.statement(.ownerGrant(.init(keys: other.keys.publicKeys))))
    #expect(
      world.participants.standing(of: other.device, in: world.document) == .removed(.owner))
  }

  @Test func headOfAnotherChainLimitsToNothing() throws {
    var world = try TestWorld()
    var owner = try world.owner()
    var other = try world.owner()
    let guest = try world.guest(.writer, by: &owner)
    _ = try world.guest(.writer, by: &other)
    try world.removeOwner(owner, head: other.last)
    #expect(world.participants.role(of: guest.device, in: world.document) == nil)
  }

  // MARK: What has not arrived

  @Test func statementWaitsForThoseBeforeIt() throws {
    var world = try TestWorld()
    var owner = try world.owner()
    _ = try world.guest(.writer, by: &owner)
    let withheld = world.statements.removeLast()
    let guest = try world.guest(.writer, by: &owner)
    #expect(world.participants.role(of: guest.device, in: world.document) == nil)
    #expect(world.participants.missing == [withheld.hash])
    world.statements.append(withheld)
    #expect(world.participants.role(of: guest.device, in: world.document) == .writer)
    #expect(world.participants.missing.isEmpty)
  }

  @Test func headOfARemovalThatIsNotHereIsMissing() throws {
    var world = try TestWorld()
    var owner = try world.owner()
    let guest = try world.guest(.writer, by: &owner)
    let withheld = world.statements.removeLast()
    try world.removeOwner(owner, head: owner.last)
    #expect(world.participants.missing == [withheld.hash])
    world.statements.append(withheld)
    #expect(world.participants.role(of: guest.device, in: world.document) == .writer)
  }

  @Test func removedOwnerCannotStopOthersByNamingWhatIsNotThere() throws {
    var world = try TestWorld()
    var owner = try world.owner()
    _ = try world.guest(.writer, by: &owner)
    try world.removeOwner(owner, head: owner.last)
    let hanging = Statement(
      root: world.root, author: owner.device, number: 9, previous: ContentHash(of: [1]),
      content: .removal(.init(device: owner.device)), signature: [])
    world.statements.append(
      Statement(
        root: world.root, author: owner.device, number: 9, previous: hanging.previous,
        content: hanging.content,
        signature: try owner.keys.signing.signature(of: hanging.signedMessage)))
    #expect(world.participants.missing.isEmpty)
    #expect(world.participants.beyond.count == 1)
  }

  @Test func numberWithAJumpCountsForNothing() throws {
    var world = try TestWorld()
    var owner = try world.owner()
    _ = try world.guest(.writer, by: &owner)
    let friend = try world.device()
    let content = Statement.Content.grant(
      .init(keys: friend.keys.publicKeys, role: .writer, documents: [world.document]))
    let unsigned = Statement(
      root: world.root, author: owner.device, number: 7, previous: owner.last?.hash,
      content: content, signature: [])
    world.statements.append(
      Statement(
        root: world.root, author: owner.device, number: 7, previous: owner.last?.hash,
        content: content, signature: try owner.keys.signing.signature(of: unsigned.signedMessage)))
    #expect(world.participants.role(of: friend.device, in: world.document) == nil)
  }

  @Test func wrongSignatureDoesNotHideTheRightOne() throws {
    var world = try TestWorld()
    var owner = try world.owner()
    let guest = try world.guest(.writer, by: &owner)
    let right = try #require(owner.last)
    let forged = Statement(
      root: right.root, author: right.author, number: right.number, previous: right.previous,
      content: right.content, signature: [UInt8](repeating: 1, count: 64))
    #expect(forged.hash == right.hash)
    for statements in [[forged] + world.statements, world.statements + [forged]] {
      let found = Participants(of: statements, in: world.application)
      #expect(found.role(of: guest.device, in: world.document) == .writer)
    }
  }

  @Test func filesCountOnlyIfAnOwnersStatementThatCountsNamesThem() throws {
    var world = try TestWorld()
    var owner = try world.owner()
    let file = Statement.CountedFile(
      kind: .generation, document: world.document, hash: ContentHash(of: [1]))
    let late = Statement.CountedFile(
      kind: .tombstone, document: world.document, hash: ContentHash(of: [2]))
    world.statements.append(try owner.state(.file(file)))
    let head = owner.last
    world.statements.append(try owner.state(.file(late)))
    #expect(world.participants.files == [file, late])
    try world.removeOwner(owner, head: head)
    #expect(world.participants.files == [file])
    #expect(world.participants.counts(.generation, file.hash, in: world.document))
    #expect(!world.participants.counts(.tombstone, file.hash, in: world.document))
  }

  @Test func headsAreTheEndsOfAllChains() throws {
    var world = try TestWorld()
    var first = try world.owner()
    var second = try world.owner()
    _ = try world.guest(.writer, by: &first)
    _ = try world.guest(.reader, by: &first)
    _ = try world.guest(.reader, by: &second)
    let enrolled = world.statements.filter(\.isOfEnrolment).map(\.hash)
    #expect(
      world.participants.heads
        == Set(enrolled + [first.last, second.last].compactMap { $0?.hash }))
  }
}
