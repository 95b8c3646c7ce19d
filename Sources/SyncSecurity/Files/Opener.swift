import Crypto
import SyncModel

/// Checks and opens sealed files, at constant memory.
///
/// The checks are made in the order of ``OpeningFailure/Reason``. Nothing of a file reaches the
/// caller before its signature was verified and its signer's role permits it.
package struct Opener: Sendable {
  /// Who takes part.
  package let participants: Participants
  /// The epoch keys of this device.
  package let keys: KeyRing
  /// Up to which number the files of removed devices count.
  package let cuts: Cuts?

  /// Creates an opener. Without `cuts` nothing of removed devices counts.
  package init(participants: Participants, keys: KeyRing, cuts: Cuts? = nil) {
    self.participants = participants
    self.keys = keys
    self.cuts = cuts
  }

  /// A file that can be read from any position.
  package struct Source {
    /// Its length.
    package let byteCount: Int
    /// Returns as many bytes from a position on; fewer only if the file has become shorter. It may
    /// throw to cancel.
    package let read: (_ position: Int, _ count: Int) throws -> [UInt8]

    /// Creates a source.
    package init(byteCount: Int, read: @escaping (_ position: Int, _ count: Int) throws -> [UInt8])
    {
      self.byteCount = byteCount
      self.read = read
    }

    /// Reads bytes in memory.
    package init(_ bytes: [UInt8]) {
      self.init(byteCount: bytes.count) { Array(bytes[$0..<min($0 + $1, bytes.count)]) }
    }

    fileprivate func exactly(_ count: Int, at position: Int) throws -> [UInt8] {
      let bytes = try read(position, count)
      guard bytes.count == count else { throw OpeningFailure(.size, "the file became shorter") }
      return bytes
    }
  }

  /// A file whose signature, client, participant and role were checked.
  package struct Checked: Hashable, Sendable {
    /// The beginning of the public header.
    package let header: PublicPlace
    /// The rest of the public header.
    package let publicRest: [UInt8]
    /// The device that signed it.
    package let signer: DeviceIdentifier
    /// The role of the signer, or that which it had. The author of a command may need a greater one
    /// than for the file.
    package let role: Role
    /// The hash of the file.
    package let hash: ContentHash
    /// The epoch of its key.
    package let epoch: EpochReference

    fileprivate let head: SealedHead
    fileprivate let headBytes: [UInt8]
    fileprivate let pathWithoutHash: String
  }

  /// What a file contains, besides its body.
  package struct Opened: Hashable, Sendable {
    /// The header that only participants read.
    package let privateHeader: [UInt8]
    /// Whether the body is deflated.
    package let isCompressed: Bool
    /// The length of the body as it was sealed.
    package let storedByteCount: Int
    /// The length of the body, decompressed.
    package let bodyByteCount: Int
  }

  // MARK: Checking

  /// Makes all checks but that of the content.
  ///
  /// - Parameter vouched: The hash by which a verified later file of the same client names this
  ///   one: then its signature need not be verified.
  /// - Throws: ``OpeningFailure``, or what the source throws.
  package func check(
    _ source: Source, at place: SealedPlace, limits: SealedLimits = .default,
    vouched: ContentHash? = nil
  ) throws -> Checked {
    let lengths = try lengths(of: source, limits)
    let headBytes = try source.exactly(lengths.head, at: 0)
    let end = try source.exactly(
      SealedHead.endByteCount, at: lengths.head + lengths.stream)
    let trailer = ContentHash(of: Array(end.prefix(32)), isHash: true)

    let publicHeader = Array(headBytes.suffix(lengths.publicHeader))
    guard place.root == participants.application.root, headBytes[10] == place.type.rawValue,
      publicHeader.count >= PublicPlace.byteCount,
      try PublicPlace(reading: publicHeader).agrees(with: place)
    else { throw OpeningFailure(.name, "header") }
    if let fragment = place.fragment, fragment != trailer.nameFragment {
      throw OpeningFailure(.name, "hash")
    }
    guard try hash(of: source, count: lengths.head + lengths.stream) == trailer else {
      throw OpeningFailure(.trailer)
    }
    let head: SealedHead
    do {
      head = try SealedHead(decoding: headBytes, lengths: lengths)
    } catch let error as CodecError {
      throw OpeningFailure(
        error.needsNewerReader ? .newerVersion : .form, "\(error.code): \(error.what)")
    }
    guard end.suffix(4).elementsEqual([UInt8(VerifyingKey.signatureByteCount), 0, 0, 0]) else {
      throw OpeningFailure(.form, "length of the signature")
    }
    let header = try PublicPlace(reading: publicHeader)
    try checkSignature(
      Array(end.dropFirst(32).dropLast(4)), head, place.path(of: trailer), trailer,
      vouched: vouched)
    guard head.seed.client(of: head.signer) == header.client else {
      throw OpeningFailure(.client)
    }
    let role = try role(of: head.signer, for: place.type, header, trailer)
    return Checked(
      header: header, publicRest: Array(publicHeader.dropFirst(PublicPlace.byteCount)),
      signer: head.signer, role: role, hash: trailer,
      epoch: EpochReference(
        document: header.document, generation: header.generation, number: head.epochNumber,
        identifier: head.epochIdentifier),
      head: head, headBytes: headBytes, pathWithoutHash: place.pathWithoutHash)
  }

  private func lengths(of source: Source, _ limits: SealedLimits) throws -> SealedHead.Lengths {
    let fixed = try source.read(0, min(SealedHead.fixedByteCount, source.byteCount))
    let lengths: SealedHead.Lengths
    do {
      lengths = try SealedHead.Lengths(fixedPart: fixed, limits: limits)
    } catch let error as CodecError {
      guard error.needsNewerReader else { throw OpeningFailure(.size, "\(error.code)") }
      // The files of all versions end in the same way, so that the hash tells a damaged number from
      // a newer version.
      guard try isIntact(source) else { throw OpeningFailure(.trailer) }
      let isUnsealed = fixed[8..<10] == [1, 0] && fixed[11] == 0
      throw OpeningFailure(isUnsealed ? .unsealed : .newerVersion, error.what)
    }
    guard lengths.file == source.byteCount,
      SealedHead.plainByteCount(stream: lengths.stream) != nil
    else { throw OpeningFailure(.size, "\(source.byteCount) bytes, not \(lengths.file)") }
    return lengths
  }

  /// Whether a file of any version has the hash of its bytes at its end.
  private func isIntact(_ source: Source) throws -> Bool {
    guard source.byteCount >= SealedHead.fixedByteCount + 36 else { return false }
    let count = try source.exactly(4, at: source.byteCount - 4)
    let signature = count.reversed().reduce(0) { $0 << 8 | Int($1) }
    let start = source.byteCount - 36 - signature
    guard signature <= 4096, start >= SealedHead.fixedByteCount else { return false }
    return try hash(of: source, count: start).bytes == source.exactly(32, at: start)
  }

  private func hash(of source: Source, count: Int) throws -> ContentHash {
    var hasher = ContentHasher()
    var position = 0
    while position < count {
      let part = try source.exactly(min(SealedHead.chunkByteCount, count - position), at: position)
      hasher.update(part)
      position += part.count
    }
    return hasher.hash
  }

  private func checkSignature(
    _ signature: [UInt8], _ head: SealedHead, _ path: String, _ trailer: ContentHash,
    vouched: ContentHash?
  ) throws {
    guard let signer = participants.keys(of: head.signer) else {
      throw OpeningFailure(.lacksStatement, "keys of \(head.signer)")
    }
    if let vouched {
      guard vouched == trailer else { throw OpeningFailure(.signature, "another hash") }
      return
    }
    let message = Signer.fileMessage(participants.application.root, path, trailer)
    guard signer.verifying.verifies(signature, of: message) else {
      throw OpeningFailure(.signature)
    }
  }

  // MARK: Roles

  private func role(
    of signer: DeviceIdentifier, for type: Envelope.FileType, _ header: PublicPlace,
    _ hash: ContentHash
  ) throws -> Role {
    let action: Role.Action
    switch type {
    case .recentSync: action = .marker
    case .changeSet, .segment: action = .changeSet
    // The content tells which command it is.
    case .syncCommand: action = .ownCommand
    case .wholeStore: action = .wholeStore
    case .generation: action = .generation
    case .tombstone: action = .tombstone
    default: throw OpeningFailure(.role, "files of type \(type.rawValue) are not sealed")
    }
    let standing = participants.standing(of: signer, in: header.document)
    if let kind = Statement.CountedFile.Kind(rawValue: type.rawValue),
      participants.counts(kind, hash, in: header.document)
    {
      // An owner's statement vouches for the file, whatever has become of its signer.
      return .owner
    }
    switch standing {
    case .unknown: throw OpeningFailure(.lacksStatement, "grant of \(signer)")
    case .takesPart(let role):
      guard role.permits(action) else { throw OpeningFailure(.role, "\(role)") }
      guard action != .generation, action != .tombstone else {
        throw OpeningFailure(.lacksStatement, "hash of the file")
      }
      return role
    case .removed(let role), .void(let role):
      let isNumbered = type == .changeSet || type == .segment || type == .syncCommand
      // Nothing but change sets and commands counts of a device that takes no part.
      guard isNumbered, let cuts, cuts.numbers[header.client] != nil,
        cuts.counts(header.number, of: header.client)
      else { throw OpeningFailure(.removed) }
      guard role.permits(action) else { throw OpeningFailure(.role, "\(role)") }
      return role
    }
  }

  // MARK: Opening

  /// Opens a checked file.
  ///
  /// What `body` takes counts only when the function has returned: until then, the end of the file
  /// has not been seen.
  ///
  /// - Parameters:
  ///   - begin: Takes everything but the body, before the first part of it.
  ///   - body: Takes the next part of the body; it may throw to cancel.
  /// - Throws: ``OpeningFailure``, or what the source or a closure throws.
  @discardableResult
  package func open(
    _ checked: Checked, _ source: Source, limits: SealedLimits = .default,
    begin: (Opened) throws -> Void = { _ in }, body: (ArraySlice<UInt8>) throws -> Void
  ) throws -> Opened {
    guard let key = keys.key(of: checked.epoch) else {
      throw OpeningFailure(.lacksKey, "epoch \(checked.epoch.number)")
    }
    let fileKey = key.fileKey(
      salt: checked.head.salt, root: checked.header.root, signer: checked.signer,
      path: checked.pathWithoutHash)
    guard let plain = SealedHead.plainByteCount(stream: checked.head.streamByteCount) else {
      throw OpeningFailure(.content, "length of the stream")
    }
    var stream = OpeningStream(plain: plain, limits: limits)
    var hasher = ContentHasher()
    hasher.update(checked.headBytes)
    var position = checked.headBytes.count
    var chunk = 0
    while stream.done < plain {
      let count = min(SealedHead.chunkByteCount, plain - stream.done)
      let bytes = try source.exactly(count + SealedHead.tagByteCount, at: position)
      position += bytes.count
      hasher.update(bytes)
      let part: [UInt8]
      do {
        let nonce = SealedHead.nonce(chunk: chunk, isLast: stream.done + count == plain)
        let box = try ChaChaPoly.SealedBox(
          nonce: ChaChaPoly.Nonce(data: nonce),
          ciphertext: bytes.prefix(count), tag: bytes.suffix(SealedHead.tagByteCount))
        part = Array(
          try ChaChaPoly.open(box, using: fileKey, authenticating: checked.headBytes))
      } catch {
        throw OpeningFailure(.content, "chunk \(chunk)")
      }
      try stream.take(part, begin: begin, body: body)
      chunk += 1
    }
    // The file may have changed since it was checked.
    guard hasher.hash == checked.hash else { throw OpeningFailure(.trailer, "the file changed") }
    return try stream.finish()
  }

  /// Checks and opens a file in memory.
  package func open(
    _ bytes: [UInt8], at place: SealedPlace, limits: SealedLimits = .default,
    vouched: ContentHash? = nil
  ) throws -> (checked: Checked, opened: Opened, body: [UInt8]) {
    let source = Source(bytes)
    let checked = try check(source, at: place, limits: limits, vouched: vouched)
    var body: [UInt8] = []
    let opened = try open(checked, source, limits: limits) { body += $0 }
    return (checked, opened, body)
  }
}
