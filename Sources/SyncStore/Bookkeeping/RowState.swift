import SyncModel

/// A stamp that names its client by the short number in this store.
struct LocalStamp: Hashable {
  var time: UInt64
  var client: Int32

  static let zero = LocalStamp(time: 0, client: 0)
}

/// The state of a row for merging: whether it exists, and the stamps of its existence and its
/// cells.
///
/// A row that is in its table and has no state was there before syncing began, and all its stamps
/// are zero.
struct RowState: Hashable {
  enum Existence: UInt8 {
    /// No insertion or deletion is known: an edit arrived for a row that this store has never seen,
    /// or the row was there before syncing began.
    case unsaid = 0
    case inserted = 1
    case deleted = 2
  }

  var existence: Existence
  /// The stamp of the insertion or deletion.
  var existenceStamp: LocalStamp
  /// The stamp of every cell that has no exception.
  var cellStamp: LocalStamp
  /// Cells with another stamp, in order of column.
  var exceptions: [Cell] = []
  /// The stamp of the newest deletion that erased the cells; zero if there is none. Cells with an
  /// older stamp are dropped whenever they arrive, so that an edit older than the deletion never
  /// returns.
  var erasureStamp = LocalStamp.zero
  /// Whether bookkeeping stores more of the row than its table shows: see ``KeptRow``.
  var isKept = false
  /// The key that the row has or had in its table, for surrogates.
  var localKey: Int64?

  struct Cell: Hashable {
    var column: Int32
    var stamp: LocalStamp
  }

  /// A row that was there before syncing began.
  static let unstamped = RowState(
    existence: .unsaid, existenceStamp: .zero, cellStamp: .zero)

  /// Whether the row is deleted and its cells are erased, so that nothing can bring it back.
  var isErased: Bool { existence == .deleted && erasureStamp == existenceStamp }

  /// Whether no change of the row is known since syncing began.
  var isUnstamped: Bool {
    existence != .deleted && existenceStamp == .zero && cellStamp == .zero && exceptions.isEmpty
  }

  /// The time of the latest change of the row.
  var greatestTime: UInt64 {
    exceptions.reduce(max(existenceStamp.time, cellStamp.time)) { max($0, $1.stamp.time) }
  }

  func stamp(of column: Int) -> LocalStamp {
    for cell in exceptions where cell.column == Int32(column) { return cell.stamp }
    return cellStamp
  }

  /// The version of a row all of whose columns are one register: the newest stamp of its cells. A
  /// device that lacks a column edits the others alone, so that one column's stamp may be older.
  func version(
    in table: TableSchema, precedes: (LocalStamp, LocalStamp) -> Bool
  ) -> LocalStamp {
    table.cellPositions.map(stamp).max(by: precedes) ?? .zero
  }

  mutating func setStamp(_ stamp: LocalStamp, of column: Int) {
    let column = Int32(column)
    let position = exceptions.firstIndex { $0.column >= column } ?? exceptions.count
    let isPresent = position < exceptions.count && exceptions[position].column == column
    if stamp == cellStamp {
      if isPresent { exceptions.remove(at: position) }
    } else if isPresent {
      exceptions[position].stamp = stamp
    } else {
      exceptions.insert(Cell(column: column, stamp: stamp), at: position)
    }
  }
}

extension HybridTime {
  /// Returns this time if it is later than a stamp, or else the next time after the stamp, for an
  /// edit that overwrites a value with that stamp.
  func raised(above stamp: LocalStamp) -> HybridTime {
    rawValue > stamp.time ? self : HybridTime(rawValue: stamp.time).next
  }

  /// Returns this time if it is later than all stamps of a row, or else the next time after them.
  func raised(aboveAllOf state: RowState) -> HybridTime {
    raised(above: LocalStamp(time: state.greatestTime, client: 0))
  }
}

/// The key of a row among the stamps: 79 bits of its identity, or of a keyed hash of it.
struct RowFingerprint: Hashable, Comparable {
  /// 63 bits, so that it is positive as SQLite's integer.
  var high: UInt64
  var low: UInt16

  static func < (left: RowFingerprint, right: RowFingerprint) -> Bool {
    left.high == right.high ? left.low < right.low : left.high < right.high
  }
}
