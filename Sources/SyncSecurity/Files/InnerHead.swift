import SyncModel

/// The beginning of the stream: what the envelope of an unsealed file says in the open.
struct InnerHead: Hashable, Sendable {
  static let byteCount = 28
  private static let compressedFlag: UInt32 = 1 << 16
  private static let greatestRatio: UInt64 = 1032

  var isCompressed: Bool
  var privateByteCount: Int
  var storedByteCount: Int
  var bodyByteCount: Int

  /// The plain length of the stream before padding; `nil` if it overflows.
  var plainByteCount: Int? {
    let (sum, overflows) = (Self.byteCount + privateByteCount)
      .addingReportingOverflow(storedByteCount)
    return overflows ? nil : sum
  }

  var bytes: [UInt8] {
    var bytes: [UInt8] = []
    bytes.append(little: isCompressed ? Self.compressedFlag : 0)
    bytes.append(little: UInt64(privateByteCount))
    bytes.append(little: UInt64(storedByteCount))
    bytes.append(little: UInt64(bodyByteCount))
    return bytes
  }

  init(isCompressed: Bool, privateByteCount: Int, storedByteCount: Int, bodyByteCount: Int) {
    self.isCompressed = isCompressed
    self.privateByteCount = privateByteCount
    self.storedByteCount = storedByteCount
    self.bodyByteCount = bodyByteCount
  }

  /// Reads the lengths, and checks that they are those of a stream of `plain` bytes.
  init(reading bytes: [UInt8], plain: Int, limits: SealedLimits) throws {
    var reader = CanonicalReader(bytes, name: "stream")
    let flags = try reader.number(UInt32.self)
    let header = try reader.number(UInt64.self)
    let stored = try reader.number(UInt64.self)
    let body = try reader.number(UInt64.self)
    guard flags == 0 || flags == Self.compressedFlag, header <= UInt64(limits.privateBytes),
      stored <= UInt64(plain), body <= UInt64(Int.max)
    else { throw CodecError(.malformed, "stream: lengths") }
    self.init(
      isCompressed: flags != 0, privateByteCount: Int(header), storedByteCount: Int(stored),
      bodyByteCount: Int(body))
    guard isCompressed ? body <= (stored + 1) * Self.greatestRatio : body == stored,
      plainByteCount.map(Padme.padded) == plain
    else { throw CodecError(.wrongCount, "stream: lengths") }
  }
}
