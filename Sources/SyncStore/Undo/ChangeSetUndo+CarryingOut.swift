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

  /// Makes edits whose references need to lead to rows only in the end, without those for which that does not hold.
  func carryOutTogether(_ refused: [Refused], _ edits: LocalEdits) throws -> Outcome {
    // A row may have the unique value of another one until rows that refer to it do so no longer.
    let order = refused.filter(\.step.isDeletion) + refused.filter { !$0.step.isDeletion }
    var (rest, stay) = (order[...], [Refused]())
    for _ in 0..<Self.greatestAttempts {
      guard !rest.isEmpty else { break }
      do {
        let outcome = try edits.together { try carryOutAtOnce(rest.map(\.step), $0) }
        return (outcome.done, stay + outcome.refused)
      } catch let failure as LocalEdits.RefusedRows {
        stay += rest.compactMap { step, _ in failure.refusals[step.row].map { (step, $0) } }
        rest.removeAll { failure.refusals[$0.step.row] != nil }
      }
    }
    return ([], stay + rest)
  }

  private func carryOutAtOnce(_ steps: [Step], _ edits: LocalEdits) throws -> Outcome {
    let first = try carryOut(steps, edits)
    let circle = try insertCircle(first.refused, edits)
    let rest = try carryOut(circle.refused.map(\.step), edits)
    let exchanged = try exchange(rest.refused, edits)
    return (first.done + circle.done + rest.done + exchanged.done, exchanged.refused)
  }

  /// Inserts rows that refer to one another, without those whose references lead nowhere.
  private func insertCircle(_ refused: [Refused], _ edits: LocalEdits) throws -> Outcome {
    let others = refused.filter { !$0.step.isInsertion }
    let outcome = try makeMost(of: refused.filter(\.step.isInsertion)) { rows in
      try edits.allOrNone { try insertWithoutReferences(rows.map(\.step), edits) }
    }
    return (outcome.done, outcome.refused + others)
  }

  /// Makes edits as a whole without those that are refused.
  ///
  /// - Parameter make: Makes all of some edits, or none and returns those that are refused, by position.
  private func makeMost(
    of refused: [Refused], _ make: ([Refused]) throws -> [Int: LocalEdits.Refusal]
  ) throws -> Outcome {
    var (rest, stay) = (refused, [Refused]())
    for _ in 0..<Self.greatestAttempts {
      guard !rest.isEmpty else { break }
      try checkCancellation()
      let refusals = try make(rest)
      guard !refusals.isEmpty else { return (rest.map(\.step), stay) }
      stay += refusals.sorted { $0.key < $1.key }.map { (rest[$0.key].step, $0.value) }
      // Rows that wait for one another do so in either direction.
      rest = rest.indices.reversed().filter { refusals[$0] == nil }.map { rest[$0] }
    }
    return ([], stay + rest)
  }

  /// Inserts rows without their references, and then sets these. Returns the rows that are refused, by position.
  private func insertWithoutReferences(
    _ steps: [Step], _ edits: LocalEdits
  ) throws -> [Int: LocalEdits.Refusal] {
    var references: [(position: Int, cells: [LocalEdits.Cell], row: RowKey)] = []
    var refused: [Int: LocalEdits.Refusal] = [:]
    for (position, step) in steps.enumerated() {
      let columns = session.schema[step.row.table].columns
      let cells = try formerCells(of: step)
      let isReference = { (cell: LocalEdits.Cell) in
        cell.value.kind == .identity && !columns[cell.column].isNotNull
          && !columns[cell.column].isIdentity
      }
      do {
        try edits.insert(cells.filter { !isReference($0) }, as: step.row)
        references.append((position, cells.filter(isReference), step.row))
      } catch let refusal as LocalEdits.Refusal {
        refused[position] = refusal
      }
    }
    for (position, cells, row) in references {
      do {
        try edits.set(cells, of: row)
      } catch let refusal as LocalEdits.Refusal {
        refused[position] = refusal
      }
    }
    return refused
  }

  /// Sets values of rows that exchange unique values, for each table together, without rows that are refused.
  func exchange(_ refused: [Refused], _ edits: LocalEdits) throws -> Outcome {
    var outcome: Outcome = ([], refused.filter { !$0.step.isUpdate })
    let updates = Dictionary(grouping: refused.filter(\.step.isUpdate), by: \.step.row.table)
    for (_, refused) in updates.sorted(by: { $0.key < $1.key }) {
      let made = try makeMost(of: refused) { rows in
        // One row has nothing to exchange.
        guard rows.count > 1 else { return [0: rows[0].refusal] }
        return try edits.set(
          rows.compactMap { step, _ in
            guard case .update(let cells) = step.edit else { return nil }
            return (try formerCells(of: step, cells), step.row)
          })
      }
      outcome.done += made.done
      outcome.refused += made.refused
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
