/// An ``Envelope`` without its body, for bodies that are too long for memory.
///
/// The file has the same bytes as with ``Envelope``. Its writer writes ``encodedHead()``, the
/// stored body and ``trailer(for:)``.
package struct StreamedEnvelope: Hashable, Sendable {
  /// The type of the file.
  package var type: Envelope.FileType
  /// The header that anyone may read.
  package var publicHeader: [UInt8]
  /// The header that only readers of the document may read.
  package var privateHeader: [UInt8]
  /// Whether the body is compressed in the file.
  package var isCompressed: Bool
  /// The length of the body in the file, in bytes.
  package var storedByteCount: Int
  /// The length of the body, decompressed.
  package var bodyByteCount: Int

  /// The length of the extension fields in the file that was read.
  private var fieldsByteCount = 0

  /// The length of the part that every file begins with.
  package static let fixedByteCount = Envelope.Layout.fixedBytes
  /// The length of the end of an unsigned file.
  package static let trailerByteCount =
    Envelope.Layout.hashBytes + Envelope.Layout.signatureLengthBytes

  /// Creates an envelope from its parts.
  package init(
    type: Envelope.FileType, publicHeader: [UInt8] = [], privateHeader: [UInt8] = [],
    isCompressed: Bool, storedByteCount: Int, bodyByteCount: Int
  ) {
    self.type = type
    self.publicHeader = publicHeader
    self.privateHeader = privateHeader
    self.isCompressed = isCompressed
    self.storedByteCount = storedByteCount
    self.bodyByteCount = bodyByteCount
  }

  /// The length of everything before the stored body.
  package var headByteCount: Int {
    Self.fixedByteCount + fieldsByteCount + publicHeader.count + privateHeader.count
  }

  /// Encodes everything before the stored body.
  package func encodedHead() -> [UInt8] {
    typealias Layout = Envelope.Layout
    var bytes = Layout.magic
    bytes.append(little: Layout.version)
    bytes.append(type.rawValue)
    bytes.append(0)  // suite
    bytes.append(little: isCompressed ? Layout.compressedFlag : UInt32(0))
    bytes += [UInt8](repeating: 0, count: 40)  // key epoch, chunk size, salt, signer
    bytes.append(little: UInt32(0))  // extension fields
    bytes.append(little: UInt32(publicHeader.count))
    bytes.append(little: UInt64(privateHeader.count))
    bytes.append(little: UInt64(storedByteCount))
    bytes.append(little: UInt64(bodyByteCount))
    return bytes + publicHeader + privateHeader
  }

  /// Returns the end of an unsigned file: the hash of all bytes before it and an empty signature.
  package static func trailer(for hash: ContentHash) -> [UInt8] {
    hash.bytes + [0, 0, 0, 0]
  }

  /// Returns the length of a file's head, by the fixed part.
  ///
  /// Checks what can be checked without the hash: magic, version and the caps on the headers.
  /// Throws ``CodecError``.
  package static func headByteCount(
    fixedPart bytes: [UInt8], limits: CodecLimits = .default
  ) throws -> Int {
    typealias Layout = Envelope.Layout
    guard bytes.prefix(8).elementsEqual(Layout.magic.prefix(bytes.count)) else {
      throw CodecError(.badMagic, "magic", at: 0)
    }
    guard bytes.count == fixedByteCount else {
      throw CodecError(.truncated, "envelope", at: bytes.count)
    }
    return try bytes.withUnsafeBytes { bytes in
      let version = bytes.little(at: 8, as: UInt16.self)
      guard version == Layout.version else {
        throw CodecError(.unsupportedVersion, "format version \(version)", at: 8)
      }
      let fields = Int(bytes.little(at: 56, as: UInt32.self))
      let publicCount = Int(bytes.little(at: 60, as: UInt32.self))
      let privateCount = bytes.little(at: 64, as: UInt64.self)
      guard fields <= limits.publicBytes, publicCount <= limits.publicBytes,
        privateCount <= UInt64(limits.privateBytes)
      else { throw CodecError(.lengthOverCap, "headers of the envelope", at: 56) }
      return fixedByteCount + fields + publicCount + Int(privateCount)
    }
  }

  /// Returns the least length of a file, by the fixed part, so that a caller recognizes a file that
  /// ends early before it computes the hash. Throws ``CodecError``.
  package static func leastByteCount(
    fixedPart bytes: [UInt8], limits: CodecLimits = .default
  ) throws -> Int {
    let head = try headByteCount(fixedPart: bytes, limits: limits)
    let stored = bytes.withUnsafeBytes { $0.little(at: 72, as: UInt64.self) }
    let (sum, overflows) = (head + trailerByteCount).addingReportingOverflow(
      Int(clamping: stored))
    return overflows ? .max : sum
  }

  /// Decodes the head of a file. The caller has checked the file's hash. Throws ``CodecError``.
  package init(
    head bytes: [UInt8], fileByteCount: Int, expecting type: Envelope.FileType
  ) throws {
    typealias Layout = Envelope.Layout
    let head = bytes
    self = try bytes.withUnsafeBytes { bytes in
      let flags = bytes.little(at: 12, as: UInt32.self)
      let unknown = flags & Layout.criticalFlags & ~Layout.knownCriticalFlags
      guard unknown == 0, bytes[11] == 0 else {
        throw CodecError(.unknownCriticalField, "critical flags or suite", at: 11)
      }
      guard bytes[10] == type.rawValue else {
        throw CodecError(.wrongType, "file type \(bytes[10]), not \(type.rawValue)", at: 10)
      }
      guard bytes[16..<56].allSatisfy({ $0 == 0 }) else {
        throw CodecError(.malformed, "reserved fields that are not zero", at: 16)
      }
      let fields = Int(bytes.little(at: 56, as: UInt32.self))
      try StreamedEnvelope.checkFields(
        bytes[StreamedEnvelope.fixedByteCount..<StreamedEnvelope.fixedByteCount + fields])
      let publicEnd =
        StreamedEnvelope.fixedByteCount + fields + Int(bytes.little(at: 60, as: UInt32.self))
      let stored = bytes.little(at: 72, as: UInt64.self)
      let body = bytes.little(at: 80, as: UInt64.self)
      guard stored <= UInt64(max(0, fileByteCount - head.count - StreamedEnvelope.trailerByteCount))
      else {
        throw CodecError(.truncated, "stored body", at: 72)
      }
      let isCompressed = flags & Layout.compressedFlag != 0
      guard
        isCompressed ? body <= (stored + 1) * UInt64(Layout.greatestRatio) : body == stored
      else { throw CodecError(.wrongCount, "length of the body", at: 80) }
      var envelope = StreamedEnvelope(
        type: type, publicHeader: Array(head[StreamedEnvelope.fixedByteCount + fields..<publicEnd]),
        privateHeader: Array(head[publicEnd...]), isCompressed: isCompressed,
        storedByteCount: Int(stored), bodyByteCount: Int(body))
      envelope.fieldsByteCount = fields
      return envelope
    }
  }

  private static func checkFields(_ bytes: Slice<UnsafeRawBufferPointer>) throws {
    var rest = bytes
    while !rest.isEmpty {
      guard rest.count >= 4 else { throw CodecError(.malformed, "extension fields") }
      let parts = Array(rest.prefix(4))
      let tag = UInt16(parts[0]) | UInt16(parts[1]) << 8
      let count = Int(parts[2]) | Int(parts[3]) << 8
      guard tag < Envelope.Field.firstCriticalTag else {
        throw CodecError(.unknownCriticalField, "extension field \(tag)")
      }
      guard rest.count >= 4 + count else { throw CodecError(.malformed, "extension fields") }
      rest = rest.dropFirst(4 + count)
    }
  }
}
