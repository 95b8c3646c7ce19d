import GRDB
import SyncModel

/// The application of one change set's changes to a table whose rows concern no other rows: no
/// references from or to it, no unique value but the identity.
///
/// A row that is not plain – parked, deleted, refused by a condition – goes to the working set,
/// which handles all cases.
final class TableApply {
  private let batch: IncomingChanges
  private let session: StoreSession
  private let set: WorkingSet
  private let access: TableAccess
  private let table: TableSchema
  private var contents: [UnsafeRawPointer] = []
  private var keyContents: [UnsafeRawPointer] = []
  private var inserts: [UInt32: ShapeStatement] = [:]
  private var updates: [UInt32: ShapeStatement] = [:]

  private(set) var counts = Materializer.Counts()

  /// A statement for the rows of one shape.
  private struct ShapeStatement {
    var statement: SQLStatement
    /// For each bound cell, its index among the change set's columns.
    var cells: [Int]
    /// The table's columns, in the same order.
    var columns: [Int]
  }

  private let checkCancellation: () throws -> Void

  init(
    _ batch: IncomingChanges, session: StoreSession, set: WorkingSet,
    checkCancellation: @escaping () throws -> Void
  ) throws {
    self.checkCancellation = checkCancellation
    self.batch = batch
    self.session = session
    self.set = set
    table = batch.table
    access = try session.access(batch.table.id)
  }

  func run() throws {
    // The pointers stay valid for as long as the closures run.
    try withContents(batch.changes.cells, []) { cells in
      try withContents(batch.changes.keys, []) { keys in
        contents = cells
        keyContents = keys
        try applyRows()
      }
    }
  }

  private func withContents(
    _ columns: [ValueColumn], _ pointers: [UnsafeRawPointer],
    _ body: ([UnsafeRawPointer]) throws -> Void
  ) throws {
    guard pointers.count < columns.count else { return try body(pointers) }
    try columns[pointers.count].bytes.withUnsafeBytes { content in
      // SQLite binds NULL for a null pointer, so empty text needs another pointer.
      let start = content.baseAddress ?? UnsafeRawPointer(bitPattern: 8)
      guard let start else { return }
      try withContents(columns, pointers + [start], body)
    }
  }

  private func applyRows() throws {
    var states = try batch.states()
    var isChanged = [Bool](repeating: false, count: states.count)
    let checksSet = set.count > 0
    var cursor = IncomingChanges.Cursor(batch)
    var cells = [Int](repeating: 0, count: batch.changes.columns.count)
    for row in states.indices {
      if row % 1024 == 1023 { try checkCancellation() }
      let exceptions = cursor.exceptions(of: row, in: batch)
      let shape = batch.shape(row)
      for column in shape { cells[column] = cursor.cell(of: column) }
      if !checksSet || !set.contains(RowKey(table: table.id, identity: batch.identity(row))),
        try applyPlainly(row, exceptions, cells, &states[row])
      {
        isChanged[row] = true
        continue
      }
      let key = RowKey(table: table.id, identity: batch.identity(row))
      let working =
        try set[key]
        ?? set.load(key, fingerprint: batch.fingerprints[row], state: states[row])
      try set.merge(
        batch.change(row, exceptions: exceptions, cells: shape.map { ($0, cells[$0]) }),
        into: working)
    }
    try access.stamps.store(
      states, of: batch.fingerprints, inOrder: batch.order.filter { isChanged[$0] })
  }

  /// Applies a row if it is plain; otherwise changes nothing and returns
  /// false.
  private func applyPlainly(
    _ row: Int, _ exceptions: Range<Int>, _ cells: [Int], _ state: inout RowState?
  ) throws -> Bool {
    if batch.concurrency.mayHold(RowKey(table: table.id, identity: batch.identity(row))) {
      return false
    }
    switch RowAction(rawValue: batch.changes.actions[row]) {
    case .insert:
      guard state == nil, !table.hasUnstampedRows,
        batch.shape(row).count == batch.changes.columns.count, batch.isComplete,
        // A cell with the stamp zero contains no edit.
        exceptions.allSatisfy({ batch.exceptionStamp($0) != .zero })
      else { return false }
      return try insert(row, exceptions, cells, &state)
    case .update:
      return try update(row, exceptions, cells, &state)
    case .erase:
      return try erase(row, exceptions, &state)
    case .delete, nil:
      return false
    }
  }

