import Crypto
import SyncModel

/// The outer form of a file of this module that is not sealed: the envelope of suite 0 with nothing
/// but a body and a signature.
struct OuterForm: Hashable, Sendable {
  /// The types of files that only encrypted applications have. They go on from
  /// `Envelope.FileType`.
  enum FileType: UInt8, Sendable {
    /// A signed statement about who takes part.
    case statement = 12
    /// A guest's request.
    case request = 13
  }

  var type: FileType
  var body: [UInt8]
  /// The signature over the hash; empty in an unsigned file.
  var signature: [UInt8]

  private static let magic: [UInt8] = [0x89, 0x44, 0x53, 0x59, 0x4E, 0x43, 0x0D, 0x0A]
  private static let hashByteCount = 32
  private static let greatestSignature = 64

  init(type: FileType, body: [UInt8], signature: [UInt8]) {
    self.type = type
    self.body = body
    self.signature = signature
  }

  /// The bytes before the hash.
  private var hashedBytes: [UInt8] {
    var bytes = Self.magic
    bytes.append(little: UInt16(1))
    bytes.append(type.rawValue)
    bytes += [UInt8](repeating: 0, count: 61)  // suite to length of the private header
    bytes.append(little: UInt64(body.count))
    bytes.append(little: UInt64(body.count))
    return bytes + body
  }

  /// The hash at the end, by which names and other files name this one.
  var hash: ContentHash { ContentHash(of: hashedBytes) }

  func encoded() -> [UInt8] {
    var bytes = hashedBytes
    bytes += ContentHash(of: bytes).bytes
    bytes += signature
    bytes.append(little: UInt32(signature.count))
    return bytes
  }

  /// Decodes a file, and refuses every file that ``encoded()`` does not give.
  init(decoding bytes: [UInt8], expecting type: FileType, greatestBody: Int) throws {
    let frame = 88 + Self.hashByteCount + 4
    guard bytes.count >= frame else { throw CodecError(.truncated, "envelope", at: bytes.count) }
    guard bytes.count <= frame + greatestBody + Self.greatestSignature else {
      throw CodecError(.lengthOverCap, "file of \(bytes.count) bytes")
    }
    var reader = CanonicalReader(bytes, name: "envelope")
    guard try reader.take(8) == Self.magic else { throw CodecError(.badMagic, "magic", at: 0) }
    let version = try reader.number(UInt16.self)
    let found = try reader.byte()
    guard version == 1 else {
      throw CodecError(.unsupportedVersion, "format version \(version)", at: 8)
    }
    guard found == type.rawValue else {
      throw CodecError(.wrongType, "file type \(found), not \(type.rawValue)", at: 10)
    }
    guard try reader.take(61).allSatisfy({ $0 == 0 }) else {
      throw CodecError(.malformed, "reserved fields that are not zero", at: 11)
    }
    let count = try reader.number(UInt64.self)
    guard try reader.number(UInt64.self) == count, count <= UInt64(greatestBody) else {
      throw CodecError(.wrongCount, "length of the body", at: 72)
    }
    self.type = type
    body = try reader.take(Int(count))
    let hash = try reader.hash()
    let signatureCount = reader.remaining - 4
    guard signatureCount == 0 || signatureCount == Self.greatestSignature else {
      throw CodecError(.wrongCount, "length of the signature", at: reader.offset)
    }
    signature = try reader.take(signatureCount)
    guard try reader.number(UInt32.self) == UInt32(signatureCount) else {
      throw CodecError(.wrongCount, "length of the signature", at: bytes.count - 4)
    }
    guard hash == self.hash else { throw CodecError(.badChecksum, "SHA-256") }
  }
}
