import SyncModel

/// The changes of one change set to one table, in terms of this store:
/// columns by their bits, clients by their short numbers, rows by their
/// fingerprints.
final class IncomingChanges {
  let changes: TableChanges
  let table: TableSchema
  /// For each column of the change set, its position in the table; `nil` if this store does not
  /// merge its values as cells.
  let columns: [Int?]
  /// The columns of the change set that this store does not have, or that refer to rows in the
  /// author's schema and not in this one.
  let foreignColumns: [Int]
  /// Whether the change set has a column for each cell that rows have here.
  let isComplete: Bool
  let fingerprints: [RowFingerprint]
  /// The rows in order of fingerprint.
  let order: [Int]
  /// Whether a row occurs more than once, because keys that differ for the author are the same key
  /// in this store's schema.
  let hasRepeatedRows: Bool

  /// The changes that the author had not seen.
  let concurrency: Concurrency

  private let session: StoreSession
  private let author: Int32
  private let identities: Identities
  private let destinations: [Int: RowIdentity]
  private let exceptionStamps: [LocalStamp]

  init(
    _ changes: TableChanges, table: TableSchema, author: Int32, concurrency: Concurrency,
    session: StoreSession
  ) throws {
    self.concurrency = concurrency
    let nameless = try changes.namelessRows(session.access(table.id))
    var changes = nameless.isEmpty ? changes : changes.leavingOut(nameless)
    self.table = table
    self.author = author
    self.session = session
    let positions = changes.columns.map { name in
      table.columns.firstIndex { $0.wireName == name }
    }
    // A migration made them references for the author. This store can translate them once it has
    // migrated, too.
    let isReference = positions.indices.map { index in
      guard let position = positions[index] else { return false }
      let column = table.columns[position]
      return column.domain == .plain && !column.isIdentity
        && changes.cells[index].kinds.contains(ValueKind.identity.rawValue)
    }
    foreignColumns = positions.indices.filter {
      isReference[$0]
        || positions[$0] == nil && !table.excludedNames.contains(changes.columns[$0].folded)
    }
    // A key column has cells only where different values can be the same key. If the author has
    // another schema, it may send cells for more columns.
    let cellPositions = Set(table.cellPositions)
    let columns = positions.indices.map { index in
      isReference[index] ? nil : positions[index].flatMap { cellPositions.contains($0) ? $0 : nil }
    }
    self.columns = columns
    isComplete = Set(columns.compactMap { $0 }).isSuperset(of: cellPositions)
    exceptionStamps = try changes.exceptions.map {
      LocalStamp(
        time: $0.stamp.time.rawValue, client: try session.clients.number(of: $0.stamp.client))
    }
    let access = try session.access(table.id)
    destinations = Dictionary(
      try changes.moves.compactMap { move in
        try access.canonical(move.destination).map { (move.row, $0) }
      }, uniquingKeysWith: { first, _ in first })
    try changes.renewReferences(in: table, columns: columns, session)
    changes.keepValues(in: table, columns: columns)
    let identities = Identities(changes, table: table)
    changes.spellKeys(of: table, columns: columns)
    self.changes = changes
    self.identities = identities
    let fingerprints = identities.fingerprints(of: table.identity.kind, session: session)
    let order = fingerprints.indices.sorted { fingerprints[$0] < fingerprints[$1] }
    hasRepeatedRows = zip(order, order.dropFirst()).contains {
      fingerprints[$0] == fingerprints[$1] && identities[$0] == identities[$1]
    }
    self.fingerprints = fingerprints
    self.order = order
  }

  func identity(_ row: Int) -> RowIdentity { identities[row] }

  /// Lets the states of rows that are gone follow the form that their keys have by now.
  func adoptFormerStates() throws {
    let access = try session.access(table.id)
    guard try access.hadOtherKeyForms() else { return }
    var states = try states()
    try access.adoptFormerStates(of: states.indices.map(identity), &states)
  }

  /// Returns the stored state of each row.
  func states() throws -> [RowState?] {
    try session.access(table.id).stamps.states(of: fingerprints, inOrder: order)
  }

  // MARK: - Reading rows

  /// Returns the stamp of a row's existence and of its cells, unless an exception gives another
  /// one.
  func stamp(_ row: Int) -> LocalStamp {
    LocalStamp(time: changes.times[row].rawValue, client: author)
  }