  private func insert(
    _ row: Int, _ exceptions: Range<Int>, _ cells: [Int], _ state: inout RowState?
  ) throws -> Bool {
    let shape = try insertion(batch.changes.rowShapes[row])
    var position = bind(shape, cells)
    var new = RowState(
      existence: .inserted, existenceStamp: batch.stamp(row), cellStamp: batch.stamp(row))
    if table.identity == .surrogate {
      let key = try access.assignKey(
        to: batch.identity(row), preferring: Value.key(batch.changes.keys[1][row]))
      new.localKey = key
      shape.statement.bind(key, at: position)
    } else {
      for index in batch.changes.keys.indices
      where !table.columns[table.identityPositions[index]].isLoose {
        bindKey(index, of: row, to: shape.statement, at: position)
        position += 1
      }
      if table.localKey != nil {
        shape.statement.bind(
          try access.assignKey(to: batch.identity(row), preferring: nil), at: position)
      }
    }
    guard try runUnlessRefused(shape.statement) else { return false }
    for index in exceptions { setException(index, &new) }
    state = new
    counts.inserted += 1
    access.changes.note(.inserted, key(of: row, new.localKey))
    return true
  }

  private func setException(_ index: Int, _ state: inout RowState) {
    if let column = batch.changes.exceptions[index].column {
      guard let position = batch.columns[column] else { return }
      state.setStamp(batch.exceptionStamp(index), of: position)
    } else {
      state.existenceStamp = batch.exceptionStamp(index)
    }
  }

  private func update(
    _ row: Int, _ exceptions: Range<Int>, _ cells: [Int], _ state: inout RowState?
  ) throws -> Bool {
    guard exceptions.isEmpty else { return false }
    var new: RowState
    if let state {
      guard state.existence != .deleted, !state.isKept else { return false }
      new = state
    } else {
      guard table.hasUnstampedRows else { return false }
      new = .unstamped
    }
    guard batch.shape(row).contains(where: { batch.columns[$0] != nil }) else { return true }
    let shape = try modification(batch.changes.rowShapes[row])
    let stamp = batch.stamp(row)
    for column in shape.columns {
      let current = new.stamp(of: column)
      guard session.clients.precedes(current, stamp), !mayConflict(current) else { return false }
    }
    var position = bind(shape, cells)
    var localKey: Int64?
    if table.identity == .surrogate {
      guard let key = try access.localKey(of: batch.identity(row)) else { return false }
      shape.statement.bind(key, at: position)
      localKey = key
    } else {
      for index in batch.changes.keys.indices {
        bindKey(index, of: row, to: shape.statement, at: position)
        position += 1
      }
    }
    guard try runUnlessRefused(shape.statement), session.database.changesCount > 0 else {
      return false
    }
    for column in shape.columns { new.setStamp(stamp, of: column) }
    state = new
    counts.updated += 1
    access.changes.note(.updated, key(of: row, localKey))
    return true
  }

