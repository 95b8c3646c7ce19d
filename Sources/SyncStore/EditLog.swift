import GRDB
import SyncModel

/// The log of one table, read in order of row and, for each row, of time, a
/// bounded number of rows at once.
struct EditLog {
  /// All that the log says of one row.
  struct Row {
    /// The kind of the oldest entry.
    var first: CaptureTriggers.Entry
    /// When the row was last inserted; `nil` if it was not.
    var insertTime: HybridTime?
    /// When the newest entry was made.
    var lastTime: HybridTime
    /// The entries of updates since the last insert, in `updates`.
    var updates: Range<Int>
  }

  /// An update of one row.
  struct Update {
    var time: HybridTime
    /// The changed columns, by bit.
    var columns: ColumnSet
  }

  /// A batch of rows in order of their keys.
  struct Batch {
    var rows: [Row] = []
    var updates: [Update] = []
    /// The local values of the key columns.
    var keys: [ValueColumn]
  }

  private let table: TableSchema
  private let statement: SQLStatement
  private var hasEntry: Bool

  init(table: TableSchema, session: StoreSession) throws {
    self.table = table
    let keys = table.keyColumns.indices.map { "k\($0)" }
    let order = zip(keys, Self.collations(table)).map { "\($0) COLLATE \($1)" }
    // SQLite sorts in bounded memory, on disk if need be.
    statement = try SQLStatement(
      "SELECT op, at, mask, \(keys.joined(separator: ", ")) FROM \(table.logName) "
        + "WHERE \(keys.map { "\($0) IS NOT NULL" }.joined(separator: " AND ")) "
        + "ORDER BY \(order.joined(separator: ", ")), seq", on: session.database)
    hasEntry = try statement.step()
  }

  private static func collations(_ table: TableSchema) -> [String] {
    table.identity == .surrogate
      ? ["BINARY"] : table.identityPositions.map { table.columns[$0].collation }
  }

  /// The next rows, at most `limit`; empty at the end.
  mutating func next(limit: Int) throws -> Batch {
    let keyCount = table.keyColumns.count
    var batch = Batch(keys: Array(repeating: ValueColumn(), count: keyCount))
    let collations = table.identityPositions.map { table.columns[$0].keyCollation }
    var currentKey: [UInt8] = []
    var entryKey: [UInt8] = []
    while hasEntry {
      entryKey.removeAll(keepingCapacity: true)
      for index in 0..<keyCount {
        statement.appendKey(
          at: 3 + index, collation: index < collations.count ? collations[index] : .binary,
          to: &entryKey)
      }
      if batch.rows.isEmpty || entryKey != currentKey {
        if batch.rows.count == limit { return batch }
        swap(&currentKey, &entryKey)
        for index in 0..<keyCount { statement.append(at: 3 + index, to: &batch.keys[index]) }
        let start = batch.updates.count
        batch.rows.append(
          Row(
            first: try kind(), insertTime: nil, lastTime: .zero, updates: start..<start))
      }
      try add(to: &batch)
      hasEntry = try statement.step()
    }
    return batch
  }

  private func kind() throws -> CaptureTriggers.Entry {
    guard let kind = CaptureTriggers.Entry(rawValue: statement.integer(at: 0)) else {
      throw DatabaseError(
        resultCode: .SQLITE_CORRUPT, message: "\(table.logName) has an unknown kind of entry")
    }
    return kind
  }

  private func add(to batch: inout Batch) throws {
    let time = HybridTime(julianDay: statement.real(at: 1))
    let last = batch.rows.count - 1
    batch.rows[last].lastTime = max(batch.rows[last].lastTime, time)
    switch try kind() {
    case .insert:
      batch.rows[last].insertTime = max(batch.rows[last].insertTime ?? .zero, time)
      batch.updates.removeSubrange(batch.rows[last].updates)
      batch.rows[last].updates = batch.updates.count..<batch.updates.count
    case .update:
      let columns = ColumnSet(statement, at: 2)
      let updates = batch.rows[last].updates
      if !updates.isEmpty, batch.updates[updates.upperBound - 1].time >= time {
        // The clock stood or went back: the order of the log decides.
        batch.updates[updates.upperBound - 1].columns.formUnion(columns)
      } else {
        batch.updates.append(Update(time: time, columns: columns))
        batch.rows[last].updates = updates.lowerBound..<batch.updates.count
      }
    case .delete:
      batch.rows[last].insertTime = nil
      batch.updates.removeSubrange(batch.rows[last].updates)
      batch.rows[last].updates = batch.updates.count..<batch.updates.count
    case .replaced, .present: break
    }
  }
}

/// A set of columns, by bit.
struct ColumnSet: Hashable {
  private(set) var words: [UInt64]

  init() { words = [] }

  /// Reads the mask of a log's entry: an integer, or several with commas.
  init(_ statement: SQLStatement, at position: Int) {
    if statement.isText(at: position) {
      words = statement.text(at: position).split(separator: ",").map { UInt64($0) ?? 0 }
    } else {
      words = [UInt64(bitPattern: statement.integer(at: position))]
    }
  }

  mutating func formUnion(_ other: ColumnSet) {
    for (index, word) in other.words.enumerated() {
      if index < words.count { words[index] |= word } else { words.append(word) }
    }
  }

  func contains(_ column: Int) -> Bool {
    let index = column / CaptureTriggers.bitsPerMask
    return index < words.count
      && words[index] >> UInt64(column % CaptureTriggers.bitsPerMask) & 1 != 0
  }
}

extension HybridTime {
  /// The time of a Julian day as SQLite gives it.
  init(julianDay: Double) {
    let milliseconds = (julianDay - 2_440_587.5) * 86_400_000
    self.init(
      milliseconds: milliseconds.isFinite
        ? Int64(min(max(milliseconds.rounded(), 0), Double(Self.greatestMilliseconds))) : 0)
  }
}
