import GRDB
import SyncModel

/// Rows that refer to one another, directly or through others. Where one of them is in the document can
/// depend on where the others are, so they are merged together.
extension DatabaseMerge {
  /// Returns ``depths``.
  static func depths(_ schema: StoreSchema) -> [Int: Int] {
    var depths: [Int: Int] = [:]
    for _ in schema.tables {
      for table in schema.tables where table.identity != .surrogate {
        let parents = table.identityPositions.compactMap { position in
          if case .key(let parent) = table.columns[position].domain { parent } else { nil }
        }
        depths[table.id] = (parents.map { depths[$0] ?? 0 }.max() ?? 0) + 1
      }
    }
    return depths
  }

  /// Names a row of the other database.
  private struct Name: Hashable {
    var table: Int
    var key: [Value]
  }

  /// A row on the way, with the rows to which it refers.
  private struct Step {
    var table: TableSchema
    var row: FormerDatabase.Record
    var name: Name
    var parents: [(table: TableSchema, row: FormerDatabase.Record, name: Name)]
    var next = 0
    /// The position of the first row to which it leads, among those that are not merged yet.
    var first: Int
  }

  /// Merges the rows to which a row refers, however long the chain is, and then the row.
  ///
  /// It finds the rows that refer to one another as Tarjan's algorithm does: R. Tarjan, “Depth-first
  /// search and linear graph algorithms”, SIAM Journal on Computing 1 (1972).
  func mergeWithParents(_ row: FormerDatabase.Record, _ table: TableSchema) throws {
    guard try keys.place(of: key(of: row, table), in: table) == nil else { return }
    /// The rows that are not merged yet, as they were found.
    var found: [Step] = []
    var positions: [Name: Int] = [:]
    /// The positions of the rows from which the way leads on.
    var path: [Int] = []
    func enter(_ table: TableSchema, _ row: FormerDatabase.Record, _ name: Name) throws {
      positions[name] = found.count
      path.append(found.count)
      found.append(
        Step(
          table: table, row: row, name: name, parents: try parents(of: row, table),
          first: found.count))
    }
    try enter(table, row, Name(table: table.id, key: key(of: row, table)))
    while let position = path.last {
      let step = found[position]
      if step.next < step.parents.count {
        found[position].next += 1
        let parent = step.parents[step.next]
        if let other = positions[parent.name] {
          found[position].first = min(step.first, other)
        } else if try keys.place(of: parent.name.key, in: parent.table) == nil {
          try enter(parent.table, parent.row, parent.name)
        }
        continue
      }
      path.removeLast()
      if let below = path.last { found[below].first = min(found[below].first, step.first) }
      guard step.first == position else { continue }
      let steps = Array(found[position...])
      found.removeLast(steps.count)
      for step in steps { positions[step.name] = nil }
      try merge(steps)
    }
  }

  /// Returns the rows in circles of tables to which a row refers.
  private func parents(
    of row: FormerDatabase.Record, _ table: TableSchema
  ) throws -> [(table: TableSchema, row: FormerDatabase.Record, name: Name)] {
    var found: [(table: TableSchema, row: FormerDatabase.Record, name: Name)] = []
    for reference in references[table.id] ?? [] where circular.contains(reference.parent.id) {
      let referring = reference.columns.map { row.values[$0] }
      guard let parent = try parent(of: referring, by: reference) else { continue }
      let name = Name(table: reference.parent.id, key: key(of: parent, reference.parent))
      found.append((reference.parent, parent, name))
    }
    return found
  }

  /// Merges a row, or all rows that refer to one another.
  private func merge(_ steps: [Step]) throws {
    let indices = Dictionary(uniqueKeysWithValues: steps.enumerated().map { ($1.name, $0) })
    var referrers = steps.map { _ in [Int]() }
    for (index, step) in steps.enumerated() {
      for parent in Set(step.parents.map(\.name)) {
        if let parent = indices[parent] { referrers[parent].append(index) }
      }
    }
    if referrers == [[]] { return try merge(steps[0].row, steps[0].table) }
    try MergedCircle(self, steps.map { (table: $0.table, row: $0.row) }, referrers).merge()
  }
}

