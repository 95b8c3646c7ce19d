import SyncModel
import Testing

@testable import SyncSecurity

/// Which files of which participants are used: the table of roles, and the end of the removed.
@Suite struct RoleTests {
  /// The answer of an opener: the role, or the reason.
  private func answer(
    _ opener: Opener, _ file: (bytes: [UInt8], place: SealedPlace, hash: ContentHash)
  ) throws -> Result<Role, OpeningFailure> {
    do {
      return .success(try opener.open(file.bytes, at: file.place).checked.role)
    } catch let failure as OpeningFailure {
      return .failure(failure)
    }
  }

  private func reason(_ result: Result<Role, OpeningFailure>) -> OpeningFailure.Reason? {
    if case .failure(let failure) = result { failure.reason } else { nil }
  }

  @Test func tableOfRoles() throws {
    var world = try TestWorld(seed: 21)
    var owner = try world.owner()
    let writer = try world.guest(.writer, by: &owner)
    let reader = try world.guest(.reader, by: &owner)
    try world.makeEpoch(by: &owner)
    let types: [(Envelope.FileType, Role)] = [
      (.recentSync, .reader), (.syncCommand, .reader), (.changeSet, .writer),
      (.segment, .writer), (.wholeStore, .owner),
    ]
    for (type, least) in types {
      for (device, role) in [(owner, Role.owner), (writer, .writer), (reader, .reader)] {
        let file = try world.seal([1], by: device, type: type)
        let found = try answer(world.opener(of: owner), file)
        if role >= least {
          #expect(try found.get() == role, "\(type) by \(role)")
        } else {
          #expect(reason(found) == .role, "\(type) by \(role)")
        }
      }
    }
    for action in Role.Action.allCases {
      #expect(Role.owner.permits(action))
      #expect(Role.writer.permits(action) || !Role.reader.permits(action))
    }
    #expect(!Role.writer.permits(.retireOther) && !Role.writer.permits(.tombstone))
    #expect(!Role.reader.permits(.applicationCommand) && Role.writer.permits(.applicationCommand))
  }

  @Test func filesThatAreNeverSealedAreRefused() throws {
    var world = try TestWorld(seed: 22)
    var owner = try world.owner()
    try world.makeEpoch(by: &owner)
    for type in [Envelope.FileType.application, .clientDevice, .asset, .keySlot] {
      let file = try world.seal([1], by: owner, type: type)
      #expect(reason(try answer(world.opener(of: owner), file)) == .role)
    }
  }

