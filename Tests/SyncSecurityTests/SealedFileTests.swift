import SyncModel
import Testing

@testable import SyncSecurity

/// Sealed files: what is sealed is opened, and every manipulation is refused with its reason.
@Suite struct SealedFileTests {
  /// A world with an owner and a writer, and an epoch for both.
  private static func world(seed: UInt64 = 11) throws -> (TestWorld, TestDevice, TestDevice) {
    var world = try TestWorld(seed: seed)
    var owner = try world.owner()
    let writer = try world.guest(.writer, by: &owner)
    try world.makeEpoch(by: &owner)
    return (world, owner, writer)
  }

  /// Opens, and expects a reason.
  private func expect(
    _ reason: OpeningFailure.Reason, _ opener: Opener, _ bytes: [UInt8], _ place: SealedPlace,
    limits: SealedLimits = .default, vouched: ContentHash? = nil, _ what: String = "",
    location: SourceLocation = #_sourceLocation
  ) {
    let error = #expect(throws: OpeningFailure.self, "\(what)", sourceLocation: location) {
      try opener.open(bytes, at: place, limits: limits, vouched: vouched)
    }
    #expect(error?.reason == reason, "\(what)", sourceLocation: location)
  }

  @Test(arguments: [0, 1, 900, 1000, 65_000, 65_536, 131_072, 200_000])
  func sealedBodyIsOpened(count: Int) throws {
    var (world, owner, writer) = try Self.world()
    let body = world.generator.bytes(count)
    let file = try world.seal(body, by: writer)
    let found = try world.opener(of: owner).open(file.bytes, at: file.place)
    #expect(found.body == body)
    #expect(found.opened.privateHeader == [7, 8, 9])
    #expect(found.checked.publicRest == [0])
    #expect(found.checked.role == .writer)
    #expect(found.checked.hash == file.hash)
    #expect(found.checked.header.client == writer.client)
  }

  @Test func privateHeaderMayBeLongerThanAChunk() throws {
    var (world, owner, writer) = try Self.world()
    let header = world.generator.bytes(150_000)
    let file = try world.seal([1, 2, 3], by: writer, privateHeader: header)
    let found = try world.opener(of: owner).open(file.bytes, at: file.place)
    #expect(found.opened.privateHeader == header)
    #expect(found.body == [1, 2, 3])
  }

  @Test func lengthTellsLittle() throws {
    var (world, _, writer) = try Self.world()
    let small = try (0..<950).filter { $0 % 190 == 0 }.map {
      try world.seal([UInt8](repeating: 0, count: $0), by: writer).bytes.count
    }
    #expect(Set(small).count == 1)
    #expect(Padme.padded(0) == 1024)
    for count in [1025, 5000, 70_000, 1_000_000, 123_456_789] {
      let padded = Padme.padded(count)
      #expect(padded >= count && Double(padded) < Double(count) * 1.12)
      #expect(Padme.padded(padded) == padded)
    }
  }

  @Test func twoFilesOfOneContentDiffer() throws {
    var (world, _, writer) = try Self.world()
    let one = try world.seal([1], by: writer)
    let two = try world.seal([1], by: writer)
    #expect(one.hash != two.hash)
  }

  // MARK: Manipulation

  @Test func everyChangedByteIsDamage() throws {
    var (world, owner, writer) = try Self.world()
    let file = try world.seal(world.generator.bytes(3000), by: writer)
    let opener = world.opener(of: owner)
    var reasons: [OpeningFailure.Reason: Int] = [:]
    for position in file.bytes.indices
    where position < 400 || position % 37 == 0
      || position > file.bytes.count - 120
    {
      var changed = file.bytes
      changed[position] ^= 1 << UInt8(position % 8)
      do {
        _ = try opener.open(changed, at: file.place)
        Issue.record("byte \(position)")
      } catch let failure as OpeningFailure {
        #expect(!failure.isPending, "byte \(position): \(failure)")
        reasons[failure.reason, default: 0] += 1
      }
    }
    #expect(Set(reasons.keys) == [.size, .name, .trailer, .signature, .form])
  }

  @Test func chunksOfAnotherOrderOrFileOrEndAreRefusedByTheStream() throws {
    // The writer itself signs each of these, so that only the stream can refuse them.
    var (world, owner, writer) = try Self.world()
    let body = world.generator.bytes(200_000)
    let file = try world.seal(body, by: writer)
    let other = try world.seal(body, by: writer)
    let opener = world.opener(of: owner)
    let stream = file.bytes.count - SealedHead.endByteCount - Self.streamCount(file.bytes)
    let chunk = SealedHead.chunkByteCount + SealedHead.tagByteCount
    func chunkOf(_ bytes: [UInt8], _ index: Int) -> [UInt8] {
      Array(bytes[stream + index * chunk..<stream + (index + 1) * chunk])
    }
    func replaced(_ index: Int, _ bytes: [UInt8]) throws -> [UInt8] {
      var changed = file.bytes
      changed.replaceSubrange(stream + index * chunk..<stream + (index + 1) * chunk, with: bytes)
      return try resigned(changed, file.place, by: writer)
    }
    for (name, bytes) in [
      ("first chunk twice", try replaced(1, chunkOf(file.bytes, 0))),
      ("second chunk first", try replaced(0, chunkOf(file.bytes, 1))),
      ("chunk of another file", try replaced(1, chunkOf(other.bytes, 1))),
      ("zeros", try replaced(2, [UInt8](repeating: 0, count: chunk))),
    ] {
      var place = file.place
      place.fragment = nil
      expect(.content, opener, bytes, place, name)
    }
    #expect(throws: Never.self) {
      try opener.open(try resigned(file.bytes, file.place, by: writer), at: file.place)
    }
  }

  @Test func streamThatEndsEarlyIsRefused() throws {
    // A file of two full chunks, cut to its first one, with lengths, hash and signature made right.
    var (world, owner, writer) = try Self.world()
    let count = 131_072 - InnerHead.byteCount
    let file = try world.seal(world.generator.bytes(count), by: writer, privateHeader: [])
    let head = file.bytes.count - SealedHead.endByteCount - Self.streamCount(file.bytes)
    let chunk = SealedHead.chunkByteCount + SealedHead.tagByteCount
    var cut = Array(file.bytes[..<(head + chunk)])
    var length: [UInt8] = []
    length.append(little: UInt64(chunk))
    cut.replaceSubrange(72..<80, with: length)
    let bytes = try resigned(
      cut + [UInt8](repeating: 0, count: SealedHead.endByteCount), file.place, by: writer)
    var place = file.place
    place.fragment = nil
    expect(.content, world.opener(of: owner), bytes, place)
  }

  /// The length of the stream, as the envelope has it.
  private static func streamCount(_ bytes: [UInt8]) -> Int {
    bytes[72..<80].reversed().reduce(0) { $0 << 8 | Int($1) }
  }

  /// Makes the hash and the signature of a changed file right.
  private func resigned(
    _ bytes: [UInt8], _ place: SealedPlace, by device: TestDevice
  ) throws -> [UInt8] {
    let start = Array(bytes.dropLast(SealedHead.endByteCount))
    let hash = ContentHash(of: start)
    return start + hash.bytes + (try device.signer.signature(ofFile: place.path(of: hash), hash))
      + [64, 0, 0, 0]
  }

  @Test func fileAtAnotherPathIsRefused() throws {
    var (world, owner, writer) = try Self.world()
    let file = try world.seal([1, 2], by: writer)
    let opener = world.opener(of: owner)
    var place = file.place
    place.number = 2
    expect(.name, opener, file.bytes, place, "number")
    place = file.place
    place.document = .random(using: &world.generator)
    expect(.name, opener, file.bytes, place, "document")
    place = file.place
    place.generation = .random(using: &world.generator)
    expect(.name, opener, file.bytes, place, "generation")
    place = file.place
    place.client = owner.client
    expect(.name, opener, file.bytes, place, "client")
    place = file.place
    place.type = .syncCommand
    expect(.name, opener, file.bytes, place, "type")
    place = file.place
    place.root = .random(using: &world.generator)
    expect(.name, opener, file.bytes, place, "root")
    place = file.place
    place.fragment = "aaaaaaaaaa"
    expect(.name, opener, file.bytes, place, "hash")
    // The header agrees, but the path that was signed is another.
    place = file.place
    place.pathBeforeHash = "Elsewhere/" + place.pathBeforeHash
    expect(.signature, opener, file.bytes, place, "folder")
  }

  @Test func keyDependsOnThePath() throws {
    var (world, owner, writer) = try Self.world()
    let file = try world.seal([1, 2], by: writer)
    var place = file.place
    place.pathBeforeHash = "Elsewhere/" + place.pathBeforeHash
    // The writer signs for the other path too: the stream was not sealed for it.
    let bytes = try resigned(file.bytes, place, by: writer)
    expect(.content, world.opener(of: owner), bytes, place)
  }

  @Test func fileInAnotherDocumentOrGenerationIsRefusedEvenIfItsAuthorSignsIt() throws {
    var (world, owner, writer) = try Self.world()
    let file = try world.seal([1, 2], by: writer)
    let opener = world.opener(of: owner)
    let header = file.bytes.count - SealedHead.endByteCount - Self.streamCount(file.bytes) - 73
    for (name, offset) in [("document", 16), ("generation", 32)] {
      var bytes = file.bytes
      let bits = Bits128.random(using: &world.generator)
      bytes.replaceSubrange(header + offset..<header + offset + 16, with: bits.bytes)
      var place = file.place
      place.fragment = nil
      if offset == 16 {
        place.document = DocumentName(bits: bits)
      } else {
        place.generation = IntegrityKey(bits: bits)
      }
      let signed = try resigned(bytes, place, by: writer)
      // In another document the writer has no grant; in another generation the epoch is unknown.
      expect(offset == 16 ? .lacksStatement : .lacksKey, opener, signed, place, name)
    }
  }

  @Test func clientOfAnotherDeviceIsRefused() throws {
    var (world, owner, writer) = try Self.world()
    // The writer claims the owner's client.
    let (epoch, key) = try world.keyRing.keyForWriting(
      world.document, in: world.generation, world.participants)
    var place = world.place(1, of: owner.client)
    let file = try writer.sealer.seal(
      [1], at: place, generation: world.generation, under: epoch, key, using: &world.generator)
    let header = 88 + 56
    var bytes = file.bytes
    bytes.replaceSubrange(header + 48..<header + 64, with: owner.client.bits.bytes)
    bytes = try resigned(bytes, place, by: writer)
    place.fragment = nil
    expect(.client, world.opener(of: owner), bytes, place)
    // Nor do the owner's 16 bytes help.
    bytes.replaceSubrange(88 + 4..<88 + 20, with: owner.seed.bits.bytes)
    bytes = try resigned(bytes, place, by: writer)
    expect(.client, world.opener(of: owner), bytes, place)
  }

  @Test func signatureOfAnotherParticipantIsRefused() throws {
    var (world, owner, writer) = try Self.world()
    let file = try world.seal([1], by: owner)
    var place = file.place
    place.fragment = nil
    expect(.signature, world.opener(of: owner), try resigned(file.bytes, place, by: writer), place)
  }

  @Test func unsealedFileIsNotRead() throws {
    let (world, owner, writer) = try Self.world()
    let plain = try Envelope(
      type: .changeSet,
      publicHeader: PublicPlace(
        root: world.root, document: world.document, generation: world.generation,
        client: writer.client, number: 1
      ).bytes, body: [1]
    ).encoded()
    expect(.unsealed, world.opener(of: owner), plain, world.place(1, of: writer.client))
    // Damage to the number of the suite is damage.
    expect(
      .trailer, world.opener(of: owner), plain[..<11] + [2] + plain[12...],
      world.place(1, of: writer.client))
  }

  @Test func laterVersionsAndSuitesArePending() throws {
    var (world, owner, writer) = try Self.world()
    let file = try world.seal([1], by: writer)
    var place = file.place
    place.fragment = nil
    for (name, position, value) in [("version", 8, 2), ("suite", 11, 2), ("flag", 15, 1)] {
      var bytes = file.bytes
      bytes[position] = UInt8(value)
      bytes = try resigned(bytes, place, by: writer)
      expect(.newerVersion, world.opener(of: owner), bytes, place, name)
    }
  }

  @Test func capsAreCheckedFirst() throws {
    var (world, owner, writer) = try Self.world()
    let file = try world.seal(world.generator.bytes(5000), by: writer)
    let opener = world.opener(of: owner)
    expect(.size, opener, file.bytes, file.place, limits: SealedLimits(streamBytes: 4000))
    var bytes = file.bytes
    for position in [60, 75, 79] {
      bytes = file.bytes
      bytes[position] = 0x7F
      expect(.size, opener, bytes, file.place, "length at \(position)")
    }
    expect(.size, opener, Array(file.bytes.dropLast()), file.place)
    expect(.size, opener, file.bytes + [0], file.place)
    expect(.size, opener, [], file.place)
  }

  @Test func chainVouchesForASignature() throws {
    var (world, owner, writer) = try Self.world()
    let file = try world.seal([1], by: writer)
    let bytes =
      file.bytes.dropLast(SealedHead.endByteCount - 32)
      + [UInt8](repeating: 0, count: 64) + [64, 0, 0, 0]
    let opener = world.opener(of: owner)
    expect(.signature, opener, Array(bytes), file.place)
    #expect(
      try opener.open(Array(bytes), at: file.place, vouched: file.hash).body == [1])
    expect(.signature, opener, file.bytes, file.place, vouched: ContentHash(of: [9]))
  }

  @Test func fileThatChangesBetweenCheckAndOpeningIsRefused() throws {
    let (world, owner, writer) = try Self.world()
    let (epoch, key) = try world.keyRing.keyForWriting(
      world.document, in: world.generation, world.participants)
    let place = world.place(1, of: writer.client)
    let salt = [UInt8](repeating: 3, count: 16)
    // Two bodies under one key: each participant can make the second.
    func file(_ body: [UInt8]) throws -> [UInt8] {
      var bytes: [UInt8] = []
      _ = try writer.sealer.seal(
        .init(isCompressed: false, storedByteCount: 1, bodyByteCount: 1), at: place,
        generation: world.generation, under: epoch, key, salt: salt, body: { _ in body },
        output: { bytes += $0 })
      return bytes
    }
    let good = try file([1])
    let evil = try file([2])
    let opener = world.opener(of: owner)
    let checked = try opener.check(.init(good), at: place)
    let error = #expect(throws: OpeningFailure.self) {
      try opener.open(checked, .init(evil)) { _ in }
    }
    #expect(error?.reason == .trailer)
  }

  @Test func fuzzedFilesNeverReachTheCallerWithoutAValidSignature() throws {
    var (world, owner, writer) = try Self.world(seed: 31)
    let opener = world.opener(of: owner)
    let files = try (0..<3).map { index in
      try world.seal(world.generator.bytes(index * 40_000), by: writer, number: UInt64(index + 1))
    }
    for _ in 0..<1500 {
      let index = world.generator.below(files.count)
      var bytes = files[index].bytes
      for _ in 0...world.generator.below(3) {
        let position = world.generator.below(bytes.count)
        switch world.generator.below(5) {
        case 0: bytes[position] = UInt8(truncatingIfNeeded: world.generator.next())
        case 1: bytes.removeLast(world.generator.below(min(200, bytes.count)))
        case 2: bytes.insert(contentsOf: world.generator.bytes(3), at: position)
        case 3:
          let other = files[world.generator.below(files.count)].bytes
          let length = min(other.count - min(position, other.count), 64)
          bytes.replaceSubrange(
            position..<min(position + length, bytes.count),
            with: other[min(position, other.count)..<min(position, other.count) + length])
        default: bytes[position % 140] ^= UInt8(1 << world.generator.below(8))
        }
        if bytes.isEmpty { bytes = [0] }
      }
      guard bytes != files[index].bytes else { continue }
      // The hash is made right for some, so that the checks after it are reached.
      if bytes.count > 200, world.generator.once(in: 2) {
        let start = Array(bytes.dropLast(SealedHead.endByteCount))
        bytes = start + ContentHash(of: start).bytes + bytes.suffix(68)
      }
      var place = files[index].place
      place.fragment = nil
      do {
        var reached = 0
        let checked = try opener.check(.init(bytes), at: place)
        try opener.open(checked, .init(bytes)) { reached += $0.count }
        Issue.record("a changed file was opened")
      } catch let failure as OpeningFailure {
        #expect(failure.reason != .content, "the signature was passed")
      }
    }
  }
}
