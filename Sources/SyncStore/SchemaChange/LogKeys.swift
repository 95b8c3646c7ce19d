import SyncModel

/// Keys by which the log names rows that went from remade tables unseen, where these rows, or rows to
/// which they refer, have no number any more: they are gone, or another row has the number.
final class LogKeys {
  private let session: StoreSession
  /// When the remake was noticed, in milliseconds since 1970.
  private let noticed: Int64
  /// The numbers that rows have got, and that are to be held until the log is sealed.
  private var held: [(key: Int64, row: RowKey)] = []

  init(session: StoreSession, noticed: Int64) {
    self.session = session
    self.noticed = noticed
  }

  /// Holds the numbers that rows have got.
  func finish() throws {
    try session.goneKeys.hold(held)
    held = []
  }

  /// Returns the local values of a key that the log can resolve to the identity of a row; `nil` if
  /// there is none.
  func key(of identity: RowIdentity, in table: TableSchema) throws -> [Value]? {
    let positions = table.identityPositions
    guard let values = IdentityEncoding.values(of: identity, count: positions.count) else {
      return nil
    }
    var key: [Value] = []
    for (position, value) in zip(positions, values) {
      let column = table.columns[position]
      if let local = try session.importedKey(value, column),
        try session.exported(local, column) == value, try stoodFor(value, local, column)
      {
        key.append(local)
      } else if case .key(let parent) = column.domain, case .identity(let identity) = value,
        let number = try number(of: RowKey(table: parent, identity: identity))
      {
        key.append(.integer(number))
      } else {
        return nil
      }
    }
    return key
  }

  /// Returns whether a number stood for the same row before the edits in the log.
  private func stoodFor(_ value: Value, _ local: Value, _ column: ColumnSchema) throws -> Bool {
    guard case .key(let parent) = column.domain, case .identity(let identity) = value,
      let number = Value.key(local)
    else { return true }
    return try session.access(parent).earlierIdentity(ofLocalKey: number) == identity
  }

  /// Returns the local value of a cell of a row that is gone, for the value that change sets have. A
  /// row that it refers to and that has no number here gets one.
  func value(_ value: Value, of column: ColumnSchema) throws -> Value {
    if let local = try session.imported(value, column) { return local }
    guard case .key(let parent) = column.domain, case .identity(let identity) = value else {
      return .null
    }
    return try number(of: RowKey(table: parent, identity: identity)).map { .integer($0) } ?? .null
  }

  /// Returns a number that stands for a row in the log; `nil` if rows of its table have none.
  func number(of row: RowKey) throws -> Int64? {
    let access = try session.access(row.table)
    switch access.table.identity {
    case .surrogate:
      var number = try access.assignLogKey(to: row.identity)
      while try isReferredToUncompared(number, of: row.table) {
        try access.forgetKey(number, of: row.identity)
        number = try access.assignLogKey(to: row.identity)
      }
      access.rememberUnseen(number, of: row.identity)
      held.append((number, row))
      return number
    case .columns:
      guard let values = try key(of: row.identity, in: access.table) else { return nil }
      // A number that a row contains may have been another row's.
      var number = try access.assignKey(to: row.identity, preferring: nil)
      while try isReferredToUncompared(number, of: row.table) {
        number = try access.assignKey(to: row.identity, preferring: nil)
      }
      try access.noteEarlierKey(number, of: values, at: noticed)
      return number
    case .primaryKey: return nil
    }
  }

  private func isReferredToUncompared(_ number: Int64, of table: Int) throws -> Bool {
    try !session.goneKeys.containedUncompared([number], in: table).isEmpty
  }
}
