import Crypto

extension Envelope {
  /// Encodes the envelope as the bytes of its file.
  ///
  /// The same parts give the same bytes with the same compression library. Throws ``CodecError`` if
  /// a part exceeds the limits that ``decode(_:expecting:limits:)`` checks.
  package func encoded(limits: CodecLimits = .default) throws -> [UInt8] {
    try checkCaps(limits)
    let deflated =
      compression == .deflate ? try body.withUnsafeBytes(Deflate.deflateIfSmaller) : nil
    let stored = deflated ?? body
    let extra = try encodedFields()
    guard extra.count <= limits.publicBytes else {
      throw CodecError(.lengthOverCap, "extension fields of \(extra.count) bytes")
    }

    var bytes: [UInt8] = []
    bytes.reserveCapacity(
      Layout.fixedBytes + extra.count + publicHeader.count + privateHeader.count + stored.count
        + signature.count + Layout.hashBytes + Layout.signatureLengthBytes)
    bytes += Layout.magic
    bytes.append(little: Layout.version)
    bytes.append(type.rawValue)
    bytes.append(0)  // suite
    bytes.append(little: deflated == nil ? UInt32(0) : Layout.compressedFlag)
    bytes.append(little: UInt32(0))  // key epoch
    bytes.append(little: UInt32(0))  // chunk size
    bytes += [UInt8](repeating: 0, count: 32)  // salt, signer
    bytes.append(little: UInt32(extra.count))
    bytes.append(little: UInt32(publicHeader.count))
    bytes.append(little: UInt64(privateHeader.count))
    bytes.append(little: UInt64(stored.count))
    bytes.append(little: UInt64(body.count))
    bytes += extra
    bytes += publicHeader
    bytes += privateHeader
    bytes += stored
    bytes += SHA256.hash(data: bytes)
    bytes += signature
    bytes.append(little: UInt32(signature.count))
    guard bytes.count <= limits.fileBytes else {
      throw CodecError(.lengthOverCap, "file of \(bytes.count) bytes")
    }
    return bytes
  }

  /// Decodes the bytes of a file.
  ///
  /// Uses no content before it has checked the hash, and checks every length before it takes
  /// memory. If `type` is given, it refuses files of other types. Throws ``CodecError``.
  package static func decode(
    _ bytes: [UInt8], expecting type: FileType? = nil, limits: CodecLimits = .default
  ) throws -> Envelope {
    try bytes.withUnsafeBytes { try decode($0, expecting: type, limits: limits) }
  }

  /// Decodes bytes in a buffer of the caller as ``decode(_:expecting:limits:)`` does for an array.
  package static func decode(
    _ bytes: UnsafeRawBufferPointer, expecting type: FileType? = nil,
    limits: CodecLimits = .default
  ) throws -> Envelope {
    let parts = try parts(of: bytes, expecting: type, limits: limits)
    var envelope = parts.envelope
    if envelope.compression == .deflate {
      envelope.body = try Deflate.inflate(parts.stored, count: parts.bodyCount, what: "body")
    } else {
      envelope.body = Array(parts.stored)
    }
    return envelope
  }

  /// The parts of a file. The body is not copied.
  struct Parts {
    /// Everything but the body.
    var envelope: Envelope
    /// The body as it is in the file, within the buffer that was decoded.
    var stored: UnsafeRawBufferPointer
    /// The length of the body, decompressed.
    var bodyCount: Int
  }

  /// Checks a file as ``decode(_:expecting:limits:)`` does, and takes no memory for its body.
  static func parts(
    of bytes: UnsafeRawBufferPointer, expecting type: FileType?, limits: CodecLimits
  ) throws -> Parts {
    let head = try Head(bytes, limits: limits)
    let found = try head.checkMeaning(of: bytes, expecting: type)
    var envelope = Envelope(
      type: found, publicHeader: Array(bytes[head.publicRange]),
      privateHeader: Array(bytes[head.privateRange]), body: [],
      compression: head.isCompressed ? .deflate : .stored)
    envelope.fields = try decodeFields(
      UnsafeRawBufferPointer(rebasing: bytes[head.fieldsRange]))
    envelope.signature = Array(bytes[head.signatureRange])
    return Parts(
      envelope: envelope, stored: UnsafeRawBufferPointer(rebasing: bytes[head.bodyRange]),
      bodyCount: head.bodyCount)
  }

