import Foundation
import GRDB
import SyncModel

/// The edits that no change set can carry, since they are over the caps of the format.
///
/// Such an edit has its stamps here, as if it were sealed, and no other device knows it. Whatever
/// replaces it later has a later stamp, so that all devices agree again. An entry counts as long as
/// one of its stamps is in the state of its row.
struct HeldEdits: Codable, Equatable {
  /// The held part of the edits of one row.
  struct Edit: Codable, Equatable {
    /// The table's name in change sets.
    var table: String
    var identity: [UInt8]
    /// The names of the held columns in change sets; `nil` for the insertion of the row.
    var columns: [String]?
    /// The names of the columns with large values.
    var large: [String]
    /// The times of the stamps.
    var times: Set<UInt64>
    /// The bytes of the edit, approximately.
    var byteCount: Int
  }

  var edits: [Edit] = []

  /// The times of the stamps that no other device has seen.
  var times: Set<UInt64> { edits.reduce(into: []) { $0.formUnion($1.times) } }
}

extension HeldEdits: StoredValue {
  func checkNumbers() throws {
    for edit in edits { try StoredNumbers.check("byteCount", count: edit.byteCount, from: 0) }
  }
}

extension StoreSession {
  /// Returns the edits that earlier sealings have held back.
  func heldEdits() throws -> HeldEdits {
    if let knownHeldEdits { return knownHeldEdits }
    let held = try MetaTable.value(.heldEdits, as: HeldEdits.self, database) ?? HeldEdits()
    knownHeldEdits = held
    return held
  }

  /// Stores the edits that this sealing has held back, and forgets those that no longer count.
  func writeHeldEdits() throws {
    let before = try heldEdits()
    guard !before.edits.isEmpty || !newHeldEdits.isEmpty else { return }
    var held = HeldEdits()
    for edit in before.edits + newHeldEdits where try state(of: edit) != nil {
      held.edits.removeAll {
        $0.table == edit.table && $0.identity == edit.identity && $0.columns == edit.columns
      }
      held.edits.append(edit)
    }
    newHeldEdits = []
    knownHeldEdits = held
    guard held != before else { return }
    if held.edits.isEmpty { return try MetaTable.remove(.heldEdits, database) }
    try MetaTable.write(.heldEdits, to: Array(JSONEncoder().encode(held)), database)
  }

  /// Returns the table and the state of the row of a held edit; `nil` if nothing is left of the edit.
  func state(of edit: HeldEdits.Edit) throws -> (access: TableAccess, state: RowState)? {
    guard let table = schema.table(wireName: SQLName(edit.table)) else { return nil }
    let access = try access(table.id)
    guard
      let state = try access.stamps.state(
        of: access.fingerprint(RowIdentity(bytes: edit.identity)))
    else { return nil }
    let cells = edit.positions(in: table).contains {
      edit.times.contains(state.stamp(of: $0).time)
    }
    let isInserted = edit.columns == nil && edit.times.contains(state.existenceStamp.time)
    return cells || isInserted ? (access, state) : nil
  }
}

extension HeldEdits.Edit {
  /// Returns the positions of the held columns.
  func positions(in table: TableSchema) -> [Int] {
    guard let columns else { return table.cellPositions }
    return table.cellPositions.filter { columns.contains(table.columns[$0].wireName.text) }
  }
}

extension HeldEdits {
  /// Returns the rows of a table with held edits of some kind.
  func liveRows(
    of table: TableSchema, _ session: StoreSession, where isWanted: (Edit) -> Bool
  ) throws -> Set<RowIdentity> {
    var rows: Set<RowIdentity> = []
    for edit in edits where isWanted(edit) && table.wireName.text == edit.table {
      if try session.state(of: edit) != nil { rows.insert(RowIdentity(bytes: edit.identity)) }
    }
    return rows
  }

  /// Returns what users are told, of rows that are not deleted.
  func reports(_ session: StoreSession) throws -> [StoreStatus.HeldEdit] {
    var reports: [StoreStatus.HeldEdit] = []
    for edit in edits {
      guard let (access, state) = try session.state(of: edit), state.existence != .deleted else {
        continue
      }
      let identity = RowIdentity(bytes: edit.identity)
      let key = try access.key(of: identity)?.map(Self.text).joined(separator: ", ")
      reports.append(
        Self.report(edit, access.table, row: key ?? identity.hexadecimal))
    }
    return reports.sorted { ($0.table.text, $0.row) < ($1.table.text, $1.row) }
  }

