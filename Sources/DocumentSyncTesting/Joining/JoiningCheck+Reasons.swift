import SyncModel

/// The reasons for which rows of a database become rows of the document, or are refused.
extension JoiningCheck {
  /// Throws if a row has become another one without the same key and without the same unique values.
  func checkReason(for name: Name) throws {
    guard let table = schema.table(name.table), let matched = match(of: name),
      before.document.rows[matched] != nil, table.uniques.allSatisfy(table.isPlain)
    else { return }
    guard !isSame((before.former, name), (before.document, matched), table) else { return }
    throw Self.fault("\(name) has become \(matched) without a reason")
  }

  /// Returns the row of the document with which a row of the database was compared and from which it
  /// differed; `nil` for none.
  private func match(of name: Name) -> Name? {
    matches[name] ?? replacing.first { $0.value == name }?.key
  }

  /// Throws if the document has refused a row that does not refer to a row that is not there, or that
  /// was refused as well, and of which no other row has the key or the unique values.
  func checkRefusal(of name: Name) throws {
    guard let table = schema.table(name.table), let row = before.former.rows[name] else { return }
    for (index, reference) in schema.references(of: table).enumerated() {
      if let parent = before.former.parent(of: name, index) {
        if refused.contains(parent) || !valueless(parent, reference).isEmpty { return }
      } else if reference.isEnforced || reference.columns.contains(where: table.key.contains),
        reference.columns.allSatisfy({ row.values[$0] != .null })
      {
        return
      }
      // The rows to which a column refers may have different keys in the document.
      if schema.references(of: table).enumerated().contains(where: { other, second in
        other != index && !Set(second.columns).isDisjoint(with: reference.columns)
      }) {
        return
      }
    }
    guard table.uniques.allSatisfy(table.isPlain) else { return }
    let isTaken =
      before.document.rows.keys.contains {
        $0.table == name.table && isSame((before.former, name), (before.document, $0), table)
      }
      || before.former.rows.keys.contains {
        $0.table == name.table && $0 != name
          && isSame((before.former, name), (before.former, $0), table)
      }
    if !isTaken { throw Self.fault("\(name) was refused without a reason") }
  }

  /// Returns whether two rows have the same key or the same unique values, when references are
  /// followed to the rows of the store.
  private func isSame(
    _ one: (rows: TokenRows, name: Name), _ other: (rows: TokenRows, name: Name),
    _ table: FleetTable
  ) -> Bool {
    var groups = table.uniques.map { unique in
      unique.terms.compactMap { term -> (column: Int, collation: KeyCollation)? in
        if case .column(let column, let collation) = term { (column, collation) } else { nil }
      }
    }
    if !table.hasSurrogateKey {
      groups.append(table.key.map { ($0, table.columns[$0].collation) })
    }
    return groups.contains { group in
      group.allSatisfy { isSame($0.column, $0.collation, one, other, table) }
    }
  }

  private func isSame(
    _ column: Int, _ collation: KeyCollation, _ one: (rows: TokenRows, name: Name),
    _ other: (rows: TokenRows, name: Name), _ table: FleetTable
  ) -> Bool {
    let leading = schema.references(of: table).enumerated().filter {
      $0.element.columns.contains(column) && one.rows.parent(of: one.name, $0.offset) != nil
    }
    guard leading.isEmpty else {
      return leading.contains { index, _ in
        guard let parent = one.rows.parent(of: one.name, index),
          let second = other.rows.parent(of: other.name, index)
        else { return false }
        return place(of: parent) == place(of: second)
      }
    }
    guard let value = one.rows.rows[one.name]?.values[column],
      let second = other.rows.rows[other.name]?.values[column], value != .null
    else { return false }
    return IdentityEncoding.encode([value], collations: [collation])
      == IdentityEncoding.encode([second], collations: [collation])
  }

  // MARK: - The journal, and the rows of the document

  /// Throws if a row has become a row of the document with another value, and the journal does not
  /// say so.
  func checkEntries(of name: Name) throws {
    guard let table = schema.table(name.table), let matched = match(of: name),
      !contested.contains(name), before.document.rows[matched] != nil
    else { return }
    let entered = entered[name] ?? []
    for column in table.shared where table.hasSurrogateKey || !table.key.contains(column) {
      guard !entered.contains(table.columns[column].name),
        differs(column, (before.former, name), (before.document, matched), table)
      else { continue }
      throw Self.fault(
        "\(name) has become \(matched), and no entry has its \(table.columns[column].name)")
    }
  }

  /// Throws if a row of the document that has kept its token has another value or reference.
  func checkDocument(_ name: Name) throws {
    guard let table = schema.table(name.table) else { return }
    for column in table.shared
    where differs(column, (before.document, name), (after, name), table) {
      throw Self.fault("\(name) of the document has another \(table.columns[column].name)")
    }
  }

  /// Returns whether a column has different values, or leads to different rows, in two rows.
  private func differs(
    _ column: Int, _ one: (rows: TokenRows, name: Name), _ other: (rows: TokenRows, name: Name),
    _ table: FleetTable
  ) -> Bool {
    let references = schema.references(of: table).enumerated().filter {
      $0.element.columns.contains(column)
    }
    // What may be a reference to a row that was deleted is shown again with that row.
    if references.contains(where: { index, reference in
      !reference.isEnforced && table.columns[column].type != .integer
        && (one.rows.parent(of: one.name, index) == nil
          || other.rows.parent(of: other.name, index) == nil)
    }) {
      return false
    }
    let isUnchanged =
      one.rows.rows[one.name]?.values[column] == other.rows.rows[other.name]?.values[column]
    // A number may be a plain value, although a row has it. A value that is the same everywhere can lead
    // to a row together with other columns.
    if isUnchanged,
      references.contains(where: { !$0.element.isEnforced })
        || schema.keyTable(of: column, in: table) == nil
    {
      return false
    }
    let leading = references.compactMap { index, _ -> (Name, Name?)? in
      one.rows.parent(of: one.name, index).map { ($0, other.rows.parent(of: other.name, index)) }
    }
    guard leading.isEmpty else {
      return leading.allSatisfy { first, second in place(of: first) != second.flatMap(place) }
    }
    return !isUnchanged
  }
}
