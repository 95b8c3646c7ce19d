import GRDB
import SyncModel

/// The translation of merged rows' references.
extension DatabaseMerge {
  /// A row to be merged, as it would be in the document.
  struct Candidate {
    let table: TableSchema
    let row: FormerDatabase.Record
    /// Its values, with references to the rows to which it refers, where they are in the document.
    var values: [Value]
    /// The columns of references to rows whose place in the document is not known yet.
    var open: Set<Int> = []
    /// The columns that contain a number that is the key of another row of the document here, and of
    /// no merged row. Such a number is a plain value.
    var plain: Set<Int> = []
    /// The columns of references that lead to their rows no more: the rows are not in the document,
    /// or another reference needs another value in a column.
    var lost: Set<Int> = []
    /// The rows that are not in the document, by the columns of the references to them.
    var lostRows: [Int: RowIdentity] = [:]
    /// The columns that are NULL in the document, since their rows are not there.
    var cleared: Set<Int> = []
    /// Why the document cannot have it.
    var fault: String?

    /// Whether it has NULL in its key.
    var isWithoutKey: Bool {
      table.identity != .surrogate && table.identityPositions.contains { values[$0] == .null }
    }
  }

  /// The values of a row with its references translated.
  struct Translation {
    var values: [Value]
    /// The columns of references to rows.
    var leading: Set<Int> = []
    /// The columns of references to rows whose place in the document is not known yet.
    var open: Set<Int> = []
    /// The columns of references to rows that are not in the document, or to which no reference leads
    /// there, since they have NULL in a column.
    var lost: Set<Int> = []
    /// The rows that are not there, by the columns of references to them alone.
    var lostRows: [Int: RowIdentity] = [:]
    /// Those of these columns that may be NULL in the document.
    var clearable: Set<Int> = []
    /// The columns of references that would contain different values for another reference.
    var contradictory: Set<Int> = []
  }

  /// Where a reference leads.
  private enum Lead {
    /// To no row.
    case plain
    /// To a row that is not merged yet.
    case undecided
    /// To a row that is not in the document.
    case nowhere(RowIdentity)
    /// To a row by these values.
    case values([Value])
    /// To a row that has these values in the document, of which some are NULL, so that no reference
    /// leads to it.
    case unnamed([Value])
  }

  static let missing = "the row that it refers to is not there, or has no value there"
  static let contradictory =
    "by one column it refers to two rows, which have different keys in the document"

  func key(of row: FormerDatabase.Record, _ table: TableSchema) -> [Value] {
    if let key = row.localKey { return [key] }
    return table.identityPositions.map { row.values[$0] }
  }

  /// Returns the row of the other database to which values lead; `nil` if there is none, or nothing
  /// tells it from others.
  func parent(
    of referring: [Value], by reference: RowReference
  ) throws -> FormerDatabase.Record? {
    guard !referring.contains(.null), let reader = readers[reference.parent.id] else { return nil }
    if reference.isToKey { return try reference.key(referring).flatMap { try reader.record($0) } }
    guard reference.isUnique,
      let row = try reader.record(referring, in: reference.parentColumns),
      !key(of: row, reference.parent).contains(.null)
    else { return nil }
    return row
  }

  private func lead(_ referring: [Value], _ reference: RowReference) throws -> Lead {
    guard !referring.contains(.null) else { return .plain }
    let parent = reference.parent
    if let key = reference.key(referring), let place = try keys.place(of: key, in: parent) {
      switch place {
      case .same: return .values(referring)
      case .moved(let new): return .values(reference.referring(to: new))
      case .nowhere(let row): return .nowhere(row)
      }
    }
    // The reference may spell the key otherwise than the row does.
    guard let row = try self.parent(of: referring, by: reference) else { return .plain }
    var key = key(of: row, parent)
    switch try keys.place(of: key, in: parent) {
    case .same: break
    case .moved(let new):
      if reference.isToKey { return .values(reference.referring(to: new)) }
      key = new
    case .nowhere(let row): return .nowhere(row)
    // Outside of circles, nothing is recorded for rows that keep their keys.
    case nil: if circular.contains(parent.id) { return .undecided }
    }
    if reference.isToKey { return .values(reference.referring(to: key)) }
    guard let values = try values(of: key, by: reference) else { return .plain }
    return values.contains(.null) ? .unnamed(values) : .values(values)
  }

  /// Returns the values by which a reference leads to a row of the document.
  private func values(of key: [Value], by reference: RowReference) throws -> [Value]? {
    let statement = try session.access(reference.parent.id).statement(reference.selection)
    for (index, value) in key.enumerated() { statement.bind(value, at: index + 1) }
    guard try statement.step() else { return nil }
    defer { statement.reset() }
    return reference.parentColumns.indices.map { statement.value(at: $0) }
  }

