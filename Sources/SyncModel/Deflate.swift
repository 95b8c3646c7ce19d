import CDeflate

/// Compression of whole buffers in the deflate format (RFC 1951) by libdeflate, which takes half as
/// long as zlib.
package enum Deflate {
  /// The level of compression. Which one pays depends on the data.
  struct Effort {
    var level: Int32

    /// For small files and structure.
    static let thorough = Effort(level: 6)
    /// For long text, long sequences of numbers, and bytes that repeat without longer patterns.
    static let fast = Effort(level: 1)
  }

  /// Compresses `bytes`; returns `nil` if they would not become smaller.
  package static func deflateIfSmaller(_ bytes: UnsafeRawBufferPointer) throws -> [UInt8]? {
    try deflateIfSmaller(bytes, effort: .thorough)
  }

  /// Compresses `bytes`; returns `nil` if they would not become smaller.
  static func deflateIfSmaller(
    _ bytes: UnsafeRawBufferPointer, effort: Effort
  ) throws -> [UInt8]? {
    guard bytes.count > 16, let input = bytes.baseAddress else { return nil }
    guard let compressor = libdeflate_alloc_compressor(effort.level) else {
      throw CodecError(.badCompression, "not enough memory to compress")
    }
    defer { libdeflate_free_compressor(compressor) }
    let output = [UInt8](unsafeUninitializedCapacity: bytes.count - 1) { buffer, count in
      // The result is 0 if the output is full: compression did not pay.
      count = libdeflate_deflate_compress(
        compressor, input, bytes.count, buffer.baseAddress, buffer.count)
    }
    return output.isEmpty ? nil : output
  }

  /// Decompresses to exactly `count` bytes. The caller has checked `count` against its caps.
  package static func inflate(
    _ bytes: UnsafeRawBufferPointer, count: Int, what: String
  ) throws -> [UInt8] {
    var failure: CodecError?
    let output = [UInt8](unsafeUninitializedCapacity: count) { buffer, initialized in
      do throws(CodecError) {
        try inflate(
          bytes,
          into: UnsafeMutableRawBufferPointer(
            rebasing: UnsafeMutableRawBufferPointer(buffer)[..<count]), what)
        initialized = count
      } catch {
        failure = error
      }
    }
    if let failure { throw failure }
    return output
  }

  /// Decompresses to exactly the length of `output`.
  static func inflate(
    _ bytes: UnsafeRawBufferPointer, into output: UnsafeMutableRawBufferPointer, _ what: String
  ) throws(CodecError) {
    guard let decompressor = libdeflate_alloc_decompressor() else {
      throw CodecError(.badCompression, what)
    }
    defer { libdeflate_free_decompressor(decompressor) }
    var taken = 0
    var given = 0
    // The library needs addresses even if there is nothing to read or write.
    var spare: UInt8 = 0
    let status = withUnsafeMutableBytes(of: &spare) { spare in
      libdeflate_deflate_decompress_ex(
        decompressor, bytes.baseAddress ?? UnsafeRawPointer(spare.baseAddress), bytes.count,
        output.baseAddress ?? spare.baseAddress, output.count, &taken, &given)
    }
    guard status == LIBDEFLATE_SUCCESS, taken == bytes.count, given == output.count else {
      throw CodecError(.badCompression, what)
    }
  }
}
