import GRDB
import SyncModel

/// Rows that the document does not have.
extension DatabaseMerge {
  func newIdentity() -> RowIdentity {
    RowIdentity(bytes: Bits128(high: random(), low: random()).bytes)
  }

  func identity(of candidate: Candidate) throws -> RowIdentity {
    let table = candidate.table
    guard table.identity != .surrogate else { return candidate.row.identity ?? newIdentity() }
    let access = try session.access(table.id)
    guard candidate.plain.isDisjoint(with: table.identityPositions) else {
      return access.identity(
        of: try table.identityPositions.map { try logical(candidate, $0) })
    }
    return try access.identity(ofKey: table.identityPositions.map { candidate.values[$0] })
  }

  /// Returns a row's own key if it is free, or else a key that no row of the two databases has; `nil`
  /// if it finds none, or rows of the table have no such key.
  func freeKey(_ own: Int64?, _ table: TableSchema) throws -> Int64? {
    guard let name = table.localKey.map(quoted) else { return nil }
    let database = session.database
    if let own {
      let isTaken = try Bool.fetchOne(
        database, sql: "SELECT EXISTS (SELECT 1 FROM main.\(table.quotedName) WHERE \(name) = ?)",
        arguments: [own])
      if try isTaken == false && !session.plainKeys.keys(of: table.id).contains(own) { return own }
    }
    var greatest = greatestKeys[table.id] ?? 0
    if greatest == 0 {
      let maximum = "SELECT max(\(name)) FROM main."
      let here = try Int64.fetchOne(database, sql: maximum + table.quotedName) ?? 0
      let former = former.table(named: table.name)?.name ?? table.name
      let there = try Int64.fetchOne(self.former.database, sql: maximum + quoted(former)) ?? 0
      greatest = max(here, there, 0)
    }
    let plain = try session.plainKeys.keys(of: table.id)
    repeat {
      guard greatest < .max else { return try randomKey(table) }
      greatest += 1
    } while plain.contains(greatest)
    greatestKeys[table.id] = greatest
    return greatest
  }

  /// Returns a random key that no row of the two databases has; `nil` if it finds none. SQLite, too,
  /// tries a hundred of them when the greatest key is taken.
  private func randomKey(_ table: TableSchema) throws -> Int64? {
    let access = try session.access(table.id)
    let plain = try session.plainKeys.keys(of: table.id)
    for _ in 0..<100 {
      let key = Int64(random() >> 1)
      guard try key > 0 && !plain.contains(key) && !access.isTaken(key) else { continue }
      if try readers[table.id]?.record([.integer(key)]) == nil { return key }
    }
    return nil
  }

  /// Inserts a row. Returns the key that names it in statements.
  func insert(_ candidate: Candidate) throws -> [Value] {
    let table = candidate.table
    let access = try session.access(table.id)
    let identity = try identity(of: candidate)
    let hint = try freeKey(candidate.row.localKey.flatMap(Value.key), table)
    if table.identity != .surrogate, let hint { access.formerKeys[identity] = hint }
    defer { access.formerKeys[identity] = nil }
    let new = RowKey(table: table.id, identity: identity)
    let key = try LocalEdits(session: session).insert(
      localValues: candidate.values, as: new, preferring: hint)
    notePlainKey(candidate, new)
    notePlainCells(candidate, new, key)
    return key
  }

  /// Notes that the key of an inserted row contains plain values that are keys of rows here.
  func notePlainKey(_ candidate: Candidate, _ new: RowKey) {
    let table = candidate.table
    guard table.identity != .surrogate,
      candidate.plain.contains(where: { table.columns[$0].isIdentity })
    else { return }
    session.writtenPlainRows.insert(new)
  }

  /// Notes the other plain values of an inserted row that are keys of rows here.
  func notePlainCells(_ candidate: Candidate, _ new: RowKey, _ key: [Value]) {
    let table = candidate.table
    for position in candidate.plain.sorted()
    where table.identity == .surrogate || !table.columns[position].isIdentity {
      session.writtenPlainCells[new, default: []].append(
        StoreSession.PlainCell(
          table: table.id, key: key, column: position, value: candidate.values[position]))
    }
  }
}
