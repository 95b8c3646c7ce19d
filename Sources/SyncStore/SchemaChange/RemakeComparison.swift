import GRDB
import SyncModel

/// A comparison of a table that a program has remade with the same table in another store of the
/// document. It logs the differences.
///
/// If a cell has the same stamp in both stores, both know the same edits of it: if the values
/// differ, the cell was edited while there were no triggers. The same holds for rows. Entries that
/// triggers have written since the remake come after those of the comparison.
struct RemakeComparison {
  private let session: StoreSession
  private let table: TableSchema
  private let access: TableAccess
  private let former: StoreSession
  private let formerAccess: TableAccess
  private let log: RemakeLog
  private let logKeys: LogKeys
  /// Whether the other store knows everything that this store knew before the remake. Then this
  /// store has sealed since whatever it knows besides.
  private let isExact: Bool
  private let checkCancellation: () throws -> Void
  private let absentValues: AbsentValues
  /// The edits that no change set has carried, so that no other store knows of them.
  private let held: HeldEdits.OfTable
  /// The cells that can be compared, by their positions in this store and in the other one.
  private let cells: [(here: Int, there: Int)]
  /// The cells whose columns the other store does not have.
  private let unknown: [Int]
  /// The cells that refer to another table in the other store, or refer to rows in this store only.
  private let redirected: [Int]

