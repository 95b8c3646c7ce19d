import SyncModel
import SyncStore

/// Edits that no change set can carry: the device has them, and no other one does.
extension FleetDevice {
  /// The state that this device shows: what all have, and what it keeps back.
  var stateWithHeld: LogicalState {
    var merged = state
    for set in held { merged.merge(set) }
    return merged
  }

  /// Records what the device keeps back after a synchronization. Checks that it keeps back nothing
  /// that fits, and that what it no longer keeps back is sent, edited or in the journal. A row that is
  /// one register is kept back with all its values; those that a change set gave the row as well are
  /// not lost with it.
  ///
  /// - Parameter published: Returns all change sets.
  func noteHeld(_ published: () -> [SyncChangeSet]) throws {
    guard let limit else { return }
    let former = held
    held = try heldChangeSets()
    everHeld.formUnion(values(of: held).map(\.row))
    for set in held {
      for changes in set.tables where !changes.isLarge(limit) {
        throw FleetFailure(
          .lost,
          "device \(number) keeps back an edit of \(changes.oracleKey(0, collations: [])) that fits "
            + "into a change set")
      }
    }
    let gone = values(of: former).subtracting(values(of: held)).filter(isGone)
    guard !gone.isEmpty else { return }
    var missing = gone.subtracting(try journaled())
    if !missing.isEmpty { missing.subtract(values(of: published())) }
    if !missing.isEmpty {
      // The row of another device may have the same value without having been given it. No program
      // has written the default of an added column.
      let shown = try VisibleRows(program, schema: version).read()
      missing = missing.filter {
        shown[$0.row]?[$0.column] != $0.value
          && defaults[$0.row.table]?[$0.column] != $0.value
      }
    }
    guard missing.isEmpty else {
      throw FleetFailure(
        .lost,
        "device \(number) no longer keeps back:\n  "
          + missing.map(\.description).sorted().joined(separator: "\n  "))
    }
  }

  /// Returns the edits that the device keeps back, as the oracle compares them.
  func heldChangeSets() throws -> [SyncChangeSet] {
    try store.heldChangeSets().map { $0.formless(version.shared) }
  }

  /// Returns whether a value that was kept back is neither shown nor sent although no program has
  /// edited it.
  private func isGone(_ value: LostValues.Loss) -> Bool {
    edited[value.row]?[value.column] == value.value
      && state.rows[value.row]?.cells[value.column]?.value != value.value
      && !overwritten.contains(value.row.table) && !leave.unseen.contains(value.row.table)
  }

  private func values(of sets: [SyncChangeSet]) -> Set<LostValues.Loss> {
    var values: Set<LostValues.Loss> = []
    for changes in sets.flatMap(\.tables) {
      guard let table = version.shared.table(changes.table) else { continue }
      var cursors = [Int](repeating: 0, count: changes.columns.count)
      for row in 0..<changes.count {
        let key = changes.oracleKey(row, collations: table.keyCollations)
        for index in changes.shapes[Int(changes.rowShapes[row])] {
          let value = changes.cells[index][cursors[index]]
          cursors[index] += 1
          let column = table.columns.first { $0.name == changes.columns[index] }
          guard let column, !column.isCounter else { continue }
          values.insert(LostValues.Loss(row: key, column: column.name, value: value))
        }
      }
    }
    return values
  }

  /// Returns the values in the conflict journal, those in the file beside the store included.
  func journaled() throws -> Set<LostValues.Loss> {
    var journaled: Set<LostValues.Loss> = []
    for conflict in try allConflicts() {
      let table = version.sharedName(of: conflict.table)
      let known = version.shared.table(table)
      let row = OracleKey(
        table: table, identity: known?.formless(conflict.identity) ?? conflict.identity)
      for cell in (conflict.local.cells ?? []) + (conflict.remote.cells ?? []) {
        let column = version.sharedName(of: cell.column, in: conflict.table)
        let value = known?.columns.first { $0.name == column }?.formless(cell.value) ?? cell.value
        journaled.insert(LostValues.Loss(row: row, column: column, value: value))
      }
    }
    return journaled
  }

  /// Returns the entries in the store and in the file beside it.
  private func allConflicts() throws -> [Conflict] {
    let places = try store.conflictPlaces()
    guard places.dropped.count == 0, places.unreadable == 0, places.problem == nil else {
      throw FleetFailure(
        .lost,
        "the journal of device \(number) has lost \(places.dropped.count) entries, and "
          + "\(places.unreadable) cannot be read: \(places.problem ?? "no problem")")
    }
    var found: [Conflict] = []
    var next: Int64?
    repeat {
      let page = try store.conflicts(before: next, limit: 20)
      found += page.conflicts
      next = page.next
    } while next != nil
    guard Set(found.map(\.number)).count == found.count,
      found.count == places.inTable + places.inArchive
    else {
      throw FleetFailure(
        .bookkeeping,
        "the journal of device \(number) has the entries "
          + found.map {
            "\($0.number)\($0.isArchived ? " in the file" : "") (\($0.kind), \($0.status))"
          }.joined(separator: ", ") + ": \(places)")
    }
    return found
  }

  /// Makes large values small and deletes rows with large keys, as far as the schema allows it.
  func shrink() throws {
    let threshold = RandomEdit.Large.threshold
    for table in version.local.synchronized.reversed() {
      for column in table.settable {
        let name = table.columns[column].name.sql
        let isLarge = "length(\(name)) > \(threshold)"
        guard ![.integer, .real].contains(table.columns[column].type),
          try !program.rows("SELECT 1 FROM \(table.name.sql) WHERE \(isLarge) LIMIT 1").isEmpty
        else { continue }
        var statements = ["DELETE FROM \(table.name.sql) WHERE \(isLarge)"]
        if !table.key.contains(column) {
          let values = RandomEdit.literals(table.columns[column].type) + ["NULL"]
          statements.insert(
            contentsOf: values.map {
              "UPDATE OR IGNORE \(table.name.sql) SET \(name) = \($0) WHERE \(isLarge)"
            },
            at: 0)
        }
        for statement in statements {
          _ = try edit(
            FleetEdit(
              statements: [statement], hasForeignKeys: true, time: clock.time + 1_000,
              salt: UInt64(bitPattern: clock.time)))
        }
      }
    }
  }
}

extension TableChanges {
  /// Returns whether the one row that these changes have may be too large for a change set.
  func isLarge(_ limit: Int) -> Bool {
    let content = (keys + cells).reduce(0) { $0 + $1.bytes.count }
    return content + moves.reduce(0) { $0 + $1.destination.bytes.count } > limit / 2
  }
}

extension LostValues.Loss {
  /// Returns whether the value may be too large for a change set.
  func isLarge(_ limit: Int) -> Bool {
    switch value {
    case .text(let bytes), .blob(let bytes): bytes.count > limit / 2
    case .null, .integer, .real, .identity: false
    }
  }
}

extension RowIdentity {
  /// Whether a row has a key with a large value.
  var isLarge: Bool { bytes.count > RandomEdit.Large.threshold }
}
