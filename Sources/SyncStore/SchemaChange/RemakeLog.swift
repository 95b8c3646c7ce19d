import GRDB
import SyncModel

/// The log of a remade table: the entries that triggers have written since the remake, and those
/// that a comparison adds before them.
final class RemakeLog {
  /// The entries in the log for one row, in summary.
  struct Entry {
    /// Whether its first entry, apart from updates, is an insertion.
    var isInserted = false
    /// Whether it was deleted at any time.
    var isDeleted = false
    /// The columns that were updated.
    var columns = ColumnSet()
  }

  private let table: TableSchema
  private let session: StoreSession
  private let time: Double
  private var entries: [RowIdentity: Entry] = [:]
  /// The least number of an entry. Added entries come before it.
  private var first: Int64
  private let collations: [KeyCollation]
  private let insertion: SQLStatement
  private let update: SQLStatement?
  private let deletion: SQLStatement

  init(_ table: TableSchema, session: StoreSession, noticed: Int64) throws {
    self.table = table
    self.session = session
    time = HybridTime.julianDay(milliseconds: noticed)
    collations =
      table.identity == .surrogate
      ? [.binary] : table.identityPositions.map { table.columns[$0].keyCollation }
    let keys = table.keyColumns.indices.map { "k\($0)" }
    func statement(_ entry: CaptureTriggers.Entry, _ further: [String]) throws -> SQLStatement {
      let names = ["seq", "at"] + keys + further
      return try SQLStatement(
        "INSERT INTO \(table.logName) (op, \(names.joined(separator: ", "))) "
          + "VALUES (\(entry.rawValue), \(names.map { _ in "?" }.joined(separator: ", ")))",
        on: session.database)
    }
    insertion = try statement(.insert, ["identity"])
    update =
      table.cellPositions.isEmpty
      ? nil : try statement(.update, ["mask"] + table.baseColumns.map(CaptureTriggers.Column.old))
    deletion = try statement(.delete, table.recordedColumns.map(CaptureTriggers.Column.old))
    first = 1
    let reading = try SQLStatement(
      "SELECT seq, op, mask, \(keys.joined(separator: ", ")) FROM \(table.logName) ORDER BY seq",
      on: session.database)
    while try reading.step() {
      first = min(first, reading.integer(at: 0))
      let identity = identity(keys.indices.map { reading.value(at: 3 + $0) })
      var entry = entries[identity] ?? Entry()
      switch try CaptureTriggers.Entry(reading: reading.integer(at: 1), from: table.logName) {
      case .insert: entry.isInserted = entry.isInserted || !entry.isDeleted
      case .delete: entry.isDeleted = true
      case .update: entry.columns.formUnion(ColumnSet(reading, at: 2))
      default: break
      }
      entries[identity] = entry
    }
  }

  /// Returns the identity of a key, which all its spellings have.
  private func identity(_ key: [Value]) -> RowIdentity {
    IdentityEncoding.encode(key, collations: collations)
  }

  /// Returns what triggers have logged for the row with a key.
  func entry(_ key: [Value]) -> Entry? { entries[identity(key)] }

  /// The first deletion of a row, if the log begins with it, apart from updates.
  struct Deletion {
    var key: [Value]
    /// The values of the row, by column, as far as deletions record them.
    var values: [Value?]
  }

  /// Calls `body`, in order, with the first deletion of each row of which ``Entry/isInserted`` is
  /// false.
  func forEachFirstDeletion(_ body: (Deletion) throws -> Void) throws {
    let recorded = table.recordedColumns
    let names =
      table.keyColumns.indices.map { "k\($0)" } + recorded.map(CaptureTriggers.Column.old)
    let reading = try SQLStatement(
      "SELECT \(names.joined(separator: ", ")) FROM \(table.logName) "
        + "WHERE op = \(CaptureTriggers.Entry.delete.rawValue) AND seq >= \(first) ORDER BY seq",
      on: session.database)
    var seen: Set<RowIdentity> = []
    while try reading.step() {
      let key = table.keyColumns.indices.map { reading.value(at: $0) }
      if key.contains(.null) || entry(key)?.isInserted == true { continue }
      guard seen.insert(identity(key)).inserted else { continue }
      var values = [Value?](repeating: nil, count: table.columns.count)
      for (index, position) in recorded.enumerated() {
        values[position] = reading.value(at: key.count + index)
      }
      try body(Deletion(key: key, values: values))
    }
  }

  private func begin(_ statement: SQLStatement, _ key: [Value], at time: Double) -> Int {
    first -= 1
    statement.bind(first, at: 1)
    statement.bind(.real(time), at: 2)
    for (index, value) in key.enumerated() { statement.bind(value, at: index + 3) }
    return key.count + 3
  }

  func addInsertion(key: [Value], _ identity: RowIdentity?) throws {
    let position = begin(insertion, key, at: time)
    if let identity {
      insertion.bind(blob: identity.bytes, at: position)
    } else {
      insertion.bind(null: position)
    }
    try insertion.run()
  }

  /// - Parameter isOfUnknownTime: Whether any captured edit takes precedence over this one.
  func addUpdate(
    key: [Value], _ cells: [(column: Int, before: Value)], isOfUnknownTime: Bool = false
  ) throws {
    guard let update else { return }
    var columns = ColumnSet()
    for cell in cells { columns.formUnion(ColumnSet(cell.column)) }
    let position = begin(
      update, key, at: isOfUnknownTime ? HybridTime.julianDay(milliseconds: 1) : time)
    update.bind(columns.mask, at: position)
    for (index, column) in table.baseColumns.enumerated() {
      let before = cells.first { $0.column == column }?.before ?? .null
      update.bind(before, at: position + 1 + index)
    }
    try update.run()
  }

  /// - Parameter olds: The former values of the recorded columns, in their order.
  func addDeletion(key: [Value], _ olds: [Value]) throws {
    let position = begin(deletion, key, at: time)
    for (index, value) in olds.enumerated() { deletion.bind(value, at: position + index) }
    try deletion.run()
  }
}
