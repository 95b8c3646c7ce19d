import Crypto
import SyncModel

/// Seals and signs files of one client, at constant memory.
package struct Sealer: Sendable {
  /// Signs as the device of the client.
  package let signer: Signer
  /// The 16 bytes of the client.
  package let seed: ClientSeed

  /// Creates a sealer.
  package init(signer: Signer, seed: ClientSeed) {
    self.signer = signer
    self.seed = seed
  }

  /// The client whose files it seals.
  package var client: ClientIdentifier { seed.client(of: signer.author) }

  /// What a file contains, besides its body.
  package struct Content: Hashable, Sendable {
    /// What follows the place in the public header.
    package var publicRest: [UInt8]
    /// The header that only participants read.
    package var privateHeader: [UInt8]
    /// Whether the body is deflated.
    package var isCompressed: Bool
    /// The length of the body as it is sealed.
    package var storedByteCount: Int
    /// The length of the body, decompressed.
    package var bodyByteCount: Int

    /// Creates a content.
    package init(
      publicRest: [UInt8] = [], privateHeader: [UInt8] = [], isCompressed: Bool,
      storedByteCount: Int, bodyByteCount: Int
    ) {
      self.publicRest = publicRest
      self.privateHeader = privateHeader
      self.isCompressed = isCompressed
      self.storedByteCount = storedByteCount
      self.bodyByteCount = bodyByteCount
    }
  }

  /// Seals a file, and returns its hash.
  ///
  /// - Parameters:
  ///   - place: Where it belongs; without `fragment`.
  ///   - generation: The generation, for the header.
  ///   - key: The key of the epoch.
  ///   - body: Returns the next part of the body, of at most the number of bytes that it gets and
  ///     of at least one; it may throw to cancel.
  ///   - output: Takes the next part of the file.
  package func seal(
    _ content: Content, at place: SealedPlace, generation: IntegrityKey,
    under epoch: EpochReference,
    _ key: EpochKey, using generator: inout some RandomNumberGenerator,
    body: (Int) throws -> [UInt8], output: ([UInt8]) throws -> Void
  ) throws -> ContentHash {
    let salt = Secret.random(using: &generator).bytes.prefix(SealedHead.saltByteCount)
    return try seal(
      content, at: place, generation: generation, under: epoch, key, salt: Array(salt),
      body: body, output: output)
  }

  /// Does the same as `seal` with a given salt, which is right only in tests.
  func seal(
    _ content: Content, at place: SealedPlace, generation: IntegrityKey,
    under epoch: EpochReference,
    _ key: EpochKey, salt: [UInt8], body: (Int) throws -> [UInt8], output: ([UInt8]) throws -> Void
  ) throws -> ContentHash {
    let inner = InnerHead(
      isCompressed: content.isCompressed, privateByteCount: content.privateHeader.count,
      storedByteCount: content.storedByteCount, bodyByteCount: content.bodyByteCount)
    guard let count = inner.plainByteCount, count < 1 << 44 else {
      throw CodecError(.lengthOverCap, "body of \(content.storedByteCount) bytes")
    }
    let plain = Padme.padded(count)
    let publicHeader =
      PublicPlace(
        root: place.root, document: place.document, generation: generation, client: client,
        number: place.number
      ).bytes + content.publicRest
    let head = SealedHead(
      type: place.type.rawValue, epochNumber: epoch.number, epochIdentifier: epoch.identifier,
      salt: salt, signer: signer.author, seed: seed, publicHeader: publicHeader,
      streamByteCount: SealedHead.streamByteCount(plain: plain)
    ).encoded()
    var hasher = ContentHasher()
    func write(_ bytes: [UInt8]) throws {
      hasher.update(bytes)
      try output(bytes)
    }
    try write(head)
    let fileKey = key.fileKey(
      salt: salt, root: place.root, signer: signer.author, path: place.pathWithoutHash)
    var source = PlainSource(
      start: inner.bytes + content.privateHeader, bodyByteCount: content.storedByteCount,
      padding: plain - count)
    var chunk = 0
    var done = 0
    while done < plain {
      let part = try source.next(min(SealedHead.chunkByteCount, plain - done), body)
      done += part.count
      let nonce = SealedHead.nonce(chunk: chunk, isLast: done == plain)
      let box = try ChaChaPoly.seal(
        part, using: fileKey, nonce: ChaChaPoly.Nonce(data: nonce), authenticating: head)
      try write(Array(box.ciphertext) + Array(box.tag))
      chunk += 1
    }
    let trailer = hasher.hash
    var end = trailer.bytes
    end += try signer.signature(ofFile: place.path(of: trailer), trailer)
    end.append(little: UInt32(VerifyingKey.signatureByteCount))
    try output(end)
    return trailer
  }

  /// Seals a body in memory, and returns the bytes of the file and its hash.
  package func seal(
    _ body: [UInt8], publicRest: [UInt8] = [], privateHeader: [UInt8] = [],
    at place: SealedPlace, generation: IntegrityKey, under epoch: EpochReference, _ key: EpochKey,
    using generator: inout some RandomNumberGenerator
  ) throws -> (bytes: [UInt8], hash: ContentHash) {
    let content = Content(
      publicRest: publicRest, privateHeader: privateHeader, isCompressed: false,
      storedByteCount: body.count, bodyByteCount: body.count)
    var file: [UInt8] = []
    var position = 0
    let hash = try seal(
      content, at: place, generation: generation, under: epoch, key, using: &generator,
      body: { count in
        defer { position += count }
        return Array(body[position..<min(position + count, body.count)])
      }, output: { file += $0 })
    return (file, hash)
  }
}

/// The plain bytes of a stream: what comes first, the body, zeros.
private struct PlainSource {
  var start: [UInt8]
  var bodyByteCount: Int
  var padding: Int
  private var position = 0

  init(start: [UInt8], bodyByteCount: Int, padding: Int) {
    self.start = start
    self.bodyByteCount = bodyByteCount
    self.padding = padding
  }

  /// Returns the next `count` bytes.
  mutating func next(_ count: Int, _ body: (Int) throws -> [UInt8]) throws -> [UInt8] {
    var part: [UInt8] = []
    part.reserveCapacity(count)
    if position < start.count {
      let end = min(start.count, position + count)
      part += start[position..<end]
      position = end
    }
    while part.count < count, bodyByteCount > 0 {
      let wanted = min(count - part.count, bodyByteCount)
      let bytes = try body(wanted)
      guard !bytes.isEmpty, bytes.count <= wanted else {
        throw CodecError(.wrongCount, "body: \(bytes.count) bytes in place of \(wanted)")
      }
      part += bytes
      bodyByteCount -= bytes.count
    }
    let zeros = min(count - part.count, padding)
    part += [UInt8](repeating: 0, count: zeros)
    padding -= zeros
    return part
  }
}
