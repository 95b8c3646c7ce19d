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
    enum Kind: String, Codable {
      /// The row as a whole: other devices do not know it.
      case insertion
      /// Cells of a row that other devices know with other values.
      case update
      /// The deletion of a row whose key no change set can carry: other devices have the row.
      case deletion
    }

    var kind: Kind
    /// The table's name in change sets.
    var table: SQLName
    var identity: Data
    /// The names in change sets of the held columns of an update.
    var columns: [SQLName] = []
    /// The names of the columns with large values.
    var large: [SQLName]
    /// The client that this store was when it made the edit.
    var client: ClientIdentifier
    /// The times of the stamps.
    var times: Set<UInt64>
    /// The version that other devices know, in tables of the merge type `keepBoth`: the next update
    /// that is sent replaces it.
    var replaced: Stamp?
    /// Whether other devices know the row, or a former row of the same key.
    var isOfKnownRow: Bool
    /// The bytes of the edit, approximately.
    var byteCount: Int
    /// The bytes that a change set can carry.
    var limit: Int

    /// Whether two edits are of the same part of one row, so that the later one stands for both.
    func isOfSamePart(as other: Edit) -> Bool {
      table == other.table && identity == other.identity && kind == other.kind
        && columns == other.columns
    }
  }

  var edits: [Edit] = []
}

extension HeldEdits: StoredValue {
  func checkNumbers() throws {
    for edit in edits {
      try StoredNumbers.check("byteCount", count: edit.byteCount, from: 0)
      try StoredNumbers.check("limit", count: edit.limit, from: 0)
    }
  }
}

extension CodecLimits {
  /// The bytes of values that a change set can surely not carry if there are more.
  var greatestContent: Int { min(fileBytes, memoryBytes / 2) }

  /// The bytes of text and blobs with which one row surely fits into a change set.
  var safeContent: Int { greatestContent / 10 * 9 }
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
    let kept = before.edits.filter { !sentHeldEdits.contains($0) }
    for edit in kept + newHeldEdits where try state(of: edit) != nil {
      held.edits.removeAll { $0.isOfSamePart(as: edit) }
      held.edits.append(edit)
    }
    (newHeldEdits, sentHeldEdits) = ([], [])
    knownHeldEdits = held
    guard held != before else { return }
    if held.edits.isEmpty { return try MetaTable.remove(.heldEdits, database) }
    try MetaTable.write(.heldEdits, to: Array(JSONEncoder().encode(held)), database)
  }

  /// Returns the table and the state of the row of a held edit; `nil` if nothing is left of the edit.
  func state(of edit: HeldEdits.Edit) throws -> (access: TableAccess, state: RowState)? {
    guard let table = schema.table(wireName: edit.table) else { return nil }
    let access = try access(table.id)
    guard let state = try access.stamps.state(of: access.fingerprint(edit.row)) else { return nil }
    let hasCells = edit.positions(in: table).contains {
      edit.has(state.stamp(of: $0), self)
    }
    let hasExistence = edit.has(state.existenceStamp, self)
    return switch edit.kind {
    case .insertion where hasCells || hasExistence: (access, state)
    case .update where hasCells: (access, state)
    case .deletion where hasExistence && state.existence == .deleted: (access, state)
    case .insertion, .update, .deletion: nil
    }
  }

  /// Returns whether a row is dead and not in its table.
  func isGone(_ row: RowKey, _ state: RowState) throws -> Bool {
    guard state.existence == .deleted, !isRevived(state, schema[row.table]) else { return false }
    guard state.isKept, let kept = try keptRows.row(row) else { return true }
    switch kept.reason {
    case .tombstone, .parked: return true
    case .rescued, .overlaid, .elsewhere, .borrowed: return false
    }
  }
}

extension HeldEdits.Edit {
  /// The identity of the row.
  var row: RowIdentity { RowIdentity(bytes: Array(identity)) }

  /// Returns whether a stamp is one of the edit. Another device may have made an edit at the same time.
  func has(_ stamp: LocalStamp, _ session: StoreSession) -> Bool {
    times.contains(stamp.time) && session.clients.client(stamp.client) == client
  }

  /// Returns the positions of the held columns.
  func positions(in table: TableSchema) -> [Int] {
    guard kind == .update else { return kind == .insertion ? table.cellPositions : [] }
    return table.cellPositions.filter { columns.contains(table.columns[$0].wireName) }
  }
}

extension HeldEdits {
  /// The edits of the rows of a table that still count.
  struct OfTable {
    /// The rows that are held as a whole. Other devices do not know them, or know a former row of
    /// the same key.
    var unknown: Set<RowIdentity> = []
    /// The rows that other devices know, or of which they know a former row of the same key.
    var known: Set<RowIdentity> = []
    /// The rows whose existence has a stamp that other devices do not know.
    var existences: Set<RowIdentity> = []
    /// The cells of rows with stamps that other devices do not know.
    var cells: [RowIdentity: ColumnSet] = [:]
    /// The versions that they know, in tables of the merge type `keepBoth`.
    var replaced: [RowIdentity: Stamp] = [:]
    /// The times of these stamps.
    var times: Set<UInt64> = []

    var isEmpty: Bool { times.isEmpty }

    /// Forgets the cells of a row that are exported, until they are held again.
    mutating func forget(_ columns: [Int], of row: RowIdentity) {
      replaced[row] = nil
      for column in columns { cells[row]?.remove(column) }
    }
  }

  /// Returns the edits that still count, by table.
  func byTable(_ session: StoreSession) throws -> [Int: OfTable] {
    var found: [Int: OfTable] = [:]
    for name in Set(edits.map(\.table)) {
      guard let table = session.schema.table(wireName: name) else { continue }
      let edits = try inTable(table, session)
      if !edits.isEmpty { found[table.id] = edits }
    }
    return found
  }

  /// Returns the edits of the rows of a table that still count.
  func inTable(_ table: TableSchema, _ session: StoreSession) throws -> OfTable {
    var found = OfTable()
    for edit in edits where table.wireName == edit.table {
      guard let (_, state) = try session.state(of: edit) else { continue }
      found.times.formUnion(edit.times)
      if edit.kind == .insertion { found.unknown.insert(edit.row) }
      if edit.isOfKnownRow { found.known.insert(edit.row) }
      if edit.kind != .update, edit.has(state.existenceStamp, session) {
        found.existences.insert(edit.row)
      }
      for position in edit.positions(in: table)
      where edit.has(state.stamp(of: position), session) {
        found.cells[edit.row, default: ColumnSet()].formUnion(ColumnSet(position))
      }
      if let replaced = edit.replaced { found.replaced[edit.row] = replaced }
    }
    return found
  }
}
