import SyncModel
import SyncStore

/// Compares the merged store of a device with the rows that its database and the document had.
struct JoiningCheck {
  typealias Name = TokenRows.Name

  /// What the two databases had before.
  struct Before {
    let document: TokenRows
    let former: TokenRows
    let local: LocalRows

    init(document: FleetSQLite, former: FleetSQLite, _ schema: FleetSchema) throws {
      self.document = try TokenRows(of: document, schema)
      self.former = try TokenRows(of: former, schema)
      local = try LocalRows(of: former, schema)
    }
  }

  let schema: FleetSchema
  let before: Before
  let after: TokenRows
  private let local: LocalRows
  /// The rows that rows of the database became, by these, if they do not show the values of the
  /// database.
  var matches: [Name: Name] = [:]
  /// The rows of the database whose values rows of the document show, by these.
  var replacing: [Name: Name] = [:]
  /// The rows of the database that the document refused.
  private(set) var refused: Set<Name> = []
  /// The columns of rows of the database whose values are only in the journal.
  private var lost: [Name: Set<SQLName>] = [:]
  /// The columns for which the journal has an entry, by the rows of the database that have become rows
  /// of the document.
  private(set) var entered: [Name: Set<SQLName>] = [:]
  /// How many entries the journal has of references that are NULL by now, by table and column.
  private var cleared: [SQLName: [SQLName: Int]] = [:]
  /// The rows of the document that several rows of the database have become.
  private(set) var contested: Set<Name> = []

  init(_ before: Before, _ database: FleetSQLite, _ conflicts: [Conflict]) throws {
    schema = before.document.schema
    self.before = before
    after = try TokenRows(of: database, schema)
    local = try LocalRows(of: database, schema)
    let rows = Dictionary(grouping: conflicts.filter { $0.kind == .cell }) {
      OracleKey(table: $0.table, identity: $0.identity)
    }
    for (row, conflicts) in rows {
      let tokens = conflicts.filter { $0.column == FleetSchema.token }
      for conflict in conflicts {
        guard let column = conflict.column, conflict.outcome == .remote else { continue }
        cleared[row.table, default: [:]][column, default: 0] += 1
      }
      for conflict in tokens {
        guard let own = Self.token(conflict.local), let other = Self.token(conflict.remote) else {
          continue
        }
        let name = Name(table: row.table, token: own)
        let present = Name(table: row.table, token: other)
        if conflict.outcome == .remote {
          matches[name] = present
        } else {
          replacing[present] = name
        }
        entered[name, default: []].formUnion(conflicts.compactMap(\.column))
        if tokens.count > 1 { contested.formUnion([name, present]) }
        // Each of two rows that became one may have lost any of the values.
        lost[name, default: []].formUnion(
          conflicts.filter { $0.outcome == .remote || tokens.count > 1 }.compactMap(\.column))
      }
    }
    for conflict in conflicts where conflict.kind != .cell {
      guard let own = Self.token(conflict.local) else { continue }
      refused.insert(Name(table: conflict.table, token: own))
    }
  }

  /// The number of rows of the database that became rows of the document with other values.
  var matchedRows: Int { matches.count + replacing.count }

  private static func token(_ side: Conflict.Side) -> String? {
    side.cells?.first { $0.column == FleetSchema.token }?.value.string
  }

  /// Returns the row of the store that a row of the database or of the document has become.
  func place(of name: Name) -> Name? {
    var name = name
    var seen: Set<Name> = []
    while after.rows[name] == nil {
      guard seen.insert(name).inserted, let next = matches[name] ?? replacing[name] else {
        return nil
      }
      name = next
    }
    return name
  }

  // MARK: - The checks

  /// Throws if a row or a reference is not what it must be. Returns the number of references that it
  /// has followed.
  func run() throws -> Int {
    if let name = after.repeated.first { throw Self.fault("\(name) is there twice") }
    for name in before.former.rows.keys.sorted() + before.document.rows.keys.sorted()
    where !refused.contains(name) && place(of: name) == nil {
      throw FleetFailure(.lost, "\(name) is neither in the store nor in the journal")
    }
    // A row that the document has deleted comes back if a reference needs it.
    for name in after.rows.keys.sorted()
    where before.former.rows[name] == nil && before.document.rows[name] == nil
      && !name.token.hasPrefix("d")
    {
      throw Self.fault("\(name) is from nowhere")
    }
    var followed = 0
    for name in before.former.rows.keys.sorted() {
      guard let place = place(of: name) else { continue }
      if place == name {
        followed += try checkReferences(of: name)
        try checkValues(of: name)
      }
      try checkReason(for: name)
      try checkEntries(of: name)
    }
    try checkCleared()
    for name in refused.sorted() { try checkRefusal(of: name) }
    for name in before.document.rows.keys.sorted() where after.rows[name] != nil {
      try checkDocument(name)
    }
    try checkLocalColumns()
    return try followed
      + local.check(since: before.local) { table, token in
        let name = Name(table: table, token: token)
        return refused.contains(name) ? nil : place(of: name)?.token
      }
  }

