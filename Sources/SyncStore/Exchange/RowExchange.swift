import GRDB
import SyncModel

/// The exchange of the synchronized tables' rows for those of an attached whole store.
///
/// It leaves equal rows alone, so that neither the application's triggers nor other programs notice
/// them. It removes the others and inserts them again; it puts their values that stay on this
/// device aside first, and puts them back afterwards.
struct RowExchange {
  let session: StoreSession
  let mapping: KeyMapping
  /// The tables that this store has in the whole store's form; the others are created again and are
  /// empty.
  let kept: Set<Int>
  let work: WorkCount
  let checkCancellation: () throws -> Void

  private let collisions = CollidingRows()

  var database: Database { session.database }
  var tables: [TableSchema] { mapping.new.inDependencyOrder(mapping.new.tables) }

  private func whole(_ table: TableSchema) -> String {
    "\(KeyMapping.attached).\(table.quotedName)"
  }

  /// Returns the columns by which a row is found.
  func matchColumns(_ table: TableSchema) -> [SQLName] {
    table.localKey.map { [$0] } ?? table.keyColumns
  }

  /// Returns the values of these columns here, for a row of the whole store.
  private func mappedMatch(_ table: TableSchema, row: String) -> [String] {
    if table.localKey != nil { return [mapping.mappedKey(of: table, row: row)] }
    return table.identityPositions.map { mapping.mapped($0, of: table, row: row) }
  }

  /// Returns the SQL condition that a row `s` of the whole store is the row `t` here.
  private func match(_ table: TableSchema) -> String {
    if let key = table.localKey {
      return "s.\(quoted(key)) = \(mapping.unmapped("t.\(quoted(key))", table.id))"
    }
    return table.identityPositions.map { position in
      let name = quoted(table.columns[position].name)
      guard case .key(let parent) = table.columns[position].domain else {
        return "s.\(name) = t.\(name)"
      }
      return "s.\(name) = \(mapping.unmapped("t.\(name)", parent))"
    }.joined(separator: " AND ")
  }

  /// Returns the same condition for rows with a plain number in their key.
  private func matchPlain(_ table: TableSchema) -> String {
    guard mapping.hasPlainRows(table) else { return "0" }
    let terms = zip(table.keyColumns.indices, table.identityPositions).map { index, position in
      let name = quoted(table.columns[position].name)
      guard case .key(let parent) = table.columns[position].domain else {
        return "s.\(name) = t.\(name)"
      }
      return "CASE a.p\(index) WHEN 1 THEN s.\(name) = t.\(name) "
        + "ELSE s.\(name) = \(mapping.unmapped("t.\(name)", parent)) END"
    }
    return "EXISTS (SELECT 1 FROM \(KeyMapping.plainRows(table.id)) AS a WHERE "
      + "\(KeyMapping.match(table, row: "s", plain: "a")) AND \(terms.joined(separator: " AND ")))"
  }

  /// Returns the SQL condition that a row `t` here has a key and the whole store has no equal row.
  /// Rows without a key are on no other device (``RowsWithoutKey``).
  func isDoomed(_ table: TableSchema) -> String {
    let equal = table.columns.indices.map { position in
      let here = "t.\(quoted(table.columns[position].name))"
      let there = mapping.mapped(position, of: table, row: "s")
      return "\(here) COLLATE BINARY IS \(there) AND typeof(\(here)) = typeof(\(there))"
    }
    let keys = (matchColumns(table) + (table.canLoseKeys ? table.keyColumns : [])).map {
      "t.\(quoted($0)) IS NOT NULL"
    }
    let isEqual =
      "EXISTS (SELECT 1 FROM \(whole(table)) AS s WHERE "
      + ([match(table)] + equal).joined(separator: " AND ")
      + " AND NOT \(mapping.isPlainRow(table, row: "s")))"
    guard mapping.hasPlainRows(table) else {
      return (keys + ["NOT \(isEqual)"]).joined(separator: " AND ")
    }
    // Either row can have the key here. What stays on the device must not go from one to the other.
    return keys.joined(separator: " AND ")
      + " AND (NOT \(isEqual) OR EXISTS (SELECT 1 FROM \(whole(table)) AS s WHERE "
      + "\(matchPlain(table))))"
  }