  private func checkCaps(_ limits: CodecLimits) throws {
    for (name, count, cap) in [
      ("public header", publicHeader.count, limits.publicBytes),
      ("private header", privateHeader.count, limits.privateBytes),
      ("body", body.count, limits.bodyBytes),
      ("signature", signature.count, Layout.greatestSignature),
    ] where count > cap {
      throw CodecError(.lengthOverCap, "\(name) of \(count) bytes; at most \(cap)")
    }
  }

  private func encodedFields() throws -> [UInt8] {
    var bytes: [UInt8] = []
    var previous: UInt16?
    for field in fields {
      guard previous.map({ $0 < field.tag }) ?? true, field.content.count <= UInt16.max else {
        throw CodecError(.malformed, "extension field \(field.tag)")
      }
      bytes.append(little: field.tag)
      bytes.append(little: UInt16(field.content.count))
      bytes += field.content
      previous = field.tag
    }
    return bytes
  }

  private static func decodeFields(_ bytes: UnsafeRawBufferPointer) throws -> [Field] {
    var fields: [Field] = []
    var offset = 0
    while offset < bytes.count {
      guard bytes.count - offset >= 4 else {
        throw CodecError(.malformed, "extension fields", at: offset)
      }
      let tag = bytes.little(at: offset, as: UInt16.self)
      let count = Int(bytes.little(at: offset + 2, as: UInt16.self))
      guard bytes.count - offset - 4 >= count, fields.last.map({ $0.tag < tag }) ?? true else {
        throw CodecError(.malformed, "extension fields", at: offset)
      }
      guard tag < Field.firstCriticalTag else {
        throw CodecError(.unknownCriticalField, "extension field \(tag)", at: offset)
      }
      fields.append(Field(tag: tag, content: Array(bytes[offset + 4..<offset + 4 + count])))
      offset += 4 + count
    }
    return fields
  }
}

/// The fixed part of a file. Its lengths fit one another, the caps and the length of the file.
private struct Head {
  let version: UInt16
  let flags: UInt32
  let fieldsRange: Range<Int>
  let publicRange: Range<Int>
  let privateRange: Range<Int>
  let bodyRange: Range<Int>
  let signatureRange: Range<Int>
  let bodyCount: Int

  var isCompressed: Bool { flags & Envelope.Layout.compressedFlag != 0 }

  init(_ bytes: UnsafeRawBufferPointer, limits: CodecLimits) throws {
    typealias Layout = Envelope.Layout
    guard bytes.prefix(8).elementsEqual(Layout.magic.prefix(bytes.count)) else {
      throw CodecError(.badMagic, "magic", at: 0)
    }
    let least = Layout.fixedBytes + Layout.hashBytes + Layout.signatureLengthBytes
    guard bytes.count >= least else { throw CodecError(.truncated, "envelope", at: bytes.count) }
    guard bytes.count <= limits.fileBytes else {
      throw CodecError(.lengthOverCap, "file of \(bytes.count) bytes; at most \(limits.fileBytes)")
    }
    version = bytes.little(at: 8, as: UInt16.self)
    guard version == Layout.version else {
      // The files of all versions end in the same way, so that the hash tells a damaged version
      // number from a newer version.
      try Self.checkHash(bytes, signature: try Self.trailingSignature(bytes))
      throw CodecError(.unsupportedVersion, "format version \(version)", at: 8)
    }
    flags = bytes.little(at: 12, as: UInt32.self)

    var end = Layout.fixedBytes
    func next(_ name: String, _ count: UInt64, cap: Int, at offset: Int) throws -> Range<Int> {
      guard count <= UInt64(cap) else {
        throw CodecError(.lengthOverCap, "\(name) of \(count) bytes; at most \(cap)", at: offset)
      }
      let range = end..<end + Int(count)
      end = range.upperBound
      return range
    }
    fieldsRange = try next(
      "extension fields", UInt64(bytes.little(at: 56, as: UInt32.self)), cap: limits.publicBytes,
      at: 56)
    publicRange = try next(
      "public header", UInt64(bytes.little(at: 60, as: UInt32.self)), cap: limits.publicBytes,
      at: 60)
    privateRange = try next(
      "private header", bytes.little(at: 64, as: UInt64.self), cap: limits.privateBytes, at: 64)
    bodyRange = try next(
      "stored body", bytes.little(at: 72, as: UInt64.self), cap: limits.fileBytes, at: 72)
    let bodyCount = bytes.little(at: 80, as: UInt64.self)
    guard bodyCount <= UInt64(limits.bodyBytes) else {
      throw CodecError(
        .lengthOverCap, "body of \(bodyCount) bytes; at most \(limits.bodyBytes)", at: 80)
    }
    self.bodyCount = Int(bodyCount)
    guard bytes.count - end >= Layout.hashBytes + Layout.signatureLengthBytes else {
      throw CodecError(.truncated, "envelope", at: bytes.count)
    }
    let signature = try Self.trailingSignature(bytes)
    guard end + Layout.hashBytes == signature.lowerBound else {
      // The lengths and the end disagree: there are too few bytes or too many.
      let expected = end + Layout.hashBytes + Layout.signatureLengthBytes
      throw bytes.count > expected
        ? CodecError(.malformed, "bytes after the end of the envelope", at: expected)
        : CodecError(.badChecksum, "length of the signature", at: bytes.count - 4)
    }
    signatureRange = signature
    try Self.checkHash(bytes, signature: signature)
  }

