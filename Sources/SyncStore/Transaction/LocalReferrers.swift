import GRDB
import SyncModel

/// Lets data that stays on this device follow the rows to which it refers (``LocalReference``), as
/// SQLite would if foreign keys were on: changes of other devices are written with foreign keys off.
///
/// A row that is only hidden is not deleted; what refers to it stays as it is.
final class LocalReferrers {
  let session: StoreSession
  private var found: [LocalReferrer] = []
  private var followed: Set<Step> = []
  /// The keys of rows whose foreign keys are a part of their keys, by their former keys.
  private var newKeys: [Row: [Value]] = [:]
  /// What a constraint has refused: it may be possible once others have changed.
  private var refused: [(change: Change, key: [Value], reference: LocalReference)] = []
  private var statements: [SQLText: SQLStatement] = [:]

  /// A row that stays on this device, or has a column that does.
  private struct Row: Hashable {
    var table: SQLName
    var key: [Value]
  }

  private struct Step: Hashable {
    var reference: LocalReference
    var key: [Value]
  }

  init(_ session: StoreSession) { self.session = session }

  func add(_ referrer: LocalReferrer) { found.append(referrer) }

  /// Does what the foreign keys prescribe for what was found. Must be called after the rows are
  /// written.
  func follow() throws {
    var deletions: [LocalReference: [[Value]]] = [:]
    for referrer in found {
      let reference = referrer.reference
      switch referrer.target {
      case .deleted where session.mayBringRowsBack: session.undecidedReferrers?.append(referrer)
      case .deleted:
        guard try !isThere(referrer.referred, reference) else { continue }
        deletions[reference, default: []].append(referrer.key)
      case .updated(let row, let newNumber):
        guard let values = try referredValues(of: row, newNumber(), by: reference),
          values != referrer.referred,
          let change = Change(reference.onUpdate, values, reference)
        else { continue }
        try carry(change, on: referrer.key, reference, ifStill: referrer.values)
      case .moved(let row):
        guard let values = try referredValues(of: row, nil, by: reference),
          values != referrer.referred
        else { continue }
        try carry(.values(values), on: referrer.key, reference, ifStill: referrer.values)
      }
    }
    found = []
    for (reference, keys) in deletions.sorted(by: { $0.key.child < $1.key.child }) {
      try followDeletion(keys, reference)
    }
    try carryRefused()
  }

  /// Follows the rows that had left their tables when policies had not decided yet. Must be called
  /// when they have, and the rows that they bring back are in their tables.
  func followUndecided() throws {
    let waiting = session.undecidedReferrers ?? []
    session.undecidedReferrers = nil
    for var referrer in waiting {
      let reference = referrer.reference
      // Another foreign key may have changed it meanwhile.
      guard
        try values(
          of: reference.columns, in: reference.child, reference.childKey, referrer.key)
          == referrer.values, let target = try target(of: referrer.row)
      else { continue }
      referrer.target = target
      add(referrer)
    }
    try follow()
  }

  /// Does what the foreign keys prescribe for what refers to rows that are about to be deleted.
  func follow(deletionOf keys: [[Value]], of table: TableSchema) throws {
    try follow(deletionOf: keys, of: table.name, table.keyColumns)
    try carryRefused()
  }

  // MARK: - Rows

  /// Returns what has become of a row that was in its table; `nil` if it is only hidden, or nothing
  /// is known of it.
  func target(of row: RowKey) throws -> LocalReferrer.Target? {
    let access = try session.access(row.table)
    if try access.shown(row.identity) != nil { return .moved(row) }
    var last = row
    var seen: Set<RowKey> = [row]
    while let identity = try session.keptRows.row(last)?.movedTo {
      last = RowKey(table: row.table, identity: identity)
      guard seen.insert(last).inserted else { return nil }
      if try access.shown(identity) != nil { return .updated(last) { nil } }
    }
    switch try session.keptRows.row(last)?.reason {
    case .parked(.parentDeleted): return .deleted
    // It exists, also if an edit has revived it.
    case .parked(let reason) where reason != .deleted: return nil
    default:
      let state = try access.stamps.state(of: access.fingerprint(last.identity))
      return state?.existence == .deleted ? .deleted : nil
    }
  }

  /// Returns the local values by which a foreign key refers to a row; `nil` if its table does not
  /// show the row.
  ///
  /// - Parameter number: The number of a row that has just been written: bookkeeping may not have it
  ///   yet.
  private func referredValues(
    of row: RowKey, _ number: Int64?, by reference: LocalReference
  ) throws -> [Value]? {
    let access = try session.access(row.table)
    var key = try access.namingKey(of: row.identity)
    if access.table.identity == .surrogate, let number {
      key = [.integer(number)]
    }
    guard let key else { return nil }
    return try values(
      of: reference.parentColumns, in: reference.parent, access.table.keyColumns, key)
  }

