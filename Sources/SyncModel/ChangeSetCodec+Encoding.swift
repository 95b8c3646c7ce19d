extension ChangeSetCodec {
  /// Encodes checked tables as the lanes of a body.
  static func encodeTables(_ tables: [TableChanges]) -> LaneWriter {
    var lanes = LaneWriter()
    for table in tables { lanes.append(table) }
    return lanes
  }
}

extension Lane {
  /// Returns the effort for a lane: thorough below 32 KiB, where it costs little.
  func effort(count: Int) -> Deflate.Effort { count < 32 << 10 ? .thorough : .fast }
}

extension LaneWriter {
  fileprivate mutating func append(_ table: TableChanges) {
    append(name: table.table)
    structure.append(table.identity.rawValue)
    structure.append(varint: table.keyColumns.count)
    for name in table.keyColumns { append(name: name) }
    structure.append(varint: table.columns.count)
    for name in table.columns { append(name: name) }

    structure.append(varint: table.count)
    append(integers: table.actions)
    for key in table.keys { append(key, sorted: true) }
    append(integers: table.times.map(\.rawValue))
    structure.append(varint: table.shapes.count)
    for shape in table.shapes { append(shape: shape) }
    append(integers: table.rowShapes)
    for cells in table.cells { append(cells, sorted: false) }
    append(table.exceptions)
    append(table.moves)
  }

  private mutating func append(name: SQLName) {
    var text = name.text
    text.withUTF8 { bytes in
      structure.append(varint: bytes.count)
      structure.append(contentsOf: bytes)
    }
  }

  private mutating func append(shape: [Int]) {
    structure.append(varint: shape.count)
    var next = 0
    for column in shape {
      structure.append(varint: column - next)
      next = column + 1
    }
  }

  private mutating func append(_ column: ValueColumn, sorted: Bool) {
    guard column.count > 0 else { return }
    append(integers: column.kinds)
    column.bytes.withUnsafeBytes { bytes in
      column.words.withUnsafeBufferPointer { words in
        let first = column.kinds[0]
        if column.kinds.allSatisfy({ $0 == first }) {
          append(words, of: first, bytes: bytes, sorted: sorted)
          return
        }
        // Split by kind; text, blobs and identities share one sequence.
        var parts: [UInt8: [UInt64]] = [:]
        for (kind, word) in zip(column.kinds, words) {
          parts[min(kind, ValueKind.text.rawValue), default: []].append(word)
        }
        for kind in ValueKind.integer.rawValue...ValueKind.text.rawValue {
          parts[kind, default: []].withUnsafeBufferPointer {
            append($0, of: kind, bytes: bytes, sorted: sorted)
          }
        }
      }
    }
  }

  private mutating func append(
    _ words: UnsafeBufferPointer<UInt64>, of kind: UInt8, bytes: UnsafeRawBufferPointer,
    sorted: Bool
  ) {
    switch kind {
    case ValueKind.null.rawValue: break
    case ValueKind.integer.rawValue: append(integers: words)
    case ValueKind.real.rawValue: append(patterns: words)
    default: append(contents: ContentSpans(bytes: bytes, spans: words), sorted: sorted)
    }
  }

  private mutating func append(_ exceptions: [StampException]) {
    structure.append(varint: exceptions.count)
    guard !exceptions.isEmpty else { return }
    append(integers: exceptions.map(\.row))
    append(integers: exceptions.map { $0.column.map { $0 + 1 } ?? 0 })
    append(integers: exceptions.map(\.stamp.time.rawValue))
    let clients = Set(exceptions.map(\.stamp.client)).sorted()
    structure.append(varint: clients.count)
    for client in clients { raw += client.bits.bytes }
    let indices = Dictionary(uniqueKeysWithValues: clients.enumerated().map { ($1, $0) })
    append(integers: exceptions.map { indices[$0.stamp.client] ?? 0 })
  }

  private mutating func append(_ moves: [RowMove]) {
    structure.append(varint: moves.count)
    guard !moves.isEmpty else { return }
    append(integers: moves.map(\.row))
    var destinations = ValueColumn()
    for move in moves {
      move.destination.bytes.withUnsafeBytes { destinations.append(.identity, content: $0) }
    }
    destinations.bytes.withUnsafeBytes { bytes in
      destinations.words.withUnsafeBufferPointer { words in
        append(contents: ContentSpans(bytes: bytes, spans: words), sorted: false)
      }
    }
  }
}
