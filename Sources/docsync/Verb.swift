import ArgumentParser

/// A command. Each has a file in Verbs.
protocol Verb: ParsableCommand, Sendable {
  /// Whether `--json` writes one object on each line, as long as the command runs.
  static var writesLines: Bool { get }

  /// The options for the output.
  var output: OutputOptions { get }

  /// What the commands in remedies name.
  var commandPlace: CommandPlace { get }

  /// Runs the command. An error is printed as a ``Failure``.
  func perform(_ console: Console) async throws -> Outcome
}

extension Verb {
  static var writesLines: Bool { false }
  var commandPlace: CommandPlace { CommandPlace() }
}

/// A command for one database under sync.
protocol StoreVerb: Verb {
  var arguments: StoreArguments { get }
}

extension StoreVerb {
  var commandPlace: CommandPlace { arguments.place.commandPlace(of: arguments.store) }
}

/// The result of a command.
struct Outcome: Sendable {
  /// The object for `--json`.
  var json: any Encodable & Sendable
  /// The lines for people.
  var lines: [String]
  var status = ExitStatus.done
}

/// Returns the end of a help text: examples, one on each line.
func examples(_ commands: String...) -> String {
  "\n\nEXAMPLES\n" + commands.map { "  " + $0 }.joined(separator: "\n")
}

/// The options that every command has.
struct OutputOptions: ParsableArguments {
  @Flag(help: "Print one JSON object on standard output, also for errors.")
  var json = false
}
