import SyncModel

/// Rows with a plain number in their key.
///
/// A number in the key can be a plain value although a row here has it for its key: the row with
/// the plain number came from a device on which no row has that number, or was there first. The
/// table does not distinguish it from a row that refers to that row. Bookkeeping does: the two have
/// different identities, and at most one of them is in the table.
extension TableAccess {
  /// Returns the logical values for the local values of the key columns.
  func logicalKey(_ key: [Value]) throws -> [Value] {
    let logical = try zip(key, table.identityPositions).map {
      try session.exported($0, table.columns[$1])
    }
    return try keyWithPlainNumbers(key, logical) ?? logical
  }

  /// Returns the logical values that the local values of the key columns had before the edits in
  /// the log.
  func earlierLogicalKey(_ key: [Value]) throws -> [Value] {
    let logical = try zip(key, table.identityPositions).map {
      try session.earlierExported($0, table.columns[$1])
    }
    return try keyWithPlainNumbers(key, logical) ?? logical
  }

  /// Returns whether some row may have a plain number in its key.
  func canHavePlainNumbers() throws -> Bool {
    guard table.hasKeysInIdentity else { return false }
    return try table.identityPositions.contains { position in
      guard case .key(let parent) = table.columns[position].domain else { return false }
      return try !session.plainKeys.keys(of: parent).isEmpty
    }
  }

  /// Returns the logical values of the key of the row that is in the table under some local values,
  /// if some of its numbers are plain although they are keys of rows here; `nil` if there is no such
  /// row.
  ///
  /// - Parameter logical: The logical values, with each of these numbers as a reference.
  func keyWithPlainNumbers(_ key: [Value], _ logical: [Value]) throws -> [Value]? {
    guard try canHavePlainNumbers() else { return nil }
    let options = try zip(zip(key, logical), table.identityPositions).map {
      values, position -> [Value] in
      guard case .key(let parent) = table.columns[position].domain,
        values.1.kind == .identity, let number = Value.key(values.0),
        try session.plainKeys.keys(of: parent).contains(number)
      else { return [values.1] }
      return [values.1, values.0]
    }
    return try Self.combinations(options).dropFirst().first { try isInTable(identity(of: $0)) }
  }

  /// Returns the identities of the other rows that would have the key of a row in the table: those
  /// with a plain number in place of a reference, or the reverse.
  ///
  /// - Parameter number: Returns the local key of a row.
  func rivals(
    of row: RowIdentity, number: (RowKey) throws -> Int64?
  ) throws -> [RowIdentity] {
    guard table.hasKeysInIdentity,
      let values = IdentityEncoding.values(of: row, count: table.identityPositions.count)
    else { return [] }
    // With a plain number in such a column, a row is shown on no device.
    let enforced = Set(table.foreignKeys.filter(\.isEnforced).flatMap(\.columns))
    let options = try zip(values, table.identityPositions).map { value, position -> [Value] in
      guard case .key(let parent) = table.columns[position].domain, !enforced.contains(position)
      else { return [value] }
      if case .identity(let referred) = value {
        guard let key = try number(RowKey(table: parent, identity: referred)),
          try session.plainKeys.keys(of: parent).contains(key)
        else { return [value] }
        return [value, .integer(key)]
      }
      guard let key = Value.key(value),
        let referred = try session.access(parent).identity(ofKeyInUse: key, countsUnseen: true)
      else { return [value] }
      return [value, .identity(referred)]
    }
    return Self.combinations(options).dropFirst().map(identity(of:))
  }

  /// Returns whether a row has no key of its own here: another row with the same key is in the table.
  func givesWay(_ row: RowIdentity) throws -> Bool {
    try rivals(of: row) { try session.access($0.table).localKey(of: $0.identity) }
      .contains { try shown($0) != nil }
  }

  /// Returns all combinations of one value for each column. The first consists of the first values.
  private static func combinations(_ options: [[Value]]) -> [[Value]] {
    options.reduce([[]]) { begun, values in
      values.flatMap { value in begun.map { $0 + [value] } }
    }
  }

  /// Returns whether a row of which bookkeeping has a state is in its table, according to
  /// bookkeeping.
  func isInTable(_ identity: RowIdentity) throws -> Bool {
    if session.writtenPlainRows.contains(RowKey(table: table.id, identity: identity)) {
      return true
    }
    guard let state = try stamps.state(of: fingerprint(identity)) else { return false }
    guard !state.isKept else {
      return try session.keptRows.row(RowKey(table: table.id, identity: identity))?.reason.isShown
        == true
    }
    return state.existence != .deleted || session.isRevived(state, table)
  }

  /// Returns the local values of the key columns for the logical values of a row's key; `nil` if the
  /// row cannot be in the table here: a row that it refers to has no key, or another row has its key.
  func localKey(_ values: [Value], of identity: RowIdentity) throws -> [Value]? {
    var local: [Value] = []
    var isAmbiguous = false
    for (position, value) in zip(table.identityPositions, values) {
      let column = table.columns[position]
      guard let imported = try session.imported(value, column) else { return nil }
      if try session.isKeyHere(value, column) { isAmbiguous = true }
      local.append(imported)
    }
    guard table.hasKeysInIdentity else { return local }
    if isAmbiguous { return try isInTable(identity) ? local : nil }
    return try keyWithPlainNumbers(local, values) == nil ? local : nil
  }
}
