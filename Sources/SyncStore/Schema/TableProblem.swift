import SyncModel

/// The reason why a table cannot be synchronized, and the remedy.
///
/// It is an error while the schema is read. If a database is put under sync, all problems are
/// reported at once (``refusal(_:path:)``). Later, a new table with a problem stays on its device.
/// If the table was synchronized, the store synchronizes nothing until it can be again.
struct TableProblem: Error, Hashable {
  var table: SQLName
  var reason: StoreStatus.LeftOutReason
  var code = StoreError.Code.unsupportedSchema
  /// The problem, as a sentence.
  var message: String
  /// The remedy before the database is put under sync.
  var remedy: Remedy
  /// The remedy afterwards.
  var laterRemedy: String
  /// The name of the table in change sets.
  var wireName: SQLName

  init(
    _ table: SQLName, _ reason: StoreStatus.LeftOutReason,
    code: StoreError.Code = .unsupportedSchema, message: String, remedy: Remedy,
    later laterRemedy: String
  ) {
    (self.table, self.reason, self.code) = (table, reason, code)
    (self.message, self.remedy, self.laterRemedy) = (message, remedy, laterRemedy)
    wireName = table
  }

  static func noPrimaryKey(_ table: SQLName) -> TableProblem {
    TableProblem(
      table, .noPrimaryKey,
      message: "The table \(quoted(table)) has no primary key, so its rows cannot be told apart.",
      remedy: "Give it one (for example a column “id INTEGER PRIMARY KEY”) or leave the table "
        + "out with \(.exclude(table)).",
      later: "To synchronize it, give it one, for example a column “id INTEGER PRIMARY KEY”.")
  }

  /// Returns the error for all tables that cannot be synchronized.
  static func refusal(_ problems: [TableProblem], path: String) -> StoreError {
    let problems = problems.sorted { $0.table < $1.table }
    if problems.count == 1, let only = problems.first {
      return StoreError(only.code, path: path, message: only.message, remedy: only.remedy)
    }
    let keyless = problems.filter { $0.reason == .noPrimaryKey }
    let others = problems.filter { $0.reason != .noPrimaryKey }
    var messages = others.map(\.message)
    var remedies = others.map(\.remedy)
    if keyless.count == 1 {
      messages.insert(keyless[0].message, at: 0)
      remedies.insert(keyless[0].remedy, at: 0)
    } else if !keyless.isEmpty {
      messages.insert(
        "\(keyless.count) tables have no primary key, so their rows cannot be told apart: "
          + keyless.map { quoted($0.table) }.joined(separator: ", ") + ".", at: 0)
      remedies.insert(
        "Give them one (for example a column “id INTEGER PRIMARY KEY”) or leave the tables out with "
          + keyless.dropFirst().reduce("\(.exclude(keyless[0].table))" as Remedy) {
            $0 + " \(.exclude($1.table))"
          } + ".", at: 0)
    }
    let isConfiguration = problems.allSatisfy { $0.code == .badConfiguration }
    return StoreError(
      isConfiguration ? .badConfiguration : .unsupportedSchema, path: path,
      message: others.isEmpty
        ? messages.joined(separator: " ")
        : "\(problems.count) tables cannot be synchronized. " + messages.joined(separator: " "),
      remedy: remedies.dropFirst().reduce(remedies[0]) { $0 + " " + $1 })
  }
}

extension StoreSchema {
  /// Throws `unsupportedSchema` or `badConfiguration` if a table was synchronized and cannot be at
  /// present.
  func checkNoneSuspended(_ path: String) throws {
    let found = problems.values.filter { suspendedNames.contains($0.table) }
    // The table to which others refer has to be changed.
    let others = found.filter { $0.reason != .reference }
    let problem = (others.isEmpty ? found : others).min { $0.table < $1.table }
    guard let problem else { return }
    throw StoreError(
      problem.code, path: path, message: StoreStatus.UnsuitableTable(problem, true).explanation,
      remedy: Remedy(problem.laterRemedy))
  }

  /// The same schema with those of its tables that bookkeeping has.
  func limited(to registered: [SQLName: SchemaReader.Registered]) -> StoreSchema {
    with(tables.filter { registered[$0.name]?.id == $0.id })
  }

  /// The tables that stay on the device since they cannot be synchronized, for reports.
  var unsuitableTables: [StoreStatus.UnsuitableTable] {
    problems.values.sorted { $0.table < $1.table }.map { problem in
      StoreStatus.UnsuitableTable(problem, suspendedNames.contains(problem.table))
    } + missingExclusions.map(StoreStatus.UnsuitableTable.init(missing:))
  }
}

extension StoreStatus.UnsuitableTable {
  fileprivate init(missing name: SQLName) {
    self.init(
      name: name, reason: .missingExclusion,
      message: "The excluded table \(quoted(name)) does not exist any more, so new tables stay on "
        + "this device, and it uploads no copies of the database.",
      remedy: "Create the table again; it may be empty.", wasSynchronized: false)
  }

  fileprivate init(_ problem: TableProblem, _ wasSynchronized: Bool) {
    self.init(
      name: problem.table, reason: problem.reason, message: problem.message,
      remedy: problem.laterRemedy, wasSynchronized: wasSynchronized)
  }
}
