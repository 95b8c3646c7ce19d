import GRDB
import SyncModel

/// Tables that cannot be synchronized.
extension SchemaReader {
  /// Returns the error for a table that does not fit the configuration. It is a mistake of the
  /// caller when the database is put under sync; later the application has changed the table.
  func mismatch(
    _ table: SQLName, message: String, remedy: Remedy, later: String
  ) -> any Error {
    guard isUnderSync else {
      return StoreError(.badConfiguration, path: path, message: message, remedy: remedy)
    }
    return TableProblem(
      table, .configuration, code: .badConfiguration, message: message, remedy: remedy,
      later: later)
  }

  /// Returns the functions and collations that ordinary tables need and this connection does not
  /// have, by table.
  func missingDefinitions(
    of names: [SQLName], _ leftOut: [SQLName: StoreStatus.LeftOutReason]
  ) throws -> [SQLName: String] {
    var missing: [SQLName: String] = [:]
    for name in Set(names) where leftOut[name]?.isVirtual != true {
      missing[name] = try ProgramDefinitions.missing(for: name, database)
    }
    return missing
  }

  /// Refuses a table whose definition needs a function of its program or a collation that the
  /// connection does not have, or of which a synchronized column has a collation of its program. In a
  /// table that is synchronized already, only the latter counts, as in earlier builds.
  func checkDefinitions(
    of name: SQLName, _ registered: Registered?, _ missing: [SQLName: String]
  ) throws {
    let excluded =
      (registered?.excluded ?? [])
      + (lookup(configuration.excludedColumns, registered?.wireName ?? name) ?? [])
    let collation = try ProgramDefinitions.collation(
      inColumnsOf: name, except: excluded, database)
    guard let definition = collation ?? (registered == nil ? missing[name] : nil) else { return }
    throw TableProblem(
      name, .programDefinitions,
      message: "The table \(quoted(name)) needs “\(definition)”, which only its own program "
        + "defines.",
      remedy: "Use what SQLite has in its constraints, indexes and generated columns, or leave the "
        + "table out with \(.exclude(name)).",
      later: "To synchronize it, use what SQLite has in its constraints, indexes and generated "
        + "columns.")
  }

  /// Refuses a table with so many columns that its log would have more than SQLite allows.
  func checkWidth(of table: TableSchema) throws {
    guard !table.isLoggable else { return }
    throw TableProblem(
      table.name, .tooManyColumns,
      message: "The table \(quoted(table.name)) has too many columns for a log of its edits, "
        + "which has columns of its own.",
      remedy: "Spread the columns over two tables, or leave the table out with "
        + "\(.exclude(table.name)).",
      later: "To synchronize it, drop columns of it.")
  }

  /// Refuses a new table, or one that was made again, while an excluded table is missing: it may be
  /// that table, renamed, and its rows would be shared.
  func checkIsNoExcludedTable(
    _ name: SQLName, _ registered: [SQLName: Registered], present: [SQLName]
  ) throws {
    guard isUnderSync, registered[name]?.isWatched != true,
      let missing = missingExclusions(present: present).first
    else { return }
    throw TableProblem(
      name, .renamedExclusion,
      message: "The excluded table \(quoted(missing)) does not exist any more, and the table "
        + "\(quoted(name)) may be that table under another name.",
      remedy: "Leave the table out with \(.exclude(name)).",
      later: "To share its rows, create a table \(quoted(missing)) again; it may be empty.")
  }

  /// Returns the excluded tables that do not exist.
  func missingExclusions(present: [SQLName]) -> [SQLName] {
    let present = Set(present.map { $0.folded })
    return configuration.excludedTables.filter { !present.contains($0.folded) }.sorted()
  }

  /// Refuses a new table whose declared identity is not unique. When the database is put under
  /// sync, ``SetUpChecks`` does.
  func checkDeclaredIdentity(of table: TableSchema) throws {
    guard isUnderSync else { return }
    do {
      try SetUpChecks(table: table, path: path).run(database)
    } catch let error as StoreError where error.code == .badConfiguration {
      throw mismatch(
        table.name, message: error.message, remedy: error.remedy,
        later: "To synchronize the table, create a unique index on exactly these columns.")
    }
  }
}

extension StoreStatus.LeftOutReason {
  /// Whether the table is virtual, or a part of a virtual table.
  var isVirtual: Bool { self == .virtualTable || self == .virtualTablePart }
}
