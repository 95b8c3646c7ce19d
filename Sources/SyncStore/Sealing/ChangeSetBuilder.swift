import SyncModel

/// A builder that gathers the changes of several tables and seals them as change sets of bounded
/// size.
final class ChangeSetBuilder {
  private let session: StoreSession
  private let binding: StoreBinding
  private let greatestRowCount: Int
  private let greatestByteCount: Int
  private let limits: CodecLimits
  private let hash: @Sendable ([UInt8]) -> ContentHash
  private let dependencies: VersionVector
  private let schema: ContentHash
  private var head: VersionVector.Entry?
  private var tables: [TableChanges] = []
  private var rowCount = 0
  private var byteCount = 0

  /// The change sets sealed so far.
  private(set) var sealed: [SealedChangeSet] = []
  /// The files of the first of them, by their numbers.
  private(set) var files: [UInt64: [UInt8]] = [:]
  private var fileBytes = 0

  init(session: StoreSession, binding: StoreBinding, options: StoreOptions) throws {
    self.session = session
    self.binding = binding
    greatestRowCount = min(options.rowsPerChangeSet, CodecLimits.default.rows)
    limits = options.limits
    largeByteCount = limits.memoryBytes / 16
    greatestByteCount = min(options.bytesPerChangeSet, Self.readableByteCount, largeByteCount)
    rowsPerCheck = max(1, min(256, greatestByteCount >> 10))
    hash = options.hash
    var vector = try session.clients.vector()
    head = try session.ownHead()
    vector[binding.client] = nil
    dependencies = vector
    schema = session.schema.fingerprint
  }

  /// The most bytes of changes in a change set. Each value counts as nine bytes at least, so that
  /// there are never more values than readers take (``CodecLimits/leastValues``), not even in the
  /// widest tables.
  private static let readableByteCount = 6 << 20

  /// The most bytes of sealed files in ``files``.
  private static let greatestFileBytes = 4 << 20

  /// After how many rows of a table their size is compared with the caps: fewer if the caps are small.
  let rowsPerCheck: Int

  /// A row with more bytes of text and blobs has a change set of its own: it may be over the caps.
  let largeByteCount: Int

  /// The number of rows for which the current change set has room.
  var remainingRows: Int { greatestRowCount - rowCount }

  /// Returns whether a table's changes should be handed over before they grow.
  func isFull(with changes: TableChanges) -> Bool {
    rowCount + changes.count >= greatestRowCount
      || byteCount + changes.byteCount >= greatestByteCount
  }

  /// Adds the changes of a table, and seals the change set if it is full.
  func add(_ changes: TableChanges) throws {
    guard changes.count > 0 else { return }
    rowCount += changes.count
    byteCount += changes.byteCount
    tables.append(changes)
    if rowCount >= greatestRowCount || byteCount >= greatestByteCount
      || tables.count == CodecLimits.default.tables
    {
      try seal()
    }
  }

  /// Seals the gathered changes as a change set, if there are any.
  func seal() throws {
    guard !tables.isEmpty else { return }
    do {
      try sealGathered()
    } catch let error as CodecError where error.code == .lengthOverCap {
      let longest = tables.max { $0.byteCount < $1.byteCount }
      throw StoreError(
        .editRefused, path: "",
        message:
          "A row of the table “\(longest?.table.text ?? "")” is too large to be synchronized.",
        remedy: "Shorten its key to less than 50 MB, then sync again.", detail: "\(error)")
    }
  }

  /// Seals one row as a change set of its own. Returns false if it is over the caps.
  func sealAlone(_ row: TableChanges) throws -> Bool {
    try seal()
    (tables, rowCount, byteCount) = ([row], row.count, row.byteCount)
    do {
      try sealGathered()
      return true
    } catch let error as CodecError where error.code == .lengthOverCap {
      (tables, rowCount, byteCount) = ([], 0, 0)
      return false
    }
  }

  private func sealGathered() throws {
    let header = SyncChangeSet.Header(
      root: binding.root, document: binding.document, generation: binding.generation,
      client: binding.client, number: (head?.number ?? 0) + 1,
      // The chain continues that of the ancestor.
      previous: head?.hash ?? binding.ancestor.flatMap { dependencies[$0]?.hash })
    let set = SyncChangeSet(
      header: header, dependencies: dependencies, schema: schema, tables: tables)
    let bytes = try ChangeSetCodec.encode(set, limits: limits)
    let entry = VersionVector.Entry(number: header.number, hash: hash(bytes))
    try session.outbox.add(bytes, as: entry, rowCount: rowCount, of: session.own)
    if try !session.isAwaitingOthers() { try session.clients.setLast(entry, of: binding.client) }
    try session.history.add(
      client: session.own, entry: entry, rowCount: rowCount, byteCount: bytes.count, at: session.now
    )
    sealed.append(
      SealedChangeSet(
        client: binding.client, number: entry.number, hash: entry.hash, byteCount: bytes.count,
        rowCount: rowCount, isPublished: false))
    fileBytes += bytes.count
    if fileBytes <= Self.greatestFileBytes { files[entry.number] = bytes }
    try session.ranges.record(client: session.own, number: entry.number, set.timeRange)
    head = entry
    tables = []
    rowCount = 0
    byteCount = 0
  }
}