/// Rows of a database that refer to one another.
private final class MergedCircle {
  private let merging: DatabaseMerge
  private let rows: [(table: TableSchema, row: FormerDatabase.Record)]
  /// For each row, the rows that refer to it.
  private let referrers: [[Int]]
  /// The keys of the rows that the document has.
  private var present: [Int: [Value]] = [:]
  /// Why the document cannot have some rows.
  private var faults: [Int: DatabaseMerge.Fault] = [:]
  /// The keys and identities that new rows get.
  private var numbers: [Int: Int64] = [:]
  private var identities: [Int: RowIdentity] = [:]

  /// Ends the insertion of new rows: there is a reason in ``faults``.
  private struct Refused: Error {}

  init(
    _ merging: DatabaseMerge, _ rows: [(table: TableSchema, row: FormerDatabase.Record)],
    _ referrers: [[Int]]
  ) {
    self.merging = merging
    self.rows = rows
    self.referrers = referrers
  }

  /// Merges the rows. If the document cannot have one of those that are new, it gets none of the new
  /// rows that lead to it. Those that it has stay, with the rows that refer to them.
  func merge() throws {
    try find()
    let refused = newRowsLeadingToFaults()
    try refuse(refused.sorted())
    let new = rows.indices.filter { present[$0] == nil && !refused.contains($0) }
    if !new.isEmpty {
      faults = [:]
      try insert(new)
      if !faults.isEmpty { try refuse(new) }
    }
    for (index, key) in present.sorted(by: { $0.key < $1.key }) {
      try merging.compare(candidate(index), with: key)
    }
  }

  /// Returns the new rows that the document cannot have, and those that refer to them, directly or
  /// through other new rows.
  private func newRowsLeadingToFaults() -> Set<Int> {
    var found = Set(faults.keys.filter { present[$0] == nil })
    var next = Array(found)
    while let index = next.popLast() {
      for referrer in referrers[index] where present[referrer] == nil {
        if found.insert(referrer).inserted { next.append(referrer) }
      }
    }
    return found
  }

  private func refuse(_ refused: [Int]) throws {
    var names: [Int: RowIdentity] = [:]
    for index in refused.sorted(by: { depth(of: $0) < depth(of: $1) }) {
      let (table, row) = rows[index]
      let identity = try merging.identity(of: candidate(index))
      names[index] = identity
      try merging.keys.note(.nowhere(identity), of: merging.key(of: row, table), in: table)
    }
    for index in refused {
      let other = DatabaseMerge.Fault(.reference, DatabaseMerge.missing)
      try merging.refuse(candidate(index), faults[index] ?? other, as: names[index])
    }
  }

  private func candidate(_ index: Int) throws -> DatabaseMerge.Candidate {
    try merging.candidate(rows[index].row, rows[index].table)
  }

  // MARK: - The rows that the document has

  /// Finds the rows in the document: by what does not depend on the others, then by their references
  /// to rows that are found.
  private func find() throws {
    var next = Array(rows.indices.reversed())
    while !next.isEmpty {
      while let index = next.popLast() {
        if present[index] != nil || faults[index] != nil { continue }
        let candidate = try candidate(index)
        let fault =
          candidate.fault
          ?? (candidate.isWithoutKey
            ? "it and the row that it refers to refer to one another" : nil)
        if let fault {
          faults[index] = DatabaseMerge.Fault(.reference, fault)
          continue
        }
        guard let key = try merging.presentRow(candidate) else { continue }
        try note(candidate, index, key)
        next += referrers[index]
      }
      for (index, key) in try equalRows() {
        try note(candidate(index), index, key)
        next += referrers[index]
      }
    }
  }

  private func note(
    _ candidate: DatabaseMerge.Candidate, _ index: Int, _ key: [Value]
  ) throws {
    if let fault = try merging.fault(of: candidate, as: key) {
      faults[index] = fault
      return
    }
    present[index] = key
    let (table, row) = rows[index]
    try merging.notePlace(merging.place(of: key, table), of: row, table)
  }

  /// Returns the rows that the document has under the same keys if it has those to which they refer
  /// under the same keys, with their keys in the document.
  private func equalRows() throws -> [Int: [Value]] {
    var equal: [Int: [Value]] = [:]
    var others: [Int] = []
    for index in rows.indices where present[index] == nil {
      guard faults[index] == nil else {
        others.append(index)
        continue
      }
      var candidate = try candidate(index)
      candidate.open = []
      let (table, row) = rows[index]
      let expected =
        row.localKey.map { [$0] } ?? table.identityPositions.map { candidate.values[$0] }
      if let key = try merging.presentRow(candidate), try merging.place(of: key, table) == expected
      {
        equal[index] = key
      } else {
        others.append(index)
      }
    }
    while let index = others.popLast() {
      for referrer in referrers[index] where equal.removeValue(forKey: referrer) != nil {
        others.append(referrer)
      }
    }
    return equal
  }

