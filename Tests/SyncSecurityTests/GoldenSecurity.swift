import Foundation
import SyncModel

@testable import SyncSecurity

/// Everything that is in Fixtures/Security, made from one seed.
///
/// Signatures, sealed epoch keys and what contains them differ each time they are made: of these
/// the fixtures are only read. All other bytes have to be the same again.
struct GoldenSecurity {
  /// A sealed file, as `files.json` has it.
  struct File: Codable, Hashable {
    var name: String
    var type: UInt8
    var path: String
    var pathWithoutHash: String
    var number: UInt64
    var client: String
    var signer: String
    var epoch: UInt32
    var privateHeaderSHA256: String
    var publicRest: String
    var isCompressed: Bool
    var bodyByteCount: Int
    var storedByteCount: Int
    var storedSHA256: String
  }

  /// The content of a file before it is sealed.
  struct Sample {
    var name: String
    var type: Envelope.FileType
    var number: UInt64
    var isByOwner: Bool
    var publicRest: [UInt8]
    var privateHeader: [UInt8]
    var stored: [UInt8]
    var bodyByteCount: Int
    var isCompressed: Bool { stored.count != bodyByteCount }
  }

  static let passphrase = "kibo sade vunu reta poli gizu"
  static let applicationName = "com.example.notes"
  static let documentName = "Notes – Ëtüde"

  let world: TestWorld
  let owner: TestDevice
  let writer: TestDevice
  let recoveryKey: RecoveryKey
  let invitation: Invitation
  let request: [UInt8]
  let epochs: [EpochReference]
  let digest: StateDigest
  let stored: StoredKeys
  let samples: [Sample]
  /// The statements, made again: those in the fixtures have other signatures and sealings.
  var statements: [Statement] { world.statements }

  init() throws {
    var world = try TestWorld(seed: 100)
    var owner = try world.owner()
    let writer = try world.guest(.writer, by: &owner)
    var epochs = [try world.makeEpoch(by: &owner)]
    let guest = try world.device()
    let key = world.keyRing.keys[epochs[0]]
    if let key {
      let person = try SealedPerson(
        "Zoë", of: guest.device, under: key, epochs[0], using: &world.generator)
      world.statements.append(
        try owner.state(
          .grant(
            .init(
              keys: guest.keys.publicKeys, role: .reader, documents: [world.document],
              newest: .init(client: owner.client, revision: 7, hash: ContentHash(of: [1])),
              person: person))))
    }
    epochs.append(try world.makeEpoch(by: &owner, leaving: [guest.device]))
    try world.remove(guest, by: &owner)
    world.statements.append(
      try owner.state(
        .file(
          .init(kind: .generation, document: world.document, hash: ContentHash(of: [2])))))
    let second = try world.owner()
    try world.removeOwner(second, head: nil)

    recoveryKey = .random(using: &world.generator)
    invitation = Invitation(
      root: world.root, inviter: owner.device, document: world.document,
      generation: world.generation, number: 1, using: &world.generator)
    request = try InvitationRequest.sealed(
      by: guest.keys, person: "Zoë", for: invitation, using: &world.generator)
    var digest = StateDigest(generation: world.generation)
    digest.add(.init(table: "note", identity: [1, 2, 3], stamps: [4, 5]))
    digest.add(.init(table: "Ëtüde", identity: [], stamps: [255]))
    self.digest = digest
    var stored = StoredKeys(device: owner.keys)
    stored.nameKey = world.secret.nameKey
    stored.epochs = world.keyRing.keys
    stored.lastInvitation = 1
    stored.invitations = [
      PendingInvitation(invitation, role: .writer, expiresMilliseconds: 1_800_000_000_000)
    ]
    self.stored = stored
    samples = Self.samples(&world.generator)
    self.epochs = epochs
    self.world = world
    self.owner = owner
    self.writer = writer
  }

