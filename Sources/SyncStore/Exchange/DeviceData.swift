import Foundation
import GRDB
import SyncModel

/// The bookkeeping that belongs to this device alone. It names tables, columns
/// and clients by numbers, which change when the store takes over another
/// store's content.
///
/// The device reads it before the exchange and writes it afterwards. The names of tables and
/// columns that no longer exist are recorded for the conflict journal (``FormerNames``), so that
/// all of it stays readable.
struct DeviceData {
  private var tables: [Int: FormerNames.Table] = [:]
  private let clients: ClientRegistry
  private let bases: [BaseValues.Base]

  /// Reads the bookkeeping of a session.
  init(_ session: StoreSession) throws {
    clients = session.clients
    let former = try FormerNames.read(session.database)
    for table in session.schema.tables {
      let columns = table.columns.enumerated().map { position, column in
        (position, FormerNames.Column(name: column.name, wireName: column.wireName))
      }
      tables[table.id] = FormerNames.Table(
        name: table.name, wireName: table.wireName, identity: table.identityDescription,
        columns: Dictionary(uniqueKeysWithValues: columns)
          .merging(former.columns[table.id] ?? [:]) { here, _ in here })
    }
    tables.merge(former.tables) { here, _ in here }
    // The application may have dropped some tables before.
    for id in try ConflictTable.tables(session.database) where tables[id] == nil {
      tables[id] = FormerNames.Table(
        name: "table \(id)", wireName: "", identity: SQLText(""), columns: [:])
    }
    bases = try session.bases.all()
  }

  /// Writes it with the numbers of another session's schema and clients.
  func write(to session: StoreSession) throws {
    let places = Places(tables: tables, schema: session.schema)
    try writeConflicts(session, places)
    try writeBases(session, places)
    for table in Bookkeeping.tables where table.isDeviceOwn && !table.has(.journalTable) {
      for column in table.columns(.client) { try writeClients(table.name, column, session) }
    }
    try places.former.write(session.database)
  }

  private func client(_ number: Int32, _ session: StoreSession) throws -> Int32 {
    try session.clients.number(of: clients.client(number))
  }

  private func stamp(_ stamp: LocalStamp, _ session: StoreSession) throws -> LocalStamp {
    LocalStamp(time: stamp.time, client: try client(stamp.client, session))
  }

  private func writeConflicts(_ session: StoreSession, _ places: Places) throws {
    let journal = session.conflicts.journal
    for number in try ConflictTable.numbers(session.database) {
      guard var entry = try journal.entry(number) else { continue }
      let former = entry.row.table
      func moved(_ cells: [ConflictJournal.Entry.Cell]) -> [ConflictJournal.Entry.Cell] {
        cells.map { (places.column($0.column, of: former), $0.value) }
      }
      entry.column = entry.column.map { places.column($0, of: former) }
      entry.key = moved(entry.key)
      entry.local = entry.local.map(moved)
      entry.remote = entry.remote.map(moved)
      entry.row.table = places.table(former)
      entry.localStamp = try entry.localStamp.map { try stamp($0, session) }
      entry.remoteStamp = try entry.remoteStamp.map { try stamp($0, session) }
      // A question about a table or a column that no longer exists cannot be answered.
      let isGone =
        places.isGone(former) || (entry.column.map(FormerNames.isFormer(column:)) ?? false)
      if entry.status == .open, isGone { entry.status = .settled }
      try journal.write(entry)
    }
  }

  private func writeBases(_ session: StoreSession, _ places: Places) throws {
    try session.bases.removeAll()
    for base in bases where !places.isGone(base.row.table) {
      let column = places.column(base.column, of: base.row.table)
      let table = places.table(base.row.table)
      guard column < session.schema[table].columns.count,
        let value = try KeptCells.decode(base.cell).first?.value
      else { continue }
      try session.bases.store(
        value, of: column, RowKey(table: table, identity: base.row.identity))
    }
  }

  private func writeClients(
    _ table: String, _ column: String, _ session: StoreSession
  ) throws {
    let database = session.database
    let numbers = try Int32.fetchAll(database, sql: "SELECT DISTINCT \(column) FROM \(table)")
    // Negative numbers stand in between, since two clients may swap theirs.
    for number in numbers {
      try database.execute(
        sql: "UPDATE \(table) SET \(column) = ? WHERE \(column) = ?",
        arguments: [-Int64(try client(number, session)) - 1, number])
    }
    try database.execute(
      sql: "UPDATE \(table) SET \(column) = -\(column) - 1 WHERE \(column) < 0")
  }

  /// The new numbers of tables and columns.
  private struct Places {
    private var tables: [Int: Int] = [:]
    private var columns: [Int: [Int: Int]] = [:]
    private(set) var former = FormerNames()

    init(tables known: [Int: FormerNames.Table], schema: StoreSchema) {
      var nextGone = -1
      for (id, table) in known.sorted(by: { $0.key > $1.key }) {
        guard let new = schema.table(wireName: table.wireName),
          new.identityDescription == table.identity
        else {
          tables[id] = nextGone
          former.tables[nextGone] = table
          nextGone -= 1
          continue
        }
        tables[id] = new.id
        for (position, column) in table.columns.sorted(by: { $0.key < $1.key }) {
          if let place = new.columns.firstIndex(where: { $0.wireName == column.wireName }) {
            columns[id, default: [:]][position] = place
          } else {
            columns[id, default: [:]].merge(former.note([position: column], of: new.id)) { $1 }
          }
        }
      }
    }

    func isGone(_ table: Int) -> Bool { self.table(table) < 0 }

    func table(_ id: Int) -> Int { tables[id] ?? id }

    func column(_ position: Int, of table: Int) -> Int {
      guard position != ConflictTable.localKeyPosition else { return position }
      return columns[table]?[position] ?? position
    }
  }
}
