import SyncModel
import SyncStore

/// The check of I1: every edit of a program that SQLite accepted is in the change sets that the
/// store seals next.
///
/// It compares the tables before sealing with the rows shown after the last synchronization, and
/// looks for every difference in the change sets. For counters these contain the additions.
struct EditCheck {
  private let schema: FleetSchema
  private let before: [OracleKey: [SQLName: Value]]
  private let tables: [SQLName: [[Value]]]
  private let keys: [SQLName: [Int64: RowIdentity]]
  private let reader: VisibleRows
  /// The new row of each row whose key was changed.
  private let moves: [OracleKey: OracleKey]
  /// The merged state before sealing.
  private let state: LogicalState
  /// The columns that were added on this device since then, with their defaults. Their stored
  /// values arrive with the next synchronization or when the store is opened.
  private let arrived: [SQLName: [SQLName: Value]]
  /// The edits that need not be sealed.
  private let leave: Leave
  /// The rows before sealing, with the identities that sealing gave them.
  private var now: [OracleKey: [SQLName: Value]] = [:]
  /// The rows after sealing, and after the changes of other devices that were applied with it.
  private var shown: [OracleKey: [SQLName: Value]] = [:]
  /// The rows that sealing has removed from their tables.
  private var hidden: Set<OracleKey> = []
  /// The rows whose key a program set to NULL and the store has restored.
  private var restored: Set<OracleKey> = []
  /// The values in the conflict journal, in a history with edits that are too large. Such an edit may
  /// have lost at once against those of other devices; `nil` in other histories.
  var journaled: Set<LostValues.Loss>?
  /// Whether changes of other devices may have been applied after sealing.
  var hasApplied = false
  /// The number of the first change sets that were sealed earlier, when the store noticed that its
  /// schema had changed.
  var noticed = 0

  /// The edits that need not be sealed, by the rules.
  struct Leave {
    /// Whether a program had foreign keys off since the last synchronization.
    var wasEditedFreely = false
    /// Whether a program has done something else than to update rows and to recreate tables.
    var hasMoreThanUpdates = false
    /// The tables that a program has recreated since then, if there may be no state to compare them
    /// with that precedes the changes of other devices.
    var remade: Set<SQLName> = []
    /// All tables that a program has recreated since then. No trigger captured the edits of them that
    /// followed.
    var unseen: Set<SQLName> = []
    /// The actions of other devices on rows, from change sets that were not applied then.
    var saidByOthers: [OracleKey: Set<RowAction>] = [:]
    /// Whether the device has policies. These may insert a row again that another device has deleted.
    var hasPolicies = false
  }

  /// - Parameters:
  ///   - shown: The rows shown after the last synchronization.
  ///   - keys: The integer keys that rows with declared columns had then, or have got and lost
  ///     since.
  ///   - moves: The new row of each row whose key was changed.
  ///   - state: The merged state before sealing.
  ///   - arrived: The columns that were added on this device since then, by table, with their
  ///     defaults.
  init(
    _ database: FleetSQLite, schema: FleetVersion, shown: [OracleKey: [SQLName: Value]],
    keys: [SQLName: [Int64: RowIdentity]], moves: [OracleKey: OracleKey], state: LogicalState,
    arrived: [SQLName: [SQLName: Value]] = [:], leave: Leave = Leave()
  ) throws {
    self.arrived = arrived
    self.leave = leave
    self.keys = keys
    self.moves = moves
    self.state = state
    self.schema = schema.shared
    before = shown
    reader = try VisibleRows(database, schema: schema)
    tables = try reader.localRows()
  }

  /// The rows before sealing, with the identities that they had then.
  var rows: [OracleKey: [SQLName: Value]] { reader.logical(tables) }

  /// Returns a line for each edit that is missing from `sealed`.
  ///
  /// - Parameter after: The rows after sealing. Keys may belong to other rows by now, because
  ///   changes of other devices were applied, or a row that was hidden until an edit is shown
  ///   instead of another.
  mutating func missing(
    from sealed: [SyncChangeSet], _ after: VisibleRows
  ) throws -> [String] {
    var said = SaidChanges(schema: schema)
    var own = state
    said.add(sealed, noticed: noticed)
    for set in sealed {
      own.merge(set)
      said.addCounters(of: set, in: own)
    }
    said.addNumbers(from: tables) { table, number in
      before[OracleKey(table: table, identity: reader.identity(of: number, in: table))] != nil
    }
    // Sealing gives new rows their identities, and may remove rows with identities from their
    // table.
    var missing = try missing(said, own, after, .after)
    for meaning in [Meaning.before, .beforeCopies] where !missing.isEmpty {
      missing = try self.missing(said, own, after, meaning)
    }
    return missing
  }

