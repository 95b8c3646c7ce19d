import SyncModel

extension ForeignKey {
  /// The names of the referred columns, as bookkeeping writes them.
  var columnsName: SQLName {
    SQLName(parentColumns.map { $0.folded }.joined(separator: "\u{1}"))
  }
}

/// References are compared by the affinity and the collation of the referred column
/// (<https://www.sqlite.org/foreignkeys.html>, section 3).
extension ColumnSchema {
  /// Returns the integer key of the row to which a local value refers; `nil` if it can refer to
  /// none. In the row's own key only the plain form refers, since rows are found by it.
  func key(_ value: Value) -> Int64? {
    isIdentity ? Value.key(value) : Value.referredKey(value)
  }

  /// Returns the number of a row that a reference refers to, as the column stores it.
  func stored(key: Int64) -> Value {
    Value.integer(key).applying(affinity).stored(with: affinity)
  }

  /// Returns whether a column shows a logical value: the local value for it, or another form of the
  /// same reference, such as `'03'` in place of `'3'`.
  func shows(_ logical: Value, _ local: Value, as shown: Value) -> Bool {
    if local == shown { return true }
    guard isKeyed, case .identity = logical, let key = key(local) else { return false }
    return key == self.key(shown)
  }

  /// Returns the SQL condition that the column refers to one of several values, the parameters of
  /// the statement with some numbers. It may also be true of others.
  ///
  /// - Parameter row: The name of the row in the statement.
  func refers(
    to parameters: ClosedRange<Int>, of other: Affinity, collation: String, row: String? = nil
  ) -> String {
    let column = (row.map { "\($0)." } ?? "") + quoted(name)
    let isNumber = other != .text && other != .blob
    let forms =
      switch affinity {
      case .text where isNumber: [column, "CAST(\(column) AS NUMERIC)"]
      case .blob where other != .blob:
        [column, "CAST(\(column) AS \(isNumber ? "NUMERIC" : "TEXT"))"]
      default: [column]
      }
    let values = parameters.map { "?\($0)" }
    let comparison =
      values.count == 1 ? "= \(values[0])" : "IN (\(values.joined(separator: ", ")))"
    let terms = forms.map { "\($0) COLLATE \(collation) \(comparison)" }
    return terms.count == 1 ? terms[0] : "(\(terms.joined(separator: " OR ")))"
  }

  /// Returns the SQL term of the column for a comparison with a referred column.
  func compared(with other: Affinity, row: String) -> String {
    let column = "\(row).\(quoted(name))"
    return other == .text && affinity != .text ? "CAST(\(column) AS TEXT)" : column
  }
}

extension TableSchema {
  /// Returns whether a foreign key refers to this table's rows by their identity.
  func identifies(_ key: ForeignKey) -> Bool {
    if localKey != nil, key.parentColumns.count == 1,
      key.parentColumns[0].folded == localKey?.folded
    {
      return true
    }
    guard identity != .surrogate else { return false }
    return Set(identityPositions.map { columns[$0].name.folded })
      == Set(key.parentColumns.map { $0.folded })
  }

  /// Returns the identity to which a reference's logical values lead, or `nil` if it refers to
  /// other columns, or can lead to no row.
  func identity(for values: [Value], of key: ForeignKey) -> RowIdentity? {
    guard identifies(key) else { return nil }
    if localKey != nil, key.parentColumns[0].folded == localKey?.folded {
      guard case .identity(let identity) = values[0] else { return nil }
      return identity
    }
    let names = key.parentColumns.map { $0.folded }
    let ordered = identityPositions.map { position in
      names.firstIndex(of: columns[position].name.folded).map {
        values[$0].applying(columns[position].affinity)
      } ?? .null
    }
    return IdentityEncoding.encode(
      ordered, collations: identityPositions.map { columns[$0].keyCollation })
  }

  /// Returns the key that a row had before syncing began, or would have had, according to its
  /// identity; `nil` for other identities.
  func originalKey(of row: RowIdentity) -> Int64? {
    guard localKey != nil, let bits = Bits128(bytes: row.bytes),
      bits.high == origin || bits.high == ~origin
    else { return nil }
    return Int64(bitPattern: bits.low)
  }

  /// Returns the values that an identity contains, in the form of their columns; a reference stays an
  /// identity. `nil` if no row of the table can have the identity, or if it is random.
  func values(of row: RowIdentity) -> [Value]? {
    guard identity != .surrogate,
      var values = IdentityEncoding.values(of: row, count: identityPositions.count)
    else { return nil }
    // An identity does not tell a real from an equal integer.
    for (index, position) in identityPositions.enumerated() {
      values[index] = values[index].converted(to: columns[position].affinity)
    }
    return values
  }

  /// Returns the logical values by which other rows refer to a row; `.null` for a column that the
  /// row's identity does not contain.
  func referredValues(of row: RowIdentity, by reference: ForeignKey) -> [Value] {
    let key = values(of: row) ?? identityPositions.map { _ in .null }
    return reference.parentColumns.map { name in
      if name.folded == localKey?.folded { return .identity(row) }
      let index = identityPositions.firstIndex {
        columns[$0].name.folded == name.folded
      }
      return index.map { key[$0] } ?? .null
    }
  }

  /// Returns the logical values by which a row of `child` refers to a row of this table, in the form
  /// of its columns. `nil` if the values in that form do not refer to the row: a column of numbers makes
  /// 7 of the text `'07'`, which refers to `'7'`.
  func referringValues(
    to row: RowIdentity, by reference: ForeignKey, in child: TableSchema
  ) -> [Value]? {
    let values = zip(referredValues(of: row, by: reference), reference.columns).map {
      $0.converted(to: child.columns[$1].affinity)
    }
    return identity(for: values, of: reference) == row ? values : nil
  }

  /// Returns the canonical form of the values of a reference to this table.
  func referenceKey(_ values: [Value], _ key: ForeignKey) -> RowIdentity {
    let referred = key.parentColumns.map { name in
      columns.first { $0.name.folded == name.folded }
    }
    return IdentityEncoding.encode(
      zip(values, referred).map { value, column in
        column.map { value.applying($0.affinity) } ?? value
      },
      collations: referred.map { $0?.keyCollation ?? .binary })
  }

  /// Returns the collation of a column; BINARY for the local key, which has none.
  func collation(of name: SQLName) -> String {
    columns.first { $0.name.folded == name.folded }?.collation ?? "BINARY"
  }

  /// Returns the affinity of a column, which may be the local key.
  func affinity(of name: SQLName) -> ColumnSchema.Affinity {
    columns.first { $0.name.folded == name.folded }?.affinity ?? .integer
  }

  /// Returns a row's local value of a column; the column may be the local key.
  func localValue(_ name: SQLName, _ shown: ShownRow, localKey key: Int64?) -> Value {
    if name.folded == localKey?.folded { return key.map { .integer($0) } ?? .null }
    return columns.firstIndex { $0.name.folded == name.folded }
      .map { shown.values[$0] } ?? .null
  }
}
