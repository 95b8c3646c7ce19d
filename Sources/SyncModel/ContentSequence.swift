/// The encoding of a sequence of byte strings. The raw values are those of the
/// format.
enum ContentMode: UInt8 {
  /// The lengths, then all strings one after the other.
  case plain = 0
  /// Strings of one length, as byte planes.
  case fixed = 1
  /// Strings that begin as the preceding string does.
  case front = 2
  /// The distinct strings, and the index of each string among them.
  case dictionary = 3
}

/// The transforms of strings before the encoder writes them with a fixed width. The raw values are
/// those of the format.
struct ContentTransform: OptionSet {
  var rawValue: UInt8
  /// Replaces the text of a UUID in lower case with its 16 bytes.
  static let uuid = ContentTransform(rawValue: 1)
  /// Does the same for the identity of a row whose only key value is such a text.
  static let uuidIdentity = ContentTransform(rawValue: 2)
  /// Replaces the first eight bytes, a big-endian number, with their difference from those of the
  /// preceding string.
  static let ascending = ContentTransform(rawValue: 4)

  static let known: ContentTransform = [.uuid, .uuidIdentity, .ascending]
}

/// Byte strings at any places of one buffer. A span has the offset in the upper 32 bits and the
/// length in the lower 32.
struct ContentSpans {
  var bytes: UnsafeRawBufferPointer
  var spans: UnsafeBufferPointer<UInt64>

  var count: Int { spans.count }

  @inline(__always)
  func length(_ index: Int) -> Int { Int(spans[index] & 0xFFFF_FFFF) }

  @inline(__always)
  subscript(index: Int) -> UnsafeRawBufferPointer {
    let offset = Int(spans[index] >> 32)
    return UnsafeRawBufferPointer(rebasing: bytes[offset..<offset + length(index)])
  }

  /// The length of every string; `nil` if the lengths differ or there is no string.
  var commonLength: Int? {
    guard count > 0 else { return nil }
    let length = length(0)
    return spans.allSatisfy({ Int($0 & 0xFFFF_FFFF) == length }) ? length : nil
  }
}

extension LaneWriter {
  /// Writes byte strings without their number, which the reader knows.
  ///
  /// `sorted` means that neighbours are likely to begin alike.
  mutating func append(contents: ContentSpans, sorted: Bool, nested: Bool = false) {
    guard contents.count > 0 else { return }
    if !nested, let distinct = DistinctContents(contents) {
      structure.append(ContentMode.dictionary.rawValue)
      structure.append(varint: distinct.spans.count)
      distinct.spans.withUnsafeBufferPointer { spans in
        append(
          contents: ContentSpans(bytes: contents.bytes, spans: spans), sorted: false, nested: true)
      }
      append(integers: distinct.indices)
      return
    }
    if let length = contents.commonLength, appendFixed(contents, length: length) { return }
    if sorted, contents.count >= 16, appendFront(contents) { return }
    structure.append(ContentMode.plain.rawValue)
    append(integers: contents.spans.map { $0 & 0xFFFF_FFFF })
    append(joined: contents)
  }

  private mutating func append(joined contents: ContentSpans) {
    // Usually the strings are consecutive already.
    var end = contents.spans.first.map { $0 >> 32 } ?? 0
    let start = Int(end)
    let isContiguous = contents.spans.allSatisfy { span in
      defer { end += span & 0xFFFF_FFFF }
      return span >> 32 == end || span & 0xFFFF_FFFF == 0
    }
    if isContiguous {
      let range = UnsafeRawBufferPointer(rebasing: contents.bytes[start..<Int(end)])
      append(content: range)
    } else {
      var joined: [UInt8] = []
      for index in 0..<contents.count { joined.append(contentsOf: contents[index]) }
      joined.withUnsafeBytes { append(content: $0) }
    }
  }

  private mutating func append(content bytes: UnsafeRawBufferPointer) {
    let lane = ByteStatistics.lane(ofContent: bytes)
    structure.append(lane.rawValue)
    append(bytes, to: lane)
  }

  private mutating func appendFixed(_ contents: ContentSpans, length: Int) -> Bool {
    var transform: ContentTransform = []
    var packed: [UInt8]
    let count = contents.count
    if let identifiers = UUIDText.pack(contents, prefix: []) {
      transform = .uuid
      packed = identifiers
    } else if let identifiers = UUIDText.pack(contents, prefix: UUIDText.identityPrefix) {
      transform = .uuidIdentity
      packed = identifiers
    } else if (1...16).contains(length) {
      packed = []
      packed.reserveCapacity(count * length)
      for index in 0..<count { packed.append(contentsOf: contents[index]) }
    } else {
      return false
    }
    let width = packed.count / count
    packed.withUnsafeMutableBytes { rows in
      if width >= 8, count >= 16, Ascending.subtract(rows, width: width) {
        transform.insert(.ascending)
      }
      structure.append(ContentMode.fixed.rawValue)
      structure.append(transform.rawValue)
      structure.append(UInt8(width))
      withUnsafeTemporaryAllocation(byteCount: rows.count, alignment: 8) { planes in
        var position = 0
        for column in 0..<width {
          var source = column
          for _ in 0..<count {
            planes[position] = rows[source]
            position &+= 1
            source &+= width
          }
        }
        let short: Lane =
          transform.isDisjoint(with: [.uuid, .uuidIdentity]) && width < 16 ? .structure : .raw
        append(planes: UnsafeRawBufferPointer(planes), count: count, short: short)
      }
    }
    return true
  }

