import SyncModel

/// The making of the planned edits. Some have to wait for others, and some can be made only together.
extension ChangeSetUndo {
  typealias Refused = (step: Step, refusal: LocalEdits.Refusal)
  typealias Outcome = (done: [Step], refused: [Refused])

  /// Makes edits. One may have to wait for another: a row that refers to another one, or one that has the unique
  /// value of another one.
  func carryOut(
    _ steps: [Step], _ edits: LocalEdits
  ) throws -> Outcome {
    var done: [Step] = []
    var waiting = steps
    while true {
      var refused: [Refused] = []
      for (index, step) in waiting.enumerated() {
        if index.isMultiple(of: Self.rowsPerCheck) { try checkCancellation() }
        do {
          switch step.edit {
          case .insertion: try edits.insert(formerCells(of: step), as: step.row)
          case .update(let cells): try edits.set(formerCells(of: step, cells), of: step.row)
          case .deletion: try edits.delete(step.row)
          }
          done.append(step)
        } catch let refusal as LocalEdits.Refusal {
          refused.append((step, refusal))
        }
      }
      guard !refused.isEmpty, refused.count < waiting.count else { return (done, refused) }
      // Chains of references run in either direction.
      waiting = refused.reversed().map(\.step)
    }
  }

  /// Makes edits whose references need to lead to rows only in the end.
  func carryOutTogether(_ steps: [Step], _ edits: LocalEdits) throws -> Outcome {
    let first = try carryOut(steps, edits)
    let circle = try insertCircle(first.refused, edits)
    let rest = try carryOut(circle.refused.map(\.step), edits)
    let exchanged = try exchange(rest.refused, edits)
    return (first.done + circle.done + rest.done + exchanged.done, exchanged.refused)
  }

  /// Inserts rows that refer to one another: first without the references. Throws ``LocalEdits/Refusal`` if a
  /// reference leads nowhere.
  private func insertCircle(_ refused: [Refused], _ edits: LocalEdits) throws -> Outcome {
    var outcome: Outcome = ([], [])
    var references: [(cells: [LocalEdits.Cell], row: RowKey)] = []
    for (step, refusal) in refused {
      guard case .insertion = step.edit else {
        outcome.refused.append((step, refusal))
        continue
      }
      let columns = session.schema[step.row.table].columns
      let cells = try formerCells(of: step)
      let isReference = { (cell: LocalEdits.Cell) in
        cell.value.kind == .identity && !columns[cell.column].isNotNull
          && !columns[cell.column].isIdentity
      }
      do {
        try edits.insert(cells.filter { !isReference($0) }, as: step.row)
        references.append((cells.filter(isReference), step.row))
        outcome.done.append(step)
      } catch let refusal as LocalEdits.Refusal {
        outcome.refused.append((step, refusal))
      }
    }
    for (cells, row) in references { try edits.set(cells, of: row) }
    return outcome
  }

  /// Sets values of rows that exchange unique values, for each table as a whole or not at all.
  func exchange(_ refused: [Refused], _ edits: LocalEdits) throws -> Outcome {
    var outcome: Outcome = ([], refused.filter { !$0.step.isUpdate })
    let updates = Dictionary(grouping: refused.filter(\.step.isUpdate), by: \.step.row.table)
    for (_, refused) in updates.sorted(by: { $0.key < $1.key }) {
      do {
        guard refused.count > 1 else { throw refused[0].refusal }
        let rows: [(cells: [LocalEdits.Cell], row: RowKey)] = try refused.compactMap { step, _ in
          guard case .update(let cells) = step.edit else { return nil }
          return (try formerCells(of: step, cells), step.row)
        }
        try edits.set(rows)
        outcome.done += refused.map(\.step)
      } catch is LocalEdits.Refusal {
        outcome.refused += refused
      }
    }
    return outcome
  }

  /// Returns what a row that comes back has.
  private func formerCells(of step: Step) throws -> [LocalEdits.Cell] {
    let columns = session.schema[step.row.table].columns
    return try step.before.row(step.row.identity).values.enumerated().compactMap {
      position, value in
      value.map {
        (position, columns[position].domain == .counter ? columns[position].number($0) : $0)
      }
    }
  }

  private func formerCells(
    of step: Step, _ cells: [(column: Int, number: Value?)]
  ) throws -> [LocalEdits.Cell] {
    let values = try step.before.row(step.row.identity).values
    return cells.compactMap { cell in
      (cell.number ?? values[cell.column]).map { (cell.column, $0) }
    }
  }
}
