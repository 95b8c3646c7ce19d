import GRDB
import SyncModel

/// The values that hidden rows get in columns that are NOT NULL and have no default, when a migration has filled these
/// columns.
///
/// The migration fills only the rows that are in the table. A hidden row without a value would be refused by
/// NOT NULL on every device, and could not be shown as its stand-in any more: the rows that refer to it would be hidden
/// as well. So a hidden row gets the value of the row that is shown in its place, or else the one that all rows of
/// the table have. Like what a migration fills in, this gives way to every edit of the cell: its time is the next one
/// after that of the value that it replaces, or 1970.
///
/// Rows with edits that no change set can carry get nothing, and neither do columns that may have to be unique, nor cells
/// of which another device's value waits for the column. A default that differs between devices, such as
/// CURRENT_TIMESTAMP, counts as none (``AbsentValues``).
final class RequiredCells {
  private let session: StoreSession
  private let absent: AbsentValues
  /// The hidden rows, and those from which the values are taken, as they are.
  private let known: WorkingSet
  /// The values that all rows of a table have in a column; `nil` if there is none.
  private var common: [Place: Value?] = [:]

  private struct Place: Hashable {
    var table: Int
    var column: Int
  }

  /// The number of rows that are filled at once.
  private static let rowsPerBatch = 10_000
  /// The most bytes of a value. A larger one stays in the row of the migration.
  private static let greatestContent = 1 << 20

  init(_ session: StoreSession) {
    self.session = session
    absent = AbsentValues(session.database)
    known = WorkingSet(session: session)
  }

  /// Seals the values, and merges them. Call it before rows are decided by the changed schema: then nothing is hidden
  /// meanwhile. Does nothing for rows that lack no value.
  func fill(_ binding: StoreBinding, _ options: StoreOptions) throws {
    let tables = try session.schema.tables.filter { try !columns(of: $0).isEmpty }
    if tables.isEmpty { return }
    let builder = try ChangeSetBuilder(session: session, binding: binding, options: options)
    let set = WorkingSet(session: session)
    for table in session.schema.inDependencyOrder(tables) { try fill(table, builder, set) }
    try finish(builder, set)
  }

  private func finish(_ builder: ChangeSetBuilder, _ set: WorkingSet) throws {
    try builder.seal()
    if set.count > 0 { _ = try Materializer(set: set).run() }
    known.removeAll()
  }

  private func fill(
    _ table: TableSchema, _ builder: ChangeSetBuilder, _ set: WorkingSet
  ) throws {
    let columns = try columns(of: table)
    let held = try session.heldEdits().inTable(table, session)
    let foreign = try session.foreign.all().filter {
      $0.table(in: session.schema)?.id == table.id
    }
    var exported = ExportedRows(of: table, session: session)
    for identity in try session.keptRows.hiddenRows(of: table.id)
    where !held.unknown.contains(identity) && held.cells[identity] == nil {
      let row = try known.row(RowKey(table: table.id, identity: identity))
      var filled = try values(of: row, columns, table)
      for foreign in foreign where !filled.isEmpty {
        for cell in try session.foreign.row(identity, of: foreign.id)?.cells ?? []
        where foreign.columns.indices.contains(cell.column) {
          filled = filled.filter { table.columns[$0.key].wireName != foreign.columns[cell.column] }
        }
      }
      if known.count >= Self.rowsPerBatch { known.removeAll() }
      if filled.isEmpty { continue }
      try export(filled, of: set.row(row.key), table, &exported, set)
      try exported.finishIfFull(builder)
      if set.count >= Self.rowsPerBatch {
        try exported.finish(builder)
        try finish(builder, set)
      }
    }
    try exported.finish(builder)
  }

