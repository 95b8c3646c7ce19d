import SyncModel

/// Notes which rows of the application's tables a transaction changes, for ``RowChanges``.
///
/// Only bounded many keys are held: beyond the bound, a table counts as changed as a whole. Nothing is
/// noted if there is no listener.
final class RowChangeLog {
  /// What has become of a row.
  enum Kind {
    case inserted
    case updated
    case deleted

    /// Returns the result of both; `nil` if the row is as it was.
    func followed(by next: Kind) -> Kind? {
      switch (self, next) {
      case (.inserted, .deleted): nil
      case (.inserted, _): .inserted
      case (.deleted, .inserted), (.deleted, .updated): .updated
      case (.updated, .inserted), (.updated, .updated): .updated
      case (.updated, .deleted), (.deleted, .deleted): .deleted
      }
    }
  }

  /// The changed rows of one table.
  final class Table {
    let keyColumns: [SQLName]
    /// What has become of each row, by its key; `nil` beyond the bound.
    fileprivate var kinds: [[Value]: Kind]?
    /// The bytes of the keys' texts and blobs.
    fileprivate var byteCount = 0

    /// The most bytes of the keys of one table.
    private static let byteBound = 1 << 20

    /// Whether a row has only one key. Where a collation makes several spellings one key, or a column keeps
    /// values of several types, a key that is known may not be the one that the table shows.
    private let namesRows: Bool
    /// The positions in a key that hold reals only. An identity has whole numbers as integers.
    private let reals: [Int]

    fileprivate init(_ table: TableSchema, isWanted: Bool) {
      keyColumns = table.keyColumns
      let columns = table.identityPositions.map { table.columns[$0] }
      namesRows = !columns.contains(where: \.isLoose)
      reals = columns.indices.filter { columns[$0].affinity == .real }
      kinds = isWanted ? [:] : nil
    }

    fileprivate init(keyColumns: [SQLName]) {
      self.keyColumns = keyColumns
      namesRows = false
      reals = []
    }

    /// Notes what has become of a row.
    ///
    /// - Parameter key: The values of ``keyColumns``.
    @inline(__always)
    func note(_ kind: Kind, _ key: @autoclosure () throws -> [Value]) rethrows {
      guard kinds != nil else { return }
      if namesRows { add(kind, shown(try key())) } else { noteAll() }
    }

    /// Returns a key as the table shows it.
    private func shown(_ key: [Value]) -> [Value] {
      var key = key
      for position in reals {
        if case .integer(let number) = key[position] {
          key[position] = .real(Double(number))
        }
      }
      return key
    }

    private func add(_ kind: Kind, _ key: [Value]) {
      guard let former = kinds?[key] else {
        kinds?[key] = kind
        byteCount += key.reduce(0) { $0 + $1.contentByteCount }
        if kinds?.count ?? 0 > RowChanges.bound || byteCount > Self.byteBound { noteAll() }
        return
      }
      kinds?[key] = former.followed(by: kind)
    }

    /// Notes that any of the rows may have changed.
    func noteAll() { kinds = nil }

    /// Notes what was noted in another table that follows this one.
    func note(_ others: Table) {
      guard let changed = others.kinds else { return noteAll() }
      for (key, kind) in changed { note(kind, key) }
    }
  }

  /// What was noted at some time.
  struct Mark {
    fileprivate var tables: [SQLName: (kinds: [[Value]: Kind]?, byteCount: Int)]
  }

  private let isWanted: Bool
  private var tables: [SQLName: Table] = [:]
  private var authors: Set<ClientIdentifier> = []

  /// - Parameter isWanted: Whether there is a listener.
  init(isWanted: Bool = true) { self.isWanted = isWanted }

  /// The changed rows of a table.
  func rows(of table: TableSchema) -> Table {
    if let rows = tables[table.name] { return rows }
    let rows = separateRows(of: table)
    tables[table.name] = rows
    return rows
  }

  /// Notes that rows of a table that is not synchronized have changed.
  func noteAll(of name: SQLName, keyColumns: [SQLName]) {
    let rows = tables[name] ?? Table(keyColumns: keyColumns)
    rows.noteAll()
    tables[name] = rows
  }

  /// Returns notes of a table that do not count before they are added to the others.
  func separateRows(of table: TableSchema) -> Table {
    Table(table, isWanted: isWanted)
  }

  /// Returns what was noted until now, for ``restore(_:)``.
  func mark() -> Mark { Mark(tables: tables.mapValues { ($0.kinds, $0.byteCount) }) }

  /// Forgets what was noted since then: it was rolled back.
  func restore(_ mark: Mark) {
    for (name, rows) in tables {
      (rows.kinds, rows.byteCount) = mark.tables[name] ?? (isWanted ? [:] : nil, 0)
    }
  }

  /// Notes that a client's change set is applied.
  func note(author: ClientIdentifier) { authors.insert(author) }

  /// Returns what was noted; `nil` if no row has changed.
  ///
  /// - Parameter hasTriggers: Whether the database has triggers that run along.
  func changes(hasTriggers: Bool) -> RowChanges? {
    let changed = tables.filter { $0.value.kinds?.isEmpty != true }
    guard isWanted, !changed.isEmpty else { return nil }
    return RowChanges(
      tables: changed.map { name, rows in
        var table = RowChanges.Table(name: name, keyColumns: rows.keyColumns)
        table.isComplete = rows.kinds != nil
        for (key, kind) in rows.kinds ?? [:] {
          switch kind {
          case .inserted: table.inserted.append(key)
          case .updated: table.updated.append(key)
          case .deleted: table.deleted.append(key)
          }
        }
        return table
      }.sorted { $0.name < $1.name }, authors: authors, mayConcernOtherTables: hasTriggers)
  }
}

extension Value {
  fileprivate var contentByteCount: Int {
    switch self {
    case .text(let bytes), .blob(let bytes): bytes.count
    case .identity(let row): row.bytes.count
    case .null, .integer, .real: 0
    }
  }
}
