import Foundation

/// One of the four parts of a body. Each contains bytes of one nature and is compressed separately
/// or not at all. The raw values are those of the format.
enum Lane: UInt8, CaseIterable {
  /// Descriptions, and numbers that repeat.
  case structure = 0
  /// Contents of text and blobs.
  case text = 1
  /// Bytes of uneven frequency, without longer patterns.
  case symbols = 2
  /// Bytes that cannot be compressed, such as random identifiers.
  case raw = 3

  /// The value that stands in place of a lane if one lane for each plane follows.
  static let eachPlane: UInt8 = 255
}

/// The lanes of a body that is being written.
struct LaneWriter {
  var structure: [UInt8] = []
  var text: [UInt8] = []
  var symbols: [UInt8] = []
  var raw: [UInt8] = []

  var byteCount: Int { structure.count + text.count + symbols.count + raw.count }

  mutating func append(_ bytes: UnsafeRawBufferPointer, to lane: Lane) {
    switch lane {
    case .structure: structure.append(contentsOf: bytes)
    case .text: text.append(contentsOf: bytes)
    case .symbols: symbols.append(contentsOf: bytes)
    case .raw: raw.append(contentsOf: bytes)
    }
  }

  /// Writes consecutive byte planes of `count` bytes each: their lanes to the structure lane, then
  /// the planes.
  ///
  /// Planes of less than 64 bytes are not worth examining; they go to `short`.
  mutating func append(planes: UnsafeRawBufferPointer, count: Int, short: Lane) {
    guard count >= 64 else {
      structure.append(short.rawValue)
      append(planes, to: short)
      return
    }
    let lanes = stride(from: 0, to: planes.count, by: count).map { start in
      ByteStatistics.lane(
        ofPlane: UnsafeRawBufferPointer(rebasing: planes[start..<start + count]))
    }
    if let first = lanes.first, lanes.allSatisfy({ $0 == first }) {
      structure.append(first.rawValue)
    } else {
      structure.append(Lane.eachPlane)
      structure.append(contentsOf: lanes.map(\.rawValue))
    }
    for (index, lane) in lanes.enumerated() {
      append(
        UnsafeRawBufferPointer(rebasing: planes[index * count..<(index + 1) * count]), to: lane)
    }
  }
}

/// Estimates, from samples, of the effect of compression.
enum ByteStatistics {
  private static let sample = 4096

  /// Returns the bits per byte, from 0 to 8, if each byte is coded separately.
  static func entropy(_ bytes: UnsafeRawBufferPointer) -> Double {
    guard bytes.count > 0 else { return 0 }
    let step = max(1, bytes.count / sample)
    var taken = 0
    var sum = 0.0
    withUnsafeTemporaryAllocation(of: UInt32.self, capacity: 256) { counts in
      counts.initialize(repeating: 0)
      var index = 0
      while index < bytes.count {
        counts[Int(bytes[index])] &+= 1
        taken += 1
        index += step
      }
      for count in counts where count > 0 {
        sum += Double(count) * log2(Double(taken) / Double(count))
      }
    }
    return sum / Double(taken)
  }

  /// Returns how repetitive a stretch from the middle is: the share of positions whose next four
  /// bytes occurred earlier in it.
  static func repetition(_ bytes: UnsafeRawBufferPointer) -> Double {
    let length = min(bytes.count - 4, sample)
    guard length > 0 else { return 0 }
    let start = (bytes.count - 4 - length) / 2
    var hits = 0
    withUnsafeTemporaryAllocation(of: UInt32.self, capacity: sample) { seen in
      seen.initialize(repeating: 0)
      for index in start..<start + length {
        let four = bytes.loadUnaligned(fromByteOffset: index, as: UInt32.self)
        let slot = Int((four &* 0x9E37_79B1) >> 20)
        if seen[slot] == four { hits += 1 } else { seen[slot] = four }
      }
    }
    return Double(hits) / Double(length)
  }

  static func lane(ofPlane plane: UnsafeRawBufferPointer) -> Lane {
    let entropy = entropy(plane)
    // A sample of random bytes shows a little less than eight bits.
    let random = plane.count < 1024 ? 6.9 : 7.8
    if entropy < 2 { return .structure }
    if repetition(plane) > 0.1 { return .structure }
    return entropy > random ? .raw : .symbols
  }