  private mutating func appendFront(_ contents: ContentSpans) -> Bool {
    var shared = [UInt64](repeating: 0, count: contents.count)
    var saved = 0
    var total = contents.length(0)
    for index in 1..<contents.count {
      let previous = contents[index - 1]
      let current = contents[index]
      let most = min(previous.count, current.count)
      var length = 0
      while length < most, previous[length] == current[length] { length += 1 }
      shared[index] = UInt64(length)
      saved += length
      total += current.count
    }
    guard saved > total / 4 else { return false }
    structure.append(ContentMode.front.rawValue)
    var suffixes: [UInt8] = []
    suffixes.reserveCapacity(total - saved)
    var lengths = shared
    for index in 0..<contents.count {
      let suffix = contents[index].dropFirst(Int(shared[index]))
      suffixes.append(contentsOf: suffix)
      lengths[index] = UInt64(suffix.count)
    }
    shared.withUnsafeBufferPointer { append(integers: $0) }
    lengths.withUnsafeBufferPointer { append(integers: $0) }
    suffixes.withUnsafeBytes { append(content: $0) }
    return true
  }
}

/// The ``ContentTransform/ascending`` transform for rows of one width.
enum Ascending {
  /// Replaces the first eight bytes with differences if no row is less than the preceding row.
  static func subtract(_ rows: UnsafeMutableRawBufferPointer, width: Int) -> Bool {
    var previous: UInt64 = 0
    for offset in stride(from: 0, to: rows.count, by: width) {
      let word = rows.bigWord(at: offset)
      guard word >= previous else { return false }
      previous = word
    }
    previous = 0
    for offset in stride(from: 0, to: rows.count, by: width) {
      let word = rows.bigWord(at: offset)
      rows.storeBytes(of: (word &- previous).bigEndian, toByteOffset: offset, as: UInt64.self)
      previous = word
    }
    return true
  }

  /// Restores the first eight bytes from the differences.
  static func add(_ rows: UnsafeMutableRawBufferPointer, width: Int) {
    var sum: UInt64 = 0
    for offset in stride(from: 0, to: rows.count, by: width) {
      sum &+= rows.bigWord(at: offset)
      rows.storeBytes(of: sum.bigEndian, toByteOffset: offset, as: UInt64.self)
    }
  }
}

extension UnsafeMutableRawBufferPointer {
  @inline(__always)
  fileprivate func bigWord(at offset: Int) -> UInt64 {
    UInt64(bigEndian: loadUnaligned(fromByteOffset: offset, as: UInt64.self))
  }
}

/// The distinct strings of a sequence in order of their first appearance, if they are few.
private struct DistinctContents {
  private static let greatestLength: UInt64 = 256
  private static let greatestCount = 65_536

  var spans: [UInt64] = []
  var indices: [UInt32] = []

  /// Returns `nil` if a dictionary would not save space.
  init?(_ contents: ContentSpans) {
    let count = contents.count
    guard count >= 32 else { return nil }
    let samples = min(256, count)
    var table = Table(capacity: 1024)
    for sample in 0..<samples {
      let index = sample * (count / samples)
      guard contents.spans[index] & 0xFFFF_FFFF <= Self.greatestLength else { return nil }
      _ = table.index(of: index, in: contents)
    }
    guard table.spans.count <= samples / 2 else { return nil }
    let cap = min(Self.greatestCount, count / 4)
    var capacity = 1024
    while capacity < 4 * cap { capacity *= 2 }
    table = Table(capacity: capacity)
    indices.reserveCapacity(count)
    for index in 0..<count {
      guard contents.spans[index] & 0xFFFF_FFFF <= Self.greatestLength else { return nil }
      indices.append(table.index(of: index, in: contents))
      guard table.spans.count <= cap else { return nil }
    }
    spans = table.spans
  }

  private struct Table {
    private var slots: [UInt32]
    var spans: [UInt64] = []

    /// Creates a table. `capacity` must be a power of two, and more than the number of distinct
    /// strings.
    init(capacity: Int) { slots = Array(repeating: 0, count: capacity) }

    mutating func index(of string: Int, in contents: ContentSpans) -> UInt32 {
      let bytes = contents[string]
      let mask = slots.count - 1
      var slot = Int(truncatingIfNeeded: Self.hash(bytes)) & mask
      while slots[slot] != 0 {
        let index = slots[slot] - 1
        let span = spans[Int(index)]
        if span & 0xFFFF_FFFF == UInt64(bytes.count) {
          let start = Int(span >> 32)
          let other = UnsafeRawBufferPointer(
            rebasing: contents.bytes[start..<start + bytes.count])
          if other.elementsEqual(bytes) { return index }
        }
        slot = (slot + 1) & mask
      }
      spans.append(contents.spans[string])
      slots[slot] = UInt32(spans.count)
      return UInt32(spans.count - 1)
    }

    private static func hash(_ bytes: UnsafeRawBufferPointer) -> UInt64 {
      var hash = UInt64(bytes.count)
      var offset = 0
      while offset + 8 <= bytes.count {
        let word = bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self)
        hash = (hash ^ word) &* 0x9E37_79B9_7F4A_7C15
        hash ^= hash >> 32
        offset += 8
      }
      while offset < bytes.count {
        hash = (hash ^ UInt64(bytes[offset])) &* 0x9E37_79B9_7F4A_7C15
        hash ^= hash >> 32
        offset += 1
      }
      return hash
    }
  }
}
