import SyncModel

/// Names a row in the whole document.
struct RowKey: Hashable {
  var table: Int
  var identity: RowIdentity
}

/// A row while changes are merged into it and it is decided whether it is
/// shown.
final class WorkingRow {
  let key: RowKey
  let fingerprint: RowFingerprint
  var state: RowState
  /// Logical values by column; `nil` where nothing is known.
  var values: [Value?]
  /// The row as it is in its table; `nil` if it is not there.
  let shown: Shown?
  /// Whether bookkeeping has it among the parked rows.
  let wasParked: Bool
  /// The unique keys that it claimed when it was read.
  var oldClaims: [ClaimKey] = []
  /// The unique keys that it claims now.
  var claims: [ClaimKey] = []
  /// The author's key, for a row that has none here yet.
  var keyHint: Int64?
  /// The key that it gets here.
  var localKey: Int64?
  /// The constraint of its own table that refused it.
  var failure: ParkedRow.Reason?

  /// Whether it was edited here since the last sealing: its table shows it
  /// already, but what waits for it does not know yet.
  var isEdited = false

  /// Whether it holds every unique value that it claims.
  var stands = false
  /// Whether it is to be shown.
  var isVisible = false
  var hasExpandedClaims = false
  var hasExpandedChildren = false
  var hasExpandedWaiters = false

  /// A row in its table.
  struct Shown {
    /// The local values of the key columns.
    var key: [Value]
    /// The local values by column.
    var values: [Value]
  }

  init(
    key: RowKey, fingerprint: RowFingerprint, state: RowState?, values: [Value?], shown: Shown?,
    localKey: Int64?
  ) {
    self.key = key
    self.fingerprint = fingerprint
    self.values = values
    self.shown = shown
    self.localKey = localKey
    wasParked = state?.isParked ?? false
    self.state = state ?? .unstamped
    if shown != nil, self.state.existence == .unsaid {
      // It was there before syncing began.
      self.state.existence = .inserted
    }
  }

  /// Whether it exists, shown or not.
  var isInDocument: Bool { state.existence == .inserted }
}

/// A value, or a combination of values, that one row at most can hold.
struct ClaimKey: Hashable {
  var table: Int
  var index: Int
  var key: RowIdentity
}

extension RowState {
  /// Brings the state into its one form: the stamp that says most as the
  /// common one, and for a deleted row only the cells that are newer than the
  /// deletion.
  mutating func normalize(cells: [Int], precedes: (LocalStamp, LocalStamp) -> Bool) {
    if existence == .deleted {
      var newer: [Cell] = []
      for cell in exceptions where precedes(existenceStamp, cell.stamp) { newer.append(cell) }
      if precedes(existenceStamp, cellStamp) {
        let named = Set(exceptions.map(\.column))
        for column in cells where !named.contains(Int32(column)) {
          newer.append(Cell(column: Int32(column), stamp: cellStamp))
        }
        newer.sort { $0.column < $1.column }
      }
      cellStamp = existenceStamp
      exceptions = newer
      localKey = nil
      return
    }
    guard !exceptions.isEmpty else { return }
    let stamps = cells.map { stamp(of: $0) }
    var common = existenceStamp
    if !stamps.contains(common) {
      var counts: [LocalStamp: Int] = [:]
      for stamp in stamps { counts[stamp, default: 0] += 1 }
      let most = counts.values.max() ?? 0
      common =
        counts.filter { $0.value == most }.keys.min { precedes($0, $1) } ?? existenceStamp
    }
    cellStamp = common
    exceptions = zip(cells, stamps).compactMap { column, stamp in
      stamp == common ? nil : Cell(column: Int32(column), stamp: stamp)
    }
  }
}
