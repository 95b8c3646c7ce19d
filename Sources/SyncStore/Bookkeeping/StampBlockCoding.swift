import GRDB
import SyncModel

/// The encoding of a block of row states.
///
/// A version byte, then entry after entry: the gap to the previous fingerprint's upper part as a
/// varint, two bytes of its lower part, a byte of flags, and the parts that the flags announce. A
/// zero stamp is written as 0. Any other stamp is the client's number plus 1, then the difference
/// to the time written before: in milliseconds if neither time has a count, as most have none. The
/// stamp ``RowState/erasureStamp`` is left out if it has its usual value: the stamp of the deletion for
/// a deleted row, else zero.
struct StampBlockCoding {
  private struct Flags {
    static let existence: UInt8 = 3
    static let isKept: UInt8 = 4
    static let hasLocalKey: UInt8 = 8
    static let hasCellStamp: UInt8 = 16
    static let hasExceptions: UInt8 = 32
    static let isUnstamped: UInt8 = 64
    static let hasErasureStamp: UInt8 = 128
  }

  private static let version: UInt8 = 3
  /// The bits of a time that count within a millisecond.
  private static let count: UInt64 = 0xFFFF

  /// The bytes of the block, with room after them.
  private var buffer: [UInt8]
  private(set) var byteCount = 1
  private var previous: UInt64 = 0
  private var time: UInt64 = 0

  /// The bytes of the block.
  var bytes: [UInt8] { Array(buffer[..<byteCount]) }

  init() {
    buffer = Array(repeating: 0, count: 4_096 + Self.longestEntry)
    buffer[0] = Self.version
  }

  mutating func append(_ entry: StampBlocks.Entry) {
    makeRoom(for: entry)
    let gap = entry.fingerprint.high - previous
    let (index, time) = (byteCount, time)
    (byteCount, self.time) = buffer.withUnsafeMutableBytes { bytes in
      var writer = Writer(bytes: bytes, index: index, time: time)
      writer.put(entry, gap: gap)
      return (writer.index, writer.time)
    }
    previous = entry.fingerprint.high
  }

  /// The most bytes of an entry without exceptions, and more than one exception can have.
  private static let longestEntry = 96

  /// Makes room for the longest form of an entry, so that its bytes can be written without a check
  /// for each: blocks are written often, and byte by byte.
  private mutating func makeRoom(for entry: StampBlocks.Entry) {
    let room = (1 + entry.state.exceptions.count) * Self.longestEntry
    guard byteCount + room > buffer.count else { return }
    buffer.append(contentsOf: repeatElement(0, count: max(room, buffer.count)))
  }

  private static func plainErasureStamp(_ state: RowState) -> LocalStamp {
    state.existence == .deleted ? state.existenceStamp : .zero
  }

  private struct Writer {
    let bytes: UnsafeMutableRawBufferPointer
    var index: Int
    var time: UInt64

    @inline(__always)
    mutating func put(_ entry: StampBlocks.Entry, gap: UInt64) {
      let state = entry.state
      let hasCellStamp = state.cellStamp != state.existenceStamp
      let hasErasureStamp = state.erasureStamp != StampBlockCoding.plainErasureStamp(state)
      put(varint: gap)
      let low = entry.fingerprint.low
      put(UInt8(truncatingIfNeeded: low >> 8))
      put(UInt8(truncatingIfNeeded: low))
      var flags = state.existence.rawValue
      if state.isKept { flags |= Flags.isKept }
      if state.localKey != nil { flags |= Flags.hasLocalKey }
      if hasCellStamp { flags |= Flags.hasCellStamp }
      if !state.exceptions.isEmpty { flags |= Flags.hasExceptions }
      if state.existenceStamp == .zero { flags |= Flags.isUnstamped }
      if hasErasureStamp { flags |= Flags.hasErasureStamp }
      put(flags)
      if let key = state.localKey { put(varint: StampBlockCoding.zigzag(key)) }
      if state.existenceStamp != .zero { put(state.existenceStamp) }
      if hasCellStamp { put(state.cellStamp) }
      if hasErasureStamp { put(state.erasureStamp) }
      guard !state.exceptions.isEmpty else { return }
      put(varint: UInt64(state.exceptions.count))
      for cell in state.exceptions {
        put(varint: UInt64(cell.column))
        put(cell.stamp)
      }
    }