  /// Checks the rules for the fields. The caller has checked the hash, so that damage is not
  /// reported as a broken rule.
  func checkMeaning(
    of bytes: UnsafeRawBufferPointer, expecting type: Envelope.FileType?
  ) throws -> Envelope.FileType {
    typealias Layout = Envelope.Layout
    let unknown = flags & Layout.criticalFlags & ~Layout.knownCriticalFlags
    guard unknown == 0 else {
      throw CodecError(
        .unknownCriticalField, "critical flags 0x\(String(unknown, radix: 16))", at: 12)
    }
    guard bytes[11] == 0 else {
      throw CodecError(.unknownCriticalField, "suite \(bytes[11])", at: 11)
    }
    guard let found = Envelope.FileType(rawValue: bytes[10]), type == nil || found == type else {
      throw CodecError(
        .wrongType, "file type \(bytes[10])" + (type.map { ", not \($0.rawValue)" } ?? ""), at: 10)
    }
    // Epoch, chunk size, salt and signer mean something only with a suite.
    guard bytes[16..<56].allSatisfy({ $0 == 0 }) else {
      throw CodecError(.malformed, "reserved fields that are not zero", at: 16)
    }
    if isCompressed {
      guard bodyCount <= (bodyRange.count + 1) * Layout.greatestRatio else {
        throw CodecError(.badCompression, "announced length of the body", at: 80)
      }
    } else {
      guard bodyCount == bodyRange.count else {
        throw CodecError(.wrongCount, "length of the stored body", at: 80)
      }
    }
    return found
  }

  /// Returns where the signature is, by the length in the last four bytes.
  private static func trailingSignature(_ bytes: UnsafeRawBufferPointer) throws -> Range<Int> {
    let end = bytes.count - Envelope.Layout.signatureLengthBytes
    let count = Int(bytes.little(at: end, as: UInt32.self))
    let room = end - Envelope.Layout.hashBytes - Envelope.Layout.fixedBytes
    guard count <= min(room, Envelope.Layout.greatestSignature) else {
      throw CodecError(.badChecksum, "length of the signature", at: end)
    }
    return end - count..<end
  }

  private static func checkHash(_ bytes: UnsafeRawBufferPointer, signature: Range<Int>) throws {
    let start = signature.lowerBound - Envelope.Layout.hashBytes
    let digest = SHA256.hash(data: UnsafeRawBufferPointer(rebasing: bytes[..<start]))
    guard digest.elementsEqual(bytes[start..<signature.lowerBound]) else {
      throw CodecError(.badChecksum, "SHA-256", at: start)
    }
  }
}