  /// The ways to find the rows to which the keys in the tables before sealing belong.
  private enum Meaning {
    /// The rows that have the keys after sealing.
    case after
    /// The rows that had the keys before the changes of other devices were applied, and the rows
    /// that the change sets name.
    case before
    /// As `before`, but a change set names the key of a row that merging has made since: a version
    /// that became a row in a table that keeps both, or a row that a policy has brought back under
    /// another key.
    case beforeCopies
  }

  private mutating func missing(
    _ said: SaidChanges, _ own: LogicalState, _ after: VisibleRows, _ meaning: Meaning
  ) throws -> [String] {
    var reader = meaning == .after ? after : self.reader
    // A row that existed before syncing had its key until changes of other devices were applied.
    if meaning != .after { reader.addOriginals(among: before.keys) }
    reader.addMissing(from: meaning == .after ? self.reader : after)
    for (table, named) in said.identities {
      if meaning != .beforeCopies {
        reader.add(named, of: table)
      } else if schema.table(table)?.mergeType != .keepBoth {
        reader.addMissing(named, of: table)
      }
    }
    // A value that was the key of a row deleted by the same edits refers to that row.
    reader.addOriginals(among: before.keys)
    reader.formerKeys = keys
    // Other devices may have edited plain values in the meantime.
    if meaning != .after { reader.addPlain(among: before) }
    now = reader.logical(tables)
    let rows = try after.localRows()
    shown = rows == tables ? now : reader.logical(rows)
    hidden = Set(now.keys).subtracting(shown.keys)
    restored = Set(
      shown.keys.filter { now[$0] == nil && schema.table($0.table)?.canLoseKeys == true })
    let changed = Set(before.keys).union(now.keys).filter { before[$0] != now[$0] }
    return changed.sorted().flatMap { key in
      missing(key, before[key], now[key], said, own) + missingRebirths(key, state, said)
    } + missingMoves(moves, said) + falseMoves(said) + falseInsertions(said)
  }

  /// Returns a line for each row that is inserted according to the change sets, although it was there
  /// before and programs have only updated rows. An insertion sets counters, and brings back a row
  /// that another device has deleted.
  private func falseInsertions(_ said: SaidChanges) -> [String] {
    guard !leave.hasMoreThanUpdates, schema.triggers.isEmpty, !(leave.hasPolicies && hasApplied)
    else { return [] }
    return said.actions.filter { $0.value.contains(.insert) }.keys.sorted().compactMap { key in
      guard let table = schema.table(key.table), table.hasSurrogateKey,
        table.mergeType != .keepBoth, !leave.remade.contains(key.table),
        before[key] != nil, now[key] != nil, state.rows[key]?.existence != .deleted
      else { return nil }
      return "that \(key) is not inserted"
    }
  }

  /// Returns a line for each row that has moved, according to the change sets, to a row that
  /// neither exists nor is inserted in them. An insertion suffices, since a row that was sealed
  /// before a migration may have been deleted after it. It may be another device's, whose move is
  /// repeated, since an edit of the former row that was too large came before it.
  private func falseMoves(_ said: SaidChanges) -> [String] {
    said.moves.sorted { $0.key < $1.key }.compactMap { old, destinations in
      let isTrue = destinations.contains { destination in
        let new = OracleKey(table: old.table, identity: destination)
        return now[new] != nil || saysInsertion(of: new, said) || saysUnderGoneKey(new, said)
          || leave.saidByOthers[new, default: []].contains(.insert)
      }
      return isTrue ? nil : "that \(old) has not moved to \(destinations.map(\.shortDescription))"
    }
  }

  /// Returns a line for each row whose key has changed without a move in the change sets.
  private func missingMoves(_ moves: [OracleKey: OracleKey], _ said: SaidChanges) -> [String] {
    moves.sorted { $0.key < $1.key }.compactMap { old, new in
      guard before[old] != nil, now[old] == nil, now[new] != nil,
        !said.moves[old, default: []].contains(new.identity), !isTooLargeAMove(from: old, to: new)
      else { return nil }
      return "that \(old) lives on as \(new)"
    }
  }