  // MARK: - Rows that are new

  /// Inserts rows, all or none. If the document cannot have one of them, records why.
  private func insert(_ new: [Int]) throws {
    let report = merging.report
    let edits = LocalEdits(session: merging.session)
    var inserted: [(candidate: DatabaseMerge.Candidate, row: RowKey, key: [Value])] = []
    let refused = try edits.allOrNone {
      do {
        try giveKeys(to: new)
        // The identity of a row contains those of the rows to which its key refers.
        for index in new.sorted(by: { depth(of: $0) < depth(of: $1) }) {
          inserted.append(try insert(index, edits))
        }
      } catch is Refused {}
      return faults.mapValues { LocalEdits.Refusal(message: $0.message) }
    }
    guard refused.isEmpty else {
      merging.report = report
      return
    }
    // The edits would copy all that is noted so that they can take it back.
    for (candidate, row, key) in inserted {
      merging.notePlainCells(candidate, row, key)
      try merging.noteCleared(candidate, key)
    }
    merging.report.insertedRows += inserted.count
  }

  private func insert(
    _ index: Int, _ edits: LocalEdits
  ) throws -> (candidate: DatabaseMerge.Candidate, row: RowKey, key: [Value]) {
    let candidate = try candidate(index)
    if let fault = candidate.fault {
      throw refusal(of: index, DatabaseMerge.Fault(.reference, fault))
    }
    if let fault = try merging.deletion(of: candidate) { throw refusal(of: index, fault) }
    let identity = try identities[index] ?? merging.identity(of: candidate)
    let row = RowKey(table: candidate.table.id, identity: identity)
    do {
      let key = try edits.insert(localValues: candidate.values, as: row, under: numbers[index])
      merging.notePlainKey(candidate, row)
      return (candidate, row, key)
    } catch let refusal as LocalEdits.Refusal {
      throw self.refusal(of: index, DatabaseMerge.Fault(refusal))
    }
  }

  /// Records why the document cannot have a row. Returns what ends the insertion.
  private func refusal(of index: Int, _ fault: DatabaseMerge.Fault) -> Refused {
    faults[index] = fault
    return Refused()
  }

  private func depth(of index: Int) -> Int { merging.depths[rows[index].table.id] ?? 0 }

  /// Determines the keys of the new rows, so that references to them have their final values.
  private func giveKeys(to new: [Int]) throws {
    var rest: [Int] = []
    for index in new {
      let (table, row) = rows[index]
      guard table.localKey != nil else {
        rest.append(index)
        continue
      }
      let access = try merging.session.access(table.id)
      let own = try merging.freeKey(row.localKey.flatMap(Value.key), table)
      if table.identity == .surrogate {
        let identity = row.identity ?? merging.newIdentity()
        identities[index] = identity
        numbers[index] = try access.assignKey(to: identity, preferring: own)
      } else {
        numbers[index] = own
      }
      guard let number = numbers[index] else {
        throw refusal(of: index, DatabaseMerge.Fault(.condition, "no number is free for it"))
      }
      try merging.notePlace([.integer(number)], of: row, table)
    }
    try giveKeys(toRowsWithoutNumbers: rest)
  }

  /// Does the same for rows that have no number beside their key.
  private func giveKeys(toRowsWithoutNumbers rest: [Int]) throws {
    let unnumbered = Set(rest)
    var named: Set<Int> = []
    var next = rest
    while let index = next.popLast() {
      let candidate = try candidate(index)
      let key = candidate.table.identityPositions
      guard candidate.open.isDisjoint(with: key), named.insert(index).inserted else { continue }
      try merging.notePlace(key.map { candidate.values[$0] }, of: candidate.row, candidate.table)
      next += referrers[index].filter(unnumbered.contains)
    }
    // Keys that consist of one another are the same everywhere.
    for index in rest where !named.contains(index) {
      let candidate = try candidate(index)
      try merging.notePlace(
        candidate.table.identityPositions.map { candidate.values[$0] }, of: candidate.row,
        candidate.table)
    }
  }
}
