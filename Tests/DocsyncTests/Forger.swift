import Foundation
import SyncDirectory
import SyncModel

@testable import DocumentSync

/// Writes files into a shared directory that are whole, in their place, and made to cost their
/// readers as much as possible.
struct Forger {
  /// Where the shared directory is.
  let shared: String
  let generation: GenerationFile
  let layout: DirectoryLayout.Generation

  /// What is encoded keeps to no caps.
  private static let limits = {
    var limits = CodecLimits.default
    limits.fileBytes = 1 << 30
    limits.privateBytes = 1 << 30
    limits.bodyBytes = 1 << 30
    limits.memoryBytes = 1 << 32
    limits.leastValues = 1 << 30
    limits.rows = 1 << 30
    limits.tables = 1 << 30
    limits.columns = 1 << 30
    return limits
  }()

  /// For the one document in a shared directory.
  init(_ shared: String) throws {
    struct NoDocument: Error {}
    self.shared = shared
    let names = FileManager.default.enumerator(atPath: shared)?.compactMap { $0 as? String } ?? []
    guard let path = names.first(where: { $0.contains("/generation.1.") }) else {
      throw NoDocument()
    }
    let file = try Data(contentsOf: URL(fileURLWithPath: "\(shared)/\(path)"))
    generation = try Envelope.decodeJSON(
      GenerationFile.self, from: Array(file), type: .generation)
    layout = DirectoryLayout.Document(generation.document).generation(generation.generation)
  }

  // MARK: Files

  /// Writes a file, whatever was there.
  func write(_ bytes: [UInt8], at path: RelativePath) throws {
    let url = URL(fileURLWithPath: shared + "/" + path.description)
    try FileManager.default.createDirectory(
      at: url.deletingLastPathComponent(), withIntermediateDirectories: true)
    try Data(bytes).write(to: url)
  }

  /// Makes a file of so many zeros that takes no room.
  func writeZeros(_ count: Int, at path: RelativePath) throws {
    try write([], at: path)
    let handle = try FileHandle(
      forWritingTo: URL(fileURLWithPath: shared + "/" + path.description))
    try handle.truncate(atOffset: UInt64(count))
    try handle.close()
  }

  /// How many bytes there are in the directory, in places that were written to, and how many names.
  func size() throws -> (bytes: Int, names: Int) {
    let names = FileManager.default.enumerator(atPath: shared)
    var size = (bytes: 0, names: 0)
    while let name = names?.nextObject() as? String {
      var status = stat()
      guard lstat("\(shared)/\(name)", &status) == 0 else { continue }
      size.bytes += min(Int(status.st_size), Int(status.st_blocks) * 512)
      size.names += 1
    }
    return size
  }

  // MARK: Change sets

  /// The file of a change set.
  func changeSet(
    by client: ClientIdentifier, number: UInt64 = 1, after previous: ContentHash? = nil,
    needing dependencies: VersionVector = VersionVector(), _ tables: [TableChanges]
  ) throws -> [UInt8] {
    try ChangeSetCodec.encode(
      SyncChangeSet(
        header: header(client, number, after: previous), dependencies: dependencies,
        schema: ContentHash(of: []), tables: tables), limits: Self.limits)
  }

  /// The file of a change set whose lanes say something that no encoder writes.
  func changeSet(
    by client: ClientIdentifier, tables: Int = 1, rows: Int, time: HybridTime?,
    structure: [UInt8], text: [UInt8] = []
  ) throws -> [UInt8] {
    var privateHeader: [UInt8] = [0]
    privateHeader += ContentHash(of: []).bytes
    if let time {
      privateHeader.append(1)
      for _ in 0..<2 {
        for shift in 0..<8 {
          privateHeader.append(UInt8(truncatingIfNeeded: time.rawValue >> UInt64(8 * shift)))
        }
      }
    } else {
      privateHeader.append(0)
    }
    privateHeader += Self.varint(tables) + Self.varint(rows)
    var body: [UInt8] = []
    for lane in [structure, text] {
      let deflated = try Self.deflate(lane)
      privateHeader += [1] + Self.varint(lane.count) + Self.varint(deflated.count)
      body += deflated
    }
    privateHeader += [0, 0, 0, 0]
    var publicHeader = generation.root.bits.bytes + generation.document.bits.bytes
    publicHeader += generation.generation.bits.bytes + client.bits.bytes
    publicHeader += [1, 0, 0, 0, 0, 0, 0, 0, 0]
    return try Envelope(
      type: .changeSet, publicHeader: publicHeader, privateHeader: privateHeader, body: body,
      compression: .stored
    ).encoded(limits: Self.limits)
  }

  /// Publishes a change set, and tells the others of it.
  @discardableResult
  func publish(
    _ bytes: [UInt8], by client: ClientIdentifier, number: UInt64 = 1
  ) throws -> RelativePath {
    let name = ChangeSetName(number: number, hash: HashFragment(ContentHash(of: bytes)))
    let path = layout.path(of: name, by: client)
    try write(bytes, at: path)
    try announce(client, number)
    return path
  }

  /// Publishes a segment of anything.
  @discardableResult
  func publish(
    _ parts: [[UInt8]], by client: ClientIdentifier, from first: UInt64
  ) throws -> RelativePath {
    let segment = Segment(
      root: generation.root, document: generation.document, generation: generation.generation,
      client: client, first: first,
      parts: parts.map { Segment.Part(hash: ContentHash(of: $0), bytes: $0) })
    let bytes = try SegmentCodec.encode(segment, limits: Self.limits)
    let name = SegmentName(
      numbers: first...segment.last, hash: HashFragment(ContentHash(of: bytes)))
    let path = layout.path(of: name, by: client)
    try write(bytes, at: path)
    return path
  }

