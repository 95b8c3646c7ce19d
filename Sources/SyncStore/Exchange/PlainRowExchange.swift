import GRDB
import SyncModel

/// The exchange of a table's rows that have a plain number in their key
/// (``KeyMapping/plainRows(_:)``).
///
/// Their plain numbers stay as they are, and the rest of their keys is mapped. If another row has the
/// same key here, one of the two is parked, as when the two arrive in change sets. Which one is
/// decided with all other rows, so that the order of insertion has no effect.
struct PlainRowExchange {
  let mapping: KeyMapping
  /// The table as the whole store has it.
  let table: TableSchema
  let database: Database

  /// A row of the whole store.
  private struct Row {
    /// Its number among the rows with plain numbers.
    var number: Int64
    /// The values that it has in the whole store, by column.
    var whole: [Value]
    /// The values that it is to have here.
    var local: [Value]
    /// The positions of the plain numbers in its key.
    var plain: Set<Int>
    var localKey: Int64?
    /// Whether another row has its key here.
    var isParked: Bool
  }

  private func rows(where condition: String = "1") throws -> [Row] {
    guard mapping.hasPlainRows(table) else { return [] }
    let count = table.columns.count
    let whole = table.columns.map { "s.\(quoted($0.name))" }
    let mapped = table.columns.indices.map { mapping.mapped($0, of: table, row: "s") }
    let key = table.localKey == nil ? "NULL" : mapping.mappedKey(of: table, row: "s")
    let flags = table.keyColumns.indices.map { "a.p\($0)" }
    let terms = whole + mapped + [key, "a.rowid", "a.parked"] + flags
    let reading = try SQLStatement(
      "SELECT \(terms.joined(separator: ", ")) FROM \(KeyMapping.plainRows(table.id)) AS a "
        + "JOIN \(KeyMapping.attached).\(table.quotedName) AS s ON "
        + "\(KeyMapping.match(table, row: "s", plain: "a")) WHERE \(condition) ORDER BY a.rowid",
      on: database)
    var found: [Row] = []
    while try reading.step() {
      let values = (0..<count).map { reading.value(at: $0) }
      let plain = Set(
        table.identityPositions.enumerated().filter {
          reading.integer(at: 2 * count + 3 + $0.offset) != 0
        }.map(\.element))
      found.append(
        Row(
          number: reading.integer(at: 2 * count + 1), whole: values,
          local: (0..<count).map {
            plain.contains($0) ? values[$0] : reading.value(at: count + $0)
          }, plain: plain,
          localKey: table.localKey == nil ? nil : reading.integer(at: 2 * count),
          isParked: reading.integer(at: 2 * count + 2) != 0))
    }
    return found
  }

  // MARK: - Inserting

  /// Inserts the rows, except those whose key another row has here. Returns how many were inserted.
  ///
  /// - Parameter session: The session with the former content.
  func insert(_ session: StoreSession) throws -> Int {
    let rows = try rows()
    guard !rows.isEmpty else { return 0 }
    let names = table.columns.map(\.name) + [table.localKey].compactMap { $0 }
    let insertion = try SQLStatement(
      "INSERT OR ABORT INTO main.\(table.quotedName) (\(names.map(quoted).joined(separator: ", "))) "
        + "VALUES (\(names.map { _ in "?" }.joined(separator: ", ")))", on: database)
    let parking = try SQLStatement(
      "UPDATE \(KeyMapping.plainRows(table.id)) SET parked = 1 WHERE rowid = ?", on: database)
    var count = 0
    for row in rows {
      if let key = row.localKey { insertion.bind(key, at: row.local.count + 1) }
      do {
        try insertion.withBound(row.local[...]) { try session.write(insertion) }
        count += 1
      } catch let error as DatabaseError where Self.isCollision(error) {
        try TransactionEnded.check(database, after: error)
        parking.bind(row.number, at: 1)
        try parking.run()
      }
    }
    return count
  }

  private static func isCollision(_ error: DatabaseError) -> Bool {
    [.SQLITE_CONSTRAINT_UNIQUE, .SQLITE_CONSTRAINT_PRIMARYKEY].contains(error.extendedResultCode)
  }

  // MARK: - Bookkeeping

  /// Notes which numbers of the rows are plain, and parks those that were not inserted.
  ///
  /// - Parameter session: The session with the new schema.
  func note(_ session: StoreSession) throws {
    let access = try session.access(table.id)
    for row in try rows() {
      let identity = access.identity(
        of: try table.identityPositions.map { try logical(row, $0, session) })
      let key = RowKey(table: table.id, identity: identity)
      for position in row.plain.sorted() {
        try session.plainKeys.note(row.whole[position], in: table.columns[position])
      }
      if row.isParked {
        try park(row, key, session)
      } else {
        try session.notePlainNumbers(row.plain.sorted().map { ($0, row.whole[$0]) }, in: key)
      }
    }
  }

  /// Stores a row that is not in its table. It is decided with all other rows whether it stays
  /// parked.
  private func park(_ row: Row, _ key: RowKey, _ session: StoreSession) throws {
    let access = try session.access(table.id)
    let fingerprint = access.fingerprint(key.identity)
    var state = try access.stamps.state(of: fingerprint) ?? .unstamped
    let kept = state.isKept ? try session.keptRows.row(key) : nil
    let cells = try table.cellPositions.map { position in
      let known = kept?.cells.first { $0.column == position }
      return (column: position, value: try known?.value ?? logical(row, position, session))
    }
    if state.existence == .unsaid { state.existence = .inserted }
    state.isKept = true
    try session.keptRows.store(
      KeptRow(
        reason: state.existence == .deleted ? .tombstone : .parked(.uniqueValueTaken),
        movedTo: kept?.movedTo, cells: cells), of: key)
    try access.stamps.store([(fingerprint, state)])
    if let number = row.localKey { try session.goneKeys.holdForNow(number, of: key) }
  }

  /// Returns the logical value of a cell.
  private func logical(_ row: Row, _ position: Int, _ session: StoreSession) throws -> Value {
    let value = row.whole[position]
    if row.plain.contains(position) { return value }
    if case .key(let parent) = table.columns[position].domain, mapping.isMapped(mapping.new[parent])
    {
      let looking = try session.access(table.id).statement(
        "SELECT \(mapping.isOnlyHere("?1", parent))")
      looking.bind(value, at: 1)
      defer { looking.reset() }
      if try looking.step(), looking.integer(at: 0) != 0 { return value }
    }
    return try session.exported(row.local[position], table.columns[position])
  }

  /// Adds the rows that refer to the parked rows by their integer keys.
  func addRowsThatReferToParked(to set: WorkingSet) throws {
    guard table.localKey != nil else { return }
    let keys = try rows(where: "a.parked").compactMap(\.localKey)
    guard !keys.isEmpty else { return }
    for child in set.session.schema.tables {
      let access = try set.session.access(child.id)
      for column in child.columns where column.domain == .key(of: table.id) {
        let reading = try access.statement(
          "SELECT \(child.keyColumns.map(quoted).joined(separator: ", ")) "
            + "FROM \(child.quotedName) WHERE \(quoted(column.name)) = CAST(? AS NUMERIC)")
        for key in keys {
          reading.bind(key, at: 1)
          var found: [[Value]] = []
          while try reading.step() {
            found.append(child.keyColumns.indices.map { reading.value(at: $0) })
          }
          try set.add(found.filter { !$0.contains(.null) }, access)
        }
      }
    }
  }
}
