import SyncModel
import Testing

@testable import SyncSecurity

/// The three passes under random and hostile sets of statements.
///
/// Signatures are replaced by the name of the signer here, so that ten thousand histories take
/// seconds: `ParticipantsTests` has real ones.
@Suite struct ParticipantsHistoryTests {
  /// Who can make statements, honest or not.
  private struct Cast {
    let application: ApplicationKeys
    let devices: [DevicePublicKeys]
    let documents: [DocumentName]

    static let shared: Cast? = make()

    private static func make() -> Cast? {
      var generator = SeededGenerator(seed: 99)
      do {
        return Cast(
          application: try ApplicationSecret.random(using: &generator).application(),
          devices: try (0..<7).map { _ in
            try DeviceKeys.random(using: &generator).publicKeys
          }, documents: (0..<2).map { _ in .random(using: &generator) })
      } catch {
        return nil
      }
    }
  }

  private static func participants(_ statements: [Statement], _ cast: Cast) -> Participants {
    Participants(of: statements, in: cast.application) { statement, signature, key in
      signature == key.bytes + statement.hash.bytes
    }
  }

  /// A set of statements: honest chains, forks, gaps, forgeries, removals with any head.
  private static func history(_ generator: inout SeededGenerator, _ cast: Cast) -> [Statement] {
    let root = cast.application.root
    var made: [Statement] = []
    var enrolled: [Statement] = []
    for _ in 0..<3 + generator.below(22) {
      if generator.once(in: 4) {
        let device = cast.devices[generator.below(4)]
        let ofDevice = made.filter { $0.author == device.device }
        let head =
          generator.once(in: 5) || ofDevice.isEmpty
          ? nil : ofDevice[generator.below(ofDevice.count)].hash
        let content: Statement.Content =
          generator.once(in: 3)
          ? .ownerRemoval(.init(device: device.device, head: head))
          : .ownerGrant(.init(keys: device))
        // One in six is not signed by the enrolment key.
        let key =
          generator.once(in: 6) ? cast.devices[0].verifying : cast.application.enrolment
        enrolled.append(
          signed(root, .enrolment(of: root), 0, nil, content, by: key))
        continue
      }
      let author = cast.devices[generator.below(cast.devices.count)]
      let chain = made.filter { $0.author == author.device }
      // Now and then a fork, or a number with a jump.
      let previous =
        chain.isEmpty || generator.once(in: 12)
        ? nil : generator.once(in: 5) ? chain[generator.below(chain.count)] : chain.last
      let number =
        generator.once(in: 15)
        ? UInt64(1 + generator.below(9)) : (previous?.number ?? 0) + 1
      let signer =
        generator.once(in: 10) ? cast.devices[generator.below(7)].verifying : author.verifying
      made.append(
        signed(
          root, author.device, number, previous?.hash, content(&generator, cast), by: signer))
    }
    var all = made + enrolled
    // Withheld files, and files that are there twice.
    for _ in 0..<generator.below(4) where !all.isEmpty {
      let index = generator.below(all.count)
      if generator.once(in: 2) { all.append(all[index]) } else { all.remove(at: index) }
    }
    return all
  }

  private static func content(
    _ generator: inout SeededGenerator, _ cast: Cast
  ) -> Statement.Content {
    let device = cast.devices[generator.below(cast.devices.count)]
    let documents = cast.documents.filter { _ in generator.once(in: 2) }
    switch generator.below(8) {
    case 0...3:
      return .grant(
        .init(
          keys: device, role: generator.once(in: 2) ? .writer : .reader,
          documents: documents.isEmpty ? [cast.documents[0]] : documents))
    case 4, 5: return .removal(.init(device: device.device, documents: documents))
    case 6:
      return .file(
        .init(
          kind: .generation, document: cast.documents[0],
          hash: ContentHash(of: generator.bytes(4))))
    default: return .removal(.init(device: device.device, documents: cast.documents))
    }
  }

  private static func signed(
    _ root: RootIdentifier, _ author: DeviceIdentifier, _ number: UInt64,
    _ previous: ContentHash?, _ content: Statement.Content, by key: VerifyingKey
  ) -> Statement {
    let unsigned = Statement(
      root: root, author: author, number: number, previous: previous, content: content,
      signature: [])
    return Statement(
      root: root, author: author, number: number, previous: previous, content: content,
      signature: key.bytes + unsigned.hash.bytes)
  }

  /// Everything that a result says, in a comparable form.
  private static func summary(_ found: Participants, _ cast: Cast) -> [String] {
    var lines: [String] = []
    for device in cast.devices {
      for document in cast.documents {
        lines.append("\(found.standing(of: device.device, in: document))")
      }
    }
    lines.append("\(found.owners.sorted()) \(found.formerOwners.sorted())")
    lines.append("\(found.beyond.map(\.hash))")
    for set in [found.counted, found.missing, found.heads, Set(found.files.map(\.hash))] {
      lines.append("\(set.map(\.description).sorted())")
    }
    return lines + ["\(found.forked.sorted()) \(found.refusedCount)"]
  }

  #if DEBUG
    /// The histories in each part: an unoptimized build takes as long for a tenth of them.
    private static let partCount = 250
  #else
    /// The histories in each part.
    private static let partCount = 2500
  #endif

