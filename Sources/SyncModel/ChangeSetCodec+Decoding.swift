extension ChangeSetCodec {
  /// Decodes the tables of a body within the limits for counts and memory. The caller checks their
  /// meaning with ``check(_:limits:)``.
  static func decodeTables(
    _ body: UnsafeRawBufferPointer, details: Details, limits: CodecLimits,
    checkCancellation: @escaping () throws -> Void
  ) throws -> [TableChanges] {
    guard details.lanes.reduce(0, { $0 + $1.stored }) == body.count else {
      throw CodecError(.wrongCount, "private header: lengths of the lanes")
    }
    var start = 0
    let parts = details.lanes.map { lane in
      defer { start += lane.stored }
      return LanePart(
        isDeflated: lane.isDeflated,
        bytes: UnsafeRawBufferPointer(rebasing: body[start..<start + lane.stored]),
        count: lane.count)
    }
    let reader = try LaneReader(
      parts: parts, budget: limits.memoryBytes, values: limits.values(inBytes: body.count),
      checkCancellation: checkCancellation)
    var tables: [TableChanges] = []
    var rows = 0
    for _ in 0..<details.tables {
      let table = try reader.table(limits: limits, rows: details.rows - rows)
      rows += table.count
      tables.append(table)
    }
    try reader.expectEnd()
    return tables
  }
}

extension LaneReader {
  /// Reads a table of at most `rows` rows.
  fileprivate func table(limits: CodecLimits, rows: Int) throws -> TableChanges {
    try charge(512)
    let name = try name()
    let offset = structure.offset
    guard let identity = IdentityKind(rawValue: try structure.byte()) else {
      throw CodecError(.malformed, "structure: kind of identity", at: offset)
    }
    let keyColumns = try names(cap: limits.columns)
    let columns = try names(cap: limits.columns)
    var table = TableChanges(
      table: name, identity: identity, keyColumns: keyColumns, columns: columns)

    let count = try structure.count("rows", cap: rows)
    try charge(values: count)
    try charge(count, each: 13)
    table.actions = try bytes(count, below: RowAction.allCases.count, "actions")
    for index in table.keys.indices { table.keys[index] = try column(count) }
    table.times = try integers(count).map { HybridTime(rawValue: $0) }
    let shapeCount = try structure.count("shapes", cap: count)
    try charge(values: shapeCount)
    try charge(shapeCount, each: 64)
    for _ in 0..<shapeCount { table.shapes.append(try shape(columns: columns.count)) }
    table.rowShapes = try integers(count, below: UInt64(shapeCount), "shapes of rows").map {
      UInt32($0)
    }
    let cellCounts = table.cellCounts()
    for index in columns.indices { table.cells[index] = try column(cellCounts[index]) }
    table.exceptions = try exceptions(rows: count, columns: columns.count)
    table.moves = try moves(rows: count)
    return table
  }

  private func name() throws -> SQLName {
    let count = try structure.count("bytes of a name", cap: 65_535)
    let offset = structure.offset
    let bytes = try structure.take(count)
    let name = String(decoding: bytes, as: UTF8.self)
    guard name.utf8.elementsEqual(bytes) else {
      throw CodecError(.malformed, "structure: name", at: offset)
    }
    return SQLName(name)
  }

  private func names(cap: Int) throws -> [SQLName] {
    let count = try structure.count("columns", cap: cap)
    guard count <= structure.remaining else {
      throw CodecError(.truncated, "structure: columns", at: structure.offset)
    }
    // An empty column takes little memory here, but costs work in every store that does not have
    // it.
    try charge(count, each: 1024)
    return try (0..<count).map { _ in try name() }
  }

  private func shape(columns: Int) throws -> [Int] {
    let offset = structure.offset
    let count = try structure.count("columns of a shape", cap: columns)
    guard count <= structure.remaining else {
      throw CodecError(.truncated, "structure: shape", at: offset)
    }
    try charge(count, each: 8)
    var shape: [Int] = []
    shape.reserveCapacity(count)
    var next = 0
    for _ in 0..<count {
      let gap = try structure.varint()
      guard gap < UInt64(columns - next) else {
        throw CodecError(.malformed, "structure: shape", at: offset)
      }
      shape.append(next + Int(gap))
      next += Int(gap) + 1
    }
    return shape
  }