  static func lane(ofContent content: UnsafeRawBufferPointer) -> Lane {
    guard content.count >= 1024 else { return .structure }
    return entropy(content) > 7.7 && repetition(content) < 0.1 ? .raw : .text
  }
}

/// A reader of the lanes of a body. It decompresses them and reads each from its beginning.
final class LaneReader {
  private var owned: [UnsafeMutableRawBufferPointer] = []
  var structure: WireReader
  private var others: [WireReader] = []
  /// The memory that the reader may still take, in bytes.
  private var budget: Int
  /// The number of rows and cells that the reader may still read.
  private var values: Int
  /// Throws an error to stop reading; called before every sequence of values.
  let checkCancellation: () throws -> Void

  /// Decompresses `parts`, one for each lane. The caller has checked their lengths, and keeps their
  /// bytes in place while the reader exists, since uncompressed parts are not copied.
  init(
    parts: [LanePart], budget: Int, values: Int = .max,
    checkCancellation: @escaping () throws -> Void = {}
  ) throws {
    self.budget = budget
    self.values = values
    self.checkCancellation = checkCancellation
    structure = WireReader(UnsafeRawBufferPointer(start: nil, count: 0), name: "structure")
    for (lane, part) in zip(Lane.allCases, parts) {
      let bytes = part.isDeflated ? try inflate(part, lane) : part.bytes
      let reader = WireReader(bytes, name: "lane \(lane)")
      if lane == .structure { structure = reader } else { others.append(reader) }
    }
  }

  private func inflate(_ part: LanePart, _ lane: Lane) throws -> UnsafeRawBufferPointer {
    try charge(part.count)
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: part.count, alignment: 16)
    owned.append(buffer)
    try Deflate.inflate(part.bytes, into: buffer, "lane \(lane)")
    return UnsafeRawBufferPointer(buffer)
  }

  deinit { for buffer in owned { buffer.deallocate() } }

  /// Subtracts memory from the budget before the reader takes it; throws if too little is left.
  func charge(_ bytes: Int) throws {
    guard bytes >= 0, bytes <= budget else {
      throw CodecError(.lengthOverCap, "memory for the change set", at: structure.offset)
    }
    budget -= bytes
  }

  /// Counts rows or cells before they are read; throws if they are too many. A limit on bytes is
  /// not enough, since one byte can stand for any number of them.
  func charge(values count: Int) throws {
    guard count <= values else {
      throw CodecError(.lengthOverCap, "rows and cells of the change set", at: structure.offset)
    }
    values -= count
  }

  func charge(_ count: Int, each bytes: Int) throws {
    let (product, overflow) = count.multipliedReportingOverflow(by: bytes)
    try charge(overflow ? .max : product)
  }

  func take(_ count: Int, from lane: Lane) throws -> UnsafeRawBufferPointer {
    lane == .structure
      ? try structure.take(count) : try others[Int(lane.rawValue) - 1].take(count)
  }

  func lane() throws -> Lane {
    let offset = structure.offset
    guard let lane = Lane(rawValue: try structure.byte()) else {
      throw CodecError(.malformed, "structure: lane", at: offset)
    }
    return lane
  }

  /// Reads `width` planes of `count` bytes each that `LaneWriter` wrote.
  func planes(width: Int, count: Int) throws -> [UnsafeRawBufferPointer] {
    let offset = structure.offset
    let first = try structure.byte()
    let lanes: [Lane]
    if first == Lane.eachPlane {
      lanes = try (0..<width).map { _ in try lane() }
    } else if let lane = Lane(rawValue: first) {
      lanes = Array(repeating: lane, count: width)
    } else {
      throw CodecError(.malformed, "structure: lane", at: offset)
    }
    return try lanes.map { try take(count, from: $0) }
  }

  func expectEnd() throws {
    try structure.expectEnd()
    for reader in others { try reader.expectEnd() }
  }
}

/// A lane as it is in the file.
struct LanePart {
  var isDeflated: Bool
  var bytes: UnsafeRawBufferPointer
  /// The length after decompression.
  var count: Int
}
