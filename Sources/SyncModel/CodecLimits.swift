/// The caps that the codec checks before it takes memory.
package struct CodecLimits: Hashable, Sendable {
  /// The greatest length of a file, in bytes.
  package var fileBytes: Int
  /// The bytes of a public header, and of the extension fields.
  package var publicBytes: Int
  /// The bytes of a private header.
  package var privateBytes: Int
  /// The bytes of a body after decompression.
  package var bodyBytes: Int
  /// The bytes of memory that a decoded change set may take.
  package var memoryBytes: Int
  /// The number of rows, cells and exceptions that a change set of any length may have.
  package var leastValues = 1 << 20
  /// The number of further rows, cells and exceptions for each byte of its body.
  package var valuesPerByte = 16
  /// The tables of a change set.
  package var tables: Int
  /// The rows of a change set.
  package var rows: Int
  /// The columns of one table.
  package var columns: Int

  /// The caps of all files but those with ``small`` caps.
  package static let `default` = CodecLimits(
    fileBytes: 64 << 20, publicBytes: 64 << 10, privateBytes: 8 << 20, bodyBytes: 96 << 20,
    memoryBytes: 128 << 20, leastValues: 1 << 20, valuesPerByte: 16, tables: 2_000,
    rows: 100_000, columns: 2_000)

  /// The caps of change sets of ordinary size, several of which can be decoded
  /// at once. A larger one is decoded while no other is in memory.
  package static let moderate = {
    var limits = CodecLimits.default
    limits.fileBytes = 8 << 20
    limits.bodyBytes = 24 << 20
    limits.memoryBytes = 24 << 20
    return limits
  }()

  /// The caps of files whose body is JSON.
  package static let small = CodecLimits(
    fileBytes: 4 << 20, publicBytes: 64 << 10, privateBytes: 1 << 20, bodyBytes: 4 << 20,
    memoryBytes: 64 << 20, leastValues: 0, valuesPerByte: 0, tables: 0, rows: 0, columns: 0)

  /// Returns how many rows, cells and exceptions a body of `count` bytes may have.
  package func values(inBytes count: Int) -> Int { leastValues + valuesPerByte * count }
}
