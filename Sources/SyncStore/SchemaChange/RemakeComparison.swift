import GRDB
import SyncModel

/// A comparison of a table that a program has remade with the same table in another store of the
/// document. It logs the differences.
///
/// If a cell has the same stamp in both stores, both know the same edits of it: if the values
/// differ, the cell was edited while there were no triggers. The same holds for rows. Entries that
/// triggers have written since the remake come after those of the comparison.
struct RemakeComparison {
  let session: StoreSession
  let table: TableSchema
  let access: TableAccess
  let former: StoreSession
  let formerAccess: TableAccess
  let log: RemakeLog
  let logKeys: LogKeys
  let names: NewRowNames
  /// Whether the other store knows everything that this store knew before the remake. Then this
  /// store has sealed since whatever it knows besides.
  private let isExact: Bool
  let checkCancellation: () throws -> Void
  let absentValues: AbsentValues
  /// The edits that no change set has carried, so that no other store knows of them.
  let held: HeldEdits.OfTable
  /// `nil` if the key of the table has the same form in the other store.
  private let otherIdentities: OtherIdentities?
  /// The cells that can be compared, by their positions in this store and in the other one.
  let cells: [(here: Int, there: Int)]
  /// The cells whose columns the other store does not have.
  let unknown: [Int]
  /// The cells that refer to another table in the other store, or refer to rows in one of the two only.
  let redirected: [Int]

  static let rowsPerBatch = 20_000

  /// `nil` if the other store does not have the table, or identifies its rows otherwise.
  init?(
    _ table: TableSchema, session: StoreSession, former: StoreSession, noticed: Int64,
    isExact: Bool, checkCancellation: @escaping () throws -> Void
  ) throws {
    guard let there = former.schema.table(wireName: table.wireName),
      there.identityDescription == table.identityDescription
    else { return nil }
    self.session = session
    self.table = table
    self.former = former
    self.isExact = isExact
    self.checkCancellation = checkCancellation
    absentValues = AbsentValues(session.database)
    access = try session.access(table.id)
    held = try session.heldEdits().inTable(table, session)
    formerAccess = try former.access(there.id)
    otherIdentities = try access.identities(in: formerAccess)
    log = try RemakeLog(table, session: session, noticed: noticed)
    logKeys = LogKeys(session: session, noticed: noticed)
    names = NewRowNames(session)
    var cells: [(here: Int, there: Int)] = []
    var unknown: [Int] = []
    var redirected: [Int] = []
    for here in table.cellPositions {
      let column = table.columns[here]
      let position = there.columns.firstIndex { $0.wireName == column.wireName }
      guard let position else {
        unknown.append(here)
        continue
      }
      let isAlike =
        switch (column.domain, there.columns[position].domain) {
        case (.plain, .plain), (.counter, .counter): true
        case (.key(let one), .key(let other)):
          session.schema[one].wireName == former.schema[other].wireName
        default: false
        }
      if isAlike {
        cells.append((here, position))
      } else if column.isKeyed || there.columns[position].isKeyed {
        redirected.append(here)
      }
    }
    self.cells = cells
    self.unknown = unknown
    self.redirected = redirected
  }

  func run() throws {
    try compareRows()
    try compareDeleted()
    try findDeleted()
    try findDeletedHeld()
    try findDeletedEdits()
    try findDeletedOfHidden()
    try findDeletedReferred()
    try logUnknown()
    try logKeys.finish()
  }

  // MARK: - Known states

  /// A row with its states in both stores.
  struct Known {
    var identity: RowIdentity
    var here: RowState?
    var there: RowState?
  }

  func stamp(_ stamp: LocalStamp) -> Stamp { session.clients.stamp(stamp) }
  func formerStamp(_ stamp: LocalStamp) -> Stamp { former.clients.stamp(stamp) }

  func states(_ identities: [RowIdentity]) throws -> [Known] {
    var here = try access.states(of: identities)
    try access.adoptFormerStates(of: identities, &here)
    let there = try formerAccess.states(of: identities.map(identityThere))
    return identities.indices.map {
      Known(identity: identities[$0], here: here[$0], there: there[$0])
    }
  }

  /// Returns the identity that a row has in the other store.
  func identityThere(_ identity: RowIdentity) -> RowIdentity {
    otherIdentities?.there[identity] ?? identity
  }

  /// Returns the identity that a row of the other store has here.
  func identityHere(_ identity: RowIdentity) -> RowIdentity {
    otherIdentities?.here[identity] ?? identity
  }

  /// Returns the row of the other store with an identity of this store.
  func rowThere(_ identity: RowIdentity) throws -> (values: [Value], localKey: Int64?)? {
    // The other store would find a row by another spelling of its key.
    if let otherIdentities, otherIdentities.there[identity] == nil { return nil }
    return try formerAccess.key(of: identityThere(identity)).flatMap(formerAccess.row)
  }

