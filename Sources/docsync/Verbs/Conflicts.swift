import ArgumentParser
import DocumentSync
import SyncModel
import SyncStore

/// `docsync conflicts`
struct Conflicts: StoreVerb {
  static let configuration = CommandConfiguration(
    abstract: "List conflicts, decide them, and restore values that lost.",
    discussion: """
      docsync conflicts STORE [list] [--open | --all [--before NUMBER] [--limit COUNT]]
      docsync conflicts STORE show NUMBER
      docsync conflicts STORE resolve NUMBER --local | --remote | --value VALUE
      docsync conflicts STORE restore NUMBER [--local | --remote]
      docsync conflicts STORE policy [[TABLE[.COLUMN]=]POLICY]

      “local” is the value of this device, “remote” the value of the other device. “resolve” \
      decides an open question, “restore” writes the value that lost; both are ordinary edits, \
      which the next sync sends. They work while another process synchronizes.

      A policy belongs to this device: latestWins, localWins, remoteWins, ask, resolve:NAME, \
      or default, which removes the policy. It decides when \
      another device's edit arrives and this device has not sent its own edit of the same value. \
      A column's policy comes before its table's, and that before the document's.

      NAME is a function: mergeText merges texts by lines and words, mergeJSON objects by \
      member, unionOfLines keeps the lines of both, max and min choose a value.

      VALUE is written as in SQL: 42, 1.5, 'text', x'00ff', NULL; anything else is text. \
      A number below zero is given as --value=-5.

      The database keeps the newest 10,000 conflicts, older ones are in the file \
      STORE-docsync-conflicts. “list --all” lists both, “show” and “restore” find both.

      Ends with 3 as long as questions are open.
      """
        + examples(
          "docsync conflicts notes.db", "docsync conflicts notes.db resolve 12 --local",
          "docsync conflicts notes.db policy notes.title=ask",
          "docsync conflicts notes.db policy notes.text=resolve:mergeText"))

  /// The actions of the command.
  enum Action: String, ExpressibleByArgument, CaseIterable {
    case list, show, resolve, restore, policy
  }

  @OptionGroup var arguments: StoreArguments

  @Argument(help: ArgumentHelp("What to do.", valueName: "ACTION"))
  var action = Action.list

  @Argument(
    help: ArgumentHelp("The number of a conflict, or a policy.", valueName: "NUMBER|POLICY"))
  var subject: String?

  @Flag(help: "Choose what this device had.")
  var local = false

  @Flag(help: "Choose what came.")
  var remote = false

  @Option(help: ArgumentHelp("Choose another value.", valueName: "VALUE"))
  var value: SQLLiteral?

  @Flag(help: "List open questions only.")
  var open = false

  @Flag(help: "List also older conflicts, which are in a file beside the database.")
  var all = false

  @Option(help: ArgumentHelp("With --all: begin before this conflict.", valueName: "NUMBER"))
  var before: Int64?

  @Option(
    help: ArgumentHelp("With --all: list at most this many (default: 10000).", valueName: "COUNT"))
  var limit: Int?

  @OptionGroup var output: OutputOptions

  /// The output of `list` with `--json`.
  struct List: Encodable, Sendable {
    var store: String
    /// The number of open questions.
    var openConflicts: Int
    /// The entries that are no longer kept.
    var dropped: DroppedConflictsJSON
    var places: ConflictPlacesJSON
    var conflicts: [ConflictJSON]
    /// With `--all`: the number before which the list goes on; absent at its end.
    var next: Int64?
  }

  /// The output of `show`, `resolve` and `restore` with `--json`.
  struct One: Encodable, Sendable {
    var store: String
    /// The number of open questions.
    var openConflicts: Int
    var conflict: ConflictJSON
    /// The columns of a row that has come back that have their defaults.
    var defaultedColumns: [SQLName]?
  }

  /// The output of `policy` with `--json`.
  struct Policies: Encodable, Sendable {
    var store: String
    var policies: PoliciesJSON
  }

  func validate() throws {
    let choices = [local, remote, value != nil].filter(\.self).count
    switch action {
    case .list: guard subject == nil else { throw ValidationError("“list” takes no number.") }
    case .show, .resolve, .restore: _ = try number()
    case .policy:
      _ = try subject.map(PolicyChoice.parse)
    }
    switch action {
    case .resolve:
      guard choices == 1 else {
        throw ValidationError("Give one of --local, --remote and --value VALUE.")
      }
    case .restore:
      guard choices <= 1, value == nil else {
        throw ValidationError("“restore” takes --local or --remote.")
      }
    default:
      guard choices == 0 else {
        throw ValidationError("--local, --remote and --value are for “resolve” and “restore”.")
      }
    }
    guard !open && !all || action == .list else {
      throw ValidationError("--open and --all are for “list”.")
    }
    guard !open || !all else { throw ValidationError("Give --open or --all, not both.") }
    guard all || before == nil && limit == nil else {
      throw ValidationError("--before and --limit are for “list --all”.")
    }
    guard limit ?? 1 > 0, before ?? 1 > 0 else {
      throw ValidationError("--before and --limit need a number above zero.")
    }
  }