  private static func samples(_ generator: inout SeededGenerator) -> [Sample] {
    func sample(
      _ name: String, _ type: Envelope.FileType, _ number: UInt64, byOwner: Bool = false,
      rest: [UInt8] = [], header: [UInt8] = [], _ stored: [UInt8], body: Int? = nil
    ) -> Sample {
      Sample(
        name: name, type: type, number: number, isByOwner: byOwner, publicRest: rest,
        privateHeader: header, stored: stored, bodyByteCount: body ?? stored.count)
    }
    return [
      sample("marker", .recentSync, 16, Array("{}".utf8)),
      sample("change-set", .changeSet, 1, rest: [0], header: [1, 2, 3], generator.bytes(500)),
      sample(
        "later-change-set", .changeSet, 2, rest: [1] + generator.bytes(32),
        header: generator.bytes(900), generator.bytes(3000)),
      sample("empty", .changeSet, 3, []),
      sample("command", .syncCommand, 1, Array("{\"command\":\"upload\"}".utf8)),
      sample("segment", .segment, 1, rest: [9], header: [8], generator.bytes(2000)),
      sample("one-chunk", .changeSet, 4, generator.bytes(65_536 - 28)),
      sample("three-chunks", .changeSet, 5, generator.bytes(140_000)),
      sample("long-header", .changeSet, 6, header: generator.bytes(70_000), [1]),
      sample(
        "whole-store", .wholeStore, 1, byOwner: true, header: [1], generator.bytes(600),
        body: 5000),
      sample("generation", .generation, 2, byOwner: true, Array("{}".utf8)),
      sample("tombstone", .tombstone, 1, byOwner: true, Array("{}".utf8)),
    ]
  }

  /// Returns the slots. Only these take the time of scrypt.
  func slots() throws -> [(name: String, slot: Slot)] {
    var generator = SeededGenerator(seed: 102)
    let credentials: [(String, Slot.Credential)] = [
      ("slot-passphrase", .passphrase(.init(existing: Self.passphrase))),
      ("slot-recovery", .recoveryKey(recoveryKey)),
    ]
    return try credentials.map { name, credential in
      (
        name,
        try Slot(
          sealing: world.secret, for: credential, root: world.root, using: &generator)
      )
    }
  }

  // MARK: Files

  /// Where a sample belongs.
  func place(_ sample: Sample) -> SealedPlace {
    let client = (sample.isByOwner ? owner : writer).client
    let document = "Documents/\(world.document)"
    let generation = "\(document)/\(world.generation)"
    var place = SealedPlace(
      type: sample.type, root: world.root, document: world.document,
      generation: world.generation, client: client, number: sample.number, pathBeforeHash: "")
    func path(_ before: String, _ after: String?) {
      place.pathBeforeHash = before
      place.pathAfterHash = after
    }
    switch sample.type {
    case .recentSync: path("\(generation)/RecentSyncs/\(client).6.1.\(sample.number).", "")
    case .syncCommand:
      path("\(generation)/SyncCommands/\(client)/\(sample.number).", ".synccmd")
    case .segment:
      path("\(generation)/SyncChanges/\(client)/\(sample.number)-4.", ".segment")
    case .wholeStore: path("\(generation)/WholeStore/\(client)/\(sample.number).", ".store")
    case .generation:
      path("\(document)/generation.\(sample.number).\(world.generation).json", nil)
    case .tombstone: path("\(document)/deleted.\(sample.number).\(client).json", nil)
    default: path("\(generation)/SyncChanges/\(client)/\(sample.number).", ".syncchg")
    }
    return place
  }

  /// Seals a sample; with a salt, all bytes but the signature are known.
  func seal(_ sample: Sample, salt: [UInt8]) throws -> (bytes: [UInt8], hash: ContentHash) {
    // The first epoch for one of the files, so that the key before is needed.
    let epoch = epochs[sample.name == "command" ? 0 : 1]
    let key = world.keyRing.keys[epoch]
    guard let key else { throw CodecError(.malformed, "no key") }
    var position = 0
    var bytes: [UInt8] = []
    let hash = try (sample.isByOwner ? owner : writer).sealer.seal(
      .init(
        publicRest: sample.publicRest, privateHeader: sample.privateHeader,
        isCompressed: sample.isCompressed, storedByteCount: sample.stored.count,
        bodyByteCount: sample.bodyByteCount), at: place(sample), generation: world.generation,
      under: epoch, key, salt: salt,
      body: { count in
        defer { position += count }
        return Array(sample.stored[position..<min(position + count, sample.stored.count)])
      }, output: { bytes += $0 })
    return (bytes, hash)
  }

