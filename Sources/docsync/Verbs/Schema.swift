import ArgumentParser
import DocumentSync
import SyncModel
import SyncStore

/// `docsync schema`
struct Schema: StoreVerb {
  static let configuration = CommandConfiguration(
    abstract: "Print the SQL of tables and columns that only other devices have.",
    discussion: """
      Synchronizing changes no schema. This command prints statements that create here what other \
      devices have; values that arrived before appear with the next sync. It knows what is in the \
      whole databases that devices have uploaded, and changes nothing. Everything that is no SQL is \
      a comment, so the output can go into sqlite3; read it first.
      """ + examples("docsync schema notes.db"))

  @OptionGroup var arguments: StoreArguments
  @OptionGroup var output: OutputOptions

  /// The output with `--json`.
  struct Result: Encodable, Sendable {
    var store: String
    var definitions: [DefinitionJSON]
    var undefinedNames: [SQLName]
  }

  /// A definition, as printed.
  struct DefinitionJSON: Encodable, Sendable {
    var name: SQLName
    /// `table`, `column`, `index`, `view` or `trigger`.
    var kind: String
    var sql: String
    var isStatement: Bool

    init(_ definition: StoreStatus.MissingSchema.Definition) {
      name = definition.name
      kind = definition.kind.rawValue
      sql = definition.sql
      isStatement = definition.isStatement
    }
  }

  func perform(_ console: Console) async throws -> Outcome {
    try await arguments.withManager { manager in
      let bar = ProgressBar(on: console)
      defer { bar.clear() }
      let missing = try await manager.missingSchema(onProgress: bar.handler)
      bar.clear()
      return Outcome(
        json: Result(
          store: arguments.store, definitions: missing.definitions.map(DefinitionJSON.init),
          undefinedNames: missing.undefinedNames),
        lines: lines(missing))
    }
  }

  /// Returns the text: SQL, with everything else in comments, so that it can be executed as it is.
  private func lines(_ missing: StoreStatus.MissingSchema) -> [String] {
    let store = shellWord(arguments.store)
    var lines: [String] = []
    if missing.definitions.isEmpty {
      lines.append("-- Nothing is missing that other devices have uploaded.")
    }
    for definition in missing.definitions {
      let text = sqlLines(definition.sql)
      if definition.isStatement, !text.contains(where: isForShell),
        text.allSatisfy({ !$0.unicodeScalars.contains(where: \.isUnsafeToShow) })
      {
        lines += text.dropLast() + [(text.last ?? "") + ";"]
      } else {
        lines.append(
          "-- " + printable("\(definition.kind.rawValue) \(definition.name)")
            + (definition.kind == .column
              ? ": ALTER TABLE cannot add it. Create the table again with it:"
              : ": it cannot be printed as a statement:"))
        lines += text.map { "--   " + printable($0) }
      }
    }
    if !missing.undefinedNames.isEmpty {
      lines.append(
        "-- Not in any whole database that a device has uploaded: "
          + printable(missing.undefinedNames.joined(separator: ", ")))
      lines.append(
        "-- On a device that has it, run: docsync upload STORE. Then here: docsync schema \(store)")
    }
    return lines
  }

  /// Returns the lines of SQL. Tabs and the ends of lines of Windows, which are not shown as they are, become
  /// spaces and ends of lines, unless a string or a name may contain them.
  private func sqlLines(_ sql: String) -> [String] {
    let lines = sql.split(separator: "\n", omittingEmptySubsequences: false)
      .flatMap { $0.split(separator: "\r\n", omittingEmptySubsequences: false) }
    guard lines.allSatisfy(hasClosedQuotes) else {
      return sql.unicodeScalars.split(separator: "\n", omittingEmptySubsequences: false)
        .map { String($0) }
    }
    return lines.map { line in
      let parts = line.split(separator: "\t", omittingEmptySubsequences: false)
      return parts.allSatisfy(hasClosedQuotes) ? parts.joined(separator: "  ") : String(line)
    }
  }

  /// Whether no string and no quoted name begins in a text and ends after it.
  private func hasClosedQuotes(_ text: Substring) -> Bool {
    ["'", "\"", "`"].allSatisfy { quote in
      text.unicodeScalars.count { $0 == quote }.isMultiple(of: 2)
    }
  }

  /// Whether sqlite3 could take a line for something else than SQL, even amid a statement: “go” and “/” end
  /// one, and what begins with a dot after that is a command of sqlite3, such as `.shell`.
  ///
  /// <https://www.sqlite.org/cli.html#rules_for_dot_commands_sql_and_more>
  private func isForShell(_ line: String) -> Bool {
    let text = line.drop { $0.isWhitespace }.lowercased()
    return text.hasPrefix(".") || text.hasPrefix("#") || text.hasPrefix("/") || text == "go"
      || text.hasPrefix("go")
        && text.dropFirst(2).first.map { !$0.isLetter && !$0.isNumber } == true
  }
}
