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
      let text = definition.sql.split(omittingEmptySubsequences: false) { $0.isNewline }.map(
        String.init)
      if definition.isStatement, text.allSatisfy(isPlain) {
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

  /// Whether a line is shown as it is. Tabs do no harm.
  private func isPlain(_ line: String) -> Bool {
    line.unicodeScalars.allSatisfy { $0 == "\t" || !$0.isUnsafeToShow }
  }
}