  /// The columns that are NOT NULL and have no default. Without counters: an edit of a counter adds to its value. And
  /// without columns that may have to be unique: two rows with one value would hide each other.
  private func columns(of table: TableSchema) throws -> [Int] {
    let required = table.cellPositions.filter { position in
      table.columns[position].isNotNull && table.columns[position].domain != .counter
        && !table.uniqueIndexes.contains { !$0.isPlain || $0.positions.contains(position) }
    }
    if required.isEmpty { return [] }
    let defaults = try absent.values(of: table)
    return required.filter { defaults[$0] == .null }
  }

  // MARK: - Values

  /// Returns the values that a hidden row lacks, by column; none if it is not inserted.
  private func values(
    of row: WorkingRow, _ columns: [Int], _ table: TableSchema
  ) throws -> [Int: Value] {
    guard row.state.existence == .inserted, row.shown == nil else { return [:] }
    let lacking = columns.filter { row.values[$0] ?? .null == .null }
    if lacking.isEmpty { return [:] }
    let holder = try holder(of: row, table)
    var values: [Int: Value] = [:]
    for column in lacking {
      values[column] =
        try holder.map { try session.exported($0[column], table.columns[column]) }
        ?? commonValue(of: column, table)
    }
    return values.filter { $0.value != .null && $0.value.contentCount <= Self.greatestContent }
  }

  /// Returns the values of the row that has one of the unique values of a hidden one in the table, or under whose
  /// identity that is shown.
  private func holder(of row: WorkingRow, _ table: TableSchema) throws -> [Value]? {
    let access = try session.access(table.id)
    if row.wasElsewhere, let identity = try session.keptRows.row(row.key)?.movedTo {
      return try access.shown(identity)?.values
    }
    for claim in try known.claims(of: row) {
      if let key = try known.keyOfHolder(claim, access) { return try access.row(key)?.values }
    }
    return nil
  }

  /// Returns the value that all rows of a table have in a column; `nil` if they have several, or if there are none.
  private func commonValue(of column: Int, _ table: TableSchema) throws -> Value? {
    let place = Place(table: table.id, column: column)
    if let known = common[place] { return known }
    let value = try readCommonValue(of: column, table)
    common[place] = .some(value)
    return value
  }

  private func readCommonValue(of column: Int, _ table: TableSchema) throws -> Value? {
    let name = quoted(table.columns[column].name)
    let reading = try SQLStatement(
      "SELECT DISTINCT \(name) COLLATE BINARY, typeof(\(name)) FROM \(table.quotedName) LIMIT 2",
      on: session.database)
    guard try reading.step() else { return nil }
    let value = reading.value(at: 0)
    defer { reading.reset() }
    guard try !reading.step() else { return nil }
    return try session.exported(value, table.columns[column])
  }

  // MARK: - Exporting

  private func export(
    _ filled: [Int: Value], of row: WorkingRow, _ table: TableSchema,
    _ exported: inout ExportedRows, _ set: WorkingSet
  ) throws {
    var columns = ColumnSet()
    for column in filled.keys {
      columns.formUnion(table.registers[column] ?? ColumnSet(column))
    }
    let stamps = table.cellPositions.filter(columns.contains).map(row.state.stamp)
    let time = stamps.reduce(HybridTime(milliseconds: 1)) { $0.raised(above: $1) }
    let stamp = LocalStamp(time: time.rawValue, client: session.own)
    var change = WorkingSet.Change(action: .update, stamp: stamp, cells: [])
    if table.mergeType == .keepBoth {
      let version = row.state.version(in: table, precedes: session.clients.precedes)
      exported.appendReplaced(session.clients.stamp(version))
      change.replaces = version
    }
    var shape: [Int] = []
    for (index, position) in table.cellPositions.enumerated() where columns.contains(position) {
      let value = filled[position] ?? row.values[position] ?? .null
      exported.appendCell(value, to: index)
      shape.append(index)
      change.cells.append((position, value, stamp))
    }
    exported.appendRow(
      try session.access(table.id).changeSetKey(of: row.key.identity), .update, time, cells: shape)
    try set.merge(change, into: row)
  }
}
