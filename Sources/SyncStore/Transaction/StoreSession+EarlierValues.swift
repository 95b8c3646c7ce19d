import SyncModel

extension StoreSession {
  /// Returns the value that a change set had for a value of a column before the edits in the log.
  func earlierExported(_ value: Value, _ column: ColumnSchema) throws -> Value {
    guard case .key(let table) = column.domain, let key = column.key(value),
      try access(table).identity(ofKeyInUse: key, countsUnseen: column.isIdentity) != nil
    else {
      return try exported(value, column)
    }
    return .identity(try access(table).earlierIdentity(ofLocalKey: key))
  }

  /// Returns the same for the values of a deleted row: a number that is not and was not the key of
  /// a row is a plain number, as in a row that was not deleted.
  ///
  /// - Parameters:
  ///   - row: The deleted row.
  ///   - isEdited: Whether the edits in the log have set the value. Otherwise a row that has got the
  ///     key since is not the one that is meant.
  func lastExported(
    _ value: Value, _ column: ColumnSchema, of row: RowKey, isEdited: Bool
  ) throws -> Value {
    guard case .key(let table) = column.domain, let key = column.key(value) else {
      return try earlierExported(value, column)
    }
    let access = try access(table)
    if try access.identity(ofKeyInUse: key) == nil {
      // When a remade table is compared, other deletions are sealed already.
      guard !isEdited, try !plainKeys.keys(of: table).contains(key),
        try originalKeys().contains(key, of: schema[table])
      else { return value }
      return .identity(try access.originalIdentity(of: key))
    }
    if !isEdited, try plainKeys.keys(of: table).contains(key) {
      if try access.isGiven(key) { return value }
      if let unseen = try access.unseenIdentity(ofLocalKey: key),
        try !isNoted(from: row, column, to: unseen)
      {
        return value
      }
    }
    return try earlierExported(value, column)
  }
}