  // MARK: - Removing rows

  /// Returns what stays on this device and refers to the rows that ``removeRows()`` and
  /// ``removeAllRows(of:)`` will remove.
  func referrers(leaving: [TableSchema]) throws -> ReplacedReferrers {
    var referrers = ReplacedReferrers()
    for table in session.schema.tables {
      if leaving.contains(where: { $0.id == table.id }) {
        try referrers.add(referringTo: table, where: "1", session)
      } else if let new = mapping.new.table(wireName: table.wireName), kept.contains(new.id) {
        try referrers.add(referringTo: table, where: isDoomed(new), session)
      }
    }
    return referrers
  }

  /// Removes rows that are not in the whole store, or differ there. Returns how many.
  func removeRows() throws -> Int {
    var count = 0
    for table in tables.reversed() {
      if kept.contains(table.id) {
        count += try removeRows(of: table, where: isDoomed(table), key: matchColumns(table))
      }
      work.advance()
    }
    return count
  }

  /// Removes all rows of a table that this store will drop, to create it again or for good. Returns
  /// how many.
  func removeAllRows(of table: TableSchema) throws -> Int {
    // Without a condition, SQLite would skip triggers and counting.
    try removeRows(of: table, where: "1", key: matchColumns(table))
  }

  private func removeRows(
    of table: TableSchema, where condition: String, key: [SQLName]
  ) throws -> Int {
    try checkCancellation()
    session.warnOfUnusableTriggers(of: table)
    let name = "main.\(table.quotedName)"
    return try run(
      "DELETE FROM \(name) AS t WHERE \(condition)",
      keys: "SELECT \(key.map { "t.\(quoted($0))" }.joined(separator: ", ")) "
        + "FROM \(name) AS t WHERE \(condition)",
      one: "DELETE FROM \(name) WHERE "
        + key.map { "\(quoted($0)) IS ?" }.joined(separator: " AND "), count: key.count)
  }

  /// Runs a statement that writes many rows or, if one of the application's triggers fails, writes
  /// them one by one. Returns how many were written.
  func run(_ all: String, keys: String, one: String, count: Int) throws -> Int {
    do {
      return try database.atomically {
        try database.execute(sql: all)
        return database.changesCount
      }
    } catch let error as DatabaseError where session.appTriggers.canBeBlamed(for: error) {
      // One of the rows is the reason.
    } catch let ended as TransactionEnded {
      session.appTriggers.noteEnd(ended.cause)
      throw ended
    }
    let reading = try SQLStatement(keys, on: database)
    var found: [[Value]] = []
    while try reading.step() { found.append((0..<count).map { reading.value(at: $0) }) }
    let statement = try SQLStatement(one, on: database)
    for key in found {
      try checkCancellation()
      for (index, value) in key.enumerated() { statement.bind(value, at: index + 1) }
      try session.write(statement)
    }
    return found.count
  }

  /// Returns the local keys of rows that are identified by declared columns and that will be
  /// removed, by table and identity.
  func declaredKeys() throws -> [Int: [RowIdentity: Int64]] {
    var found: [Int: [RowIdentity: Int64]] = [:]
    for table in tables {
      guard case .columns = table.identity,
        let here = mapping.old.table(wireName: table.wireName),
        here.identityDescription == table.identityDescription, let key = here.localKey
      else { continue }
      let access = try session.access(here.id)
      let names = (here.keyColumns + [key]).map { "t.\(quoted($0))" }
      let reading = try SQLStatement(
        "SELECT \(names.joined(separator: ", ")) FROM main.\(here.quotedName) AS t WHERE "
          + (kept.contains(table.id) ? isDoomed(table) : "1"), on: database)
      while try reading.step() {
        let values = here.keyColumns.indices.map { reading.value(at: $0) }
        found[table.id, default: [:]][try access.identity(ofKey: values)] = reading.integer(
          at: values.count)
      }
    }
    return found
  }

  // MARK: - Inserting rows