  @Test func strangersFileIsPendingUntilAGrantArrives() throws {
    var world = try TestWorld(seed: 23)
    var owner = try world.owner()
    let guest = try world.guest(.writer, by: &owner)
    try world.makeEpoch(by: &owner)
    let file = try world.seal([1], by: guest)
    let all = world.statements
    // Nothing names the guest's keys: its grant and the epoch after it have not arrived.
    world.statements = Array(all.prefix(1))
    let waiting = Opener(participants: world.participants, keys: world.keyRing)
    let found = try answer(waiting, file)
    #expect(reason(found) == .lacksStatement)
    if case .failure(let failure) = found { #expect(failure.isPending) }
    world.statements = all
    #expect(try answer(world.opener(of: owner), file).get() == .writer)
  }

  @Test func fileUnderAnUnknownEpochIsPending() throws {
    var world = try TestWorld(seed: 24)
    var owner = try world.owner()
    try world.makeEpoch(by: &owner)
    let file = try world.seal([1], by: owner)
    let found = try answer(
      Opener(participants: world.participants, keys: KeyRing(root: world.root)), file)
    #expect(reason(found) == .lacksKey)
    if case .failure(let failure) = found { #expect(failure.isPending) }
  }

  @Test func generationAndTombstoneCountOnlyIfAStatementNamesThem() throws {
    var world = try TestWorld(seed: 25)
    var owner = try world.owner()
    let writer = try world.guest(.writer, by: &owner)
    try world.makeEpoch(by: &owner)
    for (type, kind) in [
      (Envelope.FileType.generation, Statement.CountedFile.Kind.generation),
      (.tombstone, .tombstone),
    ] {
      let file = try world.seal([1], by: owner, type: type)
      #expect(reason(try answer(world.opener(of: owner), file)) == .lacksStatement)
      let other = try world.seal([1], by: writer, type: type)
      #expect(reason(try answer(world.opener(of: owner), other)) == .role)
      world.statements.append(
        try owner.state(.file(.init(kind: kind, document: world.document, hash: file.hash))))
      #expect(try answer(world.opener(of: owner), file).get() == .owner)
    }
  }

  @Test func removedOwnersGenerationCountsIfItsStatementDoes() throws {
    var world = try TestWorld(seed: 26)
    var owner = try world.owner()
    var stolen = try world.owner()
    try world.makeEpoch(by: &owner)
    let file = try world.seal([1], by: stolen, type: .generation)
    let late = try world.seal([2], by: stolen, number: 2, type: .generation)
    world.statements.append(
      try stolen.state(.file(.init(kind: .generation, document: world.document, hash: file.hash)))
    )
    let head = stolen.last
    world.statements.append(
      try stolen.state(.file(.init(kind: .generation, document: world.document, hash: late.hash)))
    )
    try world.removeOwner(stolen, head: head)
    #expect(try answer(world.opener(of: owner), file).get() == .owner)
    #expect(reason(try answer(world.opener(of: owner), late)) == .removed)
  }

  // MARK: The removed

  @Test func removedDevicesChangeSetsCountUpToTheCut() throws {
    var world = try TestWorld(seed: 27)
    var owner = try world.owner()
    let writer = try world.guest(.writer, by: &owner)
    let reader = try world.guest(.reader, by: &owner)
    try world.makeEpoch(by: &owner)
    let files = try (1...3).map { try world.seal([1], by: writer, number: UInt64($0)) }
    let readersFile = try world.seal([1], by: reader, number: 1)
    let store = try world.seal([1], by: writer, type: .wholeStore)
    let marker = try world.seal([1], by: writer, type: .recentSync)
    try world.remove(writer, by: &owner)
    try world.remove(reader, by: &owner)
    let cuts = Cuts(
      removed: [writer.client, reader.client],
      acknowledgements: [
        .init(device: owner.device, client: writer.client, number: 2),
        .init(device: owner.device, client: reader.client, number: 5),
      ], built: [], in: world.document, of: world.participants)
    let opener = world.opener(of: owner, cuts: cuts)
    #expect(try answer(opener, files[0]).get() == .writer)
    #expect(try answer(opener, files[1]).get() == .writer)
    #expect(reason(try answer(opener, files[2])) == .removed)
    #expect(reason(try answer(opener, readersFile)) == .role)
    #expect(reason(try answer(opener, store)) == .removed)
    #expect(reason(try answer(opener, marker)) == .removed)
    // Without knowing how far they count, nothing counts.
    #expect(reason(try answer(world.opener(of: owner), files[0])) == .removed)
    // Another client of the device has no cut.
    let cutsOfAnother = Cuts(
      removed: [owner.client], acknowledgements: [], built: [], in: world.document,
      of: world.participants)
    #expect(
      reason(try answer(world.opener(of: owner, cuts: cutsOfAnother), files[0])) == .removed)
  }

  @Test func deviceWhoseGrantIsVoidEndsLikeTheRemoved() throws {
    var world = try TestWorld(seed: 28)
    var owner = try world.owner()
    var stolen = try world.owner()
    let guest = try world.guest(.writer, by: &stolen)
    try world.makeEpoch(by: &owner)
    let files = try (1...2).map { try world.seal([1], by: guest, number: UInt64($0)) }
    try world.removeOwner(stolen, head: nil)
    let cuts = Cuts(
      removed: [guest.client],
      acknowledgements: [.init(device: owner.device, client: guest.client, number: 1)],
      built: [], in: world.document, of: world.participants)
    let opener = world.opener(of: owner, cuts: cuts)
    #expect(try answer(opener, files[0]).get() == .writer)
    #expect(reason(try answer(opener, files[1])) == .removed)
  }

  @Test func readersAndTheRemovedHaveNoSayInCuts() throws {
    var world = try TestWorld(seed: 29)
    var owner = try world.owner()
    let gone = try world.guest(.writer, by: &owner)
    let alsoGone = try world.guest(.writer, by: &owner)
    let writer = try world.guest(.writer, by: &owner)
    let reader = try world.guest(.reader, by: &owner)
    let stranger = try world.device()
    try world.remove(gone, by: &owner)
    try world.remove(alsoGone, by: &owner)
    func cut(_ says: [(TestDevice, UInt64)]) -> UInt64? {
      Cuts(
        removed: [gone.client, alsoGone.client],
        acknowledgements: says.map {
          .init(device: $0.0.device, client: gone.client, number: $0.1)
        }, built: [], in: world.document, of: world.participants
      ).numbers[gone.client]
    }
    #expect(cut([]) == 0)
    #expect(cut([(owner, 2), (writer, 3), (reader, 9)]) == 3)
    #expect(cut([(alsoGone, 9), (gone, 9), (stranger, 9)]) == 0)
    // Clients of participants have no cut.
    #expect(
      Cuts(
        removed: [], acknowledgements: [], built: [], in: world.document, of: world.participants
      ).counts(9, of: writer.client))
  }

  @Test func changeSetsOnWhichCountingOnesWereBuiltCount() throws {
    var world = try TestWorld(seed: 30)
    var owner = try world.owner()
    let gone = try world.guest(.writer, by: &owner)
    let alsoGone = try world.guest(.writer, by: &owner)
    let reader = try world.guest(.reader, by: &owner)
    try world.remove(gone, by: &owner)
    try world.remove(alsoGone, by: &owner)
    func built(
      _ device: TestDevice, _ number: UInt64, on other: TestDevice, _ built: UInt64
    ) -> Cuts.Built {
      .init(
        device: device.device, client: device.client, number: number,
        dependencies: [other.client: built])
    }
    func cuts(_ built: [Cuts.Built], said: UInt64 = 0) -> [UInt64] {
      let found = Cuts(
        removed: [gone.client, alsoGone.client],
        acknowledgements: [.init(device: owner.device, client: alsoGone.client, number: said)],
        built: built, in: world.document, of: world.participants)
      return [found.numbers[gone.client] ?? 99, found.numbers[alsoGone.client] ?? 99]
    }
    #expect(cuts([built(owner, 1, on: gone, 4)]) == [4, 0])
    // A reader's change set does not count, so what it was built on has no support.
    #expect(cuts([built(reader, 1, on: gone, 4)]) == [0, 0])
    // What is beyond the cut of its own author supports nothing.
    #expect(cuts([built(alsoGone, 2, on: gone, 4)]) == [0, 0])
    #expect(cuts([built(alsoGone, 2, on: gone, 4)], said: 1) == [0, 1])
    // What counts of a removed device supports what it was built on, and so on.
    #expect(cuts([built(alsoGone, 2, on: gone, 4)], said: 2) == [4, 2])
    #expect(
      cuts([
        built(alsoGone, 2, on: gone, 4), built(gone, 3, on: alsoGone, 5),
        built(owner, 1, on: gone, 3),
      ]) == [4, 5])
  }
}
