import CZlib

/// A stream that compresses or decompresses a long body part by part, in constant memory.
package final class ZlibStream {
  /// Whether the stream compresses or decompresses.
  package enum Direction: Sendable {
    /// Compresses.
    case deflate
    /// Decompresses to at most `limit` bytes.
    case inflate(limit: Int)
  }

  private static let chunkByteCount = 256 << 10

  private let direction: Direction
  // zlib holds a pointer to the structure, so it must not move.
  private let stream = UnsafeMutablePointer<z_stream>.allocate(capacity: 1)
  private var output = [UInt8](repeating: 0, count: chunkByteCount)
  private var produced = 0

  /// Whether the stream has reached the end of the compressed bytes.
  package private(set) var isAtEnd = false

  /// Begins a stream. Throws ``CodecError``.
  package init(_ direction: Direction) throws {
    self.direction = direction
    stream.initialize(to: z_stream())
    let status =
      switch direction {
      case .deflate: czlib_raw_deflate_init(stream, 3, Z_DEFAULT_STRATEGY)
      case .inflate: czlib_raw_inflate_init(stream)
      }
    guard status == Z_OK else {
      throw CodecError(.badCompression, "zlib could not start")
    }
  }

  deinit {
    switch direction {
    case .deflate: deflateEnd(stream)
    case .inflate: inflateEnd(stream)
    }
    stream.deallocate()
  }

  /// Processes the next part, less than 4 GiB, and passes the output to `emit`.
  ///
  /// When compressing, `isLast` ends the stream. Throws ``CodecError`` if the bytes are not a
  /// compressed stream, continue after its end or exceed the limit, and rethrows the errors of
  /// `emit`.
  package func push(
    _ bytes: [UInt8], isLast: Bool, emit: (ArraySlice<UInt8>) throws -> Void
  ) throws {
    guard !isAtEnd else {
      if bytes.isEmpty { return }
      throw CodecError(.badCompression, "bytes after the end of the body")
    }
    try bytes.withUnsafeBytes { input in
      // zlib refuses a missing buffer even if there is nothing to read.
      var spare: UInt8 = 0
      try withUnsafeMutablePointer(to: &spare) { spare in
        stream.pointee.next_in =
          input.bindMemory(to: UInt8.self).baseAddress.map { UnsafeMutablePointer(mutating: $0) }
          ?? spare
        stream.pointee.avail_in = UInt32(bytes.count)
        try run(isLast: isLast, emit: emit)
      }
    }
  }

  private func run(isLast: Bool, emit: (ArraySlice<UInt8>) throws -> Void) throws {
    while true {
      let status = output.withUnsafeMutableBufferPointer { buffer in
        stream.pointee.next_out = buffer.baseAddress
        stream.pointee.avail_out = UInt32(buffer.count)
        return switch direction {
        case .deflate: deflate(stream, isLast ? Z_FINISH : Z_NO_FLUSH)
        case .inflate: inflate(stream, Z_NO_FLUSH)
        }
      }
      let count = output.count - Int(stream.pointee.avail_out)
      produced += count
      if case .inflate(let limit) = direction, produced > limit {
        throw CodecError(.badCompression, "body of more than \(limit) bytes")
      }
      if count > 0 { try emit(output[..<count]) }
      switch status {
      case Z_STREAM_END:
        isAtEnd = true
        guard stream.pointee.avail_in == 0 else {
          throw CodecError(.badCompression, "bytes after the end of the body")
        }
        return
      case Z_OK where count > 0 || stream.pointee.avail_in > 0: continue
      case Z_OK, Z_BUF_ERROR: return
      default: throw CodecError(.badCompression, "zlib status \(status)")
      }
    }
  }
}
