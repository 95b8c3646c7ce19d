import GRDB
import SyncModel

/// The log of one table, read in the order in which it was written, a bounded
/// number of rows at once.
///
/// That order is mostly the order of the rows in the file, and one statement
/// joins the log with the rows, which is many times cheaper than reading each
/// row by itself in order of key. A row that is edited over a long time appears
/// in several batches.
struct EditLog {
  /// The entries of one batch for one row, combined.
  struct Row {
    /// The kind of the oldest entry.
    ///
    /// If that kind is impossible, the row was there before: the entries of a
    /// deletion and of a changed key come after the effects of their foreign
    /// keys and of the triggers of those.
    var first: CaptureTriggers.Entry { insertions < (isPresent ? 1 : 0) ? .delete : oldest }
    var oldest: CaptureTriggers.Entry
    /// The number of its insertions minus the number of its deletions.
    var insertions = 0
    /// The time of the last insertion; `nil` if there was none, or the row was deleted after it.
    var insertTime: HybridTime?
    /// The time of the oldest entry of the batch.
    var firstTime = HybridTime.zero
    /// The time of the newest entry.
    var lastTime = HybridTime.zero
    /// The time of the entry before the newest one; zero if there is none.
    var earlierTime = HybridTime.zero
    /// Whether an entry shows that the row may be gone.
    var mayBeGone = false
    /// The updates since the last insert, in order of time.
    var updates: [Update] = []
    /// Whether the row is in its table.
    var isPresent: Bool
    /// The places of the values of its changed columns among the batch's cells.
    var cells: [Cell] = []
    /// The columns that were changed, including changes before a deletion.
    var changed = ColumnSet()
    /// The index of its last values among the batch's old ones; `nil` if they
    /// were not recorded.
    var old: Int?
    /// The indexes of the values before the first update among the batch's old
    /// ones, by column.
    var bases: [Int: Int] = [:]
    /// Whether it was deleted while it was not shown.
    var isHidden = false
    /// Whether it is to be inserted as it is, if it is deleted.
    var isReborn = false
    /// Whether it records the former identity of a row that has another
    /// identity now.
    var isFormer = false
    fileprivate var hasAllCells = false
    var hasOnlyUpdates = true
    fileprivate var read = ColumnSet()
    let hash: Bits128

    init(
      oldest: CaptureTriggers.Entry, isPresent: Bool, hash: Bits128 = Bits128(high: 0, low: 0)
    ) {
      self.oldest = oldest
      self.isPresent = isPresent
      self.hash = hash
    }
  }

  /// A value that was read.
  struct Cell {
    /// The position of the column.
    var column: Int
    /// The index in the batch's values of the column.
    var index: Int
  }

  /// An update of one row.
  struct Update {
    var time: HybridTime
    /// The changed columns, by bit.
    var columns: ColumnSet
  }

  /// A batch of rows, each once, in order of their first entries.
  struct Batch {
    var rows: [Row] = []
    /// The local values of the key columns.
    var keys: [ValueColumn]
    /// Local values by position of column; the cells of a ``Row`` point to
    /// them.
    var cells: [ValueColumn]
    /// Old local values of rows, by position of column.
    var olds: [ValueColumn]
    /// The number of entries for these rows.
    var entryCount = 0
    /// Whether nothing was left in the log after it.
    var isLast = false

    /// The bytes of text and blobs in the cells.
    var contentCount: Int {
      var count = 0
      for index in cells.indices { count += cells[index].bytes.count }
      return count
    }
  }

  private let table: TableSchema
  private let statement: SQLStatement
  private let session: StoreSession
  private let collations: [KeyCollation]
  private let cellPositions: [Int]
  private let baseColumns: [Int]
  /// The position of the first cell in the statement's result.
  private let firstCell: Int
  private let recorded: [Int]
  /// The position of the first old value in the statement's result or, in a table of many columns,
  /// of the number of the entry.
  private let firstOld: Int
  /// The statement that reads the old values of an entry by its number; `nil` if they are in the
  /// result of the other statement.
  private let oldsApart: SQLStatement?
  /// The rows of earlier batches that are not in their table; `nil` during the first batch.
  private var departed: DepartedRows?
  private var hasEntry: Bool