  private func header(
    _ client: ClientIdentifier, _ number: UInt64, after previous: ContentHash?
  ) -> SyncChangeSet.Header {
    SyncChangeSet.Header(
      root: generation.root, document: generation.document, generation: generation.generation,
      client: client, number: number, previous: previous)
  }

  // MARK: Markers, commands, whole stores

  /// The marker of a client that has published so many change sets.
  @discardableResult
  func announce(
    _ client: ClientIdentifier, _ changeHead: UInt64 = 0, commandHead: UInt64 = 0,
    revision: UInt64 = 1, _ change: (inout RecentSyncFile) -> Void = { _ in }
  ) throws -> RelativePath {
    var content = RecentSyncFile(
      root: generation.root, document: generation.document, generation: generation.generation,
      client: client, revision: revision,
      changeHead: changeHead > 0
        ? VersionVector.Entry(number: changeHead, hash: ContentHash(of: [])) : nil,
      applied: VersionVector(), commandsApplied: VersionVector(), members: [client],
      wholeStores: [], segments: [], lowestKept: 1, lowestKeptCommand: 1, retired: [],
      waiting: [], milliseconds: 1)
    change(&content)
    let bytes = try Envelope.encodeJSON(content, type: .recentSync, limits: Self.limits)
    return try writeMarker(
      bytes, of: client, changeHead, commandHead: commandHead, revision: revision)
  }

  /// Writes a marker with any bytes.
  @discardableResult
  func writeMarker(
    _ bytes: [UInt8], of client: ClientIdentifier, _ changeHead: UInt64 = 0,
    commandHead: UInt64 = 0, revision: UInt64 = 1
  ) throws -> RelativePath {
    let path = layout.path(
      of: MarkerName(
        client: client, changeHead: changeHead, commandHead: commandHead, revision: revision,
        hash: HashFragment(ContentHash(of: bytes))))
    try write(bytes, at: path)
    return path
  }

  /// A file with a JSON body of any text.
  func json(_ text: String, _ type: Envelope.FileType) throws -> [UInt8] {
    try Envelope(type: type, body: Array(text.utf8)).encoded(limits: Self.limits)
  }

  /// The file of a whole store with any database, and what it says of itself.
  func wholeStore(
    by client: ClientIdentifier, number: UInt64 = 1, vector: VersionVector,
    database: [UInt8], claimedByteCount: Int? = nil, schema: ContentHash = ContentHash(of: [])
  ) throws -> [UInt8] {
    let header = WholeStoreHeader(
      root: generation.root, document: generation.document, generation: generation.generation,
      generationOrdinal: 1, client: client, number: number, vector: vector,
      commands: VersionVector(), schema: schema,
      storeByteCount: claimedByteCount ?? database.count, storeHash: ContentHash(of: database),
      milliseconds: 1)
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    let body = try Self.deflate(database)
    let head = StreamedEnvelope(
      type: .wholeStore, privateHeader: Array(try encoder.encode(header)), isCompressed: true,
      storedByteCount: body.count, bodyByteCount: header.storeByteCount
    ).encodedHead()
    return head + body + StreamedEnvelope.trailer(for: ContentHash(of: head + body))
  }

  /// Publishes a whole store; gives what a marker says of it.
  @discardableResult
  func publish(
    wholeStore bytes: [UInt8], by client: ClientIdentifier, number: UInt64 = 1,
    vector: VersionVector
  ) throws -> RecentSyncFile.WholeStore {
    let hash = ContentHash(of: bytes)
    try write(
      bytes,
      at: layout.path(of: WholeStoreName(number: number, hash: HashFragment(hash)), by: client))
    return RecentSyncFile.WholeStore(
      client: client, number: number, hash: hash, vector: vector, commands: VersionVector(),
      byteCount: bytes.count)
  }

  // MARK: Bytes

  static func varint(_ number: Int) -> [UInt8] {
    var bytes: [UInt8] = []
    var rest = number
    while rest >= 0x80 {
      bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
      rest >>= 7
    }
    return bytes + [UInt8(rest)]
  }

  /// A deflate stream.
  static func deflate(_ bytes: [UInt8]) throws -> [UInt8] {
    var output: [UInt8] = []
    let zlib = try ZlibStream(.deflate)
    try zlib.push(bytes, isLast: true) { output += $0 }
    return output
  }

  /// New rows of `notes` with the same title each.
  static func notes(_ count: Int, title: Value) -> TableChanges {
    var table = TableChanges(
      table: "notes", identity: .surrogate, keyColumns: ["id"], columns: ["title"])
    table.actions = Array(repeating: RowAction.insert.rawValue, count: count)
    table.times = Array(repeating: HybridTime(milliseconds: 1_790_000_000_000), count: count)
    table.shapes = [[0]]
    table.rowShapes = Array(repeating: 0, count: count)
    for row in 0..<count {
      table.keys[0].append(.blob(Bits128(high: .random(in: 0...(.max)), low: UInt64(row)).bytes))
      table.keys[1].append(integer: Int64(row) + 1_000)
      table.cells[0].append(title)
    }
    return table
  }
}