  /// The entry of a sample in `files.json`.
  func entry(_ sample: Sample, hash: ContentHash) -> File {
    let place = place(sample)
    let device = sample.isByOwner ? owner : writer
    return File(
      name: sample.name, type: sample.type.rawValue, path: place.path(of: hash),
      pathWithoutHash: place.pathWithoutHash, number: sample.number,
      client: device.client.description, signer: device.device.description,
      epoch: sample.name == "command" ? 1 : 2,
      privateHeaderSHA256: ContentHash(of: sample.privateHeader).description,
      publicRest: Self.hex(sample.publicRest), isCompressed: sample.isCompressed,
      bodyByteCount: sample.bodyByteCount, storedByteCount: sample.stored.count,
      storedSHA256: ContentHash(of: sample.stored).description)
  }

  // MARK: Known answers

  static func hex(_ bytes: some Sequence<UInt8>) -> String {
    let digits = Array("0123456789abcdef")
    return String(bytes.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] })
  }

  /// One known answer for every derivation.
  func answers() throws -> [String: String] {
    let secret = world.secret
    let stream = EpochKey(secret: Secret([UInt8](repeating: 7, count: 32)))
    let salt = [UInt8](0..<16)
    var answers: [String: String] = [:]
    answers["applicationSecret"] = Self.hex(secret.secret.bytes)
    answers["enrolmentSeed"] = Self.hex(try secret.enrolmentKey().seed.bytes)
    answers["enrolmentPublicKey"] = Self.hex(world.application.enrolment.bytes)
    answers["ownerSeed"] = Self.hex(try secret.ownerKey().seed.bytes)
    answers["ownerPublicKey"] = Self.hex(world.application.owner.bytes)
    answers["root"] = world.root.description
    answers["nameKey"] = Self.hex(secret.nameKey.secret.bytes)
    answers["folderName"] =
      secret.nameKey.folderName(
        ofDocument: Self.documentName, in: Self.applicationName
      ).description
    for (name, device) in [("owner", owner), ("writer", writer)] {
      answers["\(name)SigningSeed"] = Self.hex(device.keys.signing.seed.bytes)
      answers["\(name)OpeningSeed"] = Self.hex(device.keys.opening.seed.bytes)
      answers["\(name)VerifyingKey"] = Self.hex(device.keys.publicKeys.verifying.bytes)
      answers["\(name)SealingKey"] = Self.hex(device.keys.publicKeys.sealing.bytes)
      answers["\(name)Device"] = device.device.description
      answers["\(name)ClientSeed"] = Self.hex(device.seed.bits.bytes)
      answers["\(name)Client"] = device.client.description
    }
    answers["document"] = world.document.description
    answers["generation"] = world.generation.description
    for epoch in epochs {
      answers["epoch\(epoch.number)Identifier"] = epoch.identifier.description
      answers["epoch\(epoch.number)Key"] =
        world.keyRing.key(of: epoch).map { Self.hex($0.secret.bytes) }
    }
    answers["fileKeyOfSevens"] = stream.fileKey(
      salt: salt, root: world.root, signer: owner.device, path: "Documents/x/1..syncchg"
    ).withUnsafeBytes { Self.hex($0) }
    answers["passphrase"] = Self.passphrase
    answers["recoveryKey"] = recoveryKey.text
    answers["invitation"] = invitation.text
    answers["requestName"] = InvitationRequest.name(for: invitation)
    answers["stateDigest"] = Self.hex(digest.sum.bytes)
    answers["nonce"] = Self.hex(SealedHead.nonce(chunk: 0x0102_0304, isLast: true))
    answers["padded"] = [0, 1025, 4097, 70_000, 9_999_999].map { "\(Padme.padded($0))" }
      .joined(separator: " ")
    return answers
  }
}
