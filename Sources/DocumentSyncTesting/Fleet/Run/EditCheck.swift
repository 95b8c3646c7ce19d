import SyncModel
import SyncStore

/// I1: what a program edited, and was acknowledged by SQLite, is in the
/// change sets that are sealed next.
///
/// Compares the tables before sealing with what was shown after the last
/// synchronization, and asks the change sets for every difference.
struct EditCheck {
  private let schema: FleetSchema
  private let before: [OracleKey: [String: Value]]
  private let tables: [String: [[Value]]]
  private let reader: VisibleRows
  /// The rows before sealing, with the identities that it gave.
  private var now: [OracleKey: [String: Value]] = [:]

  /// - Parameter shown: What was shown after the last synchronization.
  init(_ database: FleetSQLite, schema: FleetSchema, shown: [OracleKey: [String: Value]]) throws {
    self.schema = schema
    before = shown
    reader = try VisibleRows(database, schema: schema)
    tables = try reader.localRows()
  }

  /// What of the edits is missing from `sealed`, a line for each.
  ///
  /// - Parameters:
  ///   - state: What was merged before.
  ///   - moves: Where rows went whose key was changed.
  mutating func missing(
    from sealed: [SyncChangeSet], state: LogicalState, _ database: FleetSQLite,
    moves: [OracleKey: OracleKey]
  ) throws -> [String] {
    var said = SaidChanges(schema: schema)
    for set in sealed { said.add(set) }
    // Sealing gives new rows their identities, and may take from the table
    // rows that have theirs.
    var reader = try VisibleRows(database, schema: schema)
    reader.addMissing(from: self.reader)
    for (table, keys) in said.identities { reader.add(keys, of: table) }
    now = reader.logical(tables)
    return Set(before.keys).union(now.keys).sorted().flatMap { key in
      missing(key, before[key], now[key], said) + missingRebirths(key, state, said)
    } + missingMoves(moves, said)
  }

  /// Rows that were there and live on under another key.
  private func missingMoves(_ moves: [OracleKey: OracleKey], _ said: SaidChanges) -> [String] {
    moves.sorted { $0.key < $1.key }.compactMap { old, new in
      guard before[old] != nil, now[old] == nil, now[new] != nil,
        said.moves[old] != new.identity
      else { return nil }
      return "that \(old) lives on as \(new)"
    }
  }

  /// The deletions that sealing has undone. With foreign keys on nothing may
  /// be left that refers to a deleted row.
  func undone(in shown: [OracleKey: [String: Value]]) -> [String] {
    before.keys.filter { now[$0] == nil && shown[$0] != nil }.sorted().map {
      "the deletion of \($0)"
    }
  }

  /// Rows that are dead, are shown all the same, and are referred to by an
  /// edit, which counts on them.
  private func missingRebirths(
    _ key: OracleKey, _ state: LogicalState, _ said: SaidChanges
  ) -> [String] {
    guard let table = schema.table(key.table), let row = now[key] else { return [] }
    return table.references.compactMap { reference in
      guard let parent = schema.table(reference.parent), parent.hasSurrogateKey,
        reference.columns.count == 1, reference.parentColumns == parent.key,
        case .identity(let identity) = row[table.columns[reference.columns[0]].name],
        before[key]?[table.columns[reference.columns[0]].name] != .identity(identity)
      else { return nil }
      let target = OracleKey(table: parent.name, identity: identity)
      guard state.rows[target]?.isLiving == false, now[target] != nil,
        before[target] != nil, said.actions[target] != .insert
      else { return nil }
      return "that \(target) lives again, to which \(key) refers"
    }
  }

  private func missing(
    _ key: OracleKey, _ before: [String: Value]?, _ now: [String: Value]?, _ said: SaidChanges
  ) -> [String] {
    guard let table = schema.table(key.table) else { return [] }
    guard let now else {
      return said.actions[key]?.isDeletion == true ? [] : ["the deletion of \(key)"]
    }
    if before == nil, said.actions[key] != .insert { return ["the insertion of \(key)"] }
    return now.sorted { $0.key < $1.key }.compactMap { name, value in
      guard before?[name] != value, let position = table.position(of: name),
        !table.isPureIdentity(position, in: schema), !table.columns[position].isCounter,
        isFollowable(value, position, table),
        said.cells[key]?[name] != value
      else { return nil }
      return "\(key): \(name) = \(value.sqlDescription)"
    }
  }

  /// With foreign keys off a program may refer to a row that is not there.
  private func isFollowable(_ value: Value, _ column: Int, _ table: FleetTable) -> Bool {
    guard case .identity(let identity) = value,
      let parent = schema.keyTable(of: column, in: table)
    else { return true }
    return now[OracleKey(table: parent, identity: identity)] != nil
  }
}

/// What change sets say, by row.
private struct SaidChanges {
  let schema: FleetSchema
  var actions: [OracleKey: RowAction] = [:]
  var cells: [OracleKey: [String: Value]] = [:]
  var moves: [OracleKey: RowIdentity] = [:]
  /// The identities of the author's keys, by table.
  var identities: [String: [Int64: RowIdentity]] = [:]

  init(schema: FleetSchema) { self.schema = schema }

  mutating func add(_ set: SyncChangeSet) {
    for changes in set.tables {
      let collations = schema.table(changes.table)?.keyCollations ?? []
      var cursors = [Int](repeating: 0, count: changes.columns.count)
      for move in changes.moves {
        moves[changes.oracleKey(move.row, collations: collations)] = move.destination
      }
      for index in 0..<changes.count {
        let key = changes.oracleKey(index, collations: collations)
        actions[key] = RowAction(rawValue: changes.actions[index])
        if changes.identity == .surrogate, case .integer(let local) = changes.keys[1][index],
          actions[key]?.isDeletion != true
        {
          identities[changes.table, default: [:]][local] = key.identity
        }
        for column in changes.shapes[Int(changes.rowShapes[index])] {
          cells[key, default: [:]][changes.columns[column]] =
            changes.cells[column][cursors[column]]
          cursors[column] += 1
        }
      }
    }
  }
}