  /// Reads small numbers into bytes.
  private func bytes(_ count: Int, below bound: Int, _ what: String) throws -> [UInt8] {
    try integers(count, below: UInt64(bound), what).map { UInt8($0) }
  }

  private func column(_ count: Int) throws -> ValueColumn {
    guard count > 0 else { return ValueColumn() }
    try checkCancellation()
    try charge(values: count)
    try charge(count)
    let kinds = try bytes(count, below: ValueKind.allCases.count, "kinds of values")
    var counts = [0, 0, 0, 0]
    kinds.withUnsafeBufferPointer { kinds in
      for kind in kinds { counts[Int(min(kind, 3))] &+= 1 }
    }
    let integers = try integers(counts[1])
    let reals = try self.integers(counts[2])
    let contents = try contents(counts[3])
    if counts[1] == count {
      return ValueColumn(decodedKinds: kinds, words: integers, bytes: [])
    }
    if counts[2] == count { return ValueColumn(decodedKinds: kinds, words: reals, bytes: []) }
    if counts[3] == count {
      return ValueColumn(decodedKinds: kinds, words: contents.spans, bytes: contents.bytes)
    }
    try charge(count, each: 8)
    let sources = [[], integers, reals, contents.spans]
    var positions = [0, 0, 0, 0]
    var words = [UInt64](repeating: 0, count: count)
    for index in words.indices {
      let source = Int(min(kinds[index], 3))
      guard source > 0 else { continue }
      words[index] = sources[source][positions[source]]
      positions[source] += 1
    }
    return ValueColumn(decodedKinds: kinds, words: words, bytes: contents.bytes)
  }

  private func exceptions(rows: Int, columns: Int) throws -> [StampException] {
    // A row has at most one exception for its existence and one for each column.
    let (most, overflow) = rows.multipliedReportingOverflow(by: columns + 1)
    let count = try structure.count("exceptions", cap: overflow ? .max : most)
    guard count > 0 else { return [] }
    try checkCancellation()
    try charge(values: count)
    try charge(count, each: MemoryLayout<StampException>.stride)
    let rowIndices = try integers(count, below: UInt64(rows), "rows of exceptions")
    let columnIndices = try integers(count, below: UInt64(columns) + 1, "columns of exceptions")
    let times = try integers(count)
    let clientCount = try structure.count("clients", cap: count)
    try charge(clientCount, each: 16)
    var list = WireReader(try take(16 * clientCount, from: .raw), name: "clients of exceptions")
    var clients: [ClientIdentifier] = []
    for _ in 0..<clientCount {
      let client = ClientIdentifier(bits: try list.bits())
      guard clients.last.map({ $0 < client }) ?? true else {
        throw CodecError(.malformed, "raw: clients of exceptions")
      }
      clients.append(client)
    }
    let authors = try integers(count, below: UInt64(clientCount), "authors of exceptions")
    return (0..<count).map { index in
      StampException(
        row: Int(rowIndices[index]),
        column: columnIndices[index] == 0 ? nil : Int(columnIndices[index] - 1),
        stamp: Stamp(
          time: HybridTime(rawValue: times[index]), client: clients[Int(authors[index])]))
    }
  }

  private func moves(rows: Int) throws -> [RowMove] {
    let count = try structure.count("moves", cap: rows)
    guard count > 0 else { return [] }
    try charge(count, each: 64)
    let rowIndices = try integers(count, below: UInt64(rows), "rows of moves")
    let destinations = try contents(count)
    return (0..<count).map { index in
      let start = Int(destinations.spans[index] >> 32)
      let length = Int(destinations.spans[index] & 0xFFFF_FFFF)
      return RowMove(
        row: Int(rowIndices[index]),
        destination: RowIdentity(bytes: Array(destinations.bytes[start..<start + length])))
    }
  }
}

extension TableChanges {
  /// Returns, for each column, the number of rows whose shape has it. Every row's shape must exist.
  func cellCounts() -> [Int] {
    var rowsOfShape = [Int](repeating: 0, count: shapes.count)
    rowsOfShape.withUnsafeMutableBufferPointer { rowsOfShape in
      for shape in rowShapes { rowsOfShape[Int(shape)] &+= 1 }
    }
    var counts = [Int](repeating: 0, count: columns.count)
    for (shape, rows) in zip(shapes, rowsOfShape) {
      for column in shape { counts[column] += rows }
    }
    return counts
  }
}
