import Foundation
import GRDB
import SyncModel

/// The definition of a bookkeeping table: its columns and their roles, and whether it describes the
/// document or the device.
///
/// Each table has one owner, a type that holds the definition and the SQL on the table. All code
/// that has to reach every table of a kind is derived from the definitions
/// (``Bookkeeping/tables``): creation, the check of types, removal before a snapshot, replacement
/// by another document, columns that move, clients that get other numbers.
struct TableDefinition: Sendable {
  /// Whether a table describes the document or the device.
  enum Scope: Equatable {
    /// It describes the document: a store that takes over another store's content takes over this
    /// table, too.
    case document
    /// It is the device's own, and no snapshot contains it.
    case device(Lifetime)
    /// Some rows are of the one kind, some of the other.
    case mixed
  }

  /// How long a device's own table is valid.
  enum Lifetime: Equatable {
    /// It concerns change sets in transit: it ends when the store goes over to another document.
    case changeSets
    /// It ends when the document begins a new generation.
    case generation
    /// It remains with the store.
    case store
  }

  struct Column {
    enum Role {
      case plain
      /// The number of a registered table. The row is removed with that table.
      case table
      /// The identity of a row of that table.
      case row
      /// The number of another registered table, to which the row refers. The row is removed with
      /// it, too.
      case parent
      /// The number of a registered table, or a number below 0 for a table that no longer exists
      /// (``FormerNames``).
      case journalTable
      /// The position of a column of that table; it moves when an earlier column is removed.
      case column
      /// The position of a column of something else.
      case position
      /// Cells of that table, encoded by ``KeptCells``; their positions move likewise.
      case cells
      /// The short number of a client (``ClientRegistry``).
      case client
      /// The number of a change set.
      case number
    }

    let name: String
    /// The type in SQL; empty for any value.
    let type: String
    /// The rest of its declaration.
    let rule: String
    let role: Role
    /// Whether it may be `NULL`.
    let isOptional: Bool

    static func integer(
      _ name: String, _ rule: String = "", _ role: Role = .plain, isOptional: Bool = false
    ) -> Column {
      Column(name: name, type: "INTEGER", rule: rule, role: role, isOptional: isOptional)
    }

    static func text(_ name: String, _ rule: String = "", isOptional: Bool = false) -> Column {
      Column(name: name, type: "TEXT", rule: rule, role: .plain, isOptional: isOptional)
    }

    static func blob(
      _ name: String, _ rule: String = "", _ role: Role = .plain, isOptional: Bool = false
    ) -> Column {
      Column(name: name, type: "BLOB", rule: rule, role: role, isOptional: isOptional)
    }

    static func any(_ name: String) -> Column {
      Column(name: name, type: "", rule: "", role: .plain, isOptional: true)
    }
  }

  struct Index {
    let name: String
    let columns: String
    var condition: String?
    /// The version of the layout that adds it.
    var version = 1
    /// Whether it is created after the next table, as in existing stores.
    var isLate = false
  }

  let name: String
  let scope: Scope
  /// The version of the layout that adds it.
  let version: Int
  let columns: [Column]
  /// Constraints over several columns, in SQL.
  let constraint: String?
  let isWithoutRowID: Bool
  let indexes: [Index]
  /// SQL terms that are true for a damaged row, beside those that follow from the columns
  /// (``BookkeepingTypes``); `nil` if the values of the table are not checked at all.
  let damage: [String]?

  init(
    _ name: String, _ scope: Scope, version: Int = 1, columns: [Column], constraint: String? = nil,
    isWithoutRowID: Bool = false, indexes: [Index] = [], damage: [String]? = []
  ) {
    self.name = name
    self.scope = scope
    self.version = version
    self.columns = columns
    self.constraint = constraint
    self.isWithoutRowID = isWithoutRowID
    self.indexes = indexes
    self.damage = damage
  }

  /// Whether the table is the device's own.
  var isDeviceOwn: Bool { if case .device = scope { true } else { false } }

  /// Returns the names of the columns with a role.
  func columns(_ role: Column.Role) -> [String] {
    columns.filter { $0.role == role }.map(\.name)
  }

  func has(_ role: Column.Role) -> Bool { columns.contains { $0.role == role } }

  /// Returns an SQL term that is true for the rows that belong to a registered table, or refer to
  /// it, or `nil` if the table has no such rows.
  func belonging(to table: Int) -> String? {
    let names = columns.filter { $0.role == .table || $0.role == .parent }.map(\.name)
    return names.isEmpty ? nil : names.map { "\($0) = \(table)" }.joined(separator: " OR ")
  }

  // MARK: - Reading

  /// Returns the error for invalid data in the table.
  func damaged(_ what: String = "") -> DatabaseError {
    DatabaseError(
      resultCode: .SQLITE_CORRUPT,
      message: "\(name) is damaged" + (what.isEmpty ? "" : ": \(what)"))
  }

  /// Returns the hash in a value of the table. Throws if it is invalid.
  func hash(_ bytes: Data) throws -> ContentHash {
    guard let hash = ContentHash(bytes: bytes) else { throw damaged() }
    return hash
  }

  /// Returns the client in a value of the table. Throws if it is invalid.
  func client(_ bytes: Data) throws -> ClientIdentifier {
    guard let bits = Bits128(bytes: Array(bytes)) else { throw damaged() }
    return ClientIdentifier(bits: bits)
  }

  // MARK: - Creation

  /// Returns the statements that create what a layout version adds: the table, and the indexes that
  /// are not late.
  func creation(in version: Int) -> [String] {
    (self.version == version ? [tableCreation] : [])
      + indexes.filter { $0.version == version && !$0.isLate }.map(indexCreation)
  }

  /// Returns the statements that create the indexes that a layout version adds after the next
  /// table.
  func lateCreation(in version: Int) -> [String] {
    indexes.filter { $0.version == version && $0.isLate }.map(indexCreation)
  }

  private var tableCreation: String {
    let parts =
      columns.map { column in
        [column.name, column.type, column.rule].filter { !$0.isEmpty }.joined(separator: " ")
      } + (constraint.map { [$0] } ?? [])
    return "CREATE TABLE \(Self.ifMissing(version))\(name) (\(parts.joined(separator: ", ")))"
      + (isWithoutRowID ? " WITHOUT ROWID" : "")
  }

  private func indexCreation(_ index: Index) -> String {
    "CREATE INDEX \(Self.ifMissing(index.version))\(index.name) ON \(name) (\(index.columns))"
      + (index.condition.map { " WHERE \($0)" } ?? "")
  }

  /// Returns `IF NOT EXISTS` for a later layout version: an interrupted upgrade may run again.
  private static func ifMissing(_ version: Int) -> String { version > 1 ? "IF NOT EXISTS " : "" }
}

extension TableDefinition {
  /// Returns whether a database has the table. GRDB's own answer may be that of a former schema, which
  /// another connection has changed since.
  func exists(in database: Database) throws -> Bool {
    try Bool.fetchOne(
      database,
      sql: "SELECT EXISTS (SELECT 1 FROM main.sqlite_schema WHERE type = 'table' AND name = ?)",
      arguments: [name]) ?? false
  }
}