  /// The histories of one part of the seeds, so that the parts run at the same time.
  @Test(arguments: 0..<4)
  func tenThousandHistoriesKeepTheInvariants(part: Int) throws {
    let cast = try #require(Cast.shared)
    var counts = (removed: 0, void: 0, beyond: 0, forked: 0, missing: 0, writers: 0)
    for seed in part * Self.partCount..<(part + 1) * Self.partCount {
      var generator = SeededGenerator(seed: UInt64(seed))
      let statements = Self.history(&generator, cast)
      let found = Self.participants(statements, cast)
      let summary = Self.summary(found, cast)

      // Neither order nor repetition matters.
      var shuffled = statements + statements.filter { _ in generator.once(in: 3) }
      for index in shuffled.indices.reversed() {
        shuffled.swapAt(index, generator.below(index + 1))
      }
      #expect(
        Self.summary(Self.participants(shuffled, cast), cast) == summary, "seed \(seed)")
      Self.checkInvariants(found, statements, cast, seed)
      Self.checkGrowth(statements, cast, &generator, seed)

      let standings = cast.devices.map { found.standing(of: $0.device, in: cast.documents[0]) }
      counts.removed += standings.count { if case .removed = $0 { true } else { false } }
      counts.void += standings.count { if case .void = $0 { true } else { false } }
      counts.writers += standings.count { $0 == .takesPart(.writer) }
      counts.beyond += found.beyond.count
      counts.forked += found.forked.count
      counts.missing += found.missing.count
    }
    // The histories have what they are meant to have.
    for count in [
      counts.removed, counts.void, counts.beyond, counts.forked, counts.missing, counts.writers,
    ] { #expect(count > Self.partCount / 25, "\(counts)") }
  }

  /// The rules of the three passes, written down a second time.
  private static func checkInvariants(
    _ found: Participants, _ statements: [Statement], _ cast: Cast, _ seed: Int
  ) {
    let root = cast.application.root
    let valid = Set(statements).filter { statement in
      let key =
        statement.author == .enrolment(of: root)
        ? cast.application.enrolment
        : cast.devices.first { $0.device == statement.author }?.verifying
      return statement.signature == (key?.bytes ?? []) + statement.hash.bytes
    }
    var granted: Set<DeviceIdentifier> = []
    var heads: [DeviceIdentifier: [ContentHash?]] = [:]
    for statement in valid {
      if case .ownerGrant(let grant) = statement.content { granted.insert(grant.keys.device) }
      if case .ownerRemoval(let removal) = statement.content {
        heads[removal.device, default: []].append(removal.head)
      }
    }
    // Owners follow from what the enrolment key signed, and from nothing else.
    #expect(found.owners == granted.subtracting(heads.keys), "seed \(seed)")

    /// Whether a statement is on the complete chain to a head, found backwards.
    func isOnWay(_ statement: Statement, to head: ContentHash?) -> Bool {
      var next = head
      for _ in 0...statements.count {
        guard let hash = next, let current = valid.first(where: { $0.hash == hash }),
          current.author == statement.author
        else { return false }
        if current.hash == statement.hash { return true }
        next = current.previous
      }
      return false
    }
    func isComplete(_ statement: Statement) -> Bool {
      guard let previous = statement.previous else { return statement.number == 1 }
      guard
        let before = valid.first(where: { $0.hash == previous && $0.author == statement.author })
      else { return false }
      return before.number + 1 == statement.number && isComplete(before)
    }
    let counting = valid.filter { statement in
      statement.author != .enrolment(of: root) && granted.contains(statement.author)
        && isComplete(statement)
        && (heads[statement.author] ?? []).allSatisfy { isOnWay(statement, to: $0) }
    }
    for device in cast.devices.map(\.device) {
      for document in cast.documents {
        let roles = counting.compactMap { statement -> Role? in
          guard case .grant(let grant) = statement.content, grant.keys.device == device,
            grant.documents.contains(document)
          else { return nil }
          return grant.role
        }
        let isRemoved = counting.contains { statement in
          guard case .removal(let removal) = statement.content, removal.device == device else {
            return false
          }
          return removal.documents.isEmpty || removal.documents.contains(document)
        }
        let expected: Role? =
          heads[device] != nil
          ? nil : granted.contains(device) ? .owner : isRemoved ? nil : roles.max()
        #expect(found.role(of: device, in: document) == expected, "seed \(seed)")
      }
    }
  }

  /// More statements never bring back who was removed, unless the enrolment key has removed the
  /// owner who had removed it.
  private static func checkGrowth(
    _ statements: [Statement], _ cast: Cast, _ generator: inout SeededGenerator, _ seed: Int
  ) {
    let fewer = statements.filter { statement in
      if case .ownerRemoval = statement.content { return true }
      return !generator.once(in: 3)
    }
    let before = participants(fewer, cast)
    let after = participants(statements, cast)
    for device in cast.devices.map(\.device) {
      for document in cast.documents {
        guard case .removed = before.standing(of: device, in: document),
          !after.owners.contains(device)
        else { continue }
        #expect(after.role(of: device, in: document) == nil, "seed \(seed)")
      }
    }
    #expect(before.formerOwners == after.formerOwners, "seed \(seed)")
    #expect(before.counted.isSubset(of: after.counted), "seed \(seed)")
  }
}
