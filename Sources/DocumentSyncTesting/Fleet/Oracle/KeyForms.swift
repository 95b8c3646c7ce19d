import SyncModel

/// Migrations can give a key another affinity, so that one row is 7 on one device and '7' on
/// another. The oracle takes the numbers in such columns for texts wherever they come from, so it
/// need not know which device has made which migration.
extension FleetColumn {
  /// Returns a value as the oracle compares it.
  func formless(_ value: Value) -> Value {
    guard changesForm, case .integer(let integer) = value else { return value }
    return .text(Array("\(integer)".utf8))
  }
}

extension FleetTable {
  var changesForm: Bool { columns.contains(where: \.changesForm) }

  /// Returns the values of a key as the oracle compares them.
  func formless(key values: [Value]) -> [Value] {
    zip(key, values).map { columns[$0].formless($1) }
  }

  /// Returns an identity as the oracle compares it.
  func formless(_ identity: RowIdentity) -> RowIdentity {
    guard changesForm, !hasSurrogateKey,
      let values = IdentityEncoding.values(of: identity, count: key.count)
    else { return identity }
    return IdentityEncoding.encode(formless(key: values), collations: keyCollations)
  }
}

extension SyncChangeSet {
  /// Returns the change set as the oracle compares it.
  ///
  /// - Parameter schema: A schema with all columns of keys.
  func formless(_ schema: FleetSchema) -> SyncChangeSet {
    var set = self
    for (index, changes) in tables.enumerated() {
      guard let table = schema.table(changes.table), table.changesForm else { continue }
      if changes.identity != .surrogate {
        for (position, column) in table.key.enumerated() where table.columns[column].changesForm {
          set.tables[index].keys[position] = changes.keys[position].formless(table.columns[column])
        }
        for position in changes.moves.indices {
          set.tables[index].moves[position].destination = table.formless(
            changes.moves[position].destination)
        }
      }
      for (position, name) in changes.columns.enumerated() {
        guard let column = table.position(of: name), table.columns[column].changesForm else {
          continue
        }
        set.tables[index].cells[position] = changes.cells[position].formless(table.columns[column])
      }
    }
    return set
  }
}

extension ValueColumn {
  fileprivate func formless(_ column: FleetColumn) -> ValueColumn {
    var values = ValueColumn()
    for index in 0..<count { values.append(column.formless(self[index])) }
    return values
  }
}