  private func number() throws -> Int64 {
    guard let subject, let number = Int64(subject), number > 0 else {
      throw ValidationError("Give the number of a conflict; “docsync conflicts STORE” lists them.")
    }
    return number
  }

  func perform(_ console: Console) async throws -> Outcome {
    try await arguments.withManager { manager in
      switch action {
      case .list: return try await list(manager)
      case .show: return try await show(try number(), manager)
      case .resolve:
        let answer: Conflict.Answer =
          value.map { .value($0.value) } ?? (local ? .local : .remote)
        let unknown = try await manager.resolveConflict(try number(), by: answer)
        return try await show(try number(), manager, defaulted: unknown)
      case .restore:
        let unknown = try await manager.restoreConflict(
          try number(), side: local ? .local : remote ? .remote : nil)
        return try await show(try number(), manager, defaulted: unknown)
      case .policy:
        if let choice = try subject.map(PolicyChoice.parse) {
          try await manager.setPolicies { choice.set(in: &$0) }
        }
        let policies = try await manager.policies()
        return Outcome(
          json: Policies(store: arguments.store, policies: PoliciesJSON(policies)),
          lines: Self.lines(policies))
      }
    }
  }

  private func list(_ manager: DocumentSyncManager) async throws -> Outcome {
    let page =
      try await all
      ? manager.conflicts(before: before, limit: limit ?? 10_000)
      : Conflict.Page(conflicts: manager.conflicts(onlyOpen: open), next: nil)
    let conflicts = page.conflicts
    let places = try await manager.conflictPlaces()
    let dropped = places.dropped
    let names = conflicts.isEmpty ? ClientNames() : await ClientNames(manager)
    let result = List(
      store: arguments.store, openConflicts: try await manager.openConflictCount(),
      dropped: DroppedConflictsJSON(dropped), places: ConflictPlacesJSON(places),
      conflicts: conflicts.map { ConflictJSON($0, names: names) }, next: page.next)
    var lines = alignedLines(result.conflicts.map(\.cells))
    if lines.isEmpty { lines.append(open ? "No open questions." : "No conflicts.") }
    if let sentence = result.places.sentence, !open {
      lines.append(sentence + (all || places.inArchive == 0 ? "" : "; --all lists these, too"))
    }
    if let next = page.next {
      lines.append(
        "More: docsync conflicts \(shellWord(arguments.store)) --all --before \(next)")
    }
    if let problem = places.problem, !open { lines.append("warning: \(printable(problem))") }
    if dropped.count > 0 {
      let range = [dropped.firstMilliseconds, dropped.lastMilliseconds].compactMap(\.self)
      lines.append(
        "\(counted(dropped.count, "older conflict")) no longer kept, from "
          + range.map(timeText).joined(separator: " to "))
    }
    return Outcome(
      json: result, lines: lines,
      status: Unsettled(openConflicts: result.openConflicts).status)
  }

  /// - Parameter defaulted: The columns of a row that has come back whose values are not known.
  private func show(
    _ number: Int64, _ manager: DocumentSyncManager, defaulted: [SQLName] = []
  ) async throws -> Outcome {
    let conflict = ConflictJSON(
      try await manager.conflict(number), names: await ClientNames(manager))
    let open = try await manager.openConflictCount()
    var lines = conflict.lines
    if !defaulted.isEmpty {
      lines.append(
        "warning: this device does not know the other values of the row; these columns have their "
          + "defaults: \(defaulted.map { printable($0) }.joined(separator: ", "))")
    }
    return Outcome(
      json: One(
        store: arguments.store, openConflicts: open, conflict: conflict,
        defaultedColumns: defaulted.isEmpty ? nil : defaulted),
      lines: lines, status: Unsettled(openConflicts: open).status)
  }

  private static func lines(_ policies: SyncPolicies) -> [String] {
    var rows = [["document", policies.document.description]]
    let tables = Set(policies.tables.keys).union(policies.columns.keys)
    for table in tables.sorted() {
      if let policy = policies.tables[table] { rows.append([printable(table), "\(policy)"]) }
      for (column, policy) in (policies.columns[table] ?? [:]).sorted(by: { $0.key < $1.key }) {
        rows.append([printable("\(table).\(column)"), "\(policy)"])
      }
    }
    return alignedLines(rows)
  }
}
