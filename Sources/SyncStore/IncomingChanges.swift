import SyncModel

/// The changes of one change set to one table, in terms of this store:
/// columns by their bits, clients by their short numbers, rows by their
/// fingerprints.
final class IncomingChanges {
  let changes: TableChanges
  let table: TableSchema
  /// For each of the change set's columns the column here; `nil` for one that
  /// stays on this device.
  let columns: [Int?]
  /// Those of the change set's columns that this store does not have.
  let foreignColumns: [Int]
  /// Whether an insertion says all cells that rows have here.
  let isComplete: Bool
  private(set) var fingerprints: [RowFingerprint] = []
  /// The rows in order of fingerprint.
  private(set) var order: [Int] = []

  /// What their author had not seen.
  let concurrency: Concurrency

  private let session: StoreSession
  private let author: Int32
  private var identities: [UInt8] = []
  private var identityEnds: [Int] = []
  /// For each row the index of its first cell, by column.
  private var cellCursors: [Int]
  private var exceptionCursor = 0
  private let destinations: [Int: RowIdentity]
  private let exceptionStamps: [LocalStamp]

  init(
    _ changes: TableChanges, table: TableSchema, author: Int32, concurrency: Concurrency,
    session: StoreSession
  ) throws {
    self.concurrency = concurrency
    self.changes = changes
    self.table = table
    self.author = author
    self.session = session
    let columns = changes.columns.map { name in
      table.columns.firstIndex { $0.wireName == name }
    }
    self.columns = columns
    foreignColumns = columns.indices.filter {
      columns[$0] == nil && !table.excludedNames.contains(changes.columns[$0].lowercased())
    }
    isComplete = Set(columns.compactMap { $0 }).isSuperset(of: table.cellPositions)
    cellCursors = Array(repeating: 0, count: changes.columns.count)
    exceptionStamps = try changes.exceptions.map {
      LocalStamp(
        time: $0.stamp.time.rawValue, client: try session.clients.number(of: $0.stamp.client))
    }
    destinations = Dictionary(
      changes.moves.map { ($0.row, $0.destination) }, uniquingKeysWith: { first, _ in first })
    readIdentities()
  }

  private func readIdentities() {
    let count = changes.count
    fingerprints.reserveCapacity(count)
    identityEnds.reserveCapacity(count)
    let kind = table.identity.kind
    let collations = table.identityPositions.map { table.columns[$0].keyCollation }
    for row in 0..<count {
      let start = identities.count
      if kind == .surrogate {
        identities.append(contentsOf: changes.keys[0].bytes[changes.keys[0].contentRange(at: row)])
      } else {
        for index in collations.indices {
          changes.keys[index].appendKey(at: row, collation: collations[index], to: &identities)
        }
      }
      identityEnds.append(identities.count)
      fingerprints.append(
        identities.withUnsafeBytes {
          session.fingerprint(UnsafeRawBufferPointer(rebasing: $0[start...]), of: kind)
        })
    }
    let fingerprints = fingerprints
    order = (0..<count).sorted { fingerprints[$0] < fingerprints[$1] }
  }

  func identity(_ row: Int) -> RowIdentity {
    RowIdentity(
      bytes: Array(identities[(row == 0 ? 0 : identityEnds[row - 1])..<identityEnds[row]]))
  }

  /// The stored states, by row.
  func states() throws -> [RowState?] {
    let stored = try session.access(table.id).stamps.states(of: order.map { fingerprints[$0] })
    var states = [RowState?](repeating: nil, count: changes.count)
    for (position, row) in order.enumerated() { states[row] = stored[position] }
    return states
  }

  // MARK: - Reading rows in order

  /// The stamp of a row's existence and of its cells without exception.
  func stamp(_ row: Int) -> LocalStamp {
    LocalStamp(time: changes.times[row].rawValue, client: author)
  }

  func shape(_ row: Int) -> [Int] { changes.shapes[Int(changes.rowShapes[row])] }

  /// The exceptions of the next row. Rows are asked for in order.
  func nextExceptions(_ row: Int) -> Range<Int> {
    let start = exceptionCursor
    while exceptionCursor < changes.exceptions.count,
      changes.exceptions[exceptionCursor].row == row
    {
      exceptionCursor += 1
    }
    return start..<exceptionCursor
  }

  func exceptionStamp(_ index: Int) -> LocalStamp { exceptionStamps[index] }

  /// Where the next row's value of a column is. Rows are asked for in order.
  @inline(__always)
  func nextCell(_ column: Int) -> Int {
    defer { cellCursors[column] += 1 }
    return cellCursors[column]
  }

  /// The next row as a change of its own. Rows are asked for in order.
  func change(_ row: Int) -> WorkingSet.Change {
    let exceptions = nextExceptions(row)
    let cells = shape(row).map { (index: $0, cell: nextCell($0)) }
    return change(row, exceptions: exceptions, cells: cells)
  }

  /// A row as a change of its own.
  func change(
    _ row: Int, exceptions: Range<Int>, cells: [(index: Int, cell: Int)]
  ) -> WorkingSet.Change {
    let action = RowAction(rawValue: changes.actions[row]) ?? .update
    let said = exceptions.first { changes.exceptions[$0].column == nil }.map {
      exceptionStamps[$0]
    }
    let values = cells.compactMap {
      index, cell -> (column: Int, value: Value, stamp: LocalStamp)? in
      guard let column = columns[index] else { return nil }
      var stamp = stamp(row)
      for exception in exceptions where changes.exceptions[exception].column == index {
        stamp = exceptionStamps[exception]
      }
      return (column, changes.cells[index][cell], stamp)
    }
    let rowStamp = action == .update ? stamp(row) : said ?? stamp(row)
    return WorkingSet.Change(
      action: action, stamp: rowStamp,
      cells: values,
      keyHint: table.identity == .surrogate ? StoreSession.key(changes.keys[1][row]) : nil,
      movedTo: destinations[row], replaces: action == .update ? said : nil,
      silence: action == .erase ? rowStamp : nil, concurrency: concurrency)
  }
}