  private static let rowsPerBatch = 20_000

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
    log = try RemakeLog(table, session: session, noticed: noticed)
    logKeys = LogKeys(session: session, noticed: noticed)
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
      } else if case .key = column.domain {
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
  private struct Known {
    var identity: RowIdentity
    var here: RowState?
    var there: RowState?
  }

  private func stamp(_ stamp: LocalStamp) -> Stamp { session.clients.stamp(stamp) }
  private func formerStamp(_ stamp: LocalStamp) -> Stamp { former.clients.stamp(stamp) }

  private func states(_ identities: [RowIdentity]) throws -> [Known] {
    let fingerprints = identities.map(access.fingerprint)
    let order = identities.indices.sorted { fingerprints[$0] < fingerprints[$1] }
    let sorted = order.map { fingerprints[$0] }
    let here = try access.stamps.states(of: sorted)
    let there = try formerAccess.stamps.states(of: sorted)
    var known = identities.map { Known(identity: $0) }
    for (index, row) in order.enumerated() {
      known[row].here = here[index]
      known[row].there = there[index]
    }
    return known
  }

  /// Returns whether both stores know the same of the row's existence.
  private func isSame(_ row: Known) -> Bool {
    let (here, there) = (row.here ?? .unstamped, row.there ?? .unstamped)
    return (here.existence == .deleted) == (there.existence == .deleted)
      && stamp(here.existenceStamp) == formerStamp(there.existenceStamp)
  }

  /// Returns whether the row was shown here, as far as this store knows: it was if the other store
  /// shows it and nothing is known here that contradicts it.
  private func wasShown(_ row: Known) throws -> Bool {
    guard isSame(row) else { return false }
    return try row.here.map { try session.wasShown(key(row), $0) } ?? true
  }

  private func key(_ row: Known) -> RowKey { RowKey(table: table.id, identity: row.identity) }
  private func keyThere(_ row: Known) -> RowKey {
    RowKey(table: formerAccess.table.id, identity: row.identity)
  }

  // MARK: - Rows in the table

  private func compareRows() throws {
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

  private func compare(_ values: [Value], key: [Value], _ row: Known) throws {
    let logged = log.entry(key)
    let before = try formerAccess.key(of: row.identity).flatMap { try formerAccess.row($0) }
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
  private func differences(
    _ values: [Value?], from before: [Value], of row: Known, but columns: ColumnSet
  ) throws -> (changed: [(column: Int, before: Value)], lacking: [Int]) {
    let kept = row.here?.isKept == true ? try session.keptRows.row(key(row)) : nil
    let keptThere = row.there?.isKept == true ? try former.keptRows.row(keyThere(row)) : nil
    var changed: [(column: Int, before: Value)] = []
    var lacking: [Int] = []
    for (here, there) in cells where !columns.contains(here) {
      guard let value = values[here] else { continue }
      let column = table.columns[here]
      let beneath = kept?.cells.first { $0.column == here }?.value
      // A counter shows all additions that are known, and a cell with another value beneath shows
      // an overlay. These are the same only in stores that know the same changes.
      if column.domain == .counter || beneath != nil {
        guard isExact else { continue }
      }
      let known = stamp((row.here ?? .unstamped).stamp(of: here))
      let knownThere = formerStamp((row.there ?? .unstamped).stamp(of: there))
      // Known edits of other devices take precedence over unknown ones.
      if knownThere > known { continue }
      if held.cells[row.identity]?.contains(here) == true {
        lacking.append(here)
        continue
      }
      let beneathThere = keptThere?.cells.first { $0.column == there }?.value
      let was = try exported(
        before[there], formerAccess.table.columns[there], beneathThere, former)
      let local = try exported(value, column, beneath ?? was, session)
      // A column of another type holds the same value in another form.
      guard local != was, local != was.applying(column.affinity) else { continue }
      if knownThere < known {
        // Edits that triggers saw before the remake are sealed with the values of the table.
        if !isExact { lacking.append(here) }
      } else {
        changed.append((here, before[there]))
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
      guard local != was, local != was.applying(column.affinity) else { continue }
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
  private func exported(
    _ value: Value, _ column: ColumnSchema, _ kept: Value?, _ session: StoreSession
  ) throws -> Value {
    if let kept, kept == value, Value.key(kept) != nil { return value }
    return try session.exported(value, column)
  }

  /// Logs cells that may or may not have been edited.
  private func logUnknown(_ columns: [Int], key: [Value]) throws {
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
      key: key, named ?? SchemaRenewal.identity(of: key + values, in: table))
  }

  // MARK: - Deleted rows

  /// Compares the rows whose deletion triggers have seen, as they were when they were deleted. Logs
  /// an unseen edit before the deletion as an edit, and an unseen insertion as an insertion.
  private func compareDeleted() throws {
    var batch: [RemakeLog.Deletion] = []
    func flush() throws {
      try checkCancellation()
      let rows = try states(try batch.map { try access.identity(ofKey: $0.key) })
      for (deletion, row) in zip(batch, rows) { try compare(deletion, row) }
      batch = []
    }
    try log.forEachFirstDeletion { deletion in
      batch.append(deletion)
      if batch.count == Self.rowsPerBatch { try flush() }
    }
    try flush()
  }

  private func compare(_ deletion: RemakeLog.Deletion, _ row: Known) throws {
    // The row may be there again, or under another key.
    if let key = try access.key(of: row.identity), try access.row(key) != nil { return }
    guard let before = try formerAccess.key(of: row.identity).flatMap(formerAccess.row) else {
      guard row.here == nil, row.there == nil else { return }
      let isNumbered = table.identity == .surrogate
      let known = isNumbered ? try Value.key(deletion.key[0]).flatMap(access.explicitIdentity) : nil
      if isNumbered, known == nil { return }
      let number =
        isNumbered ? Value.key(deletion.key[0]) : try access.localKey(of: row.identity)
      if let number, try session.isReferredToBySealedCells(number, of: table.id) {
        // Other devices know of the row by these references, so its deletion is sealed, with all
        // cells.
        return try logAllCells(deletion.key)
      }
      return try log.addInsertion(key: deletion.key, known)
    }
    guard try wasShown(row) else { return }
    let (changed, lacking) = try differences(
      deletion.values, from: before.values, of: row,
      but: log.entry(deletion.key)?.columns ?? ColumnSet())
    if !changed.isEmpty { try log.addUpdate(key: deletion.key, changed) }
    if !lacking.isEmpty { try logUnknown(lacking, key: deletion.key) }
  }

  /// Lets the deletion of a row name all its cells, if other devices keep them.
  private func logAllCells(_ key: [Value]) throws {
    guard table.keepsDeleted else { return }
    try log.addUpdate(key: key, table.cellPositions.map { ($0, .null) })
  }

  private func findDeleted() throws {
    let there = formerAccess.table
    let reading = try SQLStatement(
      "SELECT \(there.keyColumns.map(quoted).joined(separator: ", ")) FROM \(there.quotedName)",
      on: former.database)
    var batch: [[Value]] = []
    func flush() throws {
      try checkCancellation()
      let rows = try states(try batch.map { try formerAccess.identity(ofKey: $0) })
      for (formerKey, row) in zip(batch, rows) {
        // Both know nothing of rows that are older than the document.
        if row.here == nil, row.there == nil, !table.hasUnstampedRows { continue }
        guard let key = try keyIfGone(row), let before = try formerAccess.row(formerKey)
        else { continue }
        try logDeletion(of: row, key: key, before.values)
      }
      batch = []
    }
    while try reading.step() {
      batch.append(there.keyColumns.indices.map { reading.value(at: $0) })
      if batch.count == Self.rowsPerBatch { try flush() }
    }
    try flush()
  }

  /// Finds rows that are gone here and that the other store does not show. Either that store knows
  /// changes of other devices that this one does not, or this store sealed a deletion before the
  /// table was remade once more, and the deletion hides the rows there. The other store has stored
  /// their former values.
  private func findDeletedOfHidden() throws {
    let found = try former.keptRows.identities(in: formerAccess.table.id)
    for row in try states(found) {
      try checkCancellation()
      guard let kept = try former.keptRows.row(keyThere(row)), !kept.reason.isShown,
        let key = try keyIfGone(row)
      else { continue }
      try logDeletion(of: row, key: key) { position in
        guard let value = kept.cells.first(where: { $0.column == position })?.value else {
          return .null
        }
        let column = formerAccess.table.columns[position]
        return column.domain == .counter ? column.number(value) : value
      }
    }
  }

  /// Returns the key of a row that was here and was deleted unseen; `nil` if the row is here, or
  /// never was.
  private func keyIfGone(_ row: Known) throws -> [Value]? {
    if row.here == nil, try wasHere(row) { try notePlainNumbers(of: row) }
    let known = try access.namingKey(of: row.identity)
    if known == nil, try wasHere(row) {
      // Another row has got its number, and was sealed since, or its key contains such a number.
      guard table.identity == .surrogate else {
        return try logKeys.key(of: row.identity, in: table)
      }
      return try logKeys.number(of: self.key(row)).map { [.integer($0)] }
    }
    guard let key = known, try access.row(key) == nil,
      log.entry(key)?.isDeleted != true, try wasHere(row)
    else { return nil }
    return key
  }

  /// Returns whether the row was shown here, regardless of changes of other devices that only the
  /// other store knows.
  private func wasHere(_ row: Known) throws -> Bool {
    if let here = row.here { return try session.wasShown(key(row), here) }
    guard let there = row.there, there.existence == .deleted else { return isSame(row) }
    guard table.hasUnstampedRows else { return false }
    // A row that was inserted later has another identity, or a stamp for each cell.
    if let bits = Bits128(bytes: row.identity.bytes), bits.high == table.origin,
      try session.originalKeys().contains(Int64(bitPattern: bits.low), of: table)
    {
      return true
    }
    return formerAccess.table.cellPositions.contains { position in
      formerAccess.table.columns[position].domain != .counter && there.stamp(of: position) == .zero
    }
  }

  /// Finds rows that no change set has carried and that were deleted unseen.
  private func findDeletedHeld() throws {
    for identity in held.unknown.sorted() {
      guard let key = try access.namingKey(of: identity), try access.row(key) == nil,
        log.entry(key)?.isDeleted != true,
        let state = try access.stamps.state(of: access.fingerprint(identity)),
        state.existence == .inserted
      else { continue }
      let absent = try absentValues.values(of: table)
      try log.addDeletion(key: key, table.recordedColumns.map { absent[$0] })
    }
  }

  /// - Parameter before: The values of the row in the other store.
  private func logDeletion(of row: Known, key: [Value], _ before: [Value]) throws {
    let there = formerAccess.table
    try logDeletion(of: row, key: key) { try former.exported(before[$0], there.columns[$0]) }
  }

  /// - Parameter before: The logical values of the row, by column of the other store.
  private func logDeletion(
    of row: Known, key: [Value], _ before: (Int) throws -> Value
  ) throws {
    let olds = try table.recordedColumns.map { position in
      guard let cell = cells.first(where: { $0.here == position }) else {
        return try unknownValue(of: position, row)
      }
      return try logKeys.value(before(cell.there), of: table.columns[position])
    }
    try log.addDeletion(key: key, olds)
  }

  /// Notes the plain numbers in the key of a row without a state that are keys of rows by now:
  /// otherwise the log would name the row that refers to these.
  private func notePlainNumbers(of row: Known) throws {
    guard table.hasKeysInIdentity,
      let values = IdentityEncoding.values(of: row.identity, count: table.identityPositions.count)
    else { return }
    let plain = try zip(table.identityPositions, values).filter { position, value in
      try session.isAmbiguous(value, in: table.columns[position])
    }
    guard !plain.isEmpty else { return }
    try session.notePlainNumbers(plain.map { (column: $0, value: $1) }, in: key(row))
  }

  /// Finds rows that were inserted unseen, then edited, and deleted unseen when the table was
  /// remade once more. The edit was sealed before any comparison, and the other store knows nothing
  /// else of them.
  private func findDeletedEdits() throws {
    let found = try former.keptRows.identities(
      in: formerAccess.table.id, for: .parked(.rowMissing))
    for row in try states(found) {
      guard row.here?.existence == .unsaid, try wasShown(row),
        let key = try access.namingKey(of: row.identity), try access.row(key) == nil,
        log.entry(key)?.isDeleted != true,
        let kept = try former.keptRows.row(keyThere(row))
      else { continue }
      let absent = try absentValues.values(of: table)
      let olds = try table.recordedColumns.map { position in
        let there = cells.first { $0.here == position }?.there
        guard let cell = kept.cells.first(where: { $0.column == there }) else {
          return absent[position]
        }
        return try logKeys.value(cell.value, of: table.columns[position])
      }
      try log.addDeletion(key: key, olds)
      // Its other values are unknown. The deletion names all its cells, with the values that are
      // stored of them.
      let columns = table.cellPositions.filter { table.columns[$0].domain != .counter }
      if table.keepsDeleted { try log.addUpdate(key: key, columns.map { ($0, .null) }) }
    }
  }

  /// Finds rows that were inserted unseen, and deleted unseen when the table was remade once more,
  /// after references to them were sealed. Nothing else is known of them.
  private func findDeletedReferred() throws {
    guard table.identity == .surrogate else { return }
    let found = try session.goneKeys.strayEntries(in: table.id, isNeedless: false)
    for (gone, row) in zip(found, try states(found.map(\.identity)))
    where row.here == nil && row.there == nil {
      guard try session.isReferredToBySealedCells(gone.key, of: table.id) else { continue }
      let absent = try absentValues.values(of: table)
      let key: [Value] = [.integer(gone.key)]
      try log.addDeletion(key: key, table.recordedColumns.map { absent[$0] })
      try logAllCells(key)
    }
  }

  /// Returns the value of a row in a column that the other store does not have: the value that the
  /// other store stores until it has the column, or else the default.
  private func unknownValue(of position: Int, _ row: Known) throws -> Value {
    let column = table.columns[position]
    for foreign in try former.foreign.all()
    where foreign.table(in: former.schema)?.id == formerAccess.table.id {
      guard let number = foreign.columns.firstIndex(of: column.wireName),
        let kept = try former.foreign.row(row.identity, of: foreign.id),
        let cell = kept.cells.first(where: { $0.column == number })
      else { continue }
      return try logKeys.value(cell.value, of: column)
    }
    return try absentValues.values(of: table)[position]
  }

  // MARK: - Columns of unknown history

  private func logUnknown() throws {
    guard !unknown.isEmpty || !redirected.isEmpty else { return }
    let absent = try absentValues.values(of: table)
    try compareDefaults(absent)
    for position in unknown + redirected {
      let name = quoted(table.columns[position].name)
      let keys = table.keyColumns.map(quoted).joined(separator: ", ")
      let reading = try SQLStatement(
        "SELECT \(keys) FROM \(table.quotedName) "
          + "WHERE \(name) COLLATE BINARY IS NOT ?1 OR typeof(\(name)) <> typeof(?1)",
        on: session.database)
      reading.bind(redirected.contains(position) ? .null : absent[position], at: 1)
      while try reading.step() {
        let key = table.keyColumns.indices.map { reading.value(at: $0) }
        if key.contains(.null) || log.entry(key)?.isInserted == true { continue }
        try log.addUpdate(key: key, [(position, .null)], isOfUnknownTime: true)
      }
    }
  }

  /// Finds cells that have their default again, in columns that the other store does not have. That
  /// store has stored their former values.
  private func compareDefaults(_ absent: [Value]) throws {
    for foreign in try former.foreign.all()
    where foreign.table(in: former.schema)?.id == formerAccess.table.id {
      let places = unknown.compactMap { here in
        foreign.columns.firstIndex(of: table.columns[here].wireName).map { (here: here, there: $0) }
      }
      guard !places.isEmpty else { continue }
      var last: RowIdentity?
      while true {
        try checkCancellation()
        let rows = try former.foreign.rows(of: foreign, after: last, limit: Self.rowsPerBatch)
        guard let end = rows.last else { break }
        for (row, known) in zip(rows, try states(rows.map(\.identity))) {
          try compareDefaults(absent, known, row.row, places)
        }
        last = end.identity
      }
    }
  }

  private func compareDefaults(
    _ absent: [Value], _ row: Known, _ foreign: ForeignRow, _ places: [(here: Int, there: Int)]
  ) throws {
    guard let key = try access.key(of: row.identity), let local = try access.row(key),
      try row.here.map({ try session.wasShown(self.key(row), $0) }) ?? true
    else { return }
    let logged = log.entry(key)
    guard logged?.isInserted != true else { return }
    var changed: [(column: Int, before: Value)] = []
    for (here, there) in places where logged?.columns.contains(here) != true {
      let column = table.columns[here]
      guard column.domain != .counter, local.values[here] == absent[here],
        let cell = foreign.cells.first(where: { $0.column == there }),
        stamp((row.here ?? .unstamped).stamp(of: here)) == formerStamp(cell.stamp)
      else { continue }
      let value = try session.exported(local.values[here], column)
      guard value != cell.value, value != cell.value.applying(column.affinity) else { continue }
      changed.append((here, try session.imported(cell.value, column) ?? .null))
    }
    if !changed.isEmpty { try log.addUpdate(key: key, changed) }
  }
}
