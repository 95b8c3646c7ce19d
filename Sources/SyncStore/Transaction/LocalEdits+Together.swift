import SyncModel

/// Several edits that are made as a whole or not at all.
extension LocalEdits {
  /// The rows whose references are checked at the end of several edits.
  final class DeferredReferences {
    /// With the keys under which they are in their tables.
    var edited: [RowKey: [Value]] = [:]
    var deleted: [(row: RowKey, key: [Value], values: [Value], localKey: Int64?)] = []
  }

  /// The references that edits have written, by columns that are not the key of the other row.
  final class OwnReferences {
    fileprivate(set) var columns: [RowKey: Set<Int>] = [:]
  }

  /// The rows whose references lead nowhere at the end of several edits, and those that are deleted although others
  /// refer to them.
  struct RefusedRows: Error {
    var refusals: [RowKey: Refusal]
  }

  /// Makes several edits as a whole or not at all. References need to lead to rows only in the end. Throws
  /// ``Refusal``, or ``RefusedRows`` if they do not.
  func together<Result>(_ body: (LocalEdits) throws -> Result) throws -> Result {
    var edits = self
    let deferred = DeferredReferences()
    edits.deferred = deferred
    return try notingIfMade {
      try atomically {
        let result = try body(edits)
        try check(deferred)
        return result
      }
    }
  }

  /// Makes several edits if none of them is refused. Returns what `body` returns: those that are refused, by
  /// position. If there are any, everything is rolled back.
  func allOrNone(_ body: () throws -> [Int: Refusal]) throws -> [Int: Refusal] {
    var refused: [Int: Refusal] = [:]
    do {
      try notingIfMade {
        try atomically {
          refused = try body()
          if !refused.isEmpty { throw Refusal(message: "One of the edits is refused.") }
        }
      }
    } catch is Refusal where !refused.isEmpty {
      return refused
    }
    return [:]
  }

  /// Makes an edit, and returns why it is refused; `nil` if it is made.
  func refusal(of edit: () throws -> Void) throws -> Refusal? {
    do {
      try atomically(edit)
      return nil
    } catch let refusal as Refusal {
      return refusal
    }
  }

  /// Runs `body`, and forgets what it has noted outside the database if it throws: that is rolled back.
  private func notingIfMade<Result>(_ body: () throws -> Result) rethrows -> Result {
    let log = session.changes.mark()
    let (cells, rows) = (session.writtenPlainCells, session.writtenPlainRows)
    let references = ownReferences.columns
    let (edited, deleted) = (deferred?.edited, deferred?.deleted)
    do {
      return try body()
    } catch {
      session.changes.restore(log)
      (session.writtenPlainCells, session.writtenPlainRows) = (cells, rows)
      ownReferences.columns = references
      if let deferred, let edited, let deleted {
        (deferred.edited, deferred.deleted) = (edited, deleted)
      }
      throw error
    }
  }

  private func check(_ deferred: DeferredReferences) throws {
    var refusals: [RowKey: Refusal] = [:]
    for (row, key) in deferred.edited {
      let access = try session.access(row.table)
      guard let shown = try access.row(key) else { continue }
      do {
        try checkReferences(
          of: shown.values, access.table, concerning: Set(access.table.columns.indices))
      } catch let refusal as Refusal {
        refusals[row] = refusal
      }
    }
    for (row, key, values, localKey) in deferred.deleted {
      do {
        try checkReferrers(
          to: ShownRow(key: key, values: values), localKey, session.schema[row.table],
          isGone: true)
      } catch let refusal as Refusal {
        refusals[row] = refusal
      }
    }
    if !refusals.isEmpty { throw RefusedRows(refusals: refusals) }
  }

  // MARK: - References by columns that are not a key

  /// Notes that the references of a row were written.
  func noteReferences(of row: RowKey, _ table: TableSchema, _ written: Set<Int>) {
    guard refusesLosingReferrers else { return }
    let columns = table.foreignKeys.filter { key in
      let parent = session.schema[key.parent]
      return key.parentColumns.contains { name in
        parent.columns.contains { $0.name.isSame(as: name) && !$0.isIdentity }
      }
    }.flatMap(\.columns)
    let noted = written.intersection(columns)
    if !noted.isEmpty { ownReferences.columns[row, default: []].formUnion(noted) }
  }

  /// Returns whether these edits have written the references of all rows that a statement returns, by their keys.
  /// The statement is at the first one.
  func areOwn(
    _ statement: SQLStatement, _ table: TableSchema, _ reference: ForeignKey
  ) throws -> Bool {
    let access = try session.access(table.id)
    repeat {
      let key = table.keyColumns.indices.map { statement.value(at: $0) }
      let row = RowKey(table: table.id, identity: try access.identity(ofKey: key))
      guard let written = ownReferences.columns[row], !written.isDisjoint(with: reference.columns)
      else { return false }
    } while try statement.step()
    return true
  }
}
