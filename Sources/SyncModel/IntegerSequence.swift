/// The encoding of a sequence of 64-bit words. The raw values are those of the
/// format; arithmetic is modulo 2⁶⁴.
enum IntegerMode: UInt8 {
  /// One word, which all are equal to.
  case constant = 0
  /// Differences from the least word, as byte planes.
  case offset = 1
  /// Differences from the preceding word, as byte planes.
  case delta = 2
  /// The distinct words, and the index of each word among them, as byte planes.
  case dictionary = 3
}

extension LaneWriter {
  /// Writes `words` without their number, which the reader knows.
  mutating func append(integers words: UnsafeBufferPointer<UInt64>) {
    guard let first = words.first else { return }
    let range = IntegerRange(words)
    if range.width == 0 {
      structure.append(IntegerMode.constant.rawValue)
      structure.append(zigzag: Int64(bitPattern: first))
    } else if min(range.width, range.deltaWidth) >= 2,
      let dictionary = IntegerDictionary(words)
    {
      append(dictionary, count: words.count)
    } else if range.deltaWidth < range.width {
      structure.append(IntegerMode.delta.rawValue)
      structure.append(zigzag: Int64(bitPattern: first))
      structure.append(zigzag: range.leastDelta)
      structure.append(UInt8(range.deltaWidth))
      let base = UInt64(bitPattern: range.leastDelta)
      append(width: range.deltaWidth, count: words.count - 1) {
        words[$0 + 1] &- words[$0] &- base
      }
    } else {
      append(offsets: words, base: range.least, width: range.width)
    }
  }

  /// Writes words unchanged, in eight planes, unless few of them are distinct.
  mutating func append(patterns words: UnsafeBufferPointer<UInt64>) {
    guard let first = words.first else { return }
    if words.allSatisfy({ $0 == first }) {
      structure.append(IntegerMode.constant.rawValue)
      structure.append(zigzag: Int64(bitPattern: first))
    } else if let dictionary = IntegerDictionary(words) {
      append(dictionary, count: words.count)
    } else {
      append(offsets: words, base: 0, width: 8)
    }
  }

  /// Writes small numbers.
  mutating func append(integers numbers: [some FixedWidthInteger]) {
    let words = numbers.map { UInt64(truncatingIfNeeded: $0) }
    words.withUnsafeBufferPointer { append(integers: $0) }
  }

  private mutating func append(
    offsets words: UnsafeBufferPointer<UInt64>, base: Int64, width: Int
  ) {
    structure.append(IntegerMode.offset.rawValue)
    structure.append(zigzag: base)
    structure.append(UInt8(width))
    let base = UInt64(bitPattern: base)
    append(width: width, count: words.count) { words[$0] &- base }
  }

  private mutating func append(_ dictionary: IntegerDictionary, count: Int) {
    structure.append(IntegerMode.dictionary.rawValue)
    structure.append(varint: dictionary.values.count)
    var previous: Int64?
    for value in dictionary.values {
      if let previous {
        structure.append(varint: UInt64(bitPattern: value &- previous))
      } else {
        structure.append(zigzag: value)
      }
      previous = value
    }
    append(width: dictionary.values.count <= 256 ? 1 : 2, count: count) {
      UInt64(dictionary.indices[$0])
    }
  }

  @inline(__always)
  private mutating func append(width: Int, count: Int, word: (Int) -> UInt64) {
    guard width > 0, count > 0 else { return }
    withUnsafeTemporaryAllocation(byteCount: width * count, alignment: 8) { planes in
      let bytes = planes.bindMemory(to: UInt8.self)
      for index in 0..<count {
        var word = word(index)
        var position = index
        for _ in 0..<width {
          bytes[position] = UInt8(truncatingIfNeeded: word)
          word >>= 8
          position &+= count
        }
      }
      append(planes: UnsafeRawBufferPointer(planes), count: count, short: .structure)
    }
  }
}

/// The number of bytes that each word needs, as offset and as difference.
private struct IntegerRange {
  var least: Int64 = 0
  var leastDelta: Int64 = 0
  var width = 0
  var deltaWidth = 0

  init(_ words: UnsafeBufferPointer<UInt64>) {
    guard let first = words.first else { return }
    var previous = Int64(bitPattern: first)
    least = previous
    var greatest = previous
    leastDelta = .max
    var greatestDelta = Int64.min
    for word in words.dropFirst() {
      let value = Int64(bitPattern: word)
      let delta = value &- previous
      least = min(least, value)
      greatest = max(greatest, value)
      leastDelta = min(leastDelta, delta)
      greatestDelta = max(greatestDelta, delta)
      previous = value
    }
    width = Self.bytes(UInt64(bitPattern: greatest &- least))
    deltaWidth = words.count > 1 ? Self.bytes(UInt64(bitPattern: greatestDelta &- leastDelta)) : 0
  }

  private static func bytes(_ word: UInt64) -> Int { (64 - word.leadingZeroBitCount + 7) / 8 }
}

/// The distinct values of a sequence, if they are few.
private struct IntegerDictionary {
  private static let greatestCount = 4096

  /// The distinct values in ascending order.
  var values: [Int64] = []
  /// The index of each word's value.
  var indices: [UInt16] = []