  func shape(_ row: Int) -> [Int] { changes.shapes[Int(changes.rowShapes[row])] }

  func exceptionStamp(_ index: Int) -> LocalStamp { exceptionStamps[index] }

  /// Returns the new identity of a row that moved, or `nil` if it did not move.
  private func destination(of row: Int) -> RowIdentity? {
    destinations[row].flatMap { $0 == identity(row) ? nil : $0 }
  }

  /// Returns the change of one row.
  func change(
    _ row: Int, exceptions: Range<Int>, cells: [(index: Int, cell: Int)]
  ) -> WorkingSet.Change {
    let action = RowAction(rawValue: changes.actions[row]) ?? .update
    let said = exceptions.first { changes.exceptions[$0].column == nil }.map {
      exceptionStamps[$0]
    }
    var rest = exceptions
    let values = cells.compactMap {
      index, cell -> (column: Int, value: Value, stamp: LocalStamp)? in
      guard let column = columns[index] else { return nil }
      var stamp = stamp(row)
      // Both are in order of column.
      while let next = rest.first, changes.exceptions[next].column ?? -1 <= index {
        if changes.exceptions[next].column == index { stamp = exceptionStamps[next] }
        rest.removeFirst()
      }
      return (column, changes.cells[index][cell], stamp)
    }
    let rowStamp = action == .update ? stamp(row) : said ?? stamp(row)
    return WorkingSet.Change(
      action: action, stamp: rowStamp,
      cells: values,
      keyHint: table.identity == .surrogate ? Value.key(changes.keys[1][row]) : nil,
      movedTo: destination(of: row), replaces: action == .update ? said : nil,
      erasureStamp: action == .erase ? rowStamp : nil, concurrency: concurrency)
  }
}

extension IncomingChanges {
  /// The position of the next row's parts. Each row is read once, in order.
  ///
  /// Each loop has it in a variable: as a property of the changes it would cost a check for
  /// exclusive access with every cell.
  struct Cursor {
    /// For each column, the index of its next value.
    private var cells: [Int]
    private var exception = 0

    init(_ batch: IncomingChanges) {
      cells = Array(repeating: 0, count: batch.changes.columns.count)
    }

    /// Returns the exceptions of the next row, and moves past them.
    mutating func exceptions(of row: Int, in batch: IncomingChanges) -> Range<Int> {
      let start = exception
      while exception < batch.changes.exceptions.count,
        batch.changes.exceptions[exception].row == row
      {
        exception += 1
      }
      return start..<exception
    }

    /// Returns the index of the next row's value in a column, and moves past it.
    @inline(__always)
    mutating func cell(of column: Int) -> Int {
      defer { cells[column] += 1 }
      return cells[column]
    }
  }

  /// Returns the change of the next row.
  func change(_ row: Int, _ cursor: inout Cursor) -> WorkingSet.Change {
    let exceptions = cursor.exceptions(of: row, in: self)
    let cells = shape(row).map { (index: $0, cell: cursor.cell(of: $0)) }
    return change(row, exceptions: exceptions, cells: cells)
  }

  /// The identities of the rows, one after the other.
  private struct Identities {
    private var bytes: [UInt8] = []
    private var ends: [Int] = []

    init(_ changes: TableChanges, table: TableSchema) {
      ends.reserveCapacity(changes.count)
      let collations = table.identityPositions.map { table.columns[$0].keyCollation }
      for row in 0..<changes.count {
        if table.identity == .surrogate {
          bytes.append(contentsOf: changes.keys[0].bytes[changes.keys[0].contentRange(at: row)])
        } else {
          for index in collations.indices {
            changes.keys[index].appendKey(at: row, collation: collations[index], to: &bytes)
          }
        }
        ends.append(bytes.count)
      }
    }

    subscript(row: Int) -> RowIdentity { RowIdentity(bytes: Array(bytes[range(of: row)])) }

    private func range(of row: Int) -> Range<Int> { (row == 0 ? 0 : ends[row - 1])..<ends[row] }

    func fingerprints(of kind: IdentityKind, session: StoreSession) -> [RowFingerprint] {
      bytes.withUnsafeBytes { bytes in
        ends.indices.map {
          session.fingerprint(UnsafeRawBufferPointer(rebasing: bytes[range(of: $0)]), of: kind)
        }
      }
    }
  }
}