  /// Returns a line for each deletion that sealing has undone. If foreign keys were on, no row that
  /// refers to a deleted row may be left.
  func undone(in shown: [OracleKey: [SQLName: Value]]) -> [String] {
    before.keys.filter {
      now[$0] == nil && shown[$0] != nil && !restored.contains($0) && !isHeldByPlainKey($0)
        && !isHeldByALargeMove($0)
    }.sorted().map {
      "the deletion of \($0)"
    }
  }

  /// Returns whether a row that can never be shown, since its key contains a number that referred
  /// to no row, refers to `row`. `Documentation/Merging.md` names this limit for such numbers on
  /// another device.
  private func isHeldByPlainKey(_ row: OracleKey) -> Bool {
    state.rows.contains { key, held in
      guard held.isLiving, let table = schema.table(key.table), !table.hasSurrogateKey,
        let values = IdentityEncoding.values(of: key.identity, count: table.key.count)
      else { return false }
      let isPlain = zip(table.key, values).contains { column, value in
        value.referredNumber != nil && schema.keyTable(of: column, in: table) != nil
      }
      guard isPlain else { return false }
      if (values + held.cells.values.map(\.value)).contains(.identity(row.identity)) { return true }
      // A value refers to a row by its key if the key is a reference or a text.
      guard let name = schema.table(row.table)?.nameByReference(of: row.identity) else {
        return false
      }
      return table.references.filter { $0.parent == row.table }.flatMap(\.columns).contains {
        if let index = table.key.firstIndex(of: $0) { return values[index] == name }
        return held.cells[table.columns[$0].name]?.value == name
      }
    }
  }

  /// Returns a line for each deleted but shown row that must exist again, because an edit refers to
  /// it, without an insertion in the change sets.
  private func missingRebirths(
    _ key: OracleKey, _ state: LogicalState, _ said: SaidChanges
  ) -> [String] {
    guard let table = schema.table(key.table), let row = now[key] else { return [] }
    return table.references.compactMap { reference in
      let name = table.columns[reference.columns[0]].name
      guard let parent = schema.table(reference.parent), let parentKey = parent.integerKey,
        reference.columns.count == 1, reference.parentColumns == [parentKey],
        case .identity(let identity) = row[name], before[key]?[name] != .identity(identity),
        before[key] != nil || !hasReferred(key.table, name, to: identity)
      else { return nil }
      let target = OracleKey(table: parent.name, identity: identity)
      guard state.rows[target]?.isLiving == false, now[target] != nil,
        before[target] != nil, !said.says(.insert, of: target)
      else { return nil }
      return "that \(target) lives again, to which \(key) refers"
    }
  }

  /// Returns whether a row that no longer exists referred to `parent`. An edit of a part of its
  /// identity may have given it another identity, under which it still refers to the same row.
  private func hasReferred(_ table: SQLName, _ column: SQLName, to parent: RowIdentity) -> Bool {
    before.contains { key, row in
      key.table == table && now[key] == nil && row[column] == .identity(parent)
    }
  }

  /// Returns whether a row may have got a key that is too large for a change set, together with its
  /// former one.
  private func isTooLargeAMove(from old: OracleKey, to new: OracleKey) -> Bool {
    old.identity.isLarge || new.identity.isLarge
  }

  /// Returns whether a row has got a key that is too large for a change set: hidden rows that contain
  /// its former key stay, and bring it back.
  private func isHeldByALargeMove(_ row: OracleKey) -> Bool {
    moves[row].map { isTooLargeAMove(from: row, to: $0) } ?? false
  }

  /// Returns whether a value of an edit that was too large has lost against another device's edit at
  /// once. It is in the journal then, or it is the value that the other device has given.
  private func hasLost(_ column: SQLName, _ value: Value, of key: OracleKey) -> Bool {
    guard let journaled else { return false }
    return journaled.contains(LostValues.Loss(row: key, column: column, value: value))
      || hasApplied && leave.saidByOthers[key] != nil && shown[key]?[column] == value
  }

  /// Returns whether an edit of a row was too large, and lost against another device's edit at once.
  private func hasLostAtOnce(_ key: OracleKey, _ now: [SQLName: Value]) -> Bool {
    guard let journaled, leave.saidByOthers[key] != nil else { return false }
    return now.contains { journaled.contains(LostValues.Loss(row: key, column: $0, value: $1)) }
  }