  func translation(_ values: [Value], _ references: [RowReference]) throws -> Translation {
    var result = Translation(values: values)
    var found: [(reference: RowReference, values: [Value])] = []
    for reference in references {
      switch try lead(reference.columns.map { values[$0] }, reference) {
      case .plain: continue
      case .undecided: result.open.formUnion(reference.columns)
      case .nowhere(let row):
        result.lost.formUnion(reference.columns)
        if reference.isToKey, reference.parent.localKey != nil {
          result.lostRows[reference.columns[0]] = row
        }
        if reference.canBeCleared { result.clearable.formUnion(reference.columns) }
      case .unnamed(let new):
        for (column, value) in zip(reference.columns, new) where value == .null {
          result.values[column] = .null
          result.lost.insert(column)
          if reference.clearable.contains(column) { result.clearable.insert(column) }
        }
      case .values(let new): found.append((reference, new))
      }
    }
    for (reference, new) in found {
      for (index, column) in reference.columns.enumerated() {
        // A reference to the same row stays as it is spelled.
        let isSame = reference.areSame(values[column], new[index], at: index)
        result.values[column] = isSame ? values[column] : new[index]
      }
      result.leading.formUnion(reference.columns)
    }
    for (reference, new) in found
    where reference.isEnforced && isOverwritten(reference, new, in: result.values)
      && !found.contains(where: {
        Set($0.reference.columns).isStrictSuperset(of: reference.columns)
      })
    {
      result.contradictory.formUnion(reference.columns)
    }
    return result
  }

  private func isOverwritten(
    _ reference: RowReference, _ new: [Value], in values: [Value]
  ) -> Bool {
    reference.columns.indices.contains { index in
      !reference.areSame(values[reference.columns[index]], new[index], at: index)
    }
  }

  /// Returns the values of a row that stays on the device, with references to the rows to which they
  /// led.
  func translate(_ values: [Value], _ references: [RowReference]) throws -> [Value] {
    try translation(values, references).values
  }

  /// Returns a row with its references as far as their places in the document are known.
  func candidate(_ row: FormerDatabase.Record, _ table: TableSchema) throws -> Candidate {
    let translation = try translation(row.values, references[table.id] ?? [])
    let values = zip(translation.values, table.columns).enumerated().map { position, pair in
      translation.leading.contains(position)
        ? pair.0.converted(to: pair.1.affinity) : pair.0.applying(pair.1.affinity)
    }
    var candidate = Candidate(table: table, row: row, values: values, open: translation.open)
    candidate.lostRows = translation.lostRows.filter { column, _ in
      if case .key = table.columns[column].domain { true } else { false }
    }
    if translation.contradictory.isEmpty, translation.lost == translation.clearable {
      candidate.lost = translation.lost
      candidate.cleared = translation.lost
      for column in candidate.cleared { candidate.values[column] = .null }
    } else if !translation.lost.isEmpty || !translation.contradictory.isEmpty {
      // A column may lead to a row by another reference.
      let lost = translation.lost.subtracting(translation.leading)
      candidate.lost = lost.union(translation.contradictory)
      for column in lost {
        candidate.values[column] = row.values[column].applying(table.columns[column].affinity)
      }
      // Their numbers may be those of other rows in the document.
      candidate.plain = lost.union(translation.open)
      candidate.fault = translation.lost.isEmpty ? Self.contradictory : Self.missing
      return candidate
    }
    candidate.plain = try plainPositions(
      candidate.values, table, except: translation.leading.union(translation.open))
    let isDangling = table.foreignKeys.contains { reference in
      reference.isEnforced && !candidate.plain.isDisjoint(with: reference.columns)
        && !reference.columns.contains { values[$0] == .null }
    }
    if try isDangling || candidate.isWithoutKey && mayFindAnother(candidate) {
      candidate.fault = Self.missing
    }
    return candidate
  }

  /// Whether a row with NULL in its key refers to no row, but to one that is merged later might get
  /// the key. Nothing would find it again to correct the reference.
  private func mayFindAnother(_ candidate: Candidate) throws -> Bool {
    try (references[candidate.table.id] ?? []).contains { reference in
      let referring = reference.columns.map { candidate.row.values[$0] }
      guard reference.isEnforced, circular.contains(reference.parent.id), reference.isToKey,
        !referring.contains(.null), reference.key(referring) != nil
      else { return false }
      return try parent(of: referring, by: reference) == nil
    }
  }

  private func plainPositions(
    _ values: [Value], _ table: TableSchema, except leading: Set<Int>
  ) throws -> Set<Int> {
    var found: Set<Int> = []
    for (position, column) in table.columns.enumerated() where !leading.contains(position) {
      guard case .key(let parent) = column.domain, let number = column.key(values[position])
      else { continue }
      let isTaken = try session.access(parent).hasRow(localKey: number)
      // No row that is merged later may get the number.
      guard isTaken || circular.contains(parent) else { continue }
      try session.plainKeys.note(values[position], in: column)
      if isTaken { found.insert(position) }
    }
    return found
  }
}