  static func fault(_ details: String) -> FleetFailure { FleetFailure(.merged, details) }

  /// Returns whether the store should show a value of a row with the token of the database. A row that
  /// became a row of the document has the key of that.
  private func isTaken(_ column: Int, of name: Name, _ table: FleetTable) -> Bool {
    if table.key.contains(column), replacing.values.contains(name) { return false }
    return !(lost[name]?.contains(table.columns[column].name) ?? false)
  }

  private func checkReferences(of name: Name) throws -> Int {
    guard let table = schema.table(name.table) else { return 0 }
    var followed = 0
    for (index, reference) in schema.references(of: table).enumerated()
    where reference.columns.allSatisfy({ isTaken($0, of: name, table) }) {
      guard let former = before.former.parent(of: name, index) else { continue }
      followed += 1
      let now = after.parent(of: name, index)
      if now == nil, !cleared(reference, of: name, from: former).isEmpty { continue }
      guard let now, now == place(of: former) else {
        throw Self.fault(
          "\(name) referred to \(former), and refers to \(now.map { "\($0)" } ?? "no row")"
            + " by \(table.names(reference.columns))")
      }
    }
    return followed
  }

  /// Returns the columns of a reference that are NULL by now, as they may be: the document has refused
  /// the row to which it led, or has NULL where it leads to that row.
  private func cleared(
    _ reference: FleetReference, of name: Name, from former: Name
  ) -> [Int] {
    let canBeCleared = reference.onDelete == .setNull || !reference.isEnforced
    let columns =
      refused.contains(former)
      ? (canBeCleared ? reference.columns : []) : valueless(former, reference)
    return columns.allSatisfy { after.rows[name]?.values[$0] == .null } ? columns : []
  }

  /// Returns the columns of a reference for which the row that `former` has become has NULL.
  func valueless(_ former: Name, _ reference: FleetReference) -> [Int] {
    guard let row = place(of: former).flatMap({ after.rows[$0] }) else { return [] }
    return zip(reference.columns, reference.parentColumns).filter { row.values[$1] == .null }
      .map { $0.0 }
  }

  /// Throws if references are NULL by now, and the journal has no entries of them.
  private func checkCleared() throws {
    var found: [SQLName: [SQLName: Int]] = [:]
    for name in before.former.rows.keys where after.rows[name] != nil {
      guard let table = schema.table(name.table) else { continue }
      let lost = schema.references(of: table).enumerated().flatMap { index, reference -> [Int] in
        guard let former = before.former.parent(of: name, index),
          reference.columns.allSatisfy({ isTaken($0, of: name, table) })
        else { return [] }
        return cleared(reference, of: name, from: former)
      }
      for column in Set(lost) {
        found[name.table, default: [:]][table.columns[column].name, default: 0] += 1
      }
    }
    for (table, columns) in found {
      for (column, count) in columns where cleared[table]?[column] ?? 0 < count {
        throw Self.fault(
          "\(count) rows of \(table) have lost their \(column), and not all have an entry")
      }
    }
  }

  private func checkValues(of name: Name) throws {
    guard let table = schema.table(name.table), let former = before.former.rows[name],
      let now = after.rows[name]
    else { return }
    let references = schema.references(of: table)
    for column in table.shared where isTaken(column, of: name, table) {
      let (old, new) = (former.values[column], now.values[column])
      // If it led to no row, it may be a reference to a row of the document that was deleted, or a
      // foreign key may set it to NULL.
      let leads = references.enumerated().contains { index, reference in
        guard reference.columns.contains(column), former.parents[index] == nil else {
          return reference.columns.contains(column)
        }
        return reference.isEnforced
          ? [.setNull, .setDefault].contains(reference.onDelete)
          : table.columns[column].type != .integer
      }
      guard !leads, old != new else { continue }
      throw Self.fault(
        "\(name) had \(Self.text(old)) in \(table.columns[column].name), and has \(Self.text(new))")
    }
  }

  static func text(_ value: Value?) -> String { value?.sqlDescription ?? "nothing" }

  // MARK: - What stays on the device

  /// Throws if an excluded column of a row has not kept its value.
  private func checkLocalColumns() throws {
    var owners: [Name: [Name]] = [:]
    for name in before.former.rows.keys.sorted() {
      if let place = place(of: name), !refused.contains(name) {
        owners[place, default: []].append(name)
      }
    }
    for (place, names) in owners where names.count == 1 {
      guard let table = schema.table(place.table), let former = before.former.rows[names[0]],
        let now = after.rows[place]
      else { continue }
      for column in table.columns.indices where table.columns[column].isLocal {
        let (old, new) = (former.values[column], now.values[column])
        guard old != new else { continue }
        throw Self.fault(
          "\(names[0]) had \(Self.text(old)) in the excluded column \(table.columns[column].name), "
            + "and \(place) has \(Self.text(new))")
      }
    }
  }
}
