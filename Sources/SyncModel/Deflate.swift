import CDeflate

/// Compression of whole buffers in the deflate format (RFC 1951), in one call
/// each, by libdeflate: the same streams as zlib's in half the time.
enum Deflate {
  /// How hard deflate tries. The effort that pays depends on the data.
  struct Effort {
    var level: Int32

    /// Small files and structure.
    static let thorough = Effort(level: 6)
    /// Long text, long sequences of numbers, and bytes that repeat without longer
    /// patterns.
    static let fast = Effort(level: 1)
  }

  /// Compresses `bytes`; `nil` if that would not make them smaller.
  static func deflateIfSmaller(_ bytes: UnsafeRawBufferPointer) throws -> [UInt8]? {
    try deflateIfSmaller(bytes, effort: .thorough)
  }

  /// Compresses `bytes`; `nil` if that would not make them smaller.
  static func deflateIfSmaller(
    _ bytes: UnsafeRawBufferPointer, effort: Effort
  ) throws -> [UInt8]? {
    guard bytes.count > 16, let input = bytes.baseAddress else { return nil }
    guard let compressor = libdeflate_alloc_compressor(effort.level) else {
      throw CodecError(.badCompression, "not enough memory to compress")
    }
    defer { libdeflate_free_compressor(compressor) }
    let output = [UInt8](unsafeUninitializedCapacity: bytes.count - 1) { buffer, count in
      // It returns 0 if the output is full: compression did not pay.
      count = libdeflate_deflate_compress(
        compressor, input, bytes.count, buffer.baseAddress, buffer.count)
    }
    return output.isEmpty ? nil : output
  }

  /// Decompresses exactly `count` bytes, which the caller has checked
  /// against its caps.
  static func inflate(
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

  /// Decompresses into exactly `output`.
  static func inflate(
    _ bytes: UnsafeRawBufferPointer, into output: UnsafeMutableRawBufferPointer, _ what: String
  ) throws(CodecError) {
    guard let decompressor = libdeflate_alloc_decompressor() else {
      throw CodecError(.badCompression, what)
    }
    defer { libdeflate_free_decompressor(decompressor) }
    var taken = 0
    var given = 0
    // The library wants addresses even where there is nothing to read or write.
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
