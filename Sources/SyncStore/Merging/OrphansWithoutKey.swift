import GRDB
import SyncModel

/// Rows with NULL in their key that refer to rows that are not in their tables any more.
///
/// Such a row is on this device alone, so no change set says what becomes of it when another device
/// deletes the row that it refers to.
struct OrphansWithoutKey {
  private let session: StoreSession
  /// The references that SQLite enforces, of the tables that have such rows.
  private let references: [ForeignKey]
  /// The rows that have just been decided.
  private let set: WorkingSet?
  /// The identities of those among them that are not in their tables any more, by table and number.
  private let left: [Int: [Int64: RowIdentity]]

  /// A row that refers to no row.
  private struct Orphan {
    /// The row's number in its table.
    var rowid: Int64
    /// The local values of its columns.
    var values: [Value]
  }

  /// A reference of a row.
  private struct Place: Hashable {
    var reference: Int
    var rowid: Int64
  }

  init(of tables: Set<Int>, _ session: StoreSession) {
    self.init(of: tables, session, after: nil)
  }

  /// - Parameter set: The rows of which it was just decided whether they are shown.
  init(of tables: Set<Int>, after set: WorkingSet) {
    self.init(of: tables, set.session, after: set)
  }

  private init(of tables: Set<Int>, _ session: StoreSession, after set: WorkingSet?) {
    self.session = session
    self.set = set
    references = tables.sorted().map { session.schema[$0] }.filter(\.canLoseKeys)
      .flatMap(\.foreignKeys).filter(\.isEnforced)
    let parents = Set(references.map(\.parent))
    var left: [Int: [Int64: RowIdentity]] = [:]
    for row in references.isEmpty ? [] : set?.rows ?? []
    where parents.contains(row.key.table) && row.shown != nil && !row.isVisible {
      if let key = row.localKey { left[row.key.table, default: [:]][key] = row.key.identity }
    }
    self.left = left
  }

  /// The tables to which such rows can refer.
  var parents: Set<Int> { Set(references.map(\.parent)) }

  /// Lets the rows refer to where the rows have moved that they referred to, or to those that stand
  /// in for them. Otherwise gives them NULL or the default if the schema prescribes it. Enters all
  /// others into the conflict journal and removes them from their tables.
  func settle() throws {
    guard !references.isEmpty else { return }
    var references = references
    var redirected: Set<Place> = []
    var removed: [Int: Int] = [:]
    var isSettled = false
    while !isSettled {
      isSettled = true
      for reference in references {
        for orphan in try orphans(by: reference) {
          isSettled = false
          let place = Place(reference: reference.ordinal, rowid: orphan.rowid)
          if redirected.insert(place).inserted, try redirect(orphan, reference) { continue }
          try takeOut(orphan, reference)
          removed[reference.child, default: 0] += 1
        }
      }
      // Rows without a key may refer to one another.
      for reference in removed.keys.sorted().flatMap({ session.schema.inbound(to: $0) })
      where reference.isEnforced && session.schema[reference.child].canLoseKeys {
        if !references.contains(reference) { references.append(reference) }
      }
    }
    for (table, count) in removed.sorted(by: { $0.key < $1.key }) {
      let name = session.schema[table].name
      var warning = SyncWarning(
        .keyMissing, table: name,
        message: "rows of \(name) had NULL in their key, and the rows that they refer to are not "
          + "shown any more: their values are in the conflict journal")
      warning.count = count
      session.conflicts.warn(warning)
    }
  }

  private func orphans(by reference: ForeignKey) throws -> [Orphan] {
    let access = try session.access(reference.child)
    let table = access.table
    guard let rowid = table.rowidName else { return [] }
    let columns = reference.columns.map { "c.\(quoted(table.columns[$0].name))" }
    let parent = session.schema[reference.parent]
    let match = zip(reference.parentColumns, reference.columns).map { name, column in
      "p.\(quoted(name)) = "
        + table.columns[column].compared(with: parent.affinity(of: name), row: "c")
    }
    let names = [rowid] + table.columns.map { quoted($0.name) }
    let reading = try access.statement(
      "SELECT \(names.map { "c.\($0)" }.joined(separator: ", ")) FROM main.\(table.quotedName) AS c "
        + "WHERE (\(table.isWithoutKey("c"))) "
        + "AND \(columns.map { "\($0) NOT NULL" }.joined(separator: " AND ")) "
        + "AND NOT EXISTS (SELECT 1 FROM main.\(session.schema[reference.parent].quotedName) AS p "
        + "WHERE \(match.joined(separator: " AND ")))")
    var found: [Orphan] = []
    while try reading.step() {
      found.append(
        Orphan(
          rowid: reading.integer(at: 0),
          values: table.columns.indices.map { reading.value(at: $0 + 1) }))
    }
    return found
  }

