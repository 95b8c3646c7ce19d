/// Consecutive change sets of one client in one file: an index, and the exact bytes of each.
package struct Segment: Hashable, Sendable {
  /// One of the change sets.
  package struct Part: Hashable, Sendable {
    /// The hash of its file.
    package var hash: ContentHash
    /// The bytes of its file.
    package var bytes: [UInt8]

    /// Creates a part from its hash and bytes.
    package init(hash: ContentHash, bytes: [UInt8]) {
      self.hash = hash
      self.bytes = bytes
    }
  }

  /// The shared directory.
  package var root: RootIdentifier
  /// The document to which the change sets belong.
  package var document: DocumentName
  /// The generation of the document.
  package var generation: IntegrityKey
  /// The author.
  package var client: ClientIdentifier
  /// The number of the first change set, from 1.
  package var first: UInt64
  /// The change sets, in order of number with no gap; at least one.
  package var parts: [Part]

  /// Creates a segment from its parts.
  package init(
    root: RootIdentifier, document: DocumentName, generation: IntegrityKey,
    client: ClientIdentifier, first: UInt64, parts: [Part]
  ) {
    self.root = root
    self.document = document
    self.generation = generation
    self.client = client
    self.first = first
    self.parts = parts
  }

  /// The number of the last change set.
  package var last: UInt64 { first + UInt64(parts.count) - 1 }

  /// The change set with the given number; `nil` if the segment does not contain it.
  package subscript(number: UInt64) -> Part? {
    number >= first && number <= last ? parts[Int(number - first)] : nil
  }
}

/// Segments as bytes, by the format in `Documentation/ChangeSetFormat.md`.
package enum SegmentCodec {
  /// The most change sets in a segment.
  package static let greatestCount = 65_536

  /// Encodes a segment as the bytes of its file. Throws ``CodecError`` if it breaks a rule that
  /// ``decode(_:limits:)`` checks.
  package static func encode(
    _ segment: Segment, limits: CodecLimits = .default
  ) throws -> [UInt8] {
    try check(first: segment.first, count: segment.parts.count)
    var publicHeader = segment.root.bits.bytes
    publicHeader += segment.document.bits.bytes
    publicHeader += segment.generation.bits.bytes
    publicHeader += segment.client.bits.bytes
    publicHeader.append(little: segment.first)
    var index: [UInt8] = []
    index.append(varint: segment.parts.count)
    var body: [UInt8] = []
    body.reserveCapacity(segment.parts.reduce(0) { $0 + $1.bytes.count })
    for part in segment.parts {
      guard !part.bytes.isEmpty, ContentHash(of: part.bytes) == part.hash else {
        throw CodecError(.badChecksum, "change set in a segment")
      }
      index += part.hash.bytes
      index.append(varint: part.bytes.count)
      body += part.bytes
    }
    return try Envelope(
      type: .segment, publicHeader: publicHeader, privateHeader: index, body: body,
      compression: .stored
    ).encoded(limits: limits)
  }

  /// Decodes a file. Checks the hash of each change set in it, but not the content.
  ///
  /// Throws ``CodecError``.
  package static func decode(
    _ bytes: [UInt8], limits: CodecLimits = .default
  ) throws -> Segment {
    try bytes.withUnsafeBytes { try decode($0, limits: limits) }
  }

  private static func decode(
    _ bytes: UnsafeRawBufferPointer, limits: CodecLimits
  ) throws -> Segment {
    let parts = try Envelope.parts(of: bytes, expecting: .segment, limits: limits)
    let envelope = parts.envelope
    guard envelope.compression == .stored else {
      throw CodecError(.malformed, "a segment's body is compressed")
    }
    var segment = try envelope.publicHeader.withUnsafeBytes { bytes in
      var reader = WireReader(bytes, name: "public header")
      let segment = Segment(
        root: RootIdentifier(bits: try reader.bits()),
        document: DocumentName(bits: try reader.bits()),
        generation: IntegrityKey(bits: try reader.bits()),
        client: ClientIdentifier(bits: try reader.bits()), first: try reader.word(), parts: [])
      try reader.expectEnd()
      return segment
    }
    let index = try envelope.privateHeader.withUnsafeBytes { bytes in
      var reader = WireReader(bytes, name: "index")
      let count = try reader.count("change sets", cap: min(greatestCount, bytes.count / 33))
      try check(first: segment.first, count: count)
      var index: [(hash: ContentHash, count: Int)] = []
      index.reserveCapacity(count)
      var left = parts.stored.count
      for _ in 0..<count {
        let hash = try reader.hash()
        let length = try reader.count("bytes of a change set", cap: left)
        guard length > 0 else { throw CodecError(.malformed, "index: an empty change set") }
        index.append((hash, length))
        left -= length
      }
      try reader.expectEnd()
      guard left == 0 else { throw CodecError(.wrongCount, "index: bytes left over") }
      return index
    }
    segment.parts.reserveCapacity(index.count)
    var offset = 0
    for (hash, count) in index {
      let part = Array(parts.stored[offset..<offset + count])
      guard ContentHash(of: part) == hash else {
        throw CodecError(.badChecksum, "change set in a segment", at: offset)
      }
      segment.parts.append(Segment.Part(hash: hash, bytes: part))
      offset += count
    }
    return segment
  }

  private static func check(first: UInt64, count: Int) throws {
    guard first >= 1, first <= UInt64(Int64.max) - UInt64(greatestCount) else {
      throw CodecError(.malformed, "first number of a segment")
    }
    guard count >= 1 else { throw CodecError(.malformed, "an empty segment") }
    guard count <= greatestCount else {
      throw CodecError(.lengthOverCap, "\(count) change sets; at most \(greatestCount)")
    }
  }
}