  /// Returns whether both stores know the same of the row's existence.
  func isSame(_ row: Known) -> Bool {
    let (here, there) = (row.here ?? .unstamped, row.there ?? .unstamped)
    return (here.existence == .deleted) == (there.existence == .deleted)
      && stamp(here.existenceStamp) == formerStamp(there.existenceStamp)
  }

  /// Returns whether the row was shown here, as far as this store knows: it was if the other store
  /// shows it and nothing is known here that contradicts it.
  func wasShown(_ row: Known) throws -> Bool {
    guard isSame(row) else { return false }
    return try row.here.map { try session.wasShown(key(row), $0) } ?? true
  }

  func key(_ row: Known) -> RowKey { RowKey(table: table.id, identity: row.identity) }
  func keyThere(_ row: Known) -> RowKey {
    RowKey(table: formerAccess.table.id, identity: identityThere(row.identity))
  }

  // MARK: - Rows in the table

  func compareRows() throws {
    let names = table.keyColumns + table.columns.map(\.name)
    let reading = try SQLStatement(
      "SELECT \(names.map(quoted).joined(separator: ", ")) FROM \(table.quotedName)",
      on: session.database)
    var batch: [(key: [Value], values: [Value])] = []
    func flush() throws {
      try checkCancellation()
      let rows = try states(try batch.map { try access.identity(ofKey: $0.key) })
      for (row, known) in zip(batch, rows) { try compare(row.values, key: row.key, known) }
      batch = []
    }
    while try reading.step() {
      let key = table.keyColumns.indices.map { reading.value(at: $0) }
      if key.contains(.null) { continue }
      let count = table.keyColumns.count
      batch.append((key, table.columns.indices.map { reading.value(at: count + $0) }))
      if batch.count == Self.rowsPerBatch { try flush() }
    }
    try flush()
  }

  func compare(_ values: [Value], key: [Value], _ row: Known) throws {
    let logged = log.entry(key)
    let before = try rowThere(row.identity)
    let wasShown = try before != nil && wasShown(row)
    if logged?.isInserted == true {
      // It was deleted unseen, and triggers have seen it inserted again.
      if let before, wasShown { try logDeletion(of: row, key: key, before.values) }
      return
    }
    if held.unknown.contains(row.identity) {
      return try logUnknown(table.cellPositions, key: key)
    }
    guard let before else {
      if let kept = try keptOfHidden(row) {
        return try logEdits(
          values, key: key, of: row, but: logged?.columns ?? ColumnSet(), keptThere: kept)
      }
      if row.here?.existence == .inserted, row.here?.isKept != true {
        // If a row is shown here and not there, the conditions differ, or the other store lacks
        // what this one knows.
        if row.there == nil, !isExact { try logUnknown(cells.map(\.here), key: key) }
        return
      }
      // Triggers saw the insertion, and it is sealed.
      if isExact, row.here?.existence == .inserted, !isSame(row) { return }
      // If another device has deleted it meanwhile, that deletion counts.
      let isGoneThere = row.there?.existence == .deleted && !isSame(row)
      if !isGoneThere { try logInsertion(values, key: key, of: row) }
      return
    }
    // Another device may have deleted it meanwhile, where it is shown all the same.
    guard try wasShown || wasHere(row) else {
      if row.here?.existence == .deleted || (row.here == nil && !isSame(row)) {
        try logInsertion(values, key: key, of: row)
      }
      return
    }
    let (changed, lacking) = try differences(
      values.map(Optional.some), from: before.values, of: row, but: logged?.columns ?? ColumnSet())
    if !changed.isEmpty { try log.addUpdate(key: key, changed) }
    if !lacking.isEmpty { try logUnknown(lacking, key: key) }
  }

  /// Returns the cells of a row that were edited unseen, with their former values, and the cells of
  /// which the other store knows too little.
  ///
  /// - Parameter columns: The columns whose updates triggers have seen.
  func differences(
    _ values: [Value?], from before: [Value], of row: Known, but columns: ColumnSet
  ) throws -> (changed: [(column: Int, before: Value)], lacking: [Int]) {
    let kept = row.here?.isKept == true ? try session.keptRows.row(key(row)) : nil
    let keptThere = row.there?.isKept == true ? try former.keptRows.row(keyThere(row)) : nil
    var changed: [(column: Int, before: Value)] = []
    var lacking: [Int] = []
    for (here, there) in cells {
      let column = table.columns[here]
      let isLogged = columns.contains(here)
      // What triggers have logged of a counter begins with the number that they found.
      if isLogged, column.domain != .counter { continue }
      guard let value = values[here] else { continue }
      let beneath = kept?.cells.first { $0.column == here }?.value
      // A cell with another value beneath shows an overlay, which is the same only in stores that know
      // the same changes.
      guard isExact || column.domain == .counter || beneath == nil else { continue }
      let known = stamp((row.here ?? .unstamped).stamp(of: here))
      let knownThere = formerStamp((row.there ?? .unstamped).stamp(of: there))
      // Known edits of other devices take precedence over unknown ones.
      if knownThere > known { continue }
      if held.cells[row.identity]?.contains(here) == true {
        lacking.append(here)
        continue
      }
      let beneathThere = keptThere?.cells.first { $0.column == there }?.value
      let shown = column.shown(before[there], here: beneath, there: beneathThere)
      let was = try exported(shown, formerAccess.table.columns[there], beneathThere, former)
      let local = try exported(value, column, beneath ?? was, session)
      // A column of another type holds the same value in another form.
      guard isLogged || local != was && local != was.converted(to: column.affinity) else {
        continue
      }
      if knownThere < known {
        // Edits that triggers saw before the remake are sealed with the values of the table.
        if !isExact { lacking.append(here) }
      } else {
        changed.append((here, shown))
      }
    }
    return (changed, lacking)
  }

