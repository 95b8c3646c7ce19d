extension ChangeSetCodec {
  /// The content of the private header.
  struct Details {
    var dependencies: VersionVector
    var schema: ContentHash
    var timeRange: ClosedRange<HybridTime>?
    var tables: Int
    var rows: Int
    /// The lanes: whether each is deflated, its length, and its length in the file.
    var lanes: [(isDeflated: Bool, count: Int, stored: Int)]
  }

  static func encode(_ header: SyncChangeSet.Header) -> [UInt8] {
    var bytes = header.root.bits.bytes
    bytes += header.document.bits.bytes
    bytes += header.generation.bits.bytes
    bytes += header.client.bits.bytes
    bytes.append(little: header.number)
    bytes.append(header.previous == nil ? 0 : 1)
    if let previous = header.previous { bytes += previous.bytes }
    return bytes
  }

  static func decodeHeader(_ envelope: Envelope) throws -> SyncChangeSet.Header {
    try envelope.publicHeader.withUnsafeBytes { bytes in
      var reader = WireReader(bytes, name: "public header")
      let header = SyncChangeSet.Header(
        root: RootIdentifier(bits: try reader.bits()),
        document: DocumentName(bits: try reader.bits()),
        generation: IntegrityKey(bits: try reader.bits()),
        client: ClientIdentifier(bits: try reader.bits()), number: try reader.word(),
        previous: try reader.flag() ? try reader.hash() : nil)
      try reader.expectEnd()
      try check(header)
      return header
    }
  }

  /// Encodes the private header without the lanes, which the caller appends.
  static func encodePrivateHeader(_ set: SyncChangeSet) -> [UInt8] {
    var bytes: [UInt8] = []
    let dependencies = set.dependencies.sorted
    bytes.append(varint: dependencies.count)
    for (client, entry) in dependencies {
      bytes += client.bits.bytes
      bytes.append(varint: entry.number)
      bytes += entry.hash.bytes
    }
    bytes += set.schema.bytes
    if let range = set.timeRange {
      bytes.append(1)
      bytes.append(little: range.lowerBound.rawValue)
      bytes.append(little: range.upperBound.rawValue)
    } else {
      bytes.append(0)
    }
    bytes.append(varint: set.tables.count)
    bytes.append(varint: set.rowCount)
    return bytes
  }

  static func decodePrivateHeader(
    _ bytes: UnsafeRawBufferPointer, limits: CodecLimits
  ) throws -> Details {
    var reader = WireReader(bytes, name: "private header")
    var entries: [ClientIdentifier: VersionVector.Entry] = [:]
    var last: ClientIdentifier?
    for _ in 0..<(try reader.count("dependencies", cap: bytes.count / 49)) {
      let offset = reader.offset
      let client = ClientIdentifier(bits: try reader.bits())
      let number = try reader.varint()
      guard last.map({ $0 < client }) ?? true, number > 0 else {
        throw CodecError(.malformed, "private header: dependencies", at: offset)
      }
      entries[client] = VersionVector.Entry(number: number, hash: try reader.hash())
      last = client
    }
    let schema = try reader.hash()
    var range: ClosedRange<HybridTime>?
    if try reader.flag() {
      let offset = reader.offset
      let least = HybridTime(rawValue: try reader.word())
      let greatest = HybridTime(rawValue: try reader.word())
      guard least <= greatest else {
        throw CodecError(.malformed, "private header: range of times", at: offset)
      }
      range = least...greatest
    }
    let tables = try reader.count("tables", cap: limits.tables)
    let rows = try reader.count("rows", cap: limits.rows)
    var lanes: [(isDeflated: Bool, count: Int, stored: Int)] = []
    var total = 0
    for lane in Lane.allCases {
      let isDeflated = try reader.flag()
      let offset = reader.offset
      let count = try reader.count("bytes of lane \(lane)", cap: limits.bodyBytes - total)
      let stored =
        isDeflated ? try reader.count("stored bytes of lane", cap: limits.fileBytes) : count
      guard count <= (stored + 1) * Envelope.Layout.greatestRatio else {
        throw CodecError(.badCompression, "private header: lane \(lane)", at: offset)
      }
      lanes.append((isDeflated, count, stored))
      total += count
    }
    try reader.expectEnd()
    return Details(
      dependencies: VersionVector(entries), schema: schema, timeRange: range, tables: tables,
      rows: rows, lanes: lanes)
  }
}

extension WireReader {
  mutating func bits() throws -> Bits128 {
    let bytes = try take(16)
    return Bits128(
      high: UInt64(bigEndian: bytes.loadUnaligned(as: UInt64.self)),
      low: UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: 8, as: UInt64.self)))
  }

  mutating func hash() throws -> ContentHash {
    guard let hash = ContentHash(bytes: try take(32)) else {
      throw CodecError(.truncated, name, at: offset)
    }
    return hash
  }

  mutating func flag() throws -> Bool {
    let byte = try byte()
    guard byte <= 1 else { throw CodecError(.malformed, "\(name): flag", at: offset - 1) }
    return byte == 1
  }
}
