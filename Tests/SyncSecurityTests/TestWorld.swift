import SyncModel

@testable import SyncSecurity

/// SplitMix64: the same numbers for the same seed, on every system.
struct SeededGenerator: RandomNumberGenerator {
  private var state: UInt64

  init(seed: UInt64) { state = seed }

  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var word = state
    word = (word ^ (word >> 30)) &* 0xBF58_476D_1CE4_E5B9
    word = (word ^ (word >> 27)) &* 0x94D0_49BB_1331_11EB
    return word ^ (word >> 31)
  }

  /// A number below `bound`, by a rule that no library version changes.
  mutating func below(_ bound: Int) -> Int { Int(next() % UInt64(bound)) }

  /// Whether something happens that happens once in `count` times.
  mutating func once(in count: Int) -> Bool { below(count) == 0 }

  mutating func bytes(_ count: Int) -> [UInt8] {
    (0..<count).map { _ in UInt8(truncatingIfNeeded: next()) }
  }
}

/// A device of a ``TestWorld``, with the chain of its statements.
struct TestDevice {
  let keys: DeviceKeys
  let signer: Signer
  let seed: ClientSeed
  var last: Statement?

  init(_ keys: DeviceKeys, root: RootIdentifier, seed: ClientSeed) {
    self.keys = keys
    signer = Signer(root: root, device: keys)
    self.seed = seed
  }

  var device: DeviceIdentifier { keys.device }
  var client: ClientIdentifier { seed.client(of: device) }
  var sealer: Sealer { Sealer(signer: signer, seed: seed) }

  /// Makes the next statement of the chain.
  mutating func state(_ content: Statement.Content) throws -> Statement {
    let statement = try signer.statement(content, after: last)
    last = statement
    return statement
  }
}

/// An application with one document, made from one seed.
struct TestWorld {
  var generator: SeededGenerator
  let secret: ApplicationSecret
  let application: ApplicationKeys
  let enrolment: Signer
  let document: DocumentName
  let generation: IntegrityKey
  /// All statements, in the order in which they were made.
  var statements: [Statement] = []
  /// The epoch keys of the owner who makes epochs.
  var keyRing: KeyRing

  init(seed: UInt64 = 1) throws {
    generator = SeededGenerator(seed: seed)
    secret = .random(using: &generator)
    application = try secret.application()
    enrolment = try Signer(enrolmentOf: secret)
    document = .random(using: &generator)
    generation = .random(using: &generator)
    keyRing = KeyRing(root: application.root)
  }

  var root: RootIdentifier { application.root }
  var participants: Participants { Participants(of: statements, in: application) }

  mutating func device() throws -> TestDevice {
    let keys = try DeviceKeys.random(using: &generator)
    return TestDevice(keys, root: root, seed: .random(using: &generator))
  }

  mutating func owner() throws -> TestDevice {
    let device = try device()
    statements.append(
      try enrolment.statement(.ownerGrant(.init(keys: device.keys.publicKeys))))
    return device
  }

  /// Removes an owner's device after the last statement that the remover has seen.
  mutating func removeOwner(_ device: TestDevice, head: Statement?) throws {
    statements.append(
      try enrolment.statement(
        .ownerRemoval(.init(device: device.device, head: head?.hash))))
  }

  /// Makes a device with a role that `owner` grants.
  mutating func guest(
    _ role: Role, by owner: inout TestDevice, in document: DocumentName? = nil
  ) throws -> TestDevice {
    let device = try device()
    try grant(role, to: device, by: &owner, in: document)
    return device
  }

  mutating func grant(
    _ role: Role, to device: TestDevice, by owner: inout TestDevice,
    in document: DocumentName? = nil
  ) throws {
    statements.append(
      try owner.state(
        .grant(
          .init(
            keys: device.keys.publicKeys, role: role, documents: [document ?? self.document]))))
  }

  mutating func remove(
    _ device: TestDevice, by owner: inout TestDevice, from documents: [DocumentName] = []
  ) throws {
    statements.append(
      try owner.state(.removal(.init(device: device.device, documents: documents))))
  }

  /// Lets an owner make an epoch for those who take part now.
  @discardableResult
  mutating func makeEpoch(
    by owner: inout TestDevice, leaving: Set<DeviceIdentifier> = []
  ) throws -> EpochReference {
    let made = try keyRing.makeEpoch(
      of: document, in: generation, participants, leaving: leaving, author: owner.device,
      using: &generator)
    for keys in made { statements.append(try owner.state(.keys(keys))) }
    return made[0].epoch
  }

  /// The key ring of a device, opened from the statements.
  func keyRing(of device: TestDevice) -> KeyRing {
    var ring = KeyRing(root: root)
    ring.open(participants, as: device.device, with: device.keys.opening)
    return ring
  }

  /// What a device checks and opens files with.
  func opener(of device: TestDevice, cuts: Cuts? = nil) -> Opener {
    Opener(participants: participants, keys: keyRing(of: device), cuts: cuts)
  }

  // MARK: Files

  /// The place of a change set.
  func place(
    _ number: UInt64, of client: ClientIdentifier, type: Envelope.FileType = .changeSet
  ) -> SealedPlace {
    let folder =
      switch type {
      case .changeSet, .segment: "SyncChanges"
      case .syncCommand: "SyncCommands"
      case .wholeStore: "WholeStore"
      default: "RecentSyncs"
      }
    return SealedPlace(
      type: type, root: root, document: document, generation: generation, client: client,
      number: number,
      pathBeforeHash: "Documents/\(document)/\(generation)/\(folder)/\(client)/\(number).",
      pathAfterHash: ".syncchg")
  }

  /// Seals a file of a device under the present epoch.
  mutating func seal(
    _ body: [UInt8], by device: TestDevice, number: UInt64 = 1,
    type: Envelope.FileType = .changeSet, privateHeader: [UInt8] = [7, 8, 9]
  ) throws -> (bytes: [UInt8], place: SealedPlace, hash: ContentHash) {
    let (epoch, key) = try keyRing.keyForWriting(document, in: generation, participants)
    var place = place(number, of: device.client, type: type)
    let file = try device.sealer.seal(
      body, publicRest: [0], privateHeader: privateHeader, at: place, generation: generation,
      under: epoch, key, using: &generator)
    place.fragment = file.hash.nameFragment
    return (file.bytes, place, file.hash)
  }
}