extension TableChanges {
  /// Gives identities of other rows the form that they have in this store: keys can have another one
  /// on a device that has made a table again.
  fileprivate mutating func renewReferences(
    in table: TableSchema, columns: [Int?], _ session: StoreSession
  ) throws {
    if table.identity != .surrogate {
      for (index, position) in table.identityPositions.enumerated() {
        try keys[index].renewReferences(of: table.columns[position], session)
      }
    }
    for (index, position) in columns.enumerated() {
      if let position { try cells[index].renewReferences(of: table.columns[position], session) }
    }
  }

  /// Converts all values to those that the table stores: the author's text may be a number here.
  fileprivate mutating func keepValues(in table: TableSchema, columns: [Int?]) {
    if table.identity != .surrogate {
      for (index, position) in table.identityPositions.enumerated() {
        keys[index].keep(in: table.columns[position])
      }
    }
    for (index, position) in columns.enumerated() {
      if let position { cells[index].keep(in: table.columns[position]) }
    }
  }

  /// Ensures that no cell gives a row another key than its identity. If a cell's spelling is a
  /// different key in this store, the spelling in the key replaces it.
  fileprivate mutating func spellKeys(of table: TableSchema, columns: [Int?]) {
    guard table.identity != .surrogate else { return }
    for (index, position) in table.identityPositions.enumerated()
    where table.columns[position].isLoose {
      guard let column = columns.firstIndex(of: position) else { continue }
      let schema = table.columns[position]
      let isShaped = shapes.map { $0.contains(column) }
      var spelled: ValueColumn?
      var cell = 0
      for row in 0..<count where isShaped[Int(rowShapes[row])] {
        defer { cell += 1 }
        var key: [UInt8] = []
        var said: [UInt8] = []
        keys[index].appendKey(at: row, collation: schema.keyCollation, to: &key)
        cells[column].appendKey(at: cell, collation: schema.keyCollation, to: &said)
        if key == said {
          spelled?.append(cells[column], at: cell)
          continue
        }
        if spelled == nil {
          var before = ValueColumn()
          for earlier in 0..<cell { before.append(cells[column], at: earlier) }
          spelled = before
        }
        spelled?.append(keys[index], at: row)
      }
      if let spelled { cells[column] = spelled }
    }
  }
}

extension ValueColumn {
  fileprivate mutating func renewReferences(
    of column: ColumnSchema, _ session: StoreSession
  ) throws {
    guard let parent = column.referredTable, session.schema[parent].identity != .surrogate,
      kinds.contains(ValueKind.identity.rawValue)
    else { return }
    let access = try session.access(parent)
    var renewed = ValueColumn()
    renewed.reserve(count, byteCount: bytes.count)
    for index in 0..<count {
      if case .identity(let row) = self[index] {
        renewed.append(.identity(try access.presentIdentity(row)))
      } else {
        renewed.append(self, at: index)
      }
    }
    self = renewed
  }

  /// Converts the values to those that a column of a table stores.
  fileprivate mutating func keep(in column: ColumnSchema) {
    guard mayChange(in: column) else { return }
    var kept = ValueColumn()
    kept.reserve(count, byteCount: bytes.count)
    for index in 0..<count { kept.append(self[index].kept(in: column)) }
    self = kept
  }

  /// Returns whether a column may store one of the values differently.
  private func mayChange(in column: ColumnSchema) -> Bool {
    let (integer, real) = (ValueKind.integer.rawValue, ValueKind.real.rawValue)
    let (text, identity) = (ValueKind.text.rawValue, ValueKind.identity.rawValue)
    let isReference = if case .key = column.domain { true } else { false }
    if !isReference, kinds.contains(identity) { return true }
    if column.domain == .counter, kinds.contains(ValueKind.blob.rawValue) { return true }
    switch column.affinity {
    case .blob: return false
    case .text: return kinds.contains { $0 == integer || $0 == real }
    case .integer, .numeric:
      return zip(kinds, words).contains { kind, word in
        kind == text || kind == real && Int64(exactly: Double(bitPattern: word)) != nil
      }
    case .real: return kinds.contains { $0 == integer || $0 == text }
    }
  }
}
