import SyncModel

/// The plain stream of a file as it is opened: lengths, private header, body, zeros.
struct OpeningStream {
  let plain: Int
  let limits: SealedLimits
  /// The number of plain bytes that were taken.
  var done = 0
  private var inner: InnerHead?
  private var head: [UInt8] = []
  private var opened: Opener.Opened?
  private var bodyLeft = 0

  init(plain: Int, limits: SealedLimits) {
    self.plain = plain
    self.limits = limits
  }

  mutating func take(
    _ part: [UInt8], begin: (Opener.Opened) throws -> Void,
    body: (ArraySlice<UInt8>) throws -> Void
  ) throws {
    done += part.count
    var rest = part[...]
    if opened == nil {
      if inner == nil {
        // The first chunk has at least 1 KiB.
        do {
          inner = try InnerHead(
            reading: Array(rest.prefix(InnerHead.byteCount)), plain: plain, limits: limits)
        } catch let error as CodecError {
          throw OpeningFailure(.content, error.what)
        }
        rest = rest.dropFirst(InnerHead.byteCount)
      }
      guard let inner else { return }
      let wanted = inner.privateByteCount - head.count
      head += rest.prefix(wanted)
      rest = rest.dropFirst(wanted)
      guard head.count == inner.privateByteCount else { return }
      let opened = Opener.Opened(
        privateHeader: head, isCompressed: inner.isCompressed,
        storedByteCount: inner.storedByteCount, bodyByteCount: inner.bodyByteCount)
      self.opened = opened
      bodyLeft = inner.storedByteCount
      try begin(opened)
    }
    let now = rest.prefix(bodyLeft)
    if !now.isEmpty { try body(now) }
    bodyLeft -= now.count
    guard rest.dropFirst(now.count).allSatisfy({ $0 == 0 }) else {
      throw OpeningFailure(.content, "padding")
    }
  }

  func finish() throws -> Opener.Opened {
    guard let opened, bodyLeft == 0 else { throw OpeningFailure(.content, "length of the body") }
    return opened
  }
}
