import GRDB
import SyncModel

/// The rows with a plain number in their key, where an edit in the log makes that number the key of
/// a row.
///
/// They are noted before anything is exported: from now on the table alone does not distinguish
/// them from rows that refer to the row with that number.
struct PlainKeyNotes {
  private let session: StoreSession
  /// The numbers that the edits in the log give to rows, by table.
  private var given: [Int: Set<Int64>] = [:]

  init(session: StoreSession) { self.session = session }

  /// Notes the rows and returns them.
  mutating func note() throws -> [RowKey] {
    let children = session.schema.tables.filter(\.hasKeysInIdentity)
    guard !children.isEmpty else { return [] }
    for parent in session.schema.tables where parent.localKey != nil {
      let isInKey = children.contains { child in
        child.identityPositions.contains { child.columns[$0].domain == .key(of: parent.id) }
      }
      if isInKey {
        given[parent.id] = try session.access(parent.id).givenPlainKeys(evenForAWhile: true)
      }
    }
    // Sealing finds them again when new rows have their identities.
    session.forgetGoneKeys()
    guard given.values.contains(where: { !$0.isEmpty }) else { return [] }
    var noted: [RowKey] = []
    for child in children {
      for key in try keys(child) {
        if let row = try note(key, session.access(child.id)) { noted.append(row) }
      }
    }
    session.forgetGoneKeys()
    return noted
  }

  /// Returns the local keys of the rows that contain such a number in their key, or did before the
  /// edits in the log.
  private func keys(_ child: TableSchema) throws -> Set<[Value]> {
    var found: Set<[Value]> = []
    for (index, position) in child.identityPositions.enumerated() {
      guard case .key(let parent) = child.columns[position].domain, let numbers = given[parent],
        !numbers.isEmpty
      else { continue }
      let logged = child.keyColumns.indices.map { "k\($0)" }
      for (names, source, column) in [
        (child.keyColumns.map(quoted), child.quotedName, quoted(child.columns[position].name)),
        (logged, child.logName, "k\(index)"),
      ] {
        let reading = try session.access(child.id).statement(
          "SELECT DISTINCT \(names.joined(separator: ", ")) FROM \(source) WHERE \(column) = ?")
        for number in numbers {
          reading.bind(number, at: 1)
          while try reading.step() {
            let key = names.indices.map { reading.value(at: $0) }
            if !key.contains(.null) { found.insert(key) }
          }
        }
      }
    }
    return found
  }

  /// Notes the row that had a local key before the edits in the log, if the given numbers in it were
  /// plain values then. Returns the row; `nil` if there was none.
  private func note(_ key: [Value], _ access: TableAccess) throws -> RowKey? {
    let table = access.table
    var plain: [(column: Int, value: Value)] = []
    let values = try zip(key, table.identityPositions).map { value, position -> Value in
      guard case .key(let parent) = table.columns[position].domain, let number = Value.key(value),
        given[parent]?.contains(number) == true
      else { return try session.earlierExported(value, table.columns[position]) }
      plain.append((position, value))
      return value
    }
    let row = RowKey(table: table.id, identity: access.identity(of: values))
    let fingerprint = access.fingerprint(row.identity)
    let state = try access.stamps.state(of: fingerprint) ?? .unstamped
    guard try access.isInTable(row.identity) || wasUnstamped(key, state, access) else { return nil }
    try session.notePlainNumbers(plain, in: row)
    return row
  }

  /// Returns whether a row without a state was in the table before the edits in the log, since it is
  /// older than syncing.
  private func wasUnstamped(
    _ key: [Value], _ state: RowState, _ access: TableAccess
  ) throws -> Bool {
    guard access.table.hasUnstampedRows, state.existence == .unsaid, state.isUnstamped,
      !state.isKept
    else { return false }
    typealias Entry = CaptureTriggers.Entry
    let match = key.indices.map { "k\($0) = ?" }.joined(separator: " AND ")
    let reading = try access.statement(
      "SELECT op FROM \(access.table.logName) WHERE \(match) ORDER BY seq")
    for (index, value) in key.enumerated() { reading.bind(value, at: index + 1) }
    var kinds: [Entry] = []
    while try reading.step() {
      kinds.append(try Entry(reading: reading.integer(at: 0), from: access.table.logName))
    }
    let isPresent = try access.row(key) != nil
    let balance = kinds.count { $0 == .insert } - kinds.count { $0 == .delete }
    if balance < (isPresent ? 1 : 0) { return true }
    return kinds.first { $0 != .update } != .insert
  }
}