  // MARK: - Other values

  /// Gives a reference another value. Returns false if there is none, or a constraint refuses it.
  private func redirect(_ orphan: Orphan, _ reference: ForeignKey) throws -> Bool {
    let access = try session.access(reference.child)
    let table = access.table
    guard let rowid = table.rowidName,
      let values = try destination(of: orphan, reference) ?? replacement(reference, table)
    else { return false }
    let terms = reference.columns.map { "\(quoted(table.columns[$0].name)) = ?" }
    let writing = try access.statement(
      "UPDATE\(table.orAbort) main.\(table.quotedName) SET \(terms.joined(separator: ", ")) "
        + "WHERE \(rowid) = ?")
    do {
      try writing.withBound((values + [.integer(orphan.rowid)])[...]) { try session.write(writing) }
      access.changes.noteAll()
      return true
    } catch let error as DatabaseError where error.resultCode == .SQLITE_CONSTRAINT {
      try TransactionEnded.check(session.database, after: error)
      return false
    }
  }

  /// Returns the local values by which a row refers to where the row that it referred to has moved,
  /// or to its stand-in; `nil` if there is no such row.
  private func destination(of orphan: Orphan, _ reference: ForeignKey) throws -> [Value]? {
    let columns = reference.columns.map { session.schema[reference.child].columns[$0] }
    let parent = try session.access(reference.parent)
    guard parent.table.identifies(reference) else { return nil }
    let local = reference.columns.map { orphan.values[$0] }
    let logical = try zip(local, columns).map(session.exported)
    let isByNumber =
      reference.parentColumns.map(\.folded) == [parent.table.localKey?.folded].compactMap(\.self)
    // The number of a row that is not in its table stands for no row any more.
    let gone = isByNumber ? columns[0].key(local[0]).flatMap { left[reference.parent]?[$0] } : nil
    var next = gone ?? parent.table.identity(for: logical, of: reference)
    var seen: Set<RowIdentity> = []
    while let row = next, seen.insert(row).inserted {
      if try parent.shown(row) != nil {
        return try parent.table.referringValues(
          to: row, by: reference, in: session.schema[reference.child]
        ).map { try zip($0, columns).map { try session.imported($0, $1) ?? .null } }
      }
      let key = RowKey(table: reference.parent, identity: row)
      let standIn = set?[key]?.standIn
      next =
        try session.keptRows.row(key)?.movedTo ?? standIn?.shownIdentity ?? standIn?.key.identity
    }
    return nil
  }

  /// Returns what the schema prescribes for a reference to a deleted row; `nil` if the row must go.
  private func replacement(_ reference: ForeignKey, _ table: TableSchema) throws -> [Value]? {
    switch reference.onDelete {
    case .setNull: return reference.columns.map { _ in .null }
    case .setDefault:
      let defaults = try AbsentValues.read(table, session.database)
      return reference.columns.map { defaults[$0] }
    case .cascade, .refuse: return nil
    }
  }

  // MARK: - The journal

  private func takeOut(_ orphan: Orphan, _ reference: ForeignKey) throws {
    let access = try session.access(reference.child)
    let table = access.table
    guard let rowid = table.rowidName else { return }
    let cells = try zip(table.columns.indices, orphan.values).map { position, value in
      (column: position, value: try session.exported(value, table.columns[position]))
    }
    let key = table.identityPositions.map { (column: $0, value: orphan.values[$0]) }
    let removing = try access.statement(
      "DELETE FROM main.\(table.quotedName) WHERE \(rowid) = ?")
    removing.bind(orphan.rowid, at: 1)
    try session.write(removing)
    access.changes.noteAll()
    try session.conflicts.journal.addSettled(
      ConflictJournal.Entry(
        kind: .reference,
        row: RowKey(table: table.id, identity: try access.identity(ofKey: key.map(\.value))),
        rule: .reference, outcome: .remote,
        message: "The row of \(session.schema[reference.parent].name) that it refers to is not "
          + "shown any more.", key: key, local: cells))
  }
}
