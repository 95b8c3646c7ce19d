import Foundation
import GRDB
import SyncModel

/// The merge of a database's rows into a document, as edits made now. The database did not know the
/// document, or was a store of another one: see Documentation/Lifecycle.md, “Join”.
///
/// It merges tables in the order of their references, so that it knows where a reference leads
/// before it merges the row. Within circles of references, it follows rows one by one. Rows that refer
/// to one another are merged together.
final class DatabaseMerge {
  let session: StoreSession
  let former: FormerDatabase
  private let prefer: MergedRows.Preference
  let random: () -> UInt64
  private let work: WorkCount
  let checkCancellation: () throws -> Void

  /// The stamps of the former rows, if they can be compared with the document's.
  private let stamps: FormerStamps?
  let keys: MergedKeys
  var readers: [Int: FormerDatabase.Reader] = [:]
  /// The references of each table.
  let references: [Int: [RowReference]]
  /// All tables, each after those to which it refers. Tables in one circle of references are next to
  /// one another, after all other tables to which one of them refers.
  private let order: [TableSchema]
  /// The tables that take part in circles of references.
  let circular: Set<Int>
  /// How many identities of other rows those of a table's rows contain, one in another, at most.
  let depths: [Int: Int]
  private var uniqueLookups: [Int: [UniqueLookup]] = [:]
  /// The greatest key that was assigned or existed, by table.
  var greatestKeys: [Int: Int64] = [:]
  var report = MergedRows()
  /// The rows that the document has deleted after their last changes in the former database.
  private(set) var deletedRows: Set<RowKey> = []
  /// The rows with NULL in their key that the document had, by table.
  var rowsWithoutKey: [Int: RowidsByValues] = [:]
  /// The merged rows that nothing but their rowids identifies, and that have values of columns that
  /// stay on the device.
  var namelessRows: [(table: TableSchema, row: FormerDatabase.Record, rowid: Int64)] = []
  private var seen = 0
  /// The number of rows between two checks for cancellation.
  static let interval = 1_000

  init(
    session: StoreSession, former: FormerDatabase, prefer: MergedRows.Preference,
    random: @escaping () -> UInt64, work: WorkCount,
    checkCancellation: @escaping () throws -> Void
  ) throws {
    self.work = work
    self.session = session
    self.former = former
    self.prefer = prefer
    self.random = random
    self.checkCancellation = checkCancellation
    stamps = try former.session.flatMap { try FormerStamps($0, other: session.database) }
    keys = MergedKeys(session.database)
    let schema = session.schema
    references = Dictionary(
      uniqueKeysWithValues: schema.tables.map { ($0.id, RowReference.all(of: $0, schema)) })
    let circles = Self.circles(schema.tables, references)
    order = circles.flatMap(\.self)
    circular = Self.circularTables(circles, references)
    depths = Self.depths(schema)
  }

  /// The tables that both databases have, in the order in which they are merged.
  var tables: [TableSchema] { order.filter { former.table(named: $0.name) != nil } }

  func run() throws {
    for table in tables {
      try keys.begin(table)
      readers[table.id] = try FormerDatabase.Reader(
        table, former, key: MergedKeys.keyColumns(table))
    }
    for table in tables {
      guard let reader = readers[table.id] else { continue }
      while let row = try reader.next() {
        seen += 1
        if seen % Self.interval == 0 {
          try checkCancellation()
          work.advance(by: Self.interval)
        }
        if circular.contains(table.id) {
          try mergeWithParents(row, table)
        } else {
          try merge(row, table)
        }
      }
    }
    try takeLocalValues()
  }

  /// Removes the temporary data.
  func end() throws {
    readers = [:]
    uniqueLookups = [:]
    try keys.end()
  }

  // MARK: - A row