  /// - Parameter isBrief: Whether the values of the rows are not wanted, apart from their keys.
  init(table: TableSchema, session: StoreSession, isBrief: Bool = false) throws {
    self.table = table
    self.session = session
    let keys = table.keyColumns.indices.map { "k\($0)" }
    collations =
      table.identity == .surrogate
      ? [.binary] : table.identityPositions.map { table.columns[$0].keyCollation }
    cellPositions = isBrief ? [] : table.cellPositions
    baseColumns = isBrief ? [] : table.baseColumns
    firstCell = 4 + keys.count
    let match = zip(table.keyColumns, keys).map { "t.\(quoted($0)) = l.\($1)" }
    let logged = keys.map { "l.\($0)" }
    let cells = cellPositions.map { "t.\(quoted(table.columns[$0].name))" }
    recorded = isBrief ? [] : table.recordedColumns
    firstOld = firstCell + cells.count
    let olds = recorded.map { "l.\(CaptureTriggers.Column.old($0))" }
    let isTooWide = firstOld + olds.count > TableSchema.greatestColumnCount
    oldsApart =
      isTooWide
      ? try SQLStatement(
        "SELECT \(olds.joined(separator: ", ")) FROM \(table.logName) AS l WHERE l.seq = ?",
        on: session.database) : nil
    statement = try SQLStatement(
      """
      SELECT l.op, l.at, l.mask, t.\(quoted(table.keyColumns[0])) IS NOT NULL, \
      \((logged + cells + (isTooWide ? ["l.seq"] : olds)).joined(separator: ", ")) \
      FROM \(table.logName) AS l LEFT JOIN \(table.quotedName) AS t \
      ON \(match.joined(separator: " AND ")) \
      WHERE \(logged.map { "\($0) IS NOT NULL" }.joined(separator: " AND ")) ORDER BY l.seq
      """, on: session.database)
    hasEntry = try statement.step()
  }

  /// Returns the next rows, at most `limit`, and no more once their cells have `byteLimit` bytes.
  /// Returns an empty batch at the end.
  mutating func next(limit: Int, byteLimit: Int) throws -> Batch {
    var batch = emptyBatch
    var positions: [KeyHash: Int] = [:]
    var key: [UInt8] = []
    while hasEntry {
      readKey(into: &key)
      let hash = session.hash(key)
      let position: Int
      if let known = positions[KeyHash(hash)] {
        position = known
      } else {
        if batch.rows.count == limit || batch.contentCount >= byteLimit {
          try rememberDeparted(of: batch)
          return batch
        }
        position = batch.rows.count
        positions[KeyHash(hash)] = position
        try appendRow(hash, to: &batch)
      }
      try add(to: &batch.rows[position], &batch.cells, &batch.olds)
      batch.entryCount += 1
      hasEntry = try statement.step()
    }
    batch.isLast = true
    return batch
  }

  /// Returns the first rows that are not in `seen`, at most `limit`, each with all its entries, and adds
  /// them to `seen`. Reads the log to its end, so it can be called once.
  mutating func first(_ limit: Int, notIn seen: inout Set<KeyHash>) throws -> Batch {
    var batch = emptyBatch
    batch.isLast = true
    var positions: [KeyHash: Int] = [:]
    var key: [UInt8] = []
    while hasEntry {
      readKey(into: &key)
      let hash = session.hash(key)
      let row = KeyHash(hash)
      if positions[row] == nil, !seen.contains(row) {
        if batch.rows.count < limit {
          positions[row] = batch.rows.count
          try appendRow(hash, to: &batch)
        } else {
          batch.isLast = false
        }
      }
      if let position = positions[row] {
        try add(to: &batch.rows[position], &batch.cells, &batch.olds)
        batch.entryCount += 1
      }
      hasEntry = try statement.step()
    }
    seen.formUnion(positions.keys)
    return batch
  }

  private var emptyBatch: Batch {
    Batch(
      keys: Array(repeating: ValueColumn(), count: collations.count),
      cells: Array(repeating: ValueColumn(), count: table.columns.count),
      olds: Array(repeating: ValueColumn(), count: table.columns.count))
  }

  @inline(__always)
  private func readKey(into key: inout [UInt8]) {
    key.removeAll(keepingCapacity: true)
    for index in collations.indices {
      statement.appendKey(at: 4 + index, collation: collations[index], to: &key)
    }
  }

  /// The hash of a row's key in a dictionary: a lookup would call the functions of ``Bits128``, which
  /// is in another module.
  struct KeyHash: Hashable {
    private let high: UInt64
    private let low: UInt64

    fileprivate init(_ hash: Bits128) {
      high = hash.high
      low = hash.low
    }

    /// Hashes one half, which is a hash by a secret already.
    func hash(into hasher: inout Hasher) { hasher.combine(low) }
  }

  /// Appends the row of the current entry, which is its oldest one in the batch.
  private func appendRow(_ hash: Bits128, to batch: inout Batch) throws {
    for index in collations.indices {
      statement.append(at: 4 + index, to: &batch.keys[index])
    }
    let isPresent = statement.integer(at: 3) != 0
    batch.rows.append(Row(oldest: try kind(), isPresent: isPresent, hash: hash))
    if !isPresent { try departed?.recall(&batch.rows[batch.rows.count - 1]) }
  }

  private mutating func rememberDeparted(of batch: Batch) throws {
    let departed = try departed ?? DepartedRows(database: session.database)
    self.departed = departed
    for row in batch.rows where !row.isPresent { try departed.remember(row) }
  }

  private func kind() throws -> CaptureTriggers.Entry {
    try CaptureTriggers.Entry(reading: statement.integer(at: 0), from: "\(table.logName)")
  }

