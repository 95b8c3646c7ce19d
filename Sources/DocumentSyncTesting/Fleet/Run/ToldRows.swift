import SyncModel
import SyncStore

/// The check that a store tells all changes that it makes to the application's rows.
///
/// It compares the tables before and after each commit that the store tells of. Changes in other
/// commits show at the next such commit, or at the end of the call.
final class ToldRows: Sendable {
  private struct State {
    var reader: AppTables?
    /// The rows after the last commit.
    var known: [SQLName: AppTables.Content] = [:]
    /// What the store has told before a commit.
    var announced: RowChanges?
    var problems: [String] = []
  }

  private let state = Locked(State())

  /// Listens to a store.
  func listen(to store: LocalStore) throws {
    try state.withLock { $0 = State(reader: try AppTables(store.path)) }
    store.setChangeObserver(
      RowChangeObserver(
        willCommit: { [state] changes in state.withLock { $0.announced = changes } },
        didCommit: { [state] changes in state.withLock { Self.take(changes, &$0) } }))
  }

  /// Closes its connection to the store.
  func close() {
    state.withLock { state in
      state.reader?.close()
      state = State()
    }
  }

  /// Takes the rows as they are before a call of the store.
  func begin() throws {
    try state.withLock { state in
      state.known = try state.reader?.read() ?? [:]
      state.problems = []
    }
  }

  /// Returns a line for each change since ``begin()`` that was not told as it was.
  func end() throws -> [String] {
    try state.withLock { state in
      Self.compare(try state.reader?.read() ?? [:], told: nil, &state)
      return state.problems
    }
  }

  private static func take(_ changes: RowChanges, _ state: inout State) {
    // The process of the store has ended.
    guard let reader = state.reader else { return }
    if state.announced != changes {
      state.problems.append("what is told after the commit was not told before")
    }
    state.announced = nil
    do {
      compare(try reader.read(), told: changes, &state)
    } catch {
      state.problems.append("the rows cannot be read: \(error)")
    }
  }

  private static func compare(
    _ now: [SQLName: AppTables.Content], told changes: RowChanges?, _ state: inout State
  ) {
    for (name, rows) in now.sorted(by: { $0.key < $1.key }) {
      // A program has created the table, or changed its columns.
      guard let known = state.known[name], known.columns == rows.columns else { continue }
      let told = changes?.tables.filter { $0.name == name } ?? []
      if told.count > 1 { state.problems.append("\(name) is told twice") }
      state.problems += problems(
        told.first, known, rows, mayChangeBeside: changes?.mayConcernOtherTables ?? false
      ).map { "\(name): \($0)" }
    }
    for table in changes?.tables ?? [] where now[table.name] == nil {
      state.problems.append("\(table.name) is told, which is not there")
    }
    state.known = now
  }

  private static func problems(
    _ told: RowChanges.Table?, _ before: AppTables.Content, _ after: AppTables.Content,
    mayChangeBeside: Bool
  ) -> [String] {
    guard let told else {
      let isSame = mayChangeBeside || before.rows == after.rows
      return isSame ? [] : ["has changed, which is not told: \(before.text) is \(after.text)"]
    }
    let keys = told.inserted + told.updated + told.deleted
    guard told.isComplete else {
      return keys.isEmpty ? [] : ["has keys although it is told as a whole"]
    }
    guard Set(keys).count == keys.count, !keys.isEmpty else { return ["has keys twice, or none"] }
    guard let before = before.byKey(told.keyColumns), let after = after.byKey(told.keyColumns)
    else { return ["has no columns \(told.keyColumns)"] }
    if mayChangeBeside { return [] }
    return Set(before.keys).union(after.keys).union(keys).compactMap { key in
      let row = "the row \(key.map(\.sqlDescription).joined(separator: ", "))"
      switch (before[key], after[key]) {
      case (nil, nil): return "\(row) is told, which was never there"
      case (nil, _): return told.inserted.contains(key) ? nil : "\(row) is new, and is not told so"
      case (_, nil): return told.deleted.contains(key) ? nil : "\(row) is gone, and is not told so"
      case (let old, let new):
        if told.inserted.contains(key) || told.deleted.contains(key) {
          return "\(row) is told as new or gone, and stays"
        }
        let isTold = old == new || told.updated.contains(key)
        return isTold ? nil : "\(row) has changed, and is not told"
      }
    }.sorted()
  }
}

/// The tables of an application, with all their columns.
struct AppTables {
  /// The rows of a table, in SQLite's order.
  struct Content: Hashable {
    var columns: [SQLName]
    var rows: [[Value]]

    /// Returns the rows by the values of some columns; `nil` if a column is missing.
    func byKey(_ names: [SQLName]) -> [[Value]: [[Value]]]? {
      let positions = names.compactMap { name in
        columns.firstIndex { $0.folded == name.folded }
      }
      guard positions.count == names.count else { return nil }
      return Dictionary(grouping: rows) { row in positions.map { row[$0] } }
    }

    var text: String {
      rows.map { row in "(" + row.map(\.sqlDescription).joined(separator: ", ") + ")" }
        .joined(separator: " ")
    }
  }

  private let database: FleetSQLite

  init(_ path: String) throws { database = try FleetSQLite(path) }

  func close() { database.close() }

  func read() throws -> [SQLName: Content] {
    var tables: [SQLName: [SQLName]] = [:]
    for row in try database.rows(
      "SELECT t.name, c.name FROM sqlite_schema AS t, pragma_table_xinfo(t.name) AS c "
        + "WHERE t.type = 'table' AND t.name NOT GLOB 'docsync_*' "
        + "AND t.name NOT GLOB 'sqlite_*' "
        + "AND c.hidden <> 1 ORDER BY t.rowid, c.cid")
    {
      guard case .text(let table) = row[0], case .text(let column) = row[1] else { continue }
      tables[SQLName(String(decoding: table, as: UTF8.self)), default: []].append(
        SQLName(String(decoding: column, as: UTF8.self)))
    }
    var content: [SQLName: Content] = [:]
    for (name, columns) in tables {
      let list = columns.map { quoted($0.text) }.joined(separator: ", ")
      content[name] = Content(
        columns: columns,
        rows: try database.rows("SELECT \(list) FROM \(quoted(name.text)) NOT INDEXED"))
    }
    return content
  }

  private func quoted(_ name: String) -> String {
    "\"" + name.replacing("\"", with: "\"\"") + "\""
  }
}