  /// Merges a row that refers to merged rows only.
  func merge(_ row: FormerDatabase.Record, _ table: TableSchema) throws {
    let candidate = try candidate(row, table)
    if let fault = candidate.fault { return try refuse(candidate, Fault(.reference, fault)) }
    if candidate.isWithoutKey {
      // No entry could say which reference the row has lost.
      guard candidate.cleared.isEmpty else {
        return try refuse(candidate, Fault(.reference, Self.missing))
      }
      return try mergeWithoutKey(candidate)
    }
    if let present = try presentRow(candidate) {
      if let fault = try fault(of: candidate, as: present) {
        return try refuse(candidate, fault)
      }
      try compare(candidate, with: present)
      return try notePlace(place(of: present, table), of: row, table)
    }
    if let fault = try deletion(of: candidate) { return try refuse(candidate, fault) }
    do {
      let key = try insert(candidate)
      report.insertedRows += 1
      try noteCleared(candidate, key)
      try notePlace(place(of: key, table), of: row, table)
    } catch let refusal as LocalEdits.Refusal {
      try refuse(candidate, Fault(refusal))
    }
  }

  /// Why the document cannot have a row.
  struct Fault: Error {
    var kind: Conflict.Kind
    var message: String

    init(_ kind: Conflict.Kind, _ message: String) {
      self.kind = kind
      self.message = message
    }

    init(_ refusal: LocalEdits.Refusal) {
      let isUnique = refusal.detail?.contains("UNIQUE") ?? false
      self.init(isUnique ? .uniqueValue : .condition, refusal.message)
    }
  }

  /// Returns why a row cannot be the document's row with a key: one of the two has a plain number in
  /// its key where the other refers to a row.
  func fault(of candidate: Candidate, as present: [Value]) throws -> Fault? {
    let table = candidate.table
    guard table.identity != .surrogate, !candidate.plain.isDisjoint(with: table.identityPositions),
      try session.access(table.id).identity(ofKey: present) != identity(of: candidate)
    else { return nil }
    return Fault(.uniqueValue, "another row has its key on this device")
  }

  /// Returns the logical value of a row's value.
  func logical(_ candidate: Candidate, _ position: Int) throws -> Value {
    if let row = candidate.lostRows[position] { return .identity(row) }
    if candidate.cleared.contains(position) { return candidate.row.values[position] }
    let value = candidate.values[position]
    return candidate.plain.contains(position)
      ? value : try session.exported(value, candidate.table.columns[position])
  }

  /// Returns the key by which other rows refer to a row of the document.
  func place(of present: [Value], _ table: TableSchema) throws -> [Value] {
    guard table.localKey != nil, table.identity != .surrogate else { return present }
    return try session.access(table.id).row(present)?.localKey.map { [.integer($0)] } ?? present
  }

  /// Records the key that a row has in the document.
  func notePlace(
    _ key: [Value], of row: FormerDatabase.Record, _ table: TableSchema
  ) throws {
    let formerKey = self.key(of: row, table)
    if key != formerKey {
      if table.localKey != nil { report.movedRows += 1 }
      try keys.note(.moved(to: key), of: formerKey, in: table)
    } else if circular.contains(table.id) {
      try keys.note(.same, of: formerKey, in: table)
    }
  }

  // MARK: - The row that the document has

  /// Returns the key of the document's row that is the same as a former row, or `nil` if there is
  /// none, or columns of which this depends are open.
  func presentRow(_ candidate: Candidate) throws -> [Value]? {
    let (table, row, values) = (candidate.table, candidate.row, candidate.values)
    let access = try session.access(table.id)
    if table.identity == .surrogate {
      // Another device that had the same row may have merged it already.
      if let key = try row.identity.flatMap(access.key), try access.row(key) != nil { return key }
      if candidate.open.isEmpty, let key = row.localKey, try access.row([key])?.values == values {
        return [key]
      }
    } else if candidate.open.isDisjoint(with: table.identityPositions) {
      let key = table.identityPositions.map { values[$0] }
      if try access.row(key) != nil { return key }
    }
    // Two rows cannot have the same unique values: they are the same row.
    let unknown = candidate.open.union(candidate.cleared)
    for lookup in try lookups(table) where unknown.isDisjoint(with: lookup.columns) {
      let unique =
        lookup.index.isPlain
        ? lookup.index.columns.compactMap { $0.map { values[$0] } }
        : try access.rowEvaluation().terms(of: lookup.index, values: values)
      guard let unique, !unique.contains(.null) else { continue }
      for (index, value) in unique.enumerated() { lookup.statement.bind(value, at: index + 1) }
      guard try lookup.statement.step() else { continue }
      defer { lookup.statement.reset() }
      return table.keyColumns.indices.map { lookup.statement.value(at: $0) }
    }
    return nil
  }