  /// Whether a row has the values to which a deleted row was referred. A number is not enough, since
  /// another row may have it by now.
  private func isThere(_ values: [Value], _ reference: LocalReference) throws -> Bool {
    if session.schema.table(named: reference.parent)?.containsNumber(reference.parentColumns)
      ?? true
    {
      return false
    }
    return try self.values(
      of: reference.parentColumns, in: reference.parent, reference.parentColumns, values) != nil
  }

  private func values(
    of columns: [SQLName], in table: SQLName, _ keyColumns: [SQLName], _ key: [Value]
  ) throws -> [Value]? {
    let reading = try statement(
      "SELECT \(columns.map(quoted).joined(separator: ", ")) FROM main.\(quoted(table)) "
        + "WHERE \(TableAccess.match(keyColumns))")
    for (index, value) in key.enumerated() { reading.bind(value, at: index + 1) }
    guard try reading.step() else { return nil }
    defer { reading.reset() }
    return columns.indices.map { reading.value(at: $0) }
  }

  /// Returns the rows that refer to rows of a table, with the index of the key of the row to which
  /// each refers.
  func referrers(
    by reference: LocalReference, of keys: [[Value]], _ keyColumns: [SQLName]
  ) throws -> [(index: Int, key: [Value], values: [Value], referred: [Value])] {
    var found: [(index: Int, key: [Value], values: [Value], referred: [Value])] = []
    let names =
      ["g.n"] + (reference.childKey + reference.columns).map { "c.\(quoted($0))" }
      + reference.parentColumns.map { "p.\(quoted($0))" }
    let named = keyColumns.indices.map { "p.\(quoted(keyColumns[$0])) = g.k\($0)" }
    // The column of the other row comes first, since its collation counts.
    let matching = zip(reference.parentColumns, reference.columns).map {
      "p.\(quoted($0)) = c.\(quoted($1))"
    }
    let marks = keyColumns.map { _ in ", ?" }.joined()
    for start in stride(from: 0, to: keys.count, by: 500) {
      let part = start..<min(start + 500, keys.count)
      let reading = try SQLStatement(
        "WITH g (n, \(keyColumns.indices.map { "k\($0)" }.joined(separator: ", "))) AS "
          + "(VALUES \(part.map { "(\($0)\(marks))" }.joined(separator: ", "))) "
          + "SELECT \(names.joined(separator: ", ")) FROM g "
          + "JOIN main.\(quoted(reference.parent)) AS p ON \(named.joined(separator: " AND ")) "
          + "JOIN main.\(quoted(reference.child)) AS c ON \(matching.joined(separator: " AND "))",
        on: session.database)
      for (index, value) in keys[part].joined().enumerated() { reading.bind(value, at: index + 1) }
      while try reading.step() {
        var values = names.indices.dropFirst().map { reading.value(at: $0) }[...]
        let key = Array(values.prefix(reference.childKey.count))
        values = values.dropFirst(key.count)
        let own = Array(values.prefix(reference.columns.count))
        guard !key.contains(.null) else { continue }
        found.append((Int(reading.integer(at: 0)), key, own, Array(values.dropFirst(own.count))))
      }
    }
    return found
  }

  // MARK: - Changes

  private enum Change {
    case deletion
    case values([Value])

    /// What an action prescribes.
    ///
    /// - Parameter values: The values that the row referred to has now; `nil` if it is deleted.
    init?(_ action: ForeignKey.DeleteAction, _ values: [Value]?, _ reference: LocalReference) {
      switch action {
      case .refuse: return nil
      case .cascade: self = values.map { .values($0) } ?? .deletion
      case .setNull: self = .values(reference.columns.map { _ in .null })
      case .setDefault: self = .values(reference.defaults)
      }
    }
  }

  private func follow(
    deletionOf keys: [[Value]], of parent: SQLName, _ keyColumns: [SQLName]
  ) throws {
    guard !keys.isEmpty else { return }
    for reference in try session.localReferences()[parent.folded] ?? []
    where reference.onDelete != .refuse {
      try followDeletion(try referrers(by: reference, of: keys, keyColumns).map(\.key), reference)
    }
  }

  /// Does what a foreign key prescribes for rows that refer to deleted rows. No row of a
  /// synchronized table is deleted for an excluded column: other devices would lose it.
  private func followDeletion(_ keys: [[Value]], _ reference: LocalReference) throws {
    guard let change = Change(reference.onDelete, nil, reference),
      !(reference.isColumn && reference.onDelete == .cascade)
    else { return }
    let keys = keys.filter { followed.insert(Step(reference: reference, key: $0)).inserted }
    if reference.onDelete == .cascade {
      try follow(
        deletionOf: keys.map { current($0, reference) }, of: reference.child, reference.childKey)
    }
    for key in keys { try carry(change, on: key, reference) }
  }

