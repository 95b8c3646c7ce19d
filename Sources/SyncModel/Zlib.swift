import CZlib

/// Compression with zlib, in one call each.
enum Zlib {
  /// What of deflate's effort pays depends on what is compressed.
  struct Effort {
    var level: Int32
    var strategy: Int32

    /// Small files and structure.
    static let thorough = Effort(level: 6, strategy: Z_DEFAULT_STRATEGY)
    /// Long text.
    static let text = Effort(level: 2, strategy: Z_DEFAULT_STRATEGY)
    /// Long sequences of numbers.
    static let fast = Effort(level: 1, strategy: Z_DEFAULT_STRATEGY)
    /// Bytes that repeat in no longer pattern.
    static let symbols = Effort(level: 1, strategy: Z_HUFFMAN_ONLY)
  }

  /// Compresses `bytes`; `nil` if that would not make them smaller.
  static func deflateIfSmaller(_ bytes: UnsafeRawBufferPointer) throws -> [UInt8]? {
    try deflateIfSmaller(bytes, effort: .thorough)
  }

  /// Compresses `bytes`; `nil` if that would not make them smaller.
  static func deflateIfSmaller(
    _ bytes: UnsafeRawBufferPointer, effort: Effort
  ) throws -> [UInt8]? {
    guard bytes.count > 16, bytes.count < Int(UInt32.max),
      let input = bytes.bindMemory(to: UInt8.self).baseAddress
    else { return nil }
    var stream = z_stream()
    guard czlib_raw_deflate_init(&stream, effort.level, effort.strategy) == Z_OK else {
      throw CodecError(.badCompression, "zlib could not begin to compress")
    }
    defer { deflateEnd(&stream) }
    var finished = false
    let output = [UInt8](unsafeUninitializedCapacity: bytes.count - 1) { buffer, count in
      stream.next_in = UnsafeMutablePointer(mutating: input)
      stream.avail_in = UInt32(bytes.count)
      stream.next_out = buffer.baseAddress
      stream.avail_out = UInt32(buffer.count)
      // With no room left it stops short of the end: it did not pay.
      finished = deflate(&stream, Z_FINISH) == Z_STREAM_END
      count = finished ? Int(stream.total_out) : 0
    }
    return finished ? output : nil
  }

  /// Decompresses exactly `count` bytes, which the caller has checked
  /// against its caps.
  static func inflate(
    _ bytes: UnsafeRawBufferPointer, count: Int, what: String
  ) throws -> [UInt8] {
    var failure: CodecError?
    let output = [UInt8](unsafeUninitializedCapacity: count) { buffer, initialized in
      do throws(CodecError) {
        try inflate(bytes, into: UnsafeMutableRawBufferPointer(rebasing: buffer.raw(count)), what)
        initialized = count
      } catch {
        failure = error
      }
    }
    if let failure { throw failure }
    return output
  }

  /// Decompresses into exactly `output`.
  static func inflate(
    _ bytes: UnsafeRawBufferPointer, into output: UnsafeMutableRawBufferPointer, _ what: String
  ) throws(CodecError) {
    var stream = z_stream()
    guard bytes.count < Int(UInt32.max), output.count < Int(UInt32.max),
      czlib_raw_inflate_init(&stream) == Z_OK
    else {
      throw CodecError(.badCompression, what)
    }
    defer { inflateEnd(&stream) }
    // zlib refuses a missing output buffer even where nothing is written.
    var spare: UInt8 = 0
    let status = withUnsafeMutablePointer(to: &spare) { spare in
      stream.next_in = UnsafeMutablePointer(
        mutating: bytes.bindMemory(to: UInt8.self).baseAddress)
      stream.avail_in = UInt32(bytes.count)
      stream.next_out = output.bindMemory(to: UInt8.self).baseAddress ?? spare
      stream.avail_out = UInt32(output.count)
      return CZlib.inflate(&stream, Z_FINISH)
    }
    guard status == Z_STREAM_END, stream.avail_in == 0, stream.avail_out == 0 else {
      throw CodecError(.badCompression, what, at: Int(stream.total_in))
    }
  }
}

extension UnsafeMutableBufferPointer<UInt8> {
  fileprivate func raw(_ count: Int) -> Slice<UnsafeMutableRawBufferPointer> {
    UnsafeMutableRawBufferPointer(self)[..<count]
  }
}