  private func add(
    to row: inout Row, _ cells: inout [ValueColumn], _ olds: inout [ValueColumn]
  ) throws {
    // If the clock went back, the order of the log decides. The time has to be later than that of
    // the entry before: a copy of the store may have sealed that one.
    var time = HybridTime(julianDay: statement.real(at: 1))
    if time < row.lastTime { time = row.lastTime.next }
    row.earlierTime = row.lastTime
    row.lastTime = time
    if row.firstTime == .zero { row.firstTime = time }
    let kind = try kind()
    if kind != .update {
      // A cascade updates a row under its new key before the triggers of the
      // changed key log its insertion.
      if row.hasOnlyUpdates { row.oldest = kind }
      row.hasOnlyUpdates = false
    }
    switch kind {
    case .insert:
      row.insertions += 1
      row.insertTime = time
      row.updates.removeAll()
      row.bases.removeAll()
      for position in recorded { row.changed.formUnion(ColumnSet(position)) }
      if row.isPresent, !row.hasAllCells { readAllCells(of: &row, &cells) }
    case .update:
      var columns = registers(of: ColumnSet(statement, at: 2))
      if !recorded.isEmpty { row.changed.formUnion(columns) }
      try readBases(columns, of: &row, &olds)
      if row.isPresent, !row.hasAllCells { readCells(columns, of: &row, &cells) }
      // Drops overwritten updates, so that a row that is edited again and again takes no more room.
      while let last = row.updates.last, last.time == time || last.columns.isSubset(of: columns) {
        row.updates.removeLast()
        columns.formUnion(last.columns)
      }
      row.updates.append(Update(time: time, columns: columns))
    case .delete:
      // The log has deletions after the effects of their foreign keys and of
      // the triggers of those: a row that is there now was inserted again
      // meanwhile.
      row.insertions -= 1
      row.insertTime = row.isPresent ? time : nil
      if row.isPresent, !row.hasAllCells { readAllCells(of: &row, &cells) }
      row.bases.removeAll()
      row.mayBeGone = true
      row.updates.removeAll()
      try readOldValues(of: &row, &olds)
    case .replaced, .leaving:
      row.mayBeGone = true
      try readOldValues(of: &row, &olds)
    case .present: try readOldValues(of: &row, &olds)
    case .rebirth: row.isReborn = true
    case .renamed: break
    case .hiddenDelete:
      row.insertTime = nil
      row.mayBeGone = true
      row.isHidden = true
      row.updates.removeAll()
    }
  }

  /// Returns the columns, and those that form one register with any of them.
  private func registers(of columns: ColumnSet) -> ColumnSet {
    guard !table.registers.isEmpty else { return columns }
    var result = columns
    for (column, register) in table.registers where columns.contains(column) {
      result.formUnion(register)
    }
    return result
  }

  private func readBases(
    _ columns: ColumnSet, of row: inout Row, _ olds: inout [ValueColumn]
  ) throws {
    for position in baseColumns
    where columns.contains(position) && row.bases[position] == nil {
      guard let offset = recorded.firstIndex(of: position) else { continue }
      row.bases[position] = olds[position].count
      let (reading, first) = try oldValues()
      reading.append(at: first + offset, to: &olds[position])
    }
    oldsApart?.reset()
  }

  /// Returns the statement that has the old values of the current entry, and the position of the
  /// first one. The caller resets ``oldsApart``.
  private func oldValues() throws -> (reading: SQLStatement, first: Int) {
    guard let oldsApart else { return (statement, firstOld) }
    oldsApart.reset()
    oldsApart.bind(statement.integer(at: firstOld), at: 1)
    _ = try oldsApart.step()
    return (oldsApart, 0)
  }

  private func readOldValues(of row: inout Row, _ olds: inout [ValueColumn]) throws {
    guard let first = recorded.first else { return }
    let (reading, firstValue) = try oldValues()
    defer { oldsApart?.reset() }
    // All columns of one row get the same index, though some have more values.
    let index = recorded.map { olds[$0].count }.max() ?? olds[first].count
    row.old = index
    for (offset, position) in recorded.enumerated() {
      while olds[position].count < index { olds[position].append(.null) }
      reading.append(at: firstValue + offset, to: &olds[position])
    }
  }

  private func readAllCells(of row: inout Row, _ cells: inout [ValueColumn]) {
    row.hasAllCells = true
    row.cells.removeAll()
    row.cells.reserveCapacity(cellPositions.count)
    for (offset, position) in cellPositions.enumerated() {
      // To ask the column for its count would copy the column.
      row.cells.append(Cell(column: position, index: cells[position].kinds.count))
      statement.append(at: firstCell + offset, to: &cells[position])
    }
  }

  private func readCells(
    _ columns: ColumnSet, of row: inout Row, _ cells: inout [ValueColumn]
  ) {
    guard row.read != columns else { return }
    for (offset, position) in cellPositions.enumerated()
    where columns.contains(position) && !row.read.contains(position) {
      row.cells.append(Cell(column: position, index: cells[position].kinds.count))
      statement.append(at: firstCell + offset, to: &cells[position])
    }
    row.read.formUnion(columns)
  }
}