  private static func report(
    _ edit: Edit, _ table: TableSchema, row: String
  ) -> StoreStatus.HeldEdit {
    let columns = table.columns.filter { edit.large.contains($0.wireName.text) }.map(\.name)
    let isInsertion = edit.columns == nil
    let what = isInsertion ? "The row" : columns.map(quoted).joined(separator: ", ") + " of the row"
    let large =
      isInsertion && !columns.isEmpty
      ? ", most of it in \(columns.map(quoted).joined(separator: ", "))" : ""
    return StoreStatus.HeldEdit(
      table: table.name, row: row, columns: columns, isInsertion: isInsertion,
      byteCount: edit.byteCount,
      message: "\(what) \(row) in \(quoted(table.name)) is too large to be sent "
        + "(\(edit.byteCount) bytes\(large)) and stays on this device.",
      remedy:
        "Make it smaller than \(CodecLimits.default.memoryBytes >> 21) MB, keep the value in a "
        + "file of its own, or delete the row. Until then this device uploads no whole store.")
  }

  private static func text(_ value: Value) -> String {
    switch value {
    case .null: "NULL"
    case .integer(let number): "\(number)"
    case .real(let number): "\(number)"
    case .text(let bytes): "“\(String(decoding: bytes.prefix(80), as: UTF8.self))”"
    case .blob(let bytes): "x'\(RowIdentity(bytes: Array(bytes.prefix(40))).hexadecimal)'"
    case .identity(let row): row.hexadecimal
    }
  }

  // MARK: - As changes

  /// Returns the held edits as change sets, with the stamps that they have, to be merged after the
  /// store's content was exchanged. They are not encoded, so that no cap applies.
  func changeSets(_ session: StoreSession, _ binding: StoreBinding) throws -> [SyncChangeSet] {
    try edits.compactMap { edit in
      guard let (access, state) = try session.state(of: edit), state.existence != .deleted,
        let changes = try changes(of: edit, access, state, session)
      else { return nil }
      return SyncChangeSet(
        header: SyncChangeSet.Header(
          root: binding.root, document: binding.document, generation: binding.generation,
          client: binding.client, number: 1, previous: nil),
        dependencies: VersionVector(), schema: session.schema.fingerprint, tables: [changes])
    }
  }

  private func changes(
    of edit: Edit, _ access: TableAccess, _ state: RowState, _ session: StoreSession
  ) throws -> TableChanges? {
    let table = access.table
    let row = RowKey(table: table.id, identity: RowIdentity(bytes: edit.identity))
    let kept = try session.keptRows.row(row)?.cells ?? []
    let shown = try access.key(of: row.identity).flatMap(access.row)
    var changes = TableChanges(
      table: table.wireName, identity: table.identity.kind, keyColumns: table.wireKeyColumns,
      columns: table.cellPositions.map { table.columns[$0].wireName })
    var shape: [Int] = []
    let isInsertion = edit.columns == nil
    let positions = edit.positions(in: table)
    for (index, position) in table.cellPositions.enumerated() where positions.contains(position) {
      let stamp = state.stamp(of: position)
      guard isInsertion || edit.times.contains(stamp.time) else { continue }
      let beneath = kept.first { $0.column == position }?.value
      let present = try shown.map {
        try session.exported($0.values[position], table.columns[position])
      }
      guard let value = beneath ?? present else { continue }
      changes.cells[index].append(value)
      changes.exceptions.append(
        StampException(row: 0, column: index, stamp: session.clients.stamp(stamp)))
      shape.append(index)
    }
    guard isInsertion || !shape.isEmpty else { return nil }
    if table.identity == .surrogate {
      changes.keys[0].append(.blob(row.identity.bytes))
      changes.keys[1].append(shown?.localKey.map(Value.integer) ?? .null)
    } else {
      let key = try IdentityEncoding.decode(
        row.identity, count: table.identityPositions.count)
      for (index, value) in key.enumerated() { changes.keys[index].append(value) }
    }
    changes.actions = [(isInsertion ? RowAction.insert : .update).rawValue]
    changes.times = [HybridTime(rawValue: state.existenceStamp.time)]
    changes.shapes = [shape]
    changes.rowShapes = [0]
    return changes
  }
}