  /// Inserts the rows that are not here. Returns how many.
  func insertRows() throws -> Int {
    var count = 0
    for table in tables {
      try checkCancellation()
      session.warnOfUnusableTriggers(of: table)
      var names = table.columns.map(\.name)
      var terms = table.columns.indices.map { mapping.mapped($0, of: table, row: "s") }
      if let key = table.localKey {
        names.append(key)
        terms.append(mapping.mappedKey(of: table, row: "s"))
      }
      // SQLite lets keys be NULL; such rows stay on their device.
      var conditions = (matchColumns(table) + (table.canLoseKeys ? table.keyColumns : [])).map {
        "s.\(quoted($0)) IS NOT NULL"
      }
      if mapping.hasPlainRows(table) {
        conditions.append("NOT \(mapping.isPlainRow(table, row: "s"))")
      }
      if kept.contains(table.id) {
        let match = zip(matchColumns(table), mappedMatch(table, row: "s")).map {
          "t.\(quoted($0)) = \($1)"
        }
        conditions.append(
          "NOT EXISTS (SELECT 1 FROM main.\(table.quotedName) AS t "
            + "WHERE \(match.joined(separator: " AND ")))")
      }
      let key = matchColumns(table)
      let source = "FROM \(whole(table)) AS s WHERE \(conditions.joined(separator: " AND "))"
      let insertion =
        "INSERT OR ABORT INTO main.\(table.quotedName) "
        + "(\(names.map(quoted).joined(separator: ", "))) SELECT \(terms.joined(separator: ", ")) "
      let keys = "SELECT \(key.map { "s.\(quoted($0))" }.joined(separator: ", ")) " + source
      let match = key.map { "s.\(quoted($0)) = ?" }.joined(separator: " AND ")
      let written = try CollidingRows.unlessColliding(table, database) {
        try run(
          insertion + source, keys: keys,
          one: insertion + "FROM \(whole(table)) AS s WHERE \(match)", count: key.count)
      }
      count +=
        try written
        ?? collisions.insert(
          table, keys: keys, names: names, terms: terms,
          from: "\(whole(table)) AS s WHERE \(match)",
          count: key.count, session)
      count += try PlainRowExchange(mapping: mapping, table: table, database: database)
        .insert(session)
      try raiseSequence(of: table)
      work.advance()
    }
    return count
  }

  // MARK: - Plain values

  /// Notes which numbers in keys are plain, and parks the rows that have no key of their own here.
  /// Must be called before anything is decided: until then these rows are not found by their keys.
  ///
  /// - Parameter session: The session with the new schema.
  func notePlainKeys(_ session: StoreSession) throws {
    for table in tables {
      try PlainRowExchange(mapping: mapping, table: table, database: database).note(session)
    }
  }

  /// Makes the values that are plain in the whole store plain here, too, whichever keys its rows
  /// have here.
  ///
  /// - Parameter session: The session with the new schema.
  func settlePlainValues(_ session: StoreSession) throws {
    let set = WorkingSet(session: session)
    for table in tables {
      try PlainRowExchange(mapping: mapping, table: table, database: database)
        .addRowsThatReferToParked(to: set)
    }
    for table in session.schema.tables {
      try collisions.add(of: table, mapping, to: set)
      try putBackPlainValues(of: table, set)
      for row in try rowsWithPlainNumbers(table, session) { try set.row(row) }
      for column in table.keyedPositions {
        guard case .key(let id) = table.columns[column].domain else { continue }
        for key in try session.plainKeys.keys(of: id).sorted()
        where try session.access(id).hasRow(localKey: key) {
          try set.setPlain(try plainCells(table, column, holding: key, session.schema[id]))
        }
      }
    }
    _ = try Materializer(set: set).run()
  }