  /// Returns the other store's entry for a row that was shown here and that the other store does
  /// not show, for the reasons that ``findDeletedOfHidden()`` names.
  private func keptOfHidden(_ row: Known) throws -> KeptRow? {
    guard row.there?.isKept == true, row.here != nil || table.hasUnstampedRows,
      try wasHere(row), let kept = try former.keptRows.row(keyThere(row)),
      kept.reason != .parked(.rowMissing)
    else { return nil }
    return kept
  }

  /// Logs the unseen edits of such a row.
  ///
  /// - Parameters:
  ///   - columns: The columns whose updates triggers have seen.
  ///   - keptThere: The other store's entry for the row.
  private func logEdits(
    _ values: [Value], key: [Value], of row: Known, but columns: ColumnSet, keptThere: KeptRow
  ) throws {
    let kept = row.here?.isKept == true ? try session.keptRows.row(self.key(row)) : nil
    var changed: [(column: Int, before: Value)] = []
    var lacking: [Int] = []
    for (here, there) in cells where !columns.contains(here) {
      let column = table.columns[here]
      guard column.domain != .counter, kept?.cells.contains(where: { $0.column == here }) != true,
        let was = keptThere.cells.first(where: { $0.column == there })?.value
      else { continue }
      let known = stamp((row.here ?? .unstamped).stamp(of: here))
      let knownThere = formerStamp((row.there ?? .unstamped).stamp(of: there))
      // Known edits of other devices take precedence over unknown ones.
      if knownThere > known { continue }
      let local = try exported(values[here], column, was, session)
      guard local != was, local != was.converted(to: column.affinity) else { continue }
      if knownThere < known {
        if !isExact { lacking.append(here) }
      } else {
        changed.append((here, try session.imported(was, column) ?? .null))
      }
    }
    if !changed.isEmpty { try log.addUpdate(key: key, changed) }
    if !lacking.isEmpty { try logUnknown(lacking, key: key) }
  }

  /// Returns the logical value of a local one. It is a plain value if bookkeeping stores the same
  /// plain value for the row; the table alone does not distinguish that from a reference.
  func exported(
    _ value: Value, _ column: ColumnSchema, _ kept: Value?, _ session: StoreSession
  ) throws -> Value {
    if let kept, kept == value, column.key(kept) != nil { return value }
    return try session.exported(value, column)
  }

  /// Logs cells that may or may not have been edited.
  func logUnknown(_ columns: [Int], key: [Value]) throws {
    let columns = columns.filter {
      table.columns[$0].domain != .counter && log.entry(key)?.columns.contains($0) != true
    }
    guard !columns.isEmpty else { return }
    try log.addUpdate(key: key, columns.map { ($0, .null) }, isOfUnknownTime: true)
  }

  private func logInsertion(_ values: [Value], key: [Value], of row: Known) throws {
    guard table.identity == .surrogate else { return try log.addInsertion(key: key, nil) }
    // Rows that a migration makes alike on every device are one row. Rows that refer to them may be
    // sealed already.
    let named = try Value.key(key[0]).flatMap(access.explicitIdentity)
    // A row from before syncing began, which another device has replaced: under another identity it
    // would be another row.
    if named == nil, row.here == nil, row.there != nil { return }
    try log.addInsertion(
      key: key, named ?? names.identity(of: key, values, in: table))
  }
}

extension ColumnSchema {
  /// Returns what a cell showed here before its table was made again, if both stores know the same value of
  /// it. Of a counter, each store knows other additions to that value.
  ///
  /// - Parameters:
  ///   - former: What the other store shows.
  ///   - here: What bookkeeping stores of the cell; `nil` for nothing.
  ///   - there: What the bookkeeping of the other store does.
  fileprivate func shown(_ former: Value, here: Value?, there: Value?) -> Value {
    guard domain == .counter else { return former }
    if let here { return number(here) }
    guard case .counter(let counter) = there.flatMap(CounterValue.init) else { return former }
    return counter.base.stored(with: affinity)
  }
}