  private func missing(
    _ key: OracleKey, _ before: [SQLName: Value]?, _ now: [SQLName: Value]?, _ said: SaidChanges,
    _ own: LogicalState
  ) -> [String] {
    guard let table = schema.table(key.table) else { return [] }
    let saidByOthers = leave.saidByOthers[key, default: []]
    let isSaidByOthers = !saidByOthers.isEmpty
    // The document may have no state for comparison that precedes the changes of other devices.
    // Then their changes count; for a row whose deletion no trigger captured, only insertions and
    // deletions do.
    if leave.remade.contains(key.table), isSaidByOthers, now != nil || saidByOthers != [.update] {
      return []
    }
    guard let now else {
      return said.actions[key, default: []].contains(where: \.isDeletion)
        // The row has lost its key. The store would have restored the key if other devices had not
        // deleted the row.
        || restored.contains(key) || table.canLoseKeys && isSaidByOthers
        // No other device knows the row.
        || key.identity.isLarge && state.rows[key] == nil
        ? [] : ["the deletion of \(key)"]
    }
    // The key of the row has become a plain value: the change sets delete the row, and insert it
    // under that value, with its edits.
    if before != nil, said.actions[key, default: []].contains(where: \.isDeletion) {
      let missing = rowsUnderGoneKey(key, said).map {
        missingValues(key, before, now, said, own, under: $0)
      }
      if let least = missing.min(by: { $0.count < $1.count }) { return least }
    }
    if before == nil, !saysInsertion(of: key, said) {
      return saysUnderGoneKey(key, said) || hasLostAtOnce(key, now)
        ? [] : ["the insertion of \(key)"]
    }
    return missingValues(key, before, now, said, own, under: key)
  }

  /// Returns a line for each changed value of a row that is not in the change sets.
  ///
  /// - Parameter place: The key under which the change sets have the row.
  private func missingValues(
    _ key: OracleKey, _ before: [SQLName: Value]?, _ now: [SQLName: Value], _ said: SaidChanges,
    _ own: LogicalState, under place: OracleKey
  ) -> [String] {
    guard let table = schema.table(key.table) else { return [] }
    return now.sorted { $0.key < $1.key }.compactMap { name, value in
      guard before?[name] != value, let position = table.position(of: name),
        !table.isPureIdentity(position, in: schema), isFollowable(value, position, table),
        !isPlainStill(before?[name], value, position, table),
        !hasArrived(name, value, of: key, isNew: before == nil),
        !hasLost(name, value, of: key),
        !(said.cells[place]?[name] ?? []).contains(where: {
          isGone($0, position, table) || mayHaveHad(value, $0, position, table)
        })
      else { return nil }
      let isSaid =
        table.columns[position].isCounter
        ? own.rows[place]?.cells[name]?.shown.isSameNumber(as: value) == true
          || said.counters[place]?[name]?.contains { $0.isSameNumber(as: value) } == true
        : said.cells[place]?[name]?.contains(value) ?? false
      return isSaid ? nil : "\(key): \(name) = \(value.sqlDescription)"
    }
  }

  /// Returns whether a value of an added column was stored before, or is the default in a newly
  /// inserted row, which may have been sealed when the column did not exist.
  private func hasArrived(
    _ column: SQLName, _ value: Value, of key: OracleKey, isNew: Bool
  ) -> Bool {
    guard let defaultValue = arrived[key.table]?[column] else { return false }
    return state.rows[key]?.cells[column]?.shown == value || isNew && value == defaultValue
  }

  /// Returns whether the change sets insert a row. In a table that keeps both versions, an insertion
  /// of a row that exists updates it: the row may not be shown, or may have been deleted by the same
  /// edits.
  private func saysInsertion(of key: OracleKey, _ said: SaidChanges) -> Bool {
    said.says(.insert, of: key)
      || schema.table(key.table)?.mergeType == .keepBoth && state.rows[key]?.isLiving == true
        && said.says(.update, of: key)
  }

  /// Returns whether the change sets insert the row under another key. Where this key has a number
  /// that refers to no row, the other key has the row that had this number until the same edits
  /// deleted it. A row that has arrived since may have the number by now.
  private func saysUnderGoneKey(_ key: OracleKey, _ said: SaidChanges) -> Bool {
    !rowsUnderGoneKey(key, said).isEmpty
  }