    private mutating func put(_ stamp: LocalStamp) {
      if stamp == .zero { return put(0 as UInt8) }
      put(varint: UInt64(stamp.client) + 1)
      // The lowest bit gives the unit of the difference.
      if (stamp.time | time) & StampBlockCoding.count == 0 {
        let difference = Int64(stamp.time >> 16) - Int64(time >> 16)
        put(varint: StampBlockCoding.zigzag(difference) << 1)
      } else {
        let difference = StampBlockCoding.zigzag(Int64(bitPattern: stamp.time &- time))
        put(varint: difference << 1 | 1)
        put(difference >> 63 != 0 ? 1 : 0 as UInt8)
      }
      time = stamp.time
    }

    @inline(__always)
    private mutating func put(varint value: UInt64) {
      var value = value
      while value >= 128 {
        put(UInt8(truncatingIfNeeded: value) | 128)
        value >>= 7
      }
      put(UInt8(truncatingIfNeeded: value))
    }

    @inline(__always)
    private mutating func put(_ byte: UInt8) {
      bytes[index] = byte
      index &+= 1
    }
  }

  private static func zigzag(_ value: Int64) -> UInt64 {
    UInt64(bitPattern: value << 1 ^ value >> 63)
  }

  // MARK: - Decoding

  /// Returns the entries of a block. A state with a stamp for a column from `columnCount` on is
  /// damaged.
  static func decode(
    _ content: UnsafeRawBufferPointer, columnCount: Int = .max
  ) throws -> [StampBlocks.Entry] {
    var reader = Reader(content: content, index: 1)
    guard content.first == version else { throw damage }
    var entries: [StampBlocks.Entry] = []
    entries.reserveCapacity(content.count / 11 + 1)
    var previous = RowFingerprint(high: 0, low: 0)
    var time: UInt64 = 0
    while reader.index < content.count {
      let (high, isTooLarge) = previous.high.addingReportingOverflow(try reader.varint())
      let fingerprint = RowFingerprint(high: high, low: try reader.word())
      // Out of order, the entries could not be written again.
      if isTooLarge || high > UInt64(Int64.max)
        || !entries.isEmpty && previous >= fingerprint
      {
        throw damage
      }
      previous = fingerprint
      let flags = try reader.byte()
      guard let existence = RowState.Existence(rawValue: flags & Flags.existence) else {
        throw damage
      }
      let localKey = flags & Flags.hasLocalKey != 0 ? unzigzag(try reader.varint()) : nil
      let existenceStamp = flags & Flags.isUnstamped == 0 ? try reader.stamp(&time) : .zero
      let cellStamp = flags & Flags.hasCellStamp != 0 ? try reader.stamp(&time) : existenceStamp
      let usualErasureStamp = existence == .deleted ? existenceStamp : .zero
      let erasureStamp =
        flags & Flags.hasErasureStamp != 0 ? try reader.stamp(&time) : usualErasureStamp
      let exceptions =
        flags & Flags.hasExceptions != 0 ? try cells(&reader, &time, columnCount) : []
      let state = RowState(
        existence: existence, existenceStamp: existenceStamp, cellStamp: cellStamp,
        exceptions: exceptions, erasureStamp: erasureStamp, isKept: flags & Flags.isKept != 0,
        localKey: localKey)
      entries.append(StampBlocks.Entry(fingerprint: fingerprint, state: state))
    }
    return entries
  }