  /// The statement that finds a row by its unique values.
  private struct UniqueLookup {
    var index: UniqueIndex
    /// The columns on which it depends whether a row has the values.
    var columns: Set<Int>
    var statement: SQLStatement
  }

  private func lookups(_ table: TableSchema) throws -> [UniqueLookup] {
    if let known = uniqueLookups[table.id] { return known }
    let made = try table.uniqueIndexes.map { index in
      let terms = zip(index.terms, index.collations).map {
        "(\($0)) = ? COLLATE \(quoted(SQLName($1)))"
      }
      let conditions = terms + (index.condition.map { ["(\($0))"] } ?? [])
      return UniqueLookup(
        index: index, columns: table.columns(readBy: index),
        statement: try SQLStatement(
          "SELECT \(table.keyColumns.map(quoted).joined(separator: ", ")) "
            + "FROM \(table.quotedName) WHERE \(conditions.joined(separator: " AND "))",
          on: session.database))
    }
    uniqueLookups[table.id] = made
    return made
  }

  func compare(_ candidate: Candidate, with present: [Value]) throws {
    let (table, values) = (candidate.table, candidate.values)
    let access = try session.access(table.id)
    guard let shown = try access.row(present) else { return }
    let row = RowKey(table: table.id, identity: try access.identity(ofKey: present))
    let state = try access.stamps.state(of: access.fingerprint(row.identity))
    func isLater(_ position: Int) throws -> Bool {
      guard let stamps else { return prefer == .local }
      let column = table.columns[position]
      let stamp = try stamps.stamp(of: row.identity, table, column: column.name)
      // Additions to a counter have no order.
      return column.domain != .counter
        && session.clients.stamp(state?.stamp(of: position) ?? .zero) < stamp
    }
    let differing = try table.cellPositions.filter { position in
      if table.columns[position].isIdentity, table.identity != .surrogate { return false }
      // A reference that is lost differs, though its number may be that of another row. If both are of one document,
      // which has NULL there by a later edit, nothing is lost.
      guard candidate.lost.contains(position) else {
        return values[position] != shown.values[position]
      }
      return try stamps == nil || !candidate.cleared.contains(position)
        || shown.values[position] != .null || isLater(position)
    }
    guard !differing.isEmpty else {
      report.equalRows += 1
      return
    }
    report.differingRows += 1
    report.differingCells += differing.count
    let cells = try differing.map { position in
      (
        column: position,
        local: try logical(candidate, position),
        remote: try session.exported(shown.values[position], table.columns[position])
      )
    }
    let local = try cells.filter { cell in
      try !candidate.lost.contains(cell.column) && isLater(cell.column)
    }
    var refusal: LocalEdits.Refusal?
    if !local.isEmpty {
      do {
        var edits = LocalEdits(session: session)
        edits.refusesLosingReferrers = true
        for cell in local {
          try rememberKey(of: cell.local, values[cell.column], in: table.columns[cell.column])
        }
        try edits.set(local.map { ($0.column, $0.local) }, of: row)
      } catch let refused as LocalEdits.Refusal {
        refusal = refused
      }
    }
    for cell in cells {
      let isLocal = refusal == nil && local.contains { $0.column == cell.column }
      try session.conflicts.journal.addSettled(
        ConflictJournal.Entry(
          kind: .cell, row: row, column: cell.column, rule: .join,
          outcome: isLocal ? .local : .remote,
          remoteStamp: state?.stamp(of: cell.column), message: refusal?.message,
          key: journalKey(shown.values, shown.localKey.map(Value.integer), table),
          local: [(cell.column, cell.local)], remote: [(cell.column, cell.remote)]))
    }
  }

