import CZlib

/// zlib at level 6, in one piece: what the payloads of others are given before
/// they are compared.
enum ReferenceCompression {
  /// A call of zlib that failed.
  struct Failure: Error {
    var code: Int32
  }

  /// Compresses in one piece.
  static func compress(_ bytes: UnsafeRawBufferPointer, level: Int32 = 6) throws -> [UInt8] {
    var length = compressBound(UInt(bytes.count))
    let source = bytes.bindMemory(to: UInt8.self)
    let output = [UInt8](unsafeUninitializedCapacity: Int(length)) { target, count in
      let code = compress2(
        target.baseAddress, &length, source.baseAddress, UInt(source.count), level)
      count = code == Z_OK ? Int(length) : 0
    }
    guard !output.isEmpty else { throw Failure(code: Z_STREAM_ERROR) }
    return output
  }

  /// Inflates what ``compress(_:level:)`` made of `length` bytes.
  static func inflate(_ bytes: [UInt8], length: Int) throws -> [UInt8] {
    var inflated = UInt(length)
    let output = [UInt8](unsafeUninitializedCapacity: length) { target, count in
      let code = uncompress(target.baseAddress, &inflated, bytes, UInt(bytes.count))
      count = code == Z_OK ? Int(inflated) : 0
    }
    guard output.count == length else { throw Failure(code: Z_DATA_ERROR) }
    return output
  }
}
