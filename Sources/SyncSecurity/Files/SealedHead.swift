import SyncModel

/// The beginning of a sealed file, before the stream: the envelope of suite 1.
struct SealedHead: Hashable, Sendable {
  static let magic: [UInt8] = [0x89, 0x44, 0x53, 0x59, 0x4E, 0x43, 0x0D, 0x0A]
  static let fixedByteCount = 88
  static let saltByteCount = 16
  static let suite: UInt8 = 1
  /// The plain bytes in a chunk.
  static let chunkByteCount = 64 << 10
  /// The bytes by which a chunk is longer in the file.
  static let tagByteCount = 16
  /// The hash, the signature and its length.
  static let endByteCount = 32 + VerifyingKey.signatureByteCount + 4

  /// The tags of the extension fields of suite 1. They are critical.
  enum Tag {
    /// The 16 bytes of the client.
    static let client: UInt16 = 0x8001
    /// The identifier of the epoch.
    static let epoch: UInt16 = 0x8002
  }

  var type: UInt8
  var epochNumber: UInt32
  var epochIdentifier: ContentHash
  var salt: [UInt8]
  var signer: DeviceIdentifier
  var seed: ClientSeed
  var publicHeader: [UInt8]
  /// The length of the stream in the file.
  var streamByteCount: Int
  /// Fields of later versions that may be ignored, with tag and length.
  var otherFields: [UInt8] = []

  private var fields: [UInt8] {
    var bytes = otherFields
    bytes.append(little: Tag.client)
    bytes.append(little: UInt16(16))
    bytes += seed.bits.bytes
    bytes.append(little: Tag.epoch)
    bytes.append(little: UInt16(32))
    return bytes + epochIdentifier.bytes
  }

  /// The bytes before the stream.
  func encoded() -> [UInt8] {
    let fields = fields
    var bytes = Self.magic
    bytes.append(little: UInt16(1))
    bytes.append(type)
    bytes.append(Self.suite)
    bytes.append(little: UInt32(0))  // flags
    bytes.append(little: epochNumber)
    bytes.append(little: UInt32(Self.chunkByteCount))
    bytes += salt
    bytes += signer.bits.bytes
    bytes.append(little: UInt32(fields.count))
    bytes.append(little: UInt32(publicHeader.count))
    bytes.append(little: UInt64(0))  // length of the private header
    bytes.append(little: UInt64(streamByteCount))
    bytes.append(little: UInt64(0))  // length of the body after decompression
    return bytes + fields + publicHeader
  }

  // MARK: The stream

  /// Returns the length in the file of a stream of `count` plain bytes.
  static func streamByteCount(plain count: Int) -> Int {
    count + (count + chunkByteCount - 1) / chunkByteCount * tagByteCount
  }

  /// Returns the plain length of a stream of `count` bytes in the file; `nil` if no writer makes
  /// such a stream.
  static func plainByteCount(stream count: Int) -> Int? {
    let full = chunkByteCount + tagByteCount
    let chunks = (count + full - 1) / full
    let plain = count - chunks * tagByteCount
    guard plain >= Padme.least, Padme.padded(plain) == plain,
      streamByteCount(plain: plain) == count
    else { return nil }
    return plain
  }

  /// The nonce of a chunk (STREAM): its number in eleven bytes, most significant first, then 1 for
  /// the last chunk and 0 for others.
  static func nonce(chunk: Int, isLast: Bool) -> [UInt8] {
    var bytes: [UInt8] = [0, 0, 0]
    for shift in stride(from: 56, through: 0, by: -8) {
      bytes.append(UInt8(truncatingIfNeeded: UInt64(chunk) >> UInt64(shift)))
    }
    return bytes + [isLast ? 1 : 0]
  }
}
