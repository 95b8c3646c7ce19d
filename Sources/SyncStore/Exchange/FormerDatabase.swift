import Foundation
import GRDB
import SyncModel

/// The contents of a database whose rows are to be merged into a document.
///
/// If it was a store, the merge uses the identities of its rows: other devices that had the same
/// rows merge them by these. The merge uses its stamps if both documents stem from one.
final class FormerDatabase {
  /// A table with rows.
  struct Table {
    var name: SQLName
    /// The names of the columns that can be written.
    var columns: [SQLName]
    /// The names of the generated columns.
    var generated: [SQLName]
    var sql: String

    func column(_ name: SQLName) -> SQLName? {
      columns.first { $0.folded == name.folded }
    }
  }

  let database: Database
  /// The objects of its schema.
  let objects: SchemaObjects
  /// Its bookkeeping, if it was under sync.
  let session: StoreSession?
  /// By name, in lower case.
  private(set) var tables: [SQLName: Table] = [:]
  /// Virtual tables, views, indexes and triggers, in the order in which they
  /// were made.
  private(set) var entries: [SchemaObjects.Object] = []

  /// - Parameter session: A session on its bookkeeping, which contains the identities of rows;
  ///   `nil` if there is none.
  init(_ database: Database, session: StoreSession? = nil) throws {
    self.database = database
    self.session = session
    objects = try SchemaObjects(database)
    for object in objects.objects {
      switch object.kind {
      case .table:
        let information = try Row.fetchAll(
          database, sql: "PRAGMA main.table_xinfo(\(quoted(object.name)))")
        func names(_ isWanted: (_ hidden: Int) -> Bool) -> [SQLName] {
          information.filter { isWanted($0["hidden"]) }.map { $0["name"] }
        }
        tables[object.name.folded] = Table(
          name: object.name, columns: names { $0 == 0 }, generated: names { $0 > 1 },
          sql: object.sql)
      case .virtualTablePart: continue
      case .virtualTable, .view, .index, .trigger: entries.append(object)
      }
    }
  }

  func table(named name: SQLName) -> Table? { tables[name.folded] }

  func columns(of table: SQLName) throws -> [SQLName] {
    try Row.fetchAll(database, sql: "PRAGMA main.table_xinfo(\(quoted(table)))")
      .filter { ($0["hidden"] as Int) == 0 }.map { $0["name"] }
  }

  // MARK: - Rows

  /// Returns how many rows the database has in tables of a document.
  func rowCount(of schema: StoreSchema) throws -> Int {
    try schema.tables.compactMap { table(named: $0.name)?.name }.reduce(0) { sum, name in
      try sum
        + (Int.fetchOne(database, sql: "SELECT count(*) FROM main.\(quoted(name))") ?? 0)
    }
  }

  /// The data of a row that a document needs.
  struct Record {
    /// The values of the synchronized columns, in the document's order.
    var values: [Value]
    /// The key beside the identity, if the document's table has one.
    var localKey: Value?
    /// The values of columns that stay on the device, by name in lower case.
    var localValues: [SQLName: Value]
    /// The identity that the row had in the database, if the table has surrogate keys in both.
    var identity: RowIdentity?
  }

  /// Reads the rows of one table of the document.
  final class Reader {
    private let table: TableSchema
    private let excluded: [SQLName]
    /// The table as the database synchronized it, if it has surrogate keys in both.
    private let surrogate: TableSchema?
    private let database: Database
    private let selection: String
    private let all: SQLStatement
    private let one: SQLStatement
    /// The statements that find a row by the values of some columns.
    private var finding: [[SQLName]: SQLStatement] = [:]

    init(_ table: TableSchema, _ former: FormerDatabase, key: [SQLName]) throws {
      self.table = table
      let here = former.table(named: table.name)
      excluded = table.excludedColumns.filter { here?.column($0) != nil }.sorted()
      surrogate = former.session?.schema.table(named: table.name).flatMap {
        $0.identity == .surrogate && table.identity == .surrogate ? $0 : nil
      }
      let name = "main.\(quoted(here?.name ?? table.name))"
      var terms =
        (table.columns.map(\.name) + [table.localKey].compactMap(\.self) + excluded).map(quoted)
      if let surrogate, let localKey = surrogate.localKey {
        terms.append(
          "(SELECT identity FROM main.\(surrogate.identityName) WHERE key = "
            + "\(name).\(quoted(localKey)))")
      }
      database = former.database
      selection = "SELECT \(terms.joined(separator: ", ")) FROM \(name)"
      all = try SQLStatement(selection, on: former.database)
      one = try SQLStatement(
        "\(selection) WHERE \(TableAccess.match(key))", on: former.database)
    }

    /// Returns the next row, or `nil` after the last.
    func next() throws -> Record? { try all.step() ? record(all) : nil }

    /// Returns the row with a key.
    func record(_ key: [Value]) throws -> Record? {
      for (index, value) in key.enumerated() { one.bind(value, at: index + 1) }
      guard try one.step() else { return nil }
      defer { one.reset() }
      return record(one)
    }

    /// Returns a row with some values in some columns.
    func record(_ values: [Value], in columns: [SQLName]) throws -> Record? {
      let statement =
        try finding[columns]
        ?? SQLStatement("\(selection) WHERE \(TableAccess.match(columns)) LIMIT 1", on: database)
      finding[columns] = statement
      for (index, value) in values.enumerated() { statement.bind(value, at: index + 1) }
      guard try statement.step() else { return nil }
      defer { statement.reset() }
      return record(statement)
    }

    private func record(_ statement: SQLStatement) -> Record {
      let count = table.columns.count
      let rest = count + (table.localKey == nil ? 0 : 1)
      return Record(
        values: (0..<count).map { statement.value(at: $0) },
        localKey: table.localKey == nil ? nil : statement.value(at: count),
        localValues: Dictionary(
          uniqueKeysWithValues: excluded.enumerated().map { index, name in
            (name.folded, statement.value(at: rest + index))
          }), identity: identity(statement, at: rest + excluded.count, key: count))
    }

    private func identity(_ statement: SQLStatement, at position: Int, key: Int) -> RowIdentity? {
      guard let surrogate, surrogate.localKey != nil else { return nil }
      guard statement.isNull(at: position) else {
        return RowIdentity(bytes: statement.bytes(at: position))
      }
      let low = UInt64(bitPattern: statement.integer(at: key))
      return RowIdentity(bytes: Bits128(high: surrogate.origin, low: low).bytes)
    }
  }
}