  /// Returns the inserted rows that may be this row under another key.
  private func rowsUnderGoneKey(_ key: OracleKey, _ said: SaidChanges) -> [OracleKey] {
    guard let table = schema.table(key.table), !table.hasSurrogateKey,
      let wanted = IdentityEncoding.values(of: key.identity, count: table.key.count)
    else { return [] }
    return said.actions.keys.filter { other in
      guard other.table == key.table, said.says(.insert, of: other),
        let found = IdentityEncoding.values(of: other.identity, count: table.key.count)
      else { return false }
      return zip(table.key, zip(found, wanted)).allSatisfy { column, values in
        guard values.0 != values.1 else { return true }
        return mayHaveHad(values.1, values.0, column, table)
          || hasGoneUnseen(values.1, leaving: values.0, column, table)
          || said.insertedEarlier.contains(other)
            && hasGotNumber(values.0, values.1, column, table, said)
          || isGone(values.0, column, table)
            && (values.1.referredNumber != nil || hasCome(values.1, column, table, said))
      }
    }
  }

  /// Returns whether a value refers to a row that another device has inserted and that did not
  /// exist here before.
  private func hasCome(
    _ value: Value, _ column: Int, _ table: FleetTable, _ said: SaidChanges
  ) -> Bool {
    guard case .identity(let identity) = value,
      let parent = schema.keyTable(of: column, in: table)
    else { return false }
    let row = OracleKey(table: parent, identity: identity)
    return before[row] == nil && !said.says(.insert, of: row)
  }

  /// Returns whether a value in a change set refers to a row that does not exist. This is valid if
  /// the same edits deleted the row and contain its former key as a value.
  private func isGone(_ said: Value, _ column: Int, _ table: FleetTable) -> Bool {
    if case .identity = said { !isFollowable(said, column, table) } else { false }
  }

  /// Returns whether a number that refers to no row may have referred to the row in the change set,
  /// which has declared columns. With foreign keys off, references keep the old number of a row
  /// that gets another.
  private func mayHaveHad(
    _ number: Value, _ said: Value, _ column: Int, _ table: FleetTable
  ) -> Bool {
    guard leave.wasEditedFreely, number.referredNumber != nil, case .identity(let identity) = said,
      let parent = schema.keyTable(of: column, in: table),
      schema.table(parent)?.localKey != nil
    else { return false }
    let row = OracleKey(table: parent, identity: identity)
    return now[row] != nil || before[row] != nil
  }

  /// Returns whether a number in a change set is that of a row with declared columns that went while
  /// no trigger captured the edits of its table. The store does not know any more which row had the
  /// number, so the number is a plain value: a limit that `Documentation/Merging.md` names.
  private func hasGoneUnseen(
    _ row: Value, leaving said: Value, _ column: Int, _ table: FleetTable
  ) -> Bool {
    guard leave.wasEditedFreely, let number = said.referredNumber,
      case .identity(let identity) = row, let parent = schema.keyTable(of: column, in: table),
      leave.unseen.contains(parent), schema.table(parent)?.localKey != nil
    else { return false }
    return keys[parent]?[number] == identity
      && now[OracleKey(table: parent, identity: identity)] == nil
  }

  /// Returns whether a row has got a number that referred to no row when the store noticed that its
  /// schema had changed, and sealed a row with that number in its key. It may have gone since.
  private func hasGotNumber(
    _ value: Value, _ row: Value, _ column: Int, _ table: FleetTable, _ said: SaidChanges
  ) -> Bool {
    guard let number = value.referredNumber, case .identity(let identity) = row,
      let parent = schema.keyTable(of: column, in: table).flatMap(schema.table)
    else { return false }
    guard before[OracleKey(table: parent.name, identity: identity)] == nil else { return false }
    return keys[parent.name]?[number] == identity
      || said.identities[parent.name]?[number] == identity
  }

  /// Returns whether a number was plain and still is, since the row that got this key is not shown.
  private func isPlainStill(
    _ before: Value?, _ now: Value, _ column: Int, _ table: FleetTable
  ) -> Bool {
    guard before?.referredNumber != nil, case .identity(let identity) = now,
      let parent = schema.keyTable(of: column, in: table)
    else { return false }
    return hidden.contains(OracleKey(table: parent, identity: identity))
  }

  /// Returns whether the row exists to which a value refers. With foreign keys off, a program may
  /// refer to a row that does not.
  private func isFollowable(_ value: Value, _ column: Int, _ table: FleetTable) -> Bool {
    guard case .identity(let identity) = value,
      let parent = schema.keyTable(of: column, in: table)
    else { return true }
    return now[OracleKey(table: parent, identity: identity)] != nil
  }
}
