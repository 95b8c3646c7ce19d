import SyncModel

/// A row into which changes are merged, with the decisions whether and how it is shown.
final class WorkingRow {
  let key: RowKey
  let fingerprint: RowFingerprint
  var state: RowState
  /// The state when the row was loaded.
  let loadedState: RowState
  /// Logical values by column; `nil` where nothing is known.
  var values: [Value?]
  /// The logical values when it was loaded.
  let loadedValues: [Value?]
  /// The row as it is in its table; `nil` if it is not there.
  let shown: ShownRow?
  /// Whether it went from its table unseen (``StoreSession/wentUnseen(_:_:)``). Such a row is not
  /// written.
  var isUnseen = false
  /// Whether it was living when it was loaded.
  var wasLiving = false
  /// Whether it was deleted when it was loaded.
  var wasDead = false
  /// Whether an edit won over its deletion.
  var isRevived = false
  /// Whether bookkeeping had an entry for it (``KeptRow``) when it was loaded.
  let wasKept: Bool
  /// Whether it was shown under another identity.
  var wasElsewhere: Bool
  /// Whether another row was shown under its identity.
  let wasBorrowed: Bool
  /// The identity under which a deleted row lives on.
  var movedTo: RowIdentity?
  /// The value of ``movedTo`` when the row was loaded.
  let loadedMovedTo: RowIdentity?
  /// The unique keys that it claimed when it was loaded.
  var oldClaims: [ClaimKey] = []
  /// Further unique keys that it claimed, without being shown with them.
  var oldFormerClaims: [ClaimKey] = []
  /// The unique keys that it claims now.
  var claims: [ClaimKey] = []
  /// Further unique keys that it claims, with the values that would be shown without stand-ins.
  var formerClaims: [ClaimKey] = []
  /// The author's key, for a row that has no key on this device yet.
  var keyHint: Int64?
  /// Its key on this device, once it has one.
  var localKey: Int64?
  /// The constraint of its own table that refused it.
  var failure: ParkedRow.Reason?

  /// Whether it is refused since another row has its key here (``Materializer/giveWay()``).
  var givesWay = false

  /// Whether its table's conditions were checked although it is not written.
  var isTried = false

  /// Whether it was edited here since the last sealing: its table shows the edit already, but the
  /// rows that wait for it are not up to date yet.
  var isEdited = false

  // MARK: - Decisions

  /// Its references that name rows by their identities.
  var links: [Link] = []
  /// Whether it comes back although it was deleted, or would be deleted with a deleted row.
  var isRescued = false
  /// Whether it is deleted with a row that was deleted.
  var isKilled = false
  /// Whether it exists, shown or not.
  var exists = false
  /// The values that references show in place of their own, by column.
  var overlays: [Int: Value] = [:]
  /// The overlays that do not come from stand-ins.
  var ownOverlays: [Int: Value] = [:]
  /// The row to which references to this row are shown to lead, since this row lost a unique value.
  var standIn: WorkingRow?
  /// The identity under which the row is shown, since rows in its own identity have stand-ins;
  /// `nil` if it is shown under its own.
  var shownIdentity: RowIdentity?
  /// The row that is shown under the identity of this row, which does not exist itself.
  var borrower: WorkingRow?
  /// Whether it is shown under another identity.
  var isElsewhere = false
  /// The constraint of its own table that refuses it because of a stand-in.
  var standInFailure: ParkedRow.Reason?
  /// Whether it holds every unique value that it claims.
  var stands = false
  /// Whether it is to be shown.
  var isVisible = false
  /// Whether it stays in its table as it is, although it is not to be shown
  /// (``Materializer/leaveUncompared()``).
  var isLeftAlone = false

  var hasExpandedParents = false
  var hasExpandedReferrers = false
  var hasExpandedChildren = false
  var hasExpandedReferrersByColumns = false
  var hasExpandedWaiters = false
  var hasExpandedStrangers = false

  /// A reference that is not NULL.
  struct Link {
    var key: ForeignKey
    /// The row to which it leads; `nil` if it leads nowhere.
    var target: RowKey?
    /// The row to which it leads, if that is in the set.
    var row: WorkingRow?
    /// The rows to which the row that it names has moved, in order.
    var path: [RowKey]
    /// Whether the row that it names lives on under another identity.
    var isMoved: Bool
  }

  init(
    key: RowKey, fingerprint: RowFingerprint, state: RowState?, values: [Value?], shown: ShownRow?,
    localKey: Int64?, movedTo: RowIdentity?, keptAs reason: KeptRow.Reason? = nil
  ) {
    self.key = key
    self.fingerprint = fingerprint
    self.values = values
    self.shown = shown
    self.localKey = localKey
    self.movedTo = movedTo
    loadedValues = values
    loadedMovedTo = movedTo
    wasKept = state?.isKept ?? false
    wasElsewhere = reason == .elsewhere
    wasBorrowed = reason == .borrowed
    var state = state ?? .unstamped
    if shown != nil, reason != .borrowed, state.existence == .unsaid {
      // The row existed before syncing began.
      state.existence = .inserted
    }
    self.state = state
    loadedState = state
  }

  /// Whether it was inserted, and not deleted since.
  var isLiving: Bool { state.existence == .inserted || isRevived }

  /// Whether it was deleted.
  var isDead: Bool { state.existence == .deleted && !isRevived }

  /// Returns whether clients have added to the counter in a column.
  func isAddedTo(_ column: Int) -> Bool {
    guard case .counter = values[column].flatMap(CounterValue.init) else { return false }
    return true
  }

  /// Returns the logical value that a column shows.
  func shownValue(_ column: Int) -> Value? { overlays[column] ?? values[column] }
}

extension RowState {
  /// Brings the state into its canonical form. The common stamp is that of the existence if a cell
  /// has it, else the most frequent one.
  mutating func normalize(
    of table: TableSchema, precedes: (LocalStamp, LocalStamp) -> Bool
  ) {
    let cells = table.cellPositions
    if existence == .deleted { localKey = nil }
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