  /// Lets edits find the row to which a value refers: no state has the key of a new row yet.
  private func rememberKey(of logical: Value, _ value: Value, in column: ColumnSchema) throws {
    guard case .identity(let row) = logical, case .key(let parent) = column.domain,
      let key = column.key(value)
    else { return }
    try session.access(parent).rememberUnseen(key, of: row)
  }

  /// Returns why the document does not take a row that it knows to be deleted after its last change
  /// in the former database.
  func deletion(of candidate: Candidate) throws -> Fault? {
    guard let stamps else { return nil }
    let access = try session.access(candidate.table.id)
    let identity = try identity(of: candidate)
    guard let state = try access.stamps.state(of: access.fingerprint(identity)),
      state.existence == .deleted,
      try stamps.latest(of: identity, candidate.table)
        < session.clients.stamp(state.existenceStamp)
    else { return nil }
    return Fault(.existence, "it was deleted in the document")
  }

  // MARK: - Rows that the document cannot have

  /// Enters the references of an inserted row into the conflict journal that are NULL in the document.
  func noteCleared(_ candidate: Candidate, _ key: [Value]) throws {
    guard !candidate.cleared.isEmpty else { return }
    let table = candidate.table
    let access = try session.access(table.id)
    let row = RowKey(table: table.id, identity: try access.identity(ofKey: key))
    let localKey = try access.row(key)?.localKey.map(Value.integer)
    for column in candidate.cleared.sorted() {
      try session.conflicts.journal.addSettled(
        ConflictJournal.Entry(
          kind: .cell, row: row, column: column, rule: .join, outcome: .remote,
          message: Self.missing, key: journalKey(candidate.values, localKey, table),
          local: [(column, try logical(candidate, column))], remote: [(column, .null)]))
    }
  }

  /// Enters a row that the document cannot take as it is into the conflict journal, and records that
  /// references to it lead nowhere.
  ///
  /// - Parameter known: The identity under which the journal has it, if that is known already.
  func refuse(_ candidate: Candidate, _ fault: Fault, as known: RowIdentity? = nil) throws {
    let (table, row) = (candidate.table, candidate.row)
    let refused = RowKey(table: table.id, identity: try known ?? identity(of: candidate))
    try keys.note(.nowhere(refused.identity), of: key(of: row, table), in: table)
    report.refusedRows += 1
    // It may be refused since a row is gone to which it refers, and be deleted as well.
    if try deletion(of: candidate) != nil { deletedRows.insert(refused) }
    let rule: Conflict.Rule =
      switch fault.kind {
      case .reference: .reference
      case .uniqueValue: .uniqueValue
      case .existence: .deleteWins
      case .condition, .cell: .condition
      }
    try session.conflicts.journal.addSettled(
      ConflictJournal.Entry(
        kind: fault.kind, row: refused, rule: rule, outcome: .remote, message: fault.message,
        key: journalKey(candidate.values, row.localKey, table),
        local: try candidate.values.indices.map { ($0, try logical(candidate, $0)) }))
  }

  private func journalKey(
    _ values: [Value], _ localKey: Value?, _ table: TableSchema
  ) -> [ConflictJournal.Entry.Cell] {
    guard table.identity == .surrogate else {
      return table.identityPositions.map { ($0, values[$0]) }
    }
    return localKey.map { [(ConflictTable.localKeyPosition, $0)] } ?? []
  }
}

extension TableSchema {
  /// Returns the columns on which it depends what an index contains of a row.
  fileprivate func columns(readBy index: UniqueIndex) -> Set<Int> {
    if index.isPlain { return Set(index.positions) }
    let tokens = (index.terms + [index.condition].compactMap(\.self)).flatMap {
      SQLTokens($0).tokens
    }
    func isNamed(_ name: SQLName) -> Bool { tokens.contains { $0.isName(name) } }
    if generatedColumns.contains(where: { isNamed($0.name) }) { return Set(columns.indices) }
    return Set(columns.indices.filter { isNamed(columns[$0].name) })
  }
}