  /// Restores plain values that were replaced by the key of a row: where the whole store stores a
  /// value apart from a row with that key, the row may have another key here. If another row has the
  /// value here, and it must be unique, adds the row to those that are decided.
  private func putBackPlainValues(of table: TableSchema, _ set: WorkingSet) throws {
    let session = set.session
    let access = try session.access(table.id)
    for (identity, cells) in try session.keptRows.plainValues(of: table) {
      guard let key = try access.key(of: identity), let row = try access.row(key) else { continue }
      for (column, value) in cells.sorted(by: { $0.key < $1.key }) {
        guard case .key(let id) = table.columns[column].domain,
          mapping.isMapped(session.schema[id]), let plain = table.columns[column].key(value),
          let moved = try Int64.fetchOne(
            database, sql: "SELECT new FROM \(KeyMapping.keys(id)) WHERE old = ?",
            arguments: [plain]), table.columns[column].key(row.values[column]) == moved
        else { continue }
        let statement = try access.update([column])
        for (index, value) in ([value] + key).enumerated() { statement.bind(value, at: index + 1) }
        do {
          try session.write(statement)
        } catch let error as DatabaseError
          where error.extendedResultCode == .SQLITE_CONSTRAINT_UNIQUE
        {
          try TransactionEnded.check(database, after: error)
          try set.row(RowKey(table: table.id, identity: identity)).isEdited = true
        }
      }
    }
  }

  /// Returns the rows that have a plain number in their key, if a row here has that number for its
  /// key.
  private func rowsWithPlainNumbers(
    _ table: TableSchema, _ session: StoreSession
  ) throws -> [RowKey] {
    let access = try session.access(table.id)
    guard table.hasKeysInIdentity else { return [] }
    var found: Set<RowKey> = []
    for position in table.identityPositions {
      guard case .key(let id) = table.columns[position].domain else { continue }
      let reading = try access.statement(
        "SELECT \(table.keyColumns.map(quoted).joined(separator: ", ")) "
          + "FROM \(table.quotedName) WHERE \(quoted(table.columns[position].name)) = ?")
      for number in try session.plainKeys.keys(of: id).sorted() {
        guard try session.access(id).hasRow(localKey: number) else { continue }
        reading.bind(number, at: 1)
        while try reading.step() {
          let key = table.keyColumns.indices.map { reading.value(at: $0) }
          if key.contains(.null) { continue }
          found.insert(RowKey(table: table.id, identity: try access.identity(ofKey: key)))
        }
      }
    }
    return found.sorted { $0.identity < $1.identity }
  }

  /// Returns the cells of a column here that hold the key of a row, and refer to no row in the
  /// whole store.
  private func plainCells(
    _ table: TableSchema, _ column: Int, holding key: Int64, _ parent: TableSchema
  ) throws -> [StoreSession.PlainCell] {
    let name = quoted(table.columns[column].name)
    let names = [name] + table.keyColumns.map(quoted)
    let join =
      mapping.hasPlainRows(table)
      ? "(\(matchPlain(table)) OR NOT \(mapping.isPlainRow(table, row: "s")) AND \(match(table)))"
      : match(table)
    let reading = try SQLStatement(
      "SELECT \(names.map { "t.\($0)" }.joined(separator: ", ")) "
        + "FROM main.\(table.quotedName) AS t JOIN \(whole(table)) AS s ON \(join) "
        + "WHERE t.\(name) = CAST(?1 AS NUMERIC) AND s.\(name) = CAST(?1 AS NUMERIC) AND NOT EXISTS (SELECT 1 FROM \(whole(parent)) "
        + "AS p WHERE p.\(quoted(parent.localKey ?? "rowid")) = ?1)", on: database)
    reading.bind(key, at: 1)
    var found: [StoreSession.PlainCell] = []
    while try reading.step() {
      found.append(
        StoreSession.PlainCell(
          table: table.id, key: table.keyColumns.indices.map { reading.value(at: $0 + 1) },
          column: column, value: reading.value(at: 0)))
    }
    return found
  }

  /// Raises a table's AUTOINCREMENT sequence to that of the whole store: no key is given out twice,
  /// on any device.
  private func raiseSequence(of table: TableSchema) throws {
    guard try database.tableExists("sqlite_sequence", in: KeyMapping.attached),
      let number = try Int64.fetchOne(
        database, sql: "SELECT seq FROM \(KeyMapping.attached).sqlite_sequence WHERE name = ?",
        arguments: [table.name])
    else { return }
    try AutoincrementSequences.raise(of: table.name, to: number, database)
  }
}
