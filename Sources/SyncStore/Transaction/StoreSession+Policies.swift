import Foundation
import GRDB
import SyncModel

/// The policies for the registers of one table.
struct TablePolicies {
  var existence: ConflictPolicy
  /// By position of the column.
  var columns: [ConflictPolicy]
}

extension SyncPolicies: StoredValue {
  /// There are none.
  package func checkNumbers() throws {}

  /// The key of the record that contains the policies.
  static let record = "conflictPolicies"

  /// Reads the policies of the store.
  static func read(_ database: Database) throws -> SyncPolicies {
    guard let stored = try DeviceRecords(database: database).read(record) else {
      return SyncPolicies()
    }
    return try StoredJSON.read(from: stored, of: DeviceRecords.definition.name, key: record)
  }

  func write(to records: DeviceRecords) throws {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    try records.write(Self.record, to: Array(try encoder.encode(self)))
  }

  /// Throws `badPolicy` if they name tables or columns that are not synchronized, or a function for values that
  /// a column does not have.
  func check(_ schema: StoreSchema, _ path: String) throws {
    for (table, columns) in columns {
      for (column, policy) in columns {
        try Self.checkName(table, column, schema, path)
        try Self.check(policy, table, column, schema, path)
      }
    }
    for table in tables.keys { try Self.checkName(table, nil, schema, path) }
  }

  /// Throws `badPolicy` if a column cannot have the values that a function is for.
  private static func check(
    _ policy: ConflictPolicy, _ table: SQLName, _ column: SQLName, _ schema: StoreSchema,
    _ path: String
  ) throws {
    guard let function = policy.shippedFunction, let found = schema.table(named: table),
      let position = found.columns.firstIndex(where: { $0.name.folded == column.folded })
    else { return }
    let column = found.columns[position]
    let isReference =
      column.isKeyed || found.foreignKeys.contains { $0.columns.contains(position) }
    let isForNumbers = column.affinity == .integer || column.affinity == .real
    guard isReference || column.domain == .counter || function.isForText && isForNumbers else {
      return
    }
    let contents =
      isReference
      ? "refers to rows" : column.domain == .counter ? "is a counter" : "contains numbers"
    throw StoreError(
      .badPolicy, path: path,
      message: "The function \(function.rawValue) is not for \(quoted(found.name))."
        + "\(quoted(column.name)), which \(contents).",
      remedy: function.isForText ? "Name a column with text." : "Name a column with plain values.")
  }

  private static func checkName(
    _ table: SQLName, _ column: SQLName?, _ schema: StoreSchema, _ path: String
  ) throws {
    guard let found = schema.table(named: table) else {
      throw StoreError(
        .badPolicy, path: path, message: "There is no synchronized table \(quoted(table)).",
        remedy: Remedy(
          "Name one of: " + schema.tables.map(\.name).sorted().joined(separator: ", ") + "."))
    }
    guard let column else { return }
    let names = found.cellPositions.map { found.columns[$0].name }
    guard !names.contains(where: { $0.folded == column.folded }) else { return }
    throw StoreError(
      .badPolicy, path: path,
      message: "\(quoted(found.name)) has no synchronized column \(quoted(column)) that could "
        + "be in conflict.",
      remedy: "Name one of: \(names.joined(separator: ", ")).")
  }

  /// Returns the columns of a table for which a policy may need the value before an edit.
  func baseColumns(of table: TableSchema) -> [Int] {
    let columns = policies(of: table).columns
    return table.cellPositions.filter {
      columns[$0].needsBase && table.columns[$0].domain != .counter
    }
  }

  func policies(of table: TableSchema) -> TablePolicies {
    TablePolicies(
      existence: policy(table: table.name, column: nil),
      columns: table.columns.map { policy(table: table.name, column: $0.name) })
  }
}

/// The data that decisions on conflicts need, read when it is first asked for.
final class PolicyCache {
  fileprivate var policies: SyncPolicies?
  fileprivate var tables: [Int: TablePolicies] = [:]
  fileprivate var unpublished: [ClosedRange<UInt64>]?
  /// The functions that the application registered, by name.
  let resolvers: Resolvers

  init(resolvers: Resolvers) { self.resolvers = resolvers }

  /// The functions of the application that decide conflicts.
  struct Resolvers {
    /// Those that the application registered, by name.
    var named: [String: ConflictResolver] = [:]
    /// The application's function for all other names.
    var other: NamedConflictResolver?
  }

  /// The error of a function of the application.
  struct FailedFunction: Error {
    var error: any Error
  }

  /// What a function makes of a conflict.
  enum Resolution {
    /// The value that is to be shown.
    case value(Value)
    /// The function cannot merge the values: stamps decide.
    case later
  }

  /// Returns what the function of that name makes of a conflict; `nil` if there is no such function. The
  /// application's functions come before the shipped ones.
  func resolve(
    _ values: Conflict.Values, by name: String, checkCancellation: () throws -> Void
  ) throws -> Resolution? {
    do {
      if let own = resolvers.named[name] { return .value(try own(values)) }
      if let value = try resolvers.other?(name, values) { return .value(value) }
    } catch {
      throw FailedFunction(error: error)
    }
    guard let function = ShippedFunction(rawValue: name) else { return nil }
    let value = try function.value(
      base: values.base, local: values.local, remote: values.remote,
      checkCancellation: checkCancellation)
    return value.map(Resolution.value) ?? .later
  }
}

extension StoreSession {
  /// Returns the policies for a table.
  func policies(of id: Int) throws -> TablePolicies {
    if let known = policyCache.tables[id] { return known }
    let all = try policyCache.policies ?? SyncPolicies.read(database)
    policyCache.policies = all
    let found = all.policies(of: schema[id])
    policyCache.tables[id] = found
    return found
  }

  /// Returns whether a stamp belongs to a change set of this client that is not published yet.
  func isUnpublished(_ stamp: LocalStamp) throws -> Bool {
    guard stamp.client == own else { return false }
    let times =
      try policyCache.unpublished
      ?? outbox.unpublishedNumbers(of: own).map { first, last in
        try ranges.times(of: own, after: first &- 1, through: last)
      } ?? []
    policyCache.unpublished = times
    return times.contains { $0.contains(stamp.time) }
  }

  /// Forgets the unpublished ranges, after a sealing, so that they are read again.
  func forgetUnpublished() { policyCache.unpublished = nil }

  /// Stores the value of a cell before an edit that is being sealed, unless the value before an
  /// earlier unpublished edit is stored already.
  func keepBase(_ local: Value, of column: Int, _ row: RowKey) throws {
    let access = try access(row.table)
    let value = try exported(local, access.table.columns[column])
    try bases.store(value, of: column, row)
  }
}
