import GRDB
import SyncModel

/// The encoding of a block of row states.
///
/// A version byte, then entry after entry: the gap to the previous fingerprint's upper part as a
/// varint, two bytes of its lower part, a byte of flags, and the parts that the flags announce. A
/// zero stamp is written as 0. Any other stamp is the client's number plus 1, then the difference
/// to the time written before: in milliseconds if neither time has a count, as most have none. The
/// stamp ``RowState/silence`` is left out if it has its usual value: the stamp of the deletion for
/// a deleted row, else zero.
struct StampBlockCoding {
  private struct Flags {
    static let existence: UInt8 = 3
    static let isKept: UInt8 = 4
    static let hasLocalKey: UInt8 = 8
    static let hasCellStamp: UInt8 = 16
    static let hasExceptions: UInt8 = 32
    static let isUnstamped: UInt8 = 64
    static let hasSilence: UInt8 = 128
  }

  private static let version: UInt8 = 3
  /// The bits of a time that count within a millisecond.
  private static let count: UInt64 = 0xFFFF
  private(set) var bytes: [UInt8] = [version]
  private var previous: UInt64 = 0
  private var time: UInt64 = 0

  var byteCount: Int { bytes.count }

  init() { bytes.reserveCapacity(4_096) }

  mutating func append(_ entry: StampBlocks.Entry) {
    let state = entry.state
    let plainSilence = Self.plainSilence(state)
    put(varint: entry.fingerprint.high - previous)
    previous = entry.fingerprint.high
    let low = entry.fingerprint.low
    bytes.append(UInt8(truncatingIfNeeded: low >> 8))
    bytes.append(UInt8(truncatingIfNeeded: low))
    var flags = state.existence.rawValue
    if state.isKept { flags |= Flags.isKept }
    if state.localKey != nil { flags |= Flags.hasLocalKey }
    if state.cellStamp != state.existenceStamp { flags |= Flags.hasCellStamp }
    if !state.exceptions.isEmpty { flags |= Flags.hasExceptions }
    if state.existenceStamp == .zero { flags |= Flags.isUnstamped }
    if state.silence != plainSilence { flags |= Flags.hasSilence }
    bytes.append(flags)
    if let key = state.localKey { put(varint: Self.zigzag(key)) }
    if state.existenceStamp != .zero { put(state.existenceStamp) }
    if state.cellStamp != state.existenceStamp { put(state.cellStamp) }
    if state.silence != plainSilence { put(state.silence) }
    guard !state.exceptions.isEmpty else { return }
    put(varint: UInt64(state.exceptions.count))
    for cell in state.exceptions {
      put(varint: UInt64(cell.column))
      put(cell.stamp)
    }
  }

  private static func plainSilence(_ state: RowState) -> LocalStamp {
    state.existence == .deleted ? state.existenceStamp : .zero
  }

  private mutating func put(_ stamp: LocalStamp) {
    if stamp == .zero { return put(varint: 0) }
    put(varint: UInt64(stamp.client) + 1)
    // The lowest bit gives the unit of the difference.
    if (stamp.time | time) & Self.count == 0 {
      let difference = Int64(stamp.time >> 16) - Int64(time >> 16)
      put(varint: Self.zigzag(difference) << 1)
    } else {
      let difference = Self.zigzag(Int64(bitPattern: stamp.time &- time))
      put(varint: difference << 1 | 1)
      if difference >> 63 != 0 { bytes.append(1) } else { bytes.append(0) }
    }
    time = stamp.time
  }

  private mutating func put(varint value: UInt64) {
    var value = value
    while value >= 128 {
      bytes.append(UInt8(truncatingIfNeeded: value) | 128)
      value >>= 7
    }
    bytes.append(UInt8(value))
  }

  private static func zigzag(_ value: Int64) -> UInt64 {
    UInt64(bitPattern: value << 1 ^ value >> 63)
  }

  // MARK: - Decoding

  static func decode(_ content: UnsafeRawBufferPointer) throws -> [StampBlocks.Entry] {
    var reader = Reader(content: content, index: 1)
    guard content.first == version else { throw damage }
    var entries: [StampBlocks.Entry] = []
    entries.reserveCapacity(content.count / 14 + 1)
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
      let usualSilence = existence == .deleted ? existenceStamp : .zero
      let silence = flags & Flags.hasSilence != 0 ? try reader.stamp(&time) : usualSilence
      let exceptions = flags & Flags.hasExceptions != 0 ? try cells(&reader, &time) : []
      let state = RowState(
        existence: existence, existenceStamp: existenceStamp, cellStamp: cellStamp,
        exceptions: exceptions, silence: silence, isKept: flags & Flags.isKept != 0,
        localKey: localKey)
      entries.append((fingerprint, state))
    }
    return entries
  }

  private static func cells(_ reader: inout Reader, _ time: inout UInt64) throws -> [RowState.Cell]
  {
    let count = try reader.varint()
    guard count <= UInt64(reader.content.count) else { throw damage }
    var cells: [RowState.Cell] = []
    cells.reserveCapacity(Int(count))
    for _ in 0..<count {
      guard let column = Int32(exactly: try reader.varint()) else { throw damage }
      cells.append(RowState.Cell(column: column, stamp: try reader.stamp(&time)))
    }
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