  /// Returns the key that a row has by now.
  private func current(_ key: [Value], _ reference: LocalReference) -> [Value] {
    var row = Row(table: reference.child, key: key)
    var seen: Set<Row> = []
    while seen.insert(row).inserted, let next = newKeys[row] { row.key = next }
    return row.key
  }

  /// Makes a change in a row, and those that foreign keys to the row prescribe.
  ///
  /// - Parameter values: Values by which the row must still refer; `nil` if it does not matter.
  private func carry(
    _ change: Change, on former: [Value], _ reference: LocalReference,
    ifStill values: [Value]? = nil
  ) throws {
    let key = current(former, reference)
    if let values {
      let present = try self.values(
        of: reference.columns, in: reference.child, reference.childKey, key)
      guard present == values else { return }
    }
    guard case .values(let new) = change else {
      _ = try write("DELETE FROM main.\(quoted(reference.child))", [], change, key, reference)
      return
    }
    let dependent = try session.localReferences()[reference.child.folded]?.filter { other in
      other.parentColumns.contains { name in reference.columns.contains(where: name.isSame(as:)) }
    }
    let referrers = try (dependent ?? []).flatMap { other in
      try self.referrers(by: other, of: [key], reference.childKey).map { (other, $0) }
    }
    let terms = reference.columns.map { "\(quoted($0)) = ?" }.joined(separator: ", ")
    let isWritten = try write(
      "UPDATE OR ABORT main.\(quoted(reference.child)) SET \(terms)", new, change, key, reference)
    guard isWritten else { return }
    let next = reference.childKey.enumerated().map { index, name in
      reference.columns.firstIndex(where: name.isSame(as:)).map { new[$0] } ?? key[index]
    }
    if next != key { newKeys[Row(table: reference.child, key: key)] = next }
    for (other, referrer) in referrers {
      guard
        let now = try self.values(
          of: other.parentColumns, in: other.parent, reference.childKey, next),
        now != referrer.referred, let change = Change(other.onUpdate, now, other),
        // Rows may refer to one another.
        followed.insert(Step(reference: other, key: referrer.key + now)).inserted
      else { continue }
      try carry(change, on: referrer.key, other)
    }
  }

  /// Runs a statement for the row with a key. Returns false, and leaves the row as it is for now, if
  /// its table refuses that.
  private func write(
    _ sql: String, _ values: [Value], _ change: Change, _ key: [Value],
    _ reference: LocalReference
  ) throws -> Bool {
    do {
      let statement = try statement("\(sql) WHERE \(TableAccess.match(reference.childKey))")
      for (index, value) in (values + key).enumerated() { statement.bind(value, at: index + 1) }
      try session.write(statement)
      if let table = session.schema.table(named: reference.child) {
        session.changes.rows(of: table).note(.updated, key)
      } else {
        session.changes.noteAll(of: reference.child, keyColumns: reference.childKey)
      }
      return true
    } catch let error as DatabaseError where Self.isRefusal(error) {
      try TransactionEnded.check(session.database, after: error)
      refused.append((change, key, reference))
      return false
    }
  }

  /// Whether the table itself refuses a change, or its definition fails.
  private static func isRefusal(_ error: DatabaseError) -> Bool {
    [.SQLITE_CONSTRAINT, .SQLITE_MISMATCH, .SQLITE_ERROR, .SQLITE_TOOBIG].contains(error.resultCode)
  }

  /// Makes the changes that were refused while other rows had their former values.
  private func carryRefused() throws {
    while !refused.isEmpty {
      let waiting = refused
      refused = []
      for (change, key, reference) in waiting { try carry(change, on: key, reference) }
      if refused.count == waiting.count { break }
    }
    refused = []
  }

  private func statement(_ sql: String) throws -> SQLStatement {
    let text = SQLText(sql)
    if let statement = statements[text] { return statement }
    let statement = try SQLStatement(sql, on: session.database)
    statements[text] = statement
    return statement
  }
}

extension StoreSession {
  /// Whether policies may yet bring rows back that have left their tables.
  var mayBringRowsBack: Bool { undecidedReferrers != nil && !conflicts.rebirths.isEmpty }

  /// Returns the foreign keys of data that stays on this device, by the folded name of the table to
  /// which they refer.
  func localReferences() throws -> [SQLName: [LocalReference]] {
    if let knownLocalReferences { return knownLocalReferences }
    let found = try LocalReference.all(schema, database)
    knownLocalReferences = found
    return found
  }
}