  private func erase(
    _ row: Int, _ exceptions: Range<Int>, _ state: inout RowState?
  ) throws -> Bool {
    guard exceptions.isEmpty else { return false }
    let stamp = batch.stamp(row)
    if let state {
      guard state.existence != .deleted, !state.isKept,
        session.clients.precedes(state.existenceStamp, stamp),
        !session.clients.precedes(stamp, state.cellStamp),
        !state.exceptions.contains(where: { session.clients.precedes(stamp, $0.stamp) }),
        !mayConflict(state.existenceStamp), !mayConflict(state.cellStamp),
        !state.exceptions.contains(where: { mayConflict($0.stamp) })
      else { return false }
    } else {
      guard table.hasUnstampedRows else { return false }
    }
    var localKey: Int64?
    var isGone = true
    if table.identity == .surrogate {
      guard let key = try access.localKey(of: batch.identity(row)) else { return false }
      access.deletion.bind(key, at: 1)
      try session.write(access.deletion)
      try access.forgetKey(key, of: batch.identity(row))
      localKey = key
    } else {
      for index in batch.changes.keys.indices {
        bindKey(index, of: row, to: access.deletion, at: index + 1)
      }
      try session.write(access.deletion)
      // The table had no such row: the working set handles that.
      isGone = session.database.changesCount > 0
      if state == nil, !isGone { return false }
    }
    state = RowState(
      existence: .deleted, existenceStamp: stamp, cellStamp: stamp, erasureStamp: stamp)
    counts.deleted += 1
    if isGone { access.changes.note(.deleted, key(of: row, localKey)) }
    if !table.excludedColumns.isEmpty {
      try session.aside.removeAll(of: batch.identity(row), in: table.wireName)
    }
    return true
  }

  /// Returns the key by which the table names a row on this device.
  private func key(of row: Int, _ localKey: Int64?) -> [Value] {
    if table.identity == .surrogate { return [localKey.map { .integer($0) } ?? .null] }
    return batch.changes.keys.map { $0[row] }
  }

  /// Returns whether an edit may be concurrent, that is, unseen by the author of the changes.
  @inline(__always)
  private func mayConflict(_ stamp: LocalStamp) -> Bool {
    batch.concurrency.isPossible && batch.concurrency.isConcurrent(stamp)
  }

  /// Runs a statement; returns false if a constraint of the table refuses the row.
  private func runUnlessRefused(_ statement: SQLStatement) throws -> Bool {
    do {
      try session.write(statement)
      return true
    } catch let error as DatabaseError where error.resultCode == .SQLITE_CONSTRAINT {
      return false
    }
  }

  // MARK: - Statements

  /// Binds the cells of a row; returns the position after them.
  @inline(__always)
  private func bind(_ shape: ShapeStatement, _ cells: [Int]) -> Int {
    var position = 1
    for index in shape.cells {
      let cell = cells[index]
      shape.statement.bind(
        kind: batch.changes.cells[index].kinds[cell], word: batch.changes.cells[index].words[cell],
        content: contents[index], at: position)
      position += 1
    }
    return position
  }

  /// Binds one value of a row's key.
  @inline(__always)
  private func bindKey(_ index: Int, of row: Int, to statement: SQLStatement, at position: Int) {
    statement.bind(
      kind: batch.changes.keys[index].kinds[row], word: batch.changes.keys[index].words[row],
      content: keyContents[index], at: position)
  }

  private func insertion(_ shape: UInt32) throws -> ShapeStatement {
    if let known = inserts[shape] { return known }
    let (cells, columns) = bound(shape)
    // Key columns that can be spelled in several ways are cells as well.
    let keys = table.identityPositions.filter { !table.columns[$0].isLoose }
    let made = ShapeStatement(
      statement: try access.insert(columns + keys), cells: cells, columns: columns)
    inserts[shape] = made
    return made
  }

  private func modification(_ shape: UInt32) throws -> ShapeStatement {
    if let known = updates[shape] { return known }
    let (cells, columns) = bound(shape)
    let made = ShapeStatement(
      statement: try access.update(columns), cells: cells, columns: columns)
    updates[shape] = made
    return made
  }

  private func bound(_ shape: UInt32) -> (cells: [Int], columns: [Int]) {
    let cells = batch.changes.shapes[Int(shape)].filter { batch.columns[$0] != nil }
    return (cells, cells.compactMap { batch.columns[$0] })
  }
}
