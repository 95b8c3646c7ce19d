/// The caps that are checked before memory is taken.
public struct CodecLimits: Hashable, Sendable {
  /// The bytes of a file.
  public var fileBytes: Int
  /// The bytes of a public header, and of the extension fields.
  public var publicBytes: Int
  /// The bytes of a private header.
  public var privateBytes: Int
  /// The bytes of a body after decompression.
  public var bodyBytes: Int
  /// The bytes of memory that a decoded change set may take.
  public var memoryBytes: Int
  /// The tables of a change set.
  public var tables: Int
  /// The rows of a change set.
  public var rows: Int
  /// The columns of one table.
  public var columns: Int

  /// The caps of every file but the small ones.
  public static let `default` = CodecLimits(
    fileBytes: 64 << 20, publicBytes: 64 << 10, privateBytes: 8 << 20, bodyBytes: 256 << 20,
    memoryBytes: 512 << 20, tables: 10_000, rows: 1_000_000, columns: 32_767)

  /// The caps of files whose body is JSON.
  public static let small = CodecLimits(
    fileBytes: 4 << 20, publicBytes: 64 << 10, privateBytes: 1 << 20, bodyBytes: 16 << 20,
    memoryBytes: 64 << 20, tables: 0, rows: 0, columns: 0)
}
