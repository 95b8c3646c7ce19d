import SyncModel

extension LocalEdits {
  /// Cells to set in one row, with the row as it is.
  private struct Setting {
    var row: RowKey
    var access: TableAccess
    var key: [Value]
    var shown: (values: [Value], localKey: Int64?)
    /// The cells that have other values so far.
    var wanted: [Cell]
    /// Their values as the table will hold them.
    var local: [Cell]
  }

  /// Sets cells, by logical values, in a row that is shown. Leaves cells alone that have the value
  /// already. Throws ``Refusal``.
  func set(_ cells: [Cell], of row: RowKey) throws {
    guard let setting = try setting(cells, of: row) else { return }
    try atomically {
      try write(setting.local, setting)
      try finish(setting)
    }
  }

  /// Sets cells in several rows at once, which may exchange unique values. Returns the rows that are refused, by
  /// position; if there are any, nothing is changed.
  func set(_ rows: [(cells: [Cell], row: RowKey)]) throws -> [Int: Refusal] {
    try allOrNone {
      var settings: [(position: Int, setting: Setting)] = []
      var refused: [Int: Refusal] = [:]
      for (position, row) in rows.enumerated() {
        refused[position] = try refusal {
          guard let setting = try setting(row.cells, of: row.row) else { return }
          try giveUpUniqueValues(setting, position)
          settings.append((position, setting))
        }
      }
      for (position, setting) in settings {
        refused[position] = try refusal { try write(setting.local, setting) }
        if refused[position] == nil { continue }
        // Rows that wait for its values are then refused as well, and not only in the next attempt. If another row
        // has them already, they are not refused before that.
        let former = setting.local.map { ($0.column, setting.shown.values[$0.column]) }
        _ = try refusal { try write(former, setting) }
      }
      // Whether a reference leads to a row can be told only when all are written.
      guard refused.isEmpty else { return refused }
      for (position, setting) in settings {
        refused[position] = try refusal { try finish(setting) }
      }
      return refused
    }
  }

  private func setting(_ cells: [Cell], of row: RowKey) throws -> Setting? {
    let access = try session.access(row.table)
    guard let key = try access.key(of: row.identity), let shown = try access.row(key) else {
      throw Refusal(message: "The row does not exist.")
    }
    let wanted = try cells.filter { try !has($0, row, shown.values, access.table) }
    let local = try wanted.map { (column: $0.column, value: try localValue($0, access.table)) }
    guard !local.isEmpty else { return nil }
    return Setting(row: row, access: access, key: key, shown: shown, wanted: wanted, local: local)
  }

  private func write(_ cells: [Cell], _ setting: Setting) throws {
    let statement = try setting.access.update(cells.map(\.column))
    for (index, value) in (cells.map(\.value) + setting.key).enumerated() {
      statement.bind(value, at: index + 1)
    }
    try session.write(statement)
  }

  /// Gives a row other values, for the moment, in columns that must be unique and are to be set.
  ///
  /// Conditions of the table can refuse such values, and triggers of the application see them. Merging deletes rows
  /// and inserts them again instead (``RowWriter/writeRows()``). That would be worse here: a trigger for deletions may
  /// remove what only this device has of the row, and nothing brings that back. A refused exchange harms nothing,
  /// and triggers for updates see the final values last.
  ///
  /// - Parameter number: Tells the rows apart.
  private func giveUpUniqueValues(_ setting: Setting, _ number: Int) throws {
    let table = setting.access.table
    let unique = Set(table.uniqueIndexes.flatMap(\.positions))
    let cells = setting.local.filter { unique.contains($0.column) }.map { cell in
      (column: cell.column, value: Self.passingValue(of: table.columns[cell.column], number))
    }
    if !cells.isEmpty { try write(cells, setting) }
  }

  /// Returns a value that most likely no row has, and that most conditions allow.
  private static func passingValue(of column: ColumnSchema, _ number: Int) -> Value {
    guard column.isNotNull else { return .null }
    return switch column.affinity {
    case .integer, .numeric: .integer(.max - 1 - Int64(number))
    case .real: .real(0x1p53 - Double(number))
    case .text: .text(Array("docsync \(number)".utf8))
    case .blob: .blob(Array("docsync \(number)".utf8))
    }
  }

  /// Checks a row whose cells are written, and logs the edit.
  private func finish(_ setting: Setting) throws {
    let (access, table) = (setting.access, setting.access.table)
    guard let after = try access.row(try access.key(of: setting.row.identity) ?? setting.key) else {
      throw Refusal(message: "The row would be gone.")
    }
    let written = Set(setting.local.map(\.column))
    try checkReferences(
      of: setting.row, at: setting.key, after.values, table, concerning: written)
    if refusesLosingReferrers {
      let names = Set(written.map { table.columns[$0].name })
      try checkReferrers(
        to: ShownRow(key: setting.key, values: setting.shown.values), setting.shown.localKey, table,
        by: names, isGone: true, onlyOwn: true)
    }
    let named = try localKey(of: after, table)
    let plain = try plainCells(setting.wanted, of: table, key: named)
    try checkPlain(Set(plain.map(\.column)), of: after.values, table)
    var columns = ColumnSet()
    for cell in setting.local { columns.formUnion(ColumnSet(cell.column)) }
    try log(
      .update, key: named, mask: columns.mask, table,
      further: table.baseColumns.map {
        (CaptureTriggers.Column.old($0), setting.shown.values[$0])
      })
    let others = session.writtenPlainCells[setting.row, default: []].filter {
      !written.contains($0.column)
    }
    session.writtenPlainCells[setting.row] = (others + plain).isEmpty ? nil : others + plain
    access.changes.note(.updated, setting.key)
    noteReferences(of: setting.row, table, written)
  }

  /// Whether a row that is shown has a cell already. The key of a row here may be a plain value as
  /// well: the two are different.
  private func has(
    _ cell: Cell, _ row: RowKey, _ shown: [Value], _ table: TableSchema
  ) throws -> Bool {
    guard try localValue(cell, table) == shown[cell.column] else { return false }
    guard case .key = table.columns[cell.column].domain else { return true }
    let isKeptPlain =
      try session.keptRows.row(row)?.cells.contains {
        $0.column == cell.column && $0.value == shown[cell.column]
      } == true
    let current =
      isKeptPlain
      ? shown[cell.column] : try session.exported(shown[cell.column], table.columns[cell.column])
    return (current.kind == .identity) == (cell.value.kind == .identity)
  }
}