  /// Returns `nil` if a dictionary would not save space.
  init?(_ words: UnsafeBufferPointer<UInt64>) {
    guard words.count >= 32 else { return nil }
    let cap = min(Self.greatestCount, words.count / 4)
    var table = DistinctWords()
    let samples = min(256, words.count)
    let step = words.count / samples
    for sample in 0..<samples { _ = table.index(of: words[sample * step]) }
    guard table.values.count <= samples / 2 else { return nil }
    table = DistinctWords()
    indices.reserveCapacity(words.count)
    for word in words {
      let index = table.index(of: word)
      guard table.values.count <= cap else { return nil }
      indices.append(index)
    }
    // Sorted values have small differences, and their order in the file does
    // not depend on the table.
    let order = table.values.indices.sorted {
      Int64(bitPattern: table.values[$0]) < Int64(bitPattern: table.values[$1])
    }
    var rank = [UInt16](repeating: 0, count: order.count)
    for (position, index) in order.enumerated() { rank[index] = UInt16(position) }
    values = order.map { Int64(bitPattern: table.values[$0]) }
    for position in indices.indices { indices[position] = rank[Int(indices[position])] }
  }
}

/// The distinct words of a sequence, numbered in order of their first appearance.
private struct DistinctWords {
  private var slots = [UInt16](repeating: 0, count: 16_384)
  private(set) var values: [UInt64] = []

  /// Returns the index of a word, which is new if the word is. The caller must stop before 16,384
  /// distinct words.
  mutating func index(of word: UInt64) -> UInt16 {
    var slot = Int((word &* 0x9E37_79B9_7F4A_7C15) >> 50)
    while slots[slot] != 0 {
      let index = slots[slot] - 1
      if values[Int(index)] == word { return index }
      slot = (slot + 1) & 16_383
    }
    values.append(word)
    slots[slot] = UInt16(values.count)
    return UInt16(values.count - 1)
  }
}

extension LaneReader {
  /// Reads `count` words.
  func integers(_ count: Int) throws -> [UInt64] {
    guard count > 0 else { return [] }
    try charge(count, each: 8)
    let offset = structure.offset
    guard let mode = IntegerMode(rawValue: try structure.byte()) else {
      throw CodecError(.malformed, "structure: integer mode", at: offset)
    }
    switch mode {
    case .constant:
      return Array(repeating: UInt64(bitPattern: try structure.zigzag()), count: count)
    case .offset:
      let base = UInt64(bitPattern: try structure.zigzag())
      return try words(count, width: try width(1...8), base: base)
    case .delta:
      let first = UInt64(bitPattern: try structure.zigzag())
      let base = UInt64(bitPattern: try structure.zigzag())
      var words = try words(count - 1, width: try width(0...8), base: base, before: first)
      words.withUnsafeMutableBufferPointer { words in
        var sum = first
        for index in 1..<max(1, words.count) {
          sum &+= words[index]
          words[index] = sum
        }
      }
      return words
    case .dictionary:
      return try dictionary(count)
    }
  }

  /// Reads `count` numbers; throws an error that names `what` if one is not below `bound`.
  func integers(_ count: Int, below bound: UInt64, _ what: String) throws -> [UInt64] {
    let offset = structure.offset
    let words = try integers(count)
    guard words.allSatisfy({ $0 < bound }) else {
      throw CodecError(.malformed, "structure: \(what)", at: offset)
    }
    return words
  }

  private func dictionary(_ count: Int) throws -> [UInt64] {
    let size = try structure.count("distinct values", cap: min(count, 65_536))
    guard size > 0 else {
      throw CodecError(.malformed, "structure: empty dictionary", at: structure.offset)
    }
    var values = [UInt64(bitPattern: try structure.zigzag())]
    for _ in 1..<size { values.append(values[values.count - 1] &+ (try structure.varint())) }
    let offset = structure.offset
    var words = try words(count, width: size <= 256 ? 1 : 2, base: 0)
    for index in words.indices {
      guard words[index] < UInt64(size) else {
        throw CodecError(.malformed, "structure: index of a distinct value", at: offset)
      }
      words[index] = values[Int(words[index])]
    }
    return words
  }

  private func width(_ range: ClosedRange<Int>) throws -> Int {
    let offset = structure.offset
    let width = Int(try structure.byte())
    guard range.contains(width) else {
      throw CodecError(.malformed, "structure: width of integers", at: offset)
    }
    return width
  }

  /// Joins planes to words and adds `base` to each. `before` becomes the first element.
  private func words(
    _ count: Int, width: Int, base: UInt64, before: UInt64? = nil
  ) throws -> [UInt64] {
    let planes = width > 0 && count > 0 ? try planes(width: width, count: count) : []
    let start = before == nil ? 0 : 1
    return [UInt64](unsafeUninitializedCapacity: count + start) { buffer, initialized in
      if let before { buffer[0] = before }
      let words = UnsafeMutableBufferPointer(rebasing: buffer[start..<count + start])
      if let first = planes.first {
        for index in 0..<count { words[index] = base &+ UInt64(first[index]) }
      } else {
        words.update(repeating: base)
      }
      for (number, plane) in planes.enumerated().dropFirst() {
        let shift = UInt64(8 * number)
        for index in 0..<count { words[index] &+= UInt64(plane[index]) &<< shift }
      }
      initialized = count + start
    }
  }
}