  private static func cells(
    _ reader: inout Reader, _ time: inout UInt64, _ columnCount: Int
  ) throws -> [RowState.Cell] {
    let count = try reader.varint()
    guard count <= UInt64(reader.content.count) else { throw damage }
    // Most rows have one exception, and a literal is the fastest array.
    if count == 1 { return [try reader.cell(&time, columnCount)] }
    var cells: [RowState.Cell] = []
    cells.reserveCapacity(Int(count))
    for _ in 0..<count { cells.append(try reader.cell(&time, columnCount)) }
    return cells
  }

  private static func unzigzag(_ value: UInt64) -> Int64 {
    Int64(bitPattern: value >> 1) ^ -Int64(bitPattern: value & 1)
  }

  static var damage: DatabaseError {
    DatabaseError(resultCode: .SQLITE_CORRUPT, message: "docsync_stamps: a block is damaged")
  }

  private struct Reader {
    let content: UnsafeRawBufferPointer
    var index: Int

    @inline(__always)
    mutating func byte() throws -> UInt8 {
      guard index < content.count else { throw StampBlockCoding.damage }
      defer { index += 1 }
      return content[index]
    }

    @inline(__always)
    mutating func word() throws -> UInt16 {
      guard index + 2 <= content.count else { throw StampBlockCoding.damage }
      defer { index += 2 }
      return UInt16(bigEndian: content.loadUnaligned(fromByteOffset: index, as: UInt16.self))
    }

    @inline(__always)
    mutating func varint() throws -> UInt64 {
      // Most numbers have one byte.
      if index < content.count, content[index] < 128 {
        defer { index &+= 1 }
        return UInt64(content[index])
      }
      return try longVarint()
    }

    /// Reads a number of up to eight bytes at once: its last byte is the first one without the upper
    /// bit.
    private mutating func longVarint() throws -> UInt64 {
      guard index + 8 <= content.count else { return try varintBytewise() }
      let word = UInt64(
        littleEndian: content.loadUnaligned(fromByteOffset: index, as: UInt64.self))
      let ends = ~word & 0x8080_8080_8080_8080
      guard ends != 0 else { return try varintBytewise() }
      index &+= (ends.trailingZeroBitCount &+ 1) / 8
      // Keeps the bytes up to the last one, and closes the gaps between their seven bits each:
      // within pairs of bytes, then within fours, then between the halves.
      var value = word & (ends ^ (ends &- 1)) & 0x7F7F_7F7F_7F7F_7F7F
      value = value & 0x007F_007F_007F_007F | (value & 0x7F00_7F00_7F00_7F00) &>> 1
      value = value & 0x0000_3FFF_0000_3FFF | (value & 0x3FFF_0000_3FFF_0000) &>> 2
      return value & 0x0000_0000_0FFF_FFFF | (value & 0x0FFF_FFFF_0000_0000) &>> 4
    }

    private mutating func varintBytewise() throws -> UInt64 {
      var index = index
      var value: UInt64 = 0
      var shift: UInt64 = 0
      while index < content.count, shift < 64 {
        let byte = content[index]
        index &+= 1
        value |= UInt64(byte & 127) &<< shift
        if byte < 128 {
          self.index = index
          return value
        }
        shift &+= 7
      }
      throw StampBlockCoding.damage
    }

    mutating func cell(_ time: inout UInt64, _ columnCount: Int) throws -> RowState.Cell {
      guard let column = Int32(exactly: try varint()), column < columnCount else {
        throw StampBlockCoding.damage
      }
      return RowState.Cell(column: column, stamp: try stamp(&time))
    }

    @inline(__always)
    mutating func stamp(_ time: inout UInt64) throws -> LocalStamp {
      let client = try varint()
      guard client > 0 else { return .zero }
      let word = try varint()
      if word & 1 == 0 {
        let difference = StampBlockCoding.unzigzag(word >> 1)
        time &+= UInt64(bitPattern: difference) << 16
      } else {
        let difference = word >> 1 | (try byte() == 0 ? 0 : 1 << 63)
        time &+= UInt64(bitPattern: StampBlockCoding.unzigzag(difference))
      }
      guard let number = Int32(exactly: client - 1) else { throw StampBlockCoding.damage }
      return LocalStamp(time: time, client: number)
    }
  }
}
